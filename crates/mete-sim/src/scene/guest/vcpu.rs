//! A virtual processor of a guest: its run queue, the task that runs, and the signals that have come for it.

use std::collections::VecDeque;

use mete_policy::Nanoseconds;

use super::kernel::Kernel;
use crate::scene::Signal;

/// One virtual processor.
pub(super) struct Vcpu {
    pub(super) kernel: Kernel,
    /// The tasks in its run queue, including the one that runs.
    pub(super) ready: Vec<bool>,
    /// Signals that the kernel has not taken, each with the time of its arrival.
    pub(super) pending: VecDeque<(Signal, Nanoseconds)>,
    /// Work of the kernel itself that comes before any task.
    pub(super) kernel_left_ns: Nanoseconds,
    pub(super) current: Option<usize>,
    /// The task whose address space is loaded.
    pub(super) loaded: Option<usize>,
    pub(super) must_choose: bool,
    /// When it next checks whether others have more to do.
    pub(super) balances_at_ns: Nanoseconds,
    pub(super) switches: u64,
    /// How long its tasks spun for locks.
    pub(super) spun_ns: Nanoseconds,
}

impl Vcpu {
    pub(super) fn new(kernel: Kernel) -> Vcpu {
        Vcpu {
            kernel,
            ready: Vec::new(),
            pending: VecDeque::new(),
            kernel_left_ns: Nanoseconds::ZERO,
            current: None,
            loaded: None,
            must_choose: true,
            balances_at_ns: Nanoseconds::ZERO,
            switches: 0,
            spun_ns: Nanoseconds::ZERO,
        }
    }

    /// How many tasks are in its run queue.
    pub(super) fn load(&self) -> usize {
        self.ready.iter().filter(|ready| **ready).count()
    }

    /// How many of these tasks wait for the one that runs, or for the host to let the virtual processor run.
    pub(super) fn waiting(&self) -> usize {
        self.load() - usize::from(self.current.is_some())
    }

    /// Whether its kernel has nothing to run.
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && !self.ready.contains(&true)
    }
}
