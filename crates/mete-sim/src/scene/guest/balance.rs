//! On which virtual processor a task runs.
//!
//! * A task that wakes goes where it ran last if that is idle, otherwise to the first idle one, otherwise
//!   where it ran last.
//! * A virtual processor that would idle takes over a task that waits at the one where most wait.
//! * One that is busy looks every [`BALANCE_NS`] for one that has two tasks more, and takes one.
//!
//! In the manner of Linux 2.6, whose schedulers the guests have: balancing now and then and before idling
//! throughout, looking for an idle processor at a wake-up in its later versions. What a kernel cannot see is whether the host lets its virtual processors run:
//! the task that runs on one that the host has preempted stays there, and those behind it stay until
//! another one looks.

use mete_policy::Nanoseconds;

use super::Guest;

/// How often a busy processor looks for a busier one: Linux 2.6's interval of 1 ms times its factor of 64
/// for processors that are busy.
pub(super) const BALANCE_NS: Nanoseconds = 64_000_000;

impl Guest {
    /// Where a task that wakes runs.
    pub(super) fn place(&self, task: usize) -> usize {
        let home = self.tasks[task].home;
        if self.vcpus.len() == 1 || self.vcpus[home].is_idle() {
            return home;
        }
        self.vcpus.iter().position(|vcpu| vcpu.is_idle()).unwrap_or(home)
    }

    /// From now on the task is in the run queue of that virtual processor, once it is ready.
    pub(super) fn settle(&mut self, task: usize, at: usize) {
        let home = std::mem::replace(&mut self.tasks[task].home, at);
        if let Ok([from, to]) = self.vcpus.get_disjoint_mut([home, at]) {
            to.kernel.take_over(task, &from.kernel);
            to.ready[task] = std::mem::take(&mut from.ready[task]);
        }
    }

    /// Takes over a task that waits at another virtual processor that has at least so many; whether there
    /// was one.
    pub(super) fn pull(&mut self, to: usize, least_load: usize) -> bool {
        let others = self.vcpus.iter().enumerate().filter(|(from, _)| *from != to);
        let loaded = others.filter(|(_, vcpu)| vcpu.load() >= least_load && vcpu.waiting() > 0);
        let Some((_, from)) = loaded.max_by_key(|(from, vcpu)| (vcpu.waiting(), std::cmp::Reverse(*from)))
        else {
            return false;
        };
        let Some(task) = from.kernel.spare(&from.ready, from.current) else { return false };
        self.settle(task, to);
        true
    }

    /// Looks whether another virtual processor has more to do, if it is time to.
    pub(super) fn balance(&mut self, at: usize, now_ns: Nanoseconds) {
        if self.vcpus.len() == 1 || now_ns < self.vcpus[at].balances_at_ns {
            return;
        }
        self.vcpus[at].balances_at_ns = now_ns.saturating_add(BALANCE_NS);
        let load = self.vcpus[at].load();
        self.pull(at, load + 2);
    }
}
