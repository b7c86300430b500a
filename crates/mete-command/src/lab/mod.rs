//! Subcommands that separate programs carry out, so that `mete` stays small: the demo, the bench and the studies. Here
//! is what they take, and how they are started.

mod bench;
mod demo;
mod study;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, anyhow, ensure};

pub use bench::BenchOptions;
pub use demo::{DemoOptions, MOST_CLIENTS};
pub use study::{STUDIES, StudyOptions};

use crate::command_line;

/// Replaces this process by the program beside it that carries out a subcommand. The program gets `first`, and the
/// arguments that were typed after the subcommand. Returns only if it cannot be started.
pub fn become_program(name: &str, first: Option<&str>) -> anyhow::Error {
    match program_beside(name) {
        Ok(program) => {
            // Behind the program's own name and the subcommand.
            let typed = command_line::typed().into_iter().skip(2);
            let error = Command::new(&program).args(first).args(typed).exec();
            anyhow!(error).context(format!("cannot start {}", program.display()))
        }
        Err(error) => error,
    }
}

/// A program that belongs to this one and lies beside it.
///
/// # Errors
///
/// If it is not there, with what to do about it.
pub fn program_beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find out where this program lies")?;
    let program = own.with_file_name(name);
    let remedy = "it belongs beside this program: `make install` installs all of them together";
    ensure!(program.exists(), "{} is missing; {remedy}", program.display());
    Ok(program)
}
