//! Policies that rule running processes (VTRR-6, TAVS-9): shares, and how soon a sleeper runs, under the
//! kernel's own scheduler, under the dispatcher, and under sched_ext; and the same policies live, replayed and
//! simulated (NEW-1).

pub(crate) mod cost;
pub(crate) mod ext;
pub(crate) mod groups;
pub(crate) mod latency;
pub(crate) mod micro;
pub(crate) mod processors;
mod programs;
mod recorded;
pub(crate) mod shares;
mod stage;
mod turns;
pub(crate) mod worlds;
