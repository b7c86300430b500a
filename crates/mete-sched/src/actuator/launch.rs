//! How watchers are started. What they do then is in [`watcher`](super::watcher).

use std::ffi::OsString;
use std::process::Command;

pub use mete_keeper::this_program;
use mete_keeper::{Keepers, Role};

use super::ActuatorError;
use super::journal::Journal;
use super::ledger::Ledger;

/// The first argument that makes this program a watcher.
pub const ARGUMENT: &str = "--undo-changes";

pub(super) static ROLE: Role = Role { argument: ARGUMENT, names: [c"mete-restore", c"mete-restore-2"] };

/// Starts both watchers.
pub(super) fn start<L: Ledger>(
    journal: &Journal<L>,
    program: impl Fn() -> Command + Send + 'static,
) -> Result<Keepers, ActuatorError> {
    let own = OsString::from(std::process::id().to_string());
    let started = journal
        .to_inherit()
        .and_then(|(file, path)| Keepers::start(&ROLE, program, vec![file], vec![path, own]));
    started.map_err(ActuatorError::NoWatcher)
}
