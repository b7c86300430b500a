//! Keepers: processes that outlive a program only as long as it takes to undo what the program did.
//!
//! A program that changes something on the machine (processor masks, mounts) starts two keepers before the
//! first change. The program and its keepers share a pipe that no process ever writes into, and the files
//! that say what must be undone.
//!
//! ```text
//!                  ┌──▶ first keeper    a child of the program
//!   program ── pipe┤
//!      ▲           └──▶ second keeper   a grandchild: its parent waits for its end, and does nothing else
//!      └── watches both keepers, and at once starts another one in the place of a keeper that has ended
//!
//!   program ends, however it ends ──▶ the pipe ends ──▶ both keepers undo; the second one finds nothing left to undo
//! ```
//!
//! Principles:
//!
//! 1. **What must be undone lies in files, not in a keeper's memory.** Keepers inherit the open files. So a
//!    keeper that is started late knows as much as a keeper that was there from the beginning.
//! 2. **Undoing twice is the same as undoing once.** So keepers need not agree on which of them does it.
//! 3. **The end of a keeper is noticed at once**, by the end of its output, and another one is started.
//! 4. **The two keepers differ in everything that a kill selects by**: name, parent, session. Ctrl-C and
//!    polite signals reach neither.
//!
//! Keepers cannot survive one thing: a kill of all three processes within the milliseconds that it takes to
//! start a keeper or to undo. For that case, the files must have names, by which the next start of the
//! program finds them.

mod duty;
mod keepers;
mod left;

use std::ffi::CStr;
use std::process::Command;

pub use duty::{Duty, asked};
pub use keepers::Keepers;
pub use left::{files_left, open_left};

/// The command that starts this program as a keeper. It works after the program's file was replaced, too.
pub fn this_program() -> Command {
    Command::new("/proc/self/exe")
}

/// The task for which keepers are started.
#[derive(Debug)]
pub struct Role {
    /// The first argument that makes the program a keeper.
    pub argument: &'static str,
    /// The names of the two keepers' processes. They must differ from the program's name and from each other.
    /// At most 15 bytes.
    pub names: [&'static CStr; 2],
}

/// The first word that a keeper says. The number of its process follows.
const READY: &str = "keeping";

/// The second argument: which keeper the process is to become, and how far it is with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeeperStage {
    First,
    /// Starts the second keeper and waits for its end. The process stands between the program and the second
    /// keeper, and does nothing else.
    ToStartSecond,
    Second,
}

impl KeeperStage {
    const ALL: [KeeperStage; 3] = [KeeperStage::First, KeeperStage::ToStartSecond, KeeperStage::Second];

    fn word(self) -> &'static str {
        match self {
            KeeperStage::First => "first",
            KeeperStage::ToStartSecond => "start-second",
            KeeperStage::Second => "second",
        }
    }
}
