//! The kernel component: characteristics of the running kernel, logged by eBPF handlers (LOG-13,
//! design decision D4).
//!
//! The handlers are known at build time. The kernel's verifier checks them when they are loaded, and they are
//! attached only while their characteristic is enabled. A disabled one does not exist for the kernel (thesis
//! §3.3.2, §4.3.2, by today's means). The log areas are memory-mapped array maps: the scheduler configures
//! them, and reads what the kernel writes, in place, without a copy, a lock or a wake-up.
//!
//! ```text
//!   Kernel::load ──▶ bind ──▶ enable ──▶ (rows appear in the areas) ──▶ disable ──▶ drop
//!    verified        tasks     attached                                 detached     nothing left
//!                    inherit
//! ```
//!
//! Principles:
//!
//! 1. **No word of an area is trusted.** Handlers mask each index in the line that uses it, and the verifier
//!    proves that they cannot reach anything outside the map (LOG-11). What a handler must rely on is in maps
//!    of its own.
//! 2. **Nothing outlives the process.** No program, link or map is pinned. The kernel frees all of them when
//!    the last descriptor is closed, also after `kill -9`.
//! 3. **One sentence says what is missing** ([`KernelError`], [`capabilities`]).
//! 4. **The C code and the Rust code share one definition.** Programs, maps, globals and numbers of `bpf/`
//!    are generated as Rust when this crate is built (`build.rs`, `skeleton.rs`).
//!
//! [`record`] does the same for the events of a schema, whose programs are generated from it.
//!
//! ```no_run
//! use mete_kernel::{Characteristic, Kernel, Principal};
//! use mete_log::DomainId;
//! # fn main() -> Result<(), mete_kernel::KernelError> {
//! let mut kernel = Kernel::load()?;
//! kernel.bind(&Principal::Process(1234), DomainId::new(7))?;
//! let event = kernel.enable(&Characteristic::ServiceTime)?;
//! for processor in 0..kernel.processors() {
//!     let area = kernel.area(processor);
//!     // Plan::apply(area), then Cursor::new(area, …): rows with `event` and domain 7
//! }
//! # Ok(()) }
//! ```

#![cfg(target_os = "linux")]

pub mod accounts;
mod areas;
pub mod bench;
mod capability;
mod cgroup;
mod characteristic;
pub mod counter;
mod error;
mod glob;
mod kernel;
mod limit;
mod load;
mod map;
mod numbers;
pub mod perf;
mod plain;
mod privilege;
mod program;
pub mod record;
mod skeleton;
mod tracefs;
mod weight;

pub use capability::{Capability, Need, capabilities};
pub use characteristic::{Characteristic, event};
pub use counter::Counter;
pub use error::KernelError;
pub use glob::Glob;
pub use kernel::{
    Bound, DividedBy, Division, DomainTable, Kernel, Principal, ProcessKind, Rule, Selects, ThreadName,
    has_hook,
};
pub use limit::Limit;
pub use load::load_skeleton;
pub use map::Mapping;
pub use numbers::{AtomicNumbers, SharedNumbers};
pub use privilege::{check_capabilities, check_pid_namespace};
pub use weight::Weight;
