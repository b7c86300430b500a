//! What was wanted and what was given, as it is reported.

use mete_dispatch::Counts;
use mete_ext::{Ended, PolicyStatus, Status};
use mete_pausing::Counts as PauseCounts;
use serde::Serialize;

/// What a domain was to have beside the others that are named, and what it has got.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename = "share")]
pub struct Given {
    /// Its name.
    pub domain: String,
    /// Its share, of which 1 is ordinary.
    pub share: f64,
    /// What it may have at most, in processors.
    pub limit: Option<f64>,
    /// Its part of the shares of all domains, in percent.
    pub wanted_percent: f64,
    /// Its part of the processor time of all domains; `None` if they had none, or the kernel does not say.
    pub given_percent: Option<f64>,
    /// Its processor time in nanoseconds; `None` if the group is gone, or the kernel does not say.
    pub ran_ns: Option<u64>,
}

/// What the dealer did. The numbers are `None` where the kernel's own scheduler decides.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(tag = "kind", rename = "scheduler")]
pub struct Did {
    /// The policy that rules; `None` where the kernel's own scheduler decides.
    pub policy: Option<&'static str>,
    /// What has failed last, and with which words: the policy that was set last, or the scheduler. By sched_ext.
    pub failed: Option<String>,
    /// How often the scheduler was started again, after it had failed. By sched_ext, also while it does not rule.
    pub restarts: Option<u64>,
    /// What enforces the shares: `sched_ext`, `cgroup`, `dispatcher` or `pauses`; `kernel`: nothing does at the moment.
    pub by: &'static str,
    /// Why it is not something that keeps shares more closely, if there is a reason.
    pub because: Option<String>,
    /// The policy with which a scheduler that has failed is to be tried again; `None` where none is. By sched_ext, outside the kernel.
    pub next: Option<&'static str>,
    /// How long shares have been dealt, in seconds.
    pub time_s: f64,
    /// For how much of it, until now, what rules has ruled: since then it counts.
    pub rules_s: f64,
    /// Tasks that were chosen to run next.
    pub decisions: Option<u64>,
    /// Tasks that a processor took from another one, because it had nothing due itself. By sched_ext.
    pub stolen: Option<u64>,
    /// Choices of tasks that had just left. By sched_ext.
    pub missed: Option<u64>,
    /// Tasks that went ahead of all others because they had waited for seconds. By sched_ext.
    pub hastened: Option<u64>,
    /// Tasks that the policy had lost from sight and found again; there should be none. By sched_ext.
    pub found: Option<u64>,
    /// Tasks that gave way at once to one that woke. By the dispatcher, and by policies outside the kernel.
    pub preempted: Option<u64>,
    /// By how much the end of a slice, or a look at the processes, came late, at most, in nanoseconds. By the dispatcher, and by
    /// pauses.
    pub late_ns: Option<u64>,
    /// Threads of domains that are not dispatched, see [`mete_dispatch::Dispatcher::left_out`]; or processes that are not
    /// paused, see [`mete_pausing::PausingDispatcher::left_out`].
    pub left_out: Option<u64>,
    /// How often a process was paused. By pauses.
    pub pauses: Option<u64>,
    /// How often one that was paused was found to run, because another program had continued it. By pauses.
    pub continued: Option<u64>,
    /// Decisions that came too late to be carried out. By a policy outside the kernel, by sched_ext.
    pub late: Option<u64>,
    /// Tasks that ran by turn, because the policy had not decided in time. By a policy outside the kernel, by sched_ext.
    pub undecided: Option<u64>,
    /// What the dispatcher, the looks of pauses, or the thread in which a policy decides, has used itself, in nanoseconds.
    pub own_ns: Option<u64>,
    /// The processor time that the process has used since then, in nanoseconds, with all that it does besides.
    pub process_ns: u64,
    /// Why the kernel has ended it for good, in its words: it was asked to.
    pub ended: Option<String>,
}

/// What was done, by the one that did it.
pub(crate) enum Work {
    Ext(Status),
    Outside(PolicyStatus),
    /// The kernel's own scheduler, which does not say.
    Kernels,
    /// With the number of threads that are left out.
    Dispatcher(Counts, usize),
    /// And of processes.
    Pauses(PauseCounts, usize),
}

impl Did {
    pub(crate) fn new(policy: &'static str, by: &'static str, time_s: f64, work: &Work) -> Did {
        let did = Did { policy: Some(policy), by, time_s, ..Did::default() };
        match work {
            Work::Kernels => Did { policy: None, ..did },
            Work::Ext(status) => Did {
                decisions: Some(status.decisions),
                stolen: Some(status.stolen),
                missed: Some(status.missed),
                hastened: Some(status.hastened),
                found: Some(status.found),
                ended: for_good(status.ended.as_ref()),
                ..did
            },
            Work::Outside(status) => Did {
                policy: Some(status.policy),
                failed: status.failure.as_ref().map(ToString::to_string),
                decisions: Some(status.decisions),
                hastened: Some(status.hastened),
                preempted: Some(status.preempted),
                late: Some(status.late),
                undecided: Some(status.undecided),
                own_ns: Some(status.own.get()),
                ended: for_good(status.ended.as_ref()),
                ..did
            },
            Work::Dispatcher(counts, left_out) => Did {
                left_out: Some(*left_out as u64),
                decisions: Some(counts.decisions),
                preempted: Some(counts.preempted),
                late_ns: Some(counts.late_ns.get()),
                own_ns: Some(counts.own_ns.get()),
                ..did
            },
            Work::Pauses(counts, left_out) => Did {
                left_out: Some(*left_out as u64),
                decisions: Some(counts.decisions),
                pauses: Some(counts.pauses),
                continued: Some(counts.found_running),
                late_ns: Some(counts.late_ns.get()),
                own_ns: Some(counts.own_ns.get()),
                ..did
            },
        }
    }
}

/// After a fault it is started again.
fn for_good(ended: Option<&Ended>) -> Option<String> {
    ended.filter(|ended| !ended.is_fault).map(|ended| ended.reason.clone())
}
