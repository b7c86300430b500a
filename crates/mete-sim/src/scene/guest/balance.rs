//! The choice of the virtual processor on which a task runs.
//!
//! * A task that wakes goes to the virtual processor where it ran last if that is idle, otherwise to the
//!   first idle one, otherwise again to where it ran last.
//! * A virtual processor that would idle takes over a task that waits at the one where most tasks wait.
//! * A busy virtual processor checks every [`BALANCE_NS`] for one that has at least two tasks more, and takes
//!   one of them.
//!
//! The guests have schedulers of Linux 2.6, and this is how Linux 2.6 balances: it balanced now and then and
//! before idling in all its versions, and its later versions looked for an idle processor at a wake-up. A
//! guest's kernel cannot see whether the host lets its virtual processors run. A task that runs on a virtual
//! processor that the host has preempted stays there, and the tasks behind it stay until another virtual
//! processor checks.

use mete_policy::Nanoseconds;

use super::Guest;

/// How often a busy processor checks for a busier one: Linux 2.6's interval of 1 ms times its factor of 64
/// for busy processors.
pub(super) const BALANCE_NS: Nanoseconds = Nanoseconds::new(64_000_000);

impl Guest {
    /// The virtual processor on which a task that wakes runs.
    pub(super) fn place(&self, task: usize) -> usize {
        let home = self.tasks[task].home;
        if self.vcpus.len() == 1 || self.vcpus[home].is_idle() {
            return home;
        }
        self.vcpus.iter().position(|vcpu| vcpu.is_idle()).unwrap_or(home)
    }

    /// From now on the task belongs to the run queue of the virtual processor `at`.
    pub(super) fn settle(&mut self, task: usize, at: usize) {
        let home = std::mem::replace(&mut self.tasks[task].home, at);
        // Where both are the same, there is no disjoint pair and nothing to move.
        if let Ok([from, to]) = self.vcpus.get_disjoint_mut([home, at]) {
            to.kernel.take_over(task, &from.kernel);
            to.ready[task] = std::mem::take(&mut from.ready[task]);
        }
    }

    /// Takes over a task that waits at another virtual processor with at least `least_load` tasks. The result
    /// says whether there was such a task.
    pub(super) fn pull(&mut self, to: usize, least_load: usize) -> bool {
        let others = self.vcpus.iter().enumerate().filter(|(from, _)| *from != to);
        let loaded = others.filter(|(_, vcpu)| vcpu.load() >= least_load && vcpu.waiting() > 0);
        // `Reverse`: of several equally loaded ones, the first is taken.
        let busiest = loaded.max_by_key(|(from, vcpu)| (vcpu.waiting(), std::cmp::Reverse(*from)));
        let Some(from) = busiest.map(|(from, _)| from) else { return false };
        let from = &mut self.vcpus[from];
        let Some(task) = from.kernel.scheduler().spare(&from.ready, from.current) else { return false };
        self.settle(task, to);
        true
    }

    /// If it is time to, checks whether another virtual processor has more to do.
    pub(super) fn balance(&mut self, at: usize, now_ns: Nanoseconds) {
        if self.vcpus.len() == 1 || now_ns < self.vcpus[at].balances_at_ns {
            return;
        }
        self.vcpus[at].balances_at_ns = now_ns.saturating_add(BALANCE_NS);
        let load = self.vcpus[at].load();
        self.pull(at, load + 2);
    }
}
