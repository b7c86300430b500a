//! Policies that rule running processes (VTRR-6, TAVS-9): shares, and how soon a sleeper runs, under the kernel's own
//! scheduler and under the dispatcher.

pub(crate) mod latency;
pub(crate) mod shares;
mod stage;
