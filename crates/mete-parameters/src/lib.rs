//! Named values of a running program as files (KLogger §4.3: parameters that are "tunable at runtime"): whoever can
//! write a file can set one, from a shell script or from the middle of a computation.
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
//! 1. **The tree never outlives its program.** Two [`keeper`] processes are there before the mount is, and take it away
//!    when the program ends, however it ends.
//! 2. **A write that returns has happened.** The value is in effect, or the system call has failed.
//! 3. **Nobody else may look.** Only the user who mounted it gets in, not even root otherwise.
//! 4. **The mount table is the register.** Running trees are [found] there, so nothing can be stale. What another user
//!    can choose, a name or a path, is not believed: see [`mounts`].
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
//! // First of all in `main`: this program may have been started as the keeper.
//! keeper::take_over_if_asked(|| ());
//! let files = vec![File::new("enable", Access::Both)];
//! let mounted = Mounted::new("/run/example".as_ref(), files, Nothing, keeper::this_program)?;
//! // ...
//! drop(mounted);
//! # Ok(())
//! # }
//! ```

mod attach;
mod directory;
mod error;
mod file;
pub mod keeper;
mod mount;
pub mod mounts;
mod notes;
mod serve;
mod tree;

pub use error::MountError;
pub use file::{Access, File, Refusal, Store};
pub use mount::{Mounted, is_possible};
pub use mounts::{Found, Root, found, recover};
