//! Subcommands that separate programs carry out, so that `mete` stays small: the demo, the bench and the studies. Here
//! is what they take, and how they are started.

mod bench;
mod demo;
mod study;

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow, bail};

pub use bench::BenchOptions;
pub use demo::{DemoOptions, MOST_CLIENTS};
pub use study::{STUDIES, StudyOptions};

use crate::{command_line, interrupt};

/// Replaces this process by the program beside it that carries out a subcommand. The program gets `first`, and the
/// arguments that were typed after the subcommand. Returns only if it cannot be started.
pub fn become_program(name: &str, first: Option<&str>) -> anyhow::Error {
    match program_beside(name) {
        Ok(program) => {
            // Behind the program's own name and the subcommand.
            let typed = command_line::typed().into_iter().skip(2);
            let mut command = Command::new(&program);
            interrupt::restore_limits(&mut command);
            let error = command.args(first).args(typed).exec();
            anyhow!(error).context(format!("cannot start {}", program.display()))
        }
        Err(error) => error,
    }
}

/// How programs begin, and scripts that name their interpreter: what the kernel runs by itself. The C library hands any
/// other file to a shell, which would run a damaged program as a script, and find an empty one done.
const BEGINNINGS: [&[u8]; 2] = [b"\x7fELF", b"#!"];

/// A program that belongs to this one and lies beside it.
///
/// # Errors
///
/// If it is not there or is not that program, with what to do about it.
pub fn program_beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find out where this program lies")?;
    let program = own.with_file_name(name);
    let what = fault_of(&program);
    let remedy = "it belongs beside this program: `make install` installs all of them together";
    match what {
        Some(what) => bail!("{} {what}; {remedy}", program.display()),
        None => Ok(program),
    }
}

/// Why a file is not the program that belongs beside this one.
fn fault_of(program: &Path) -> Option<&'static str> {
    let Ok(found) = fs::metadata(program) else { return Some("is missing") };
    if !found.is_file() {
        return Some("is not a program");
    }
    // This program would start itself again and again.
    let is_this = |own: &Metadata| (own.dev(), own.ino()) == (found.dev(), found.ino());
    if fs::metadata("/proc/self/exe").is_ok_and(|own| is_this(&own)) {
        return Some("is this program itself");
    }
    let mut beginning = Vec::new();
    let read = File::open(program).and_then(|file| file.take(4).read_to_end(&mut beginning));
    match read {
        // A program that may be run but not read is for the kernel to judge.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        Ok(_) if BEGINNINGS.iter().any(|known| beginning.starts_with(known)) => None,
        _ => Some("is damaged"),
    }
}
