//! Keepers: processes that outlive a program by as much as it takes to undo what the program did.
//!
//! A program that changes something on the machine (processor masks, mounts) starts two keepers before the first
//! change. They share with it a pipe that is never written into, and the files that tell what is to be undone.
//!
//! ```text
//!                  ┌──▶ first keeper    a child of the program
//!   program ── pipe┤
//!      ▲           └──▶ second keeper   a grandchild: its parent waits for its end, and does nothing else
//!      └── watches both; in the place of one that ended it starts another one at once
//!
//!   program ends, however it ends ──▶ the pipe ends ──▶ both keepers undo; the second one finds it done
//! ```
//!
//! Principles:
//!
//! 1. **What is to be undone lies in files, not in a keeper's memory.** Keepers inherit the open files, so one that is
//!    started late knows as much as one that was there from the beginning.
//! 2. **Undoing twice is undoing once.** Keepers need not agree on who does it.
//! 3. **A keeper that ends is noticed at once**, by the end of its output, and replaced.
//! 4. **The two differ in whatever a kill goes by**: name, parent, session. Ctrl-C and polite signals reach neither.
//!
//! What this cannot do: survive the kill of all three within the milliseconds that it takes to start a keeper or to
//! undo. For that the files have to have names, by which the next start of the program finds them.

mod duty;
mod keepers;

use std::ffi::CStr;

pub use duty::{Duty, asked};
pub use keepers::Keepers;

/// What keepers are started for.
#[derive(Debug)]
pub struct Role {
    /// The first argument that makes the program a keeper.
    pub argument: &'static str,
    /// What the two are called: neither like the program nor like each other. 15 bytes at most.
    pub names: [&'static CStr; 2],
}

/// A keeper's first word; the number of its process follows.
const READY: &str = "keeping";

/// The second argument: which one it is to be, and how far it is with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    First,
    /// Starts the second keeper and waits for its end: it stands between the program and that one, and does nothing
    /// else.
    ToStartSecond,
    Second,
}

impl Stage {
    const ALL: [Stage; 3] = [Stage::First, Stage::ToStartSecond, Stage::Second];

    fn word(self) -> &'static str {
        match self {
            Stage::First => "first",
            Stage::ToStartSecond => "start-second",
            Stage::Second => "second",
        }
    }
}
