//! The dealer: one of the means, and the accounts of the groups.

use std::fmt;
use std::time::{Duration, Instant};

use mete_ext::{Ended, ExtError, GroupScheduler, Share};
use mete_sched::actuator::{ActuatorError, Restored, Weights};

use crate::account::Account;
use crate::{Did, Given, Group};

/// What a group has that nothing is said about.
const ORDINARY: f64 = 100.0;

/// By what shares are enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The first of the others that this kernel has.
    #[default]
    Auto,
    /// The scheduler inside the kernel, by sched_ext.
    Ext,
    /// Weights of control groups.
    Cgroup,
}

/// Why shares cannot be dealt out. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum DealError {
    /// By sched_ext.
    #[error(transparent)]
    Ext(#[from] ExtError),
    /// By weights.
    #[error(transparent)]
    Weights(#[from] ActuatorError),
}

/// What deals.
enum Means {
    Ext(Box<GroupScheduler>),
    Weights(Weights),
}

/// Gives groups their shares, as long as it lives.
pub struct Dealer {
    means: Means,
    /// Why not by sched_ext, if that was asked for as well.
    because: Option<ExtError>,
    groups: Vec<(Group, Account)>,
    begin: Instant,
}

impl Dealer {
    /// Gives each group its share. Without a group, sched_ext gives all groups what their `cpu.weight` says.
    ///
    /// # Errors
    ///
    /// [`DealError`] says what is missing, or which group can have no share.
    pub fn start(by: By, groups: Vec<Group>) -> Result<Dealer, DealError> {
        let (means, because) = match by {
            By::Ext => (Means::ext(&groups)?, None),
            By::Cgroup => (Means::weights(&groups)?, None),
            By::Auto => match Means::ext(&groups) {
                // Weights for no group would be nothing at all.
                Err(DealError::Ext(absent @ ExtError::Absent)) if !groups.is_empty() => {
                    (Means::weights(&groups)?, Some(absent))
                }
                means => (means?, None),
            },
        };
        let opened = |group: Group| {
            let account = Account::open(&group.path);
            (group, account)
        };
        let groups = groups.into_iter().map(opened).collect();
        Ok(Dealer { means, because, groups, begin: Instant::now() })
    }

    /// How long it has dealt.
    #[must_use]
    pub fn passed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Why the kernel has ended the scheduler, if it has.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.means.status()?.ended
    }

    /// What each group was to have and what it has got.
    #[must_use]
    pub fn given(&self) -> Vec<Given> {
        let ran: Vec<_> = self.groups.iter().map(|(_, account)| account.used()).collect();
        let all: Duration = ran.iter().flatten().sum();
        let shares: f64 = self.groups.iter().map(|(group, _)| number(group.share)).sum();
        let given = |(group, ran): (&Group, Option<Duration>)| Given {
            domain: group.name.clone(),
            share: number(group.share) / ORDINARY,
            wanted_percent: 100.0 * number(group.share) / shares,
            given_percent: ran
                .filter(|_| !all.is_zero())
                .map(|ran| 100.0 * ran.as_secs_f64() / all.as_secs_f64()),
            ran_ns: ran.map(|ran| u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX)),
        };
        self.groups.iter().map(|(group, _)| group).zip(ran).map(given).collect()
    }

    /// What it did since it started.
    #[must_use]
    pub fn did(&self) -> Did {
        Did::new(self.means.name(), self.passed().as_secs_f64(), self.means.status().as_ref())
    }

    /// Puts back what was changed; `None` if that needs no putting back.
    pub fn finish(self) -> Option<Restored> {
        match self.means {
            Means::Ext(_) => None,
            Means::Weights(weights) => Some(weights.finish()),
        }
    }
}

/// By what it deals, how closely that keeps shares, and why it is not by something better.
impl fmt::Display for Dealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(because) = &self.because {
            write!(f, "{because}. So ")?;
        }
        f.write_str(match self.means {
            Means::Ext(_) => {
                "vtrr schedules all ordinary tasks, by sched_ext: shares hold across all processors, in quanta of 1 ms"
            }
            Means::Weights(_) => {
                "the kernel's own scheduler deals out the shares, by weights of control groups: within some tenths of \
                 a point over seconds, on few processors; no task runs sooner"
            }
        })
    }
}

impl Means {
    fn ext(groups: &[Group]) -> Result<Means, DealError> {
        let scheduler = GroupScheduler::start()?;
        groups.iter().try_for_each(|group| scheduler.set_share(&group.path, Some(group.share)))?;
        Ok(Means::Ext(Box::new(scheduler)))
    }

    fn weights(groups: &[Group]) -> Result<Means, DealError> {
        let mut weights = Weights::start()?;
        groups.iter().try_for_each(|group| weights.set(&group.path, group.share.get()))?;
        Ok(Means::Weights(weights))
    }

    fn name(&self) -> &'static str {
        match self {
            Means::Ext(_) => "sched_ext",
            Means::Weights(_) => "cgroup",
        }
    }

    fn status(&self) -> Option<mete_ext::Status> {
        match self {
            Means::Ext(scheduler) => Some(scheduler.status()),
            Means::Weights(_) => None,
        }
    }
}

fn number(share: Share) -> f64 {
    f64::from(share.get())
}
