//! What deals: the one of the means that was taken.

use std::fmt;
use std::io;

use mete_dispatch::{Dispatcher, Setup};
use mete_ext::{Ended, GroupScheduler, PolicyScheduler, QUANTUM, quantum_inside};
use mete_pausing::PausingDispatcher;
use mete_policy::{Entry, Nanoseconds};
use mete_sched::actuator::weights::in_any_order;
use mete_sched::actuator::{Restored, Weights};
use mete_sched::domains::SharedDomain;

use crate::by::By;
use crate::error::DealError;
use crate::given::Work;
use crate::group::Group;
use crate::policy::SharePolicy;

pub(crate) enum Means {
    Ext(Box<GroupScheduler>),
    Outside(Box<PolicyScheduler>),
    Weights(Weights),
    Dispatcher(Box<Dispatcher>),
    Pauses(Box<PausingDispatcher>),
    /// The kernel's own scheduler as it is, until something else is tried again.
    Kernel,
}

/// What was put back at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// What that was, in words.
    pub what: &'static str,
    /// Where the user sees what could not be put back.
    pub see: &'static str,
    /// How it went.
    pub restored: Restored,
}

impl Means {
    pub fn ext(domains: &[SharedDomain]) -> Result<Means, DealError> {
        let groups = Group::all(domains)?;
        let scheduler = GroupScheduler::start()?;
        groups.iter().try_for_each(|group| scheduler.set_weight(group.path, Some(group.weight)))?;
        Ok(Means::Ext(Box::new(scheduler)))
    }

    /// By a policy that decides outside the kernel.
    pub fn outside(policy: &Entry, domains: &[SharedDomain]) -> Result<Means, DealError> {
        let groups = Group::all(domains)?;
        let scheduler = PolicyScheduler::start(policy)?;
        groups.iter().try_for_each(|group| scheduler.set_weight(group.path, Some(group.weight)))?;
        Ok(Means::Outside(Box::new(scheduler)))
    }

    /// A scheduler of sched_ext, inside the kernel if the policy is there.
    pub fn sched_ext(policy: SharePolicy, domains: &[SharedDomain]) -> Result<Means, DealError> {
        match policy {
            SharePolicy::GroupVtrr => Means::ext(domains),
            SharePolicy::Outside(_) => Means::outside(policy.entry()?, domains),
        }
    }

    pub fn weights(domains: &[SharedDomain]) -> Result<Means, DealError> {
        let groups = Group::all(domains)?;
        let mut weights = Weights::start()?;
        // Limits of groups in each other have to be set in an order.
        let failed = in_any_order(groups.iter().collect(), |group| weigh(&mut weights, group));
        failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))?;
        Ok(Means::Weights(weights))
    }

    pub fn dispatcher(policy: &Entry, domains: &[SharedDomain]) -> Result<Means, DealError> {
        let dispatcher = Dispatcher::start(policy, domains.to_vec(), Setup::default())?;
        Ok(Means::Dispatcher(Box::new(dispatcher)))
    }

    pub fn pauses(policy: &Entry, domains: &[SharedDomain]) -> Result<Means, DealError> {
        let setup = mete_pausing::Setup::default();
        Ok(Means::Pauses(Box::new(PausingDispatcher::start(policy, domains.to_vec(), setup)?)))
    }

    /// Whether it serves domains that are no control groups, too, and has accounts of its own.
    pub fn is_dispatcher(&self) -> bool {
        matches!(self, Means::Dispatcher(_) | Means::Pauses(_))
    }

    pub fn name(&self) -> &'static str {
        match self {
            Means::Ext(_) | Means::Outside(_) => By::SchedExt.name(),
            Means::Weights(_) => By::Cgroup.name(),
            Means::Dispatcher(_) => By::Dispatcher.name(),
            Means::Pauses(_) => By::Pauses.name(),
            Means::Kernel => "kernel",
        }
    }

    /// How the kernel's own scheduler rules until another try, behind "the kernel's own scheduler rules".
    pub fn meanwhile(&self) -> &'static str {
        if matches!(self, Means::Weights(_)) { ", by weights" } else { "" }
    }

    /// Why a scheduler of sched_ext rules no more, if it does not.
    pub fn ended(&self) -> Option<Ended> {
        match self {
            Means::Ext(scheduler) => scheduler.status().ended,
            Means::Outside(scheduler) => scheduler.status().ended,
            Means::Weights(_) | Means::Dispatcher(_) | Means::Pauses(_) | Means::Kernel => None,
        }
    }

    /// What it has done so far.
    pub fn work(&self) -> Work {
        match self {
            Means::Ext(scheduler) => Work::Ext(scheduler.status()),
            Means::Outside(scheduler) => Work::Outside(scheduler.status()),
            Means::Weights(_) | Means::Kernel => Work::Kernels,
            Means::Dispatcher(dispatcher) => Work::Dispatcher(dispatcher.counts(), dispatcher.left_out()),
            Means::Pauses(dispatcher) => Work::Pauses(dispatcher.counts(), dispatcher.left_out().all()),
        }
    }

    /// Gives a domain, the one at this place among those that it was started with, another share.
    pub fn set_share(&mut self, nth: usize, domain: &SharedDomain) -> Result<(), DealError> {
        let group = || Group::of(domain);
        match self {
            Means::Ext(scheduler) => Ok(scheduler.set_weight(group()?.path, Some(group()?.weight))?),
            Means::Outside(scheduler) => Ok(scheduler.set_weight(group()?.path, Some(group()?.weight))?),
            Means::Weights(weights) => weigh(weights, &group()?),
            Means::Dispatcher(dispatcher) => {
                dispatcher.set_weight(nth, domain.weight_or_ordinary());
                Ok(())
            }
            Means::Pauses(dispatcher) => {
                dispatcher.set_weight(nth, domain.weight_or_ordinary());
                Ok(())
            }
            Means::Kernel => Ok(()),
        }
    }

    /// Has another policy decide; `false` where the policy cannot be replaced while it rules.
    pub fn set_policy(&self, policy: &Entry) -> Result<bool, DealError> {
        match self {
            Means::Outside(scheduler) => Ok(scheduler.set_policy(policy).map(|()| true)?),
            Means::Ext(_) | Means::Weights(_) | Means::Dispatcher(_) | Means::Pauses(_) | Means::Kernel => {
                Ok(false)
            }
        }
    }

    /// Sets how long a task runs at a time, and says how long that is then; `None` where that cannot be set while it
    /// rules.
    pub fn set_quantum(&self, quantum: Nanoseconds) -> Result<Option<Nanoseconds>, DealError> {
        match self {
            Means::Ext(scheduler) => Ok(Some(scheduler.set_quantum(quantum)?)),
            Means::Outside(scheduler) => Ok(scheduler.set_quantum(quantum).map(|()| Some(quantum))?),
            Means::Weights(_) | Means::Dispatcher(_) | Means::Pauses(_) | Means::Kernel => Ok(None),
        }
    }

    /// Its quantum as it starts, where another one can be set.
    pub fn quantum(&self) -> Option<Nanoseconds> {
        match self {
            Means::Ext(_) => Some(quantum_inside()),
            Means::Outside(_) => Some(QUANTUM),
            Means::Weights(_) | Means::Dispatcher(_) | Means::Pauses(_) | Means::Kernel => None,
        }
    }

    /// Which domains had nothing in them when it started, in sentences.
    pub fn empty_domains(&self) -> &[String] {
        match self {
            Means::Ext(_) | Means::Outside(_) | Means::Weights(_) | Means::Kernel => &[],
            Means::Dispatcher(dispatcher) => dispatcher.empty_domains(),
            Means::Pauses(dispatcher) => dispatcher.empty_domains(),
        }
    }

    /// Which domains have lost their last process since this was asked last, in sentences.
    pub fn news(&mut self) -> Vec<String> {
        match self {
            Means::Ext(_) | Means::Outside(_) | Means::Weights(_) | Means::Kernel => Vec::new(),
            Means::Dispatcher(dispatcher) => dispatcher.news(),
            Means::Pauses(dispatcher) => dispatcher.news(),
        }
    }

    /// Which processes of domains it does not rule, in a sentence, if there are any.
    pub fn left_out(&self) -> Option<String> {
        match self {
            Means::Pauses(dispatcher) => {
                Some(dispatcher.left_out()).filter(|it| it.all() > 0).map(|it| it.to_string())
            }
            _ => None,
        }
    }

    /// Why what was changed would stay if this process and those that watch it were killed at the same
    /// moment.
    pub fn unnamed(&self) -> Option<&io::Error> {
        match self {
            Means::Ext(_) | Means::Outside(_) | Means::Kernel => None,
            Means::Weights(weights) => weights.unnamed(),
            Means::Dispatcher(dispatcher) => dispatcher.unnamed(),
            Means::Pauses(dispatcher) => dispatcher.unnamed(),
        }
    }

    /// Puts back what was changed; `None` if it needs no putting back.
    pub fn finish(self) -> Option<PutBack> {
        match self {
            Means::Ext(_) | Means::Outside(_) | Means::Kernel => None,
            Means::Weights(weights) => {
                let restored = weights.finish();
                Some(PutBack {
                    what: "weights of control groups",
                    see: "cpu.weight, cpu.shares, cpu.max or cpu.cfs_quota_us",
                    restored,
                })
            }
            Means::Dispatcher(dispatcher) => {
                let restored = dispatcher.finish();
                Some(PutBack { what: "scheduling classes", see: "chrt -p PID", restored })
            }
            Means::Pauses(dispatcher) => {
                let restored = dispatcher.finish();
                Some(PutBack { what: "pauses of processes", see: "ps -e -o pid,stat,comm", restored })
            }
        }
    }

    /// The means that rules, and how closely it keeps shares.
    pub fn say(&self, policy: SharePolicy, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Means::Ext(_) => write!(
                f,
                "{} schedules all ordinary tasks, by sched_ext: shares hold across all processors, in quanta of {} ms",
                policy.name(),
                quantum_inside().as_millis_f64()
            ),
            Means::Outside(_) => write!(
                f,
                "{} schedules all ordinary tasks from outside the kernel, by sched_ext, in quanta of {} ms{}",
                policy.name(),
                QUANTUM.as_millis_f64(),
                each_task_counts(policy)
            ),
            Means::Weights(_) => f.write_str(
                "the kernel's own scheduler deals out the shares, by weights of control groups: within some tenths of \
                 a point over seconds on one processor, some points on several; no task runs sooner",
            ),
            Means::Dispatcher(_) => {
                // Others may have slices of their own.
                let quanta = if policy == SharePolicy::GroupVtrr { "in quanta of 4 ms, " } else { "" };
                write!(
                    f,
                    "{} dispatches the threads of the domains, by scheduling classes, {quanta}beside all other tasks, \
                     which have a share of 1 together{}",
                    policy.name(),
                    each_task_counts(policy)
                )
            }
            Means::Pauses(_) => write!(
                f,
                "{} has the processes of the domains run in turn, by pausing the others, in quanta of {} ms; all other tasks \
                 run as before{}",
                policy.name(),
                mete_pausing::Setup::default().quantum.get() / 1_000_000,
                each_task_counts(policy)
            ),
            Means::Kernel => f.write_str("the kernel's own scheduler rules, without shares"),
        }
    }
}

fn weigh(weights: &mut Weights, group: &Group<'_>) -> Result<(), DealError> {
    weights.set(group.path, group.weight)?;
    group.limit.map_or(Ok(()), |limit| Ok(weights.set_limit(group.path, limit)?))
}

/// What a share is under a policy that does not know domains.
fn each_task_counts(policy: SharePolicy) -> &'static str {
    match policy.entry() {
        Ok(entry) if !entry.has_domains => "; it knows no groups: each task has its domain's share",
        _ => "",
    }
}
