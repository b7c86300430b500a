//! Named values of a running program as files (KLogger §4.3: parameters that are "tunable at runtime"). Any
//! program that can write a file can set a value: a shell script, or a computation in the middle of its work.
//!
//! ```text
//!   echo 1 > DIR/enable ──▶ kernel (FUSE) ──▶ session thread ──▶ Store::write ──▶ Ok, or Refusal
//!                                                                                    │
//!   the writer's system call returns ◀── errno ◀─────────────────────────────────────┘
//!
//!   program ends, panics, is killed ──▶ its pipe ends ──▶ keepers: unmount, remove the directory, end
//! ```
//!
//! Principles:
//!
//! 1. **The tree never outlives its program.** Two [`keeper`] processes start before the tree is mounted, and
//!    unmount it when the program ends, however it ends.
//! 2. **A write that returns has taken effect.** Either the value is in effect, or the system call has
//!    failed.
//! 3. **Only the user who mounted the tree may look into it.** No other user may, not even root.
//! 4. **The mount table is the register.** Running trees are [found] there, so no entry can be out of date. A
//!    name or a path can be chosen by another user, so neither is believed: see [`mounts`].
//!
//! ```no_run
//! use mete_parameters::{Access, File, Mounted, Refusal, Store, keeper};
//!
//! struct Nothing;
//!
//! impl Store for Nothing {
//!     fn read(&self, _file: &str) -> Result<String, Refusal> {
//!         Ok("0\n".into())
//!     }
//!     fn write(&self, file: &str, _value: &str) -> Result<(), Refusal> {
//!         Err(Refusal::value(format!("{file} cannot be anything")))
//!     }
//! }
//!
//! # fn main() -> Result<(), mete_parameters::MountError> {
//! // The first call in `main`: this program may have been started as a keeper.
//! keeper::take_over_if_asked(|| ());
//! let files = vec![File::new("enable", Access::Both)];
//! let mounted = Mounted::new(None, "/run/example".as_ref(), files, Nothing, keeper::this_program)?;
//! // ...
//! drop(mounted);
//! # Ok(())
//! # }
//! ```

mod attach;
mod chosen;
pub mod client;
mod desk;
mod directory;
mod error;
mod file;
pub mod keeper;
mod made;
mod mount;
pub mod mounts;
mod notes;
mod patience;
mod place;
mod recovery;
mod serve;
mod source;
mod tree;

pub use chosen::{ChoiceError, chosen, running};
pub use client::{ParameterError, ParameterFiles};
pub use desk::{Asker, Desk, Request, desk};
pub use error::MountError;
pub use file::{Access, File, Refusal, Store};
pub use mount::{Mounted, is_possible};
pub use mounts::{FoundTree, Root, found};
pub use place::refuse_hiding;
pub use recovery::recover;
