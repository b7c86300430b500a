//! The watchers: two processes that outlive the scheduler by as much as it takes to put processor masks back.
//!
//! They are this program again, started with [`ARGUMENT`]: the program's `main` calls [`take_over_if_asked`] first.
//! [`mete_keeper`] says how they are started, replaced and told of the scheduler's end; what they undo is in the
//! journal, which the scheduler writes before each change. Killing the scheduler and both watchers within the moment
//! that it takes to undo defeats them; what is left then is undone by [`recover`](super::recover).

use std::ffi::OsStr;
use std::io;
use std::process::Command;

use mete_keeper::{Duty, Keepers, Role};

use super::ActuatorError;
use super::journal::Journal;

/// The first argument that makes this program a watcher.
pub const ARGUMENT: &str = "--restore-processor-masks";

static ROLE: Role = Role { argument: ARGUMENT, names: [c"mete-restore", c"mete-restore-2"] };

/// Becomes a watcher, and does not return, if this program was started as one. To be called first
/// in `main` of a program that uses [`Affinity`](super::Affinity).
pub fn take_over_if_asked() {
    if let Some(duty) = mete_keeper::asked(&ROLE) {
        watch(duty);
        std::process::exit(0);
    }
}

/// This program as the watcher, also after its file was replaced.
pub fn this_program() -> Command {
    Command::new("/proc/self/exe")
}

/// The watcher's life.
fn watch(mut duty: Duty) {
    // It logs nothing, so no scheduler shall find probes in it: least of all the one that started it,
    // which would take it for something to read.
    mete_probe::withdraw();
    duty.wait();
    let Some(file) = duty.files.pop() else { return };
    let path = duty.words.first().map_or(OsStr::new(""), |path| path);
    // The other one tries, too.
    let _ = Journal::inherited(file, path).undo();
}

/// Starts both.
pub(super) fn start(
    journal: &Journal,
    program: impl Fn() -> Command + Send + 'static,
) -> Result<Keepers, ActuatorError> {
    let started =
        journal.to_inherit().and_then(|(file, path)| Keepers::start(&ROLE, program, vec![file], vec![path]));
    started.map_err(|source: io::Error| ActuatorError::NoWatcher { source })
}
