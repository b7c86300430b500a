//! Subcommands that separate programs carry out, so that `mete` stays small: the demo, the bench and the studies. Here
//! is what they take, and how they are started.

mod bench;
mod demo;
mod study;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, anyhow};

pub use bench::BenchOptions;
pub use demo::{DemoOptions, MOST_CLIENTS};
pub use study::{STUDIES, StudyOptions};

use crate::command_line;

/// Replaces this process by the program beside it that carries out a subcommand. The program gets `first`, and the arguments that were typed after the subcommand. Returns only if it cannot be started.
pub fn become_program(name: &str, first: Option<&str>) -> anyhow::Error {
    match program_beside(name) {
        Ok(program) => {
            let typed = command_line::typed().into_iter().skip(2);
            let error = Command::new(&program).args(first).args(typed).exec();
            anyhow!(error).context(format!(
                "cannot start {}, which does this subcommand: `make install` puts it beside mete",
                program.display()
            ))
        }
        Err(error) => error,
    }
}

/// Where a program lies that belongs to this one.
///
/// # Errors
///
/// If the place of this program is not known.
pub fn program_beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find out where this program lies")?;
    Ok(own.with_file_name(name))
}
