//! Subcommands that separate programs carry out, so that `mete` stays small: the demo, the bench and the
//! studies. Here is what they take, and how they are started.

mod bench;
mod demo;
mod study;

use std::ffi::{CString, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::iter;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use anyhow::{Context, anyhow};

pub use bench::BenchOptions;
pub use demo::{DemoOptions, MOST_CLIENTS};
pub use study::{STUDIES, StudyOptions};

use crate::{command_line, interrupt};

/// Replaces this process by the program beside it that carries out a subcommand. The program gets `first`,
/// and the arguments that were typed after the subcommand. Returns only if it cannot be started.
pub fn become_program(name: &str, first: Option<&str>) -> anyhow::Error {
    let program = match program_beside(name) {
        Ok(program) => program,
        Err(error) => return error,
    };
    // Behind the program's own name and the subcommand.
    let typed = command_line::typed().into_iter().skip(2);
    let error = execute(&program, first.map(OsString::from).into_iter().chain(typed));
    match error.raw_os_error() {
        Some(libc::ENOEXEC) => not_beside(&program, DAMAGED),
        _ => anyhow!(error).context(format!("cannot start {}", program.display())),
    }
}

/// Replaces this process by a program, with the limits that the user has set. A file that the kernel does not
/// take for a program is an error. `Command` alone would hand it to a shell, as the C library does.
fn execute(program: &Path, arguments: impl Iterator<Item = OsString>) -> io::Error {
    let texts = iter::once(program.into()).chain(arguments).map(|text| CString::new(text.into_vec()));
    let texts: Vec<_> = match texts.collect() {
        Ok(texts) => texts,
        Err(error) => return error.into(),
    };
    let call = move || {
        let pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        // SAFETY: the list ends with a null pointer, and the texts live in this closure.
        unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
        Err(io::Error::last_os_error())
    };
    let mut command = Command::new(program);
    interrupt::restore_limits(&mut command);
    // SAFETY: `exec` does not fork, so that the closure runs in this process and may allocate.
    unsafe { command.pre_exec(call) };
    command.exec()
}

/// How programs begin, and scripts that name their interpreter: what the kernel runs by itself. The C library
/// hands any other file to a shell, which would run a damaged program as a script, and find an empty one
/// done.
const BEGINNINGS: [&[u8]; 2] = [b"\x7fELF", b"#!"];

/// A program that belongs to this one and lies beside it.
///
/// # Errors
///
/// If it is not there or is not that program, with what to do about it.
pub fn program_beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find out where this program lies")?;
    let program = own.with_file_name(name);
    match fault_of(&program) {
        Some(fault) => Err(not_beside(&program, fault)),
        None => Ok(program),
    }
}

/// Says what is wrong with a program that belongs beside this one, and what to do.
fn not_beside(program: &Path, fault: &str) -> anyhow::Error {
    let remedy = "it belongs beside this program: `make install` installs all of them together";
    anyhow!("{} {fault}; {remedy}", program.display())
}

/// What is wrong with a file that is no program as a whole.
const DAMAGED: &str = "is damaged";

/// Why a file is not the program that belongs beside this one.
fn fault_of(program: &Path) -> Option<&'static str> {
    let Ok(found) = fs::metadata(program) else { return Some("is missing") };
    if !found.is_file() {
        return Some("is not a program");
    }
    if is_this_program(program, &found) {
        return Some("is this program itself");
    }
    let mut beginning = Vec::new();
    let read = File::open(program).and_then(|file| file.take(4).read_to_end(&mut beginning));
    match read {
        // A program that may be run but not read is for the kernel to judge.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        Ok(_) if BEGINNINGS.iter().any(|known| beginning.starts_with(known)) => None,
        _ => Some(DAMAGED),
    }
}

/// Whether a file is this program, under any of its names, or a copy of it. It would start itself again and
/// again, or take the arguments of a subcommand for its own.
fn is_this_program(program: &Path, found: &Metadata) -> bool {
    const OWN: &str = "/proc/self/exe";
    let Ok(own) = fs::metadata(OWN) else { return false };
    if (own.dev(), own.ino()) == (found.dev(), found.ino()) {
        return true;
    }
    // Files of different sizes are not read, and these hardly ever have the same.
    let is_copy = || Ok::<_, io::Error>(fs::read(OWN)? == fs::read(program)?);
    own.len() == found.len() && is_copy().unwrap_or(false)
}
