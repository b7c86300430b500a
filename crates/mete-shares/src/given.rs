//! What was wanted and what was given, as it is reported.

use mete_ext::Status;
use serde::Serialize;

/// What a group was to have beside the others that are named, and what it has got.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename = "share")]
pub struct Given {
    /// Its name.
    pub domain: String,
    /// Its share, of which 1 is ordinary.
    pub share: f64,
    /// Its part of the shares of all groups, in percent.
    pub wanted_percent: f64,
    /// Its part of the processor time of all groups; `None` if they had none, or the kernel does not say.
    pub given_percent: Option<f64>,
    /// Its processor time in nanoseconds; `None` if the group is gone, or the kernel does not say.
    pub ran_ns: Option<u64>,
}

/// What the dealer did. The numbers are `None` where the kernel's own scheduler decides.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename = "scheduler")]
pub struct Did {
    /// The policy.
    pub policy: &'static str,
    /// What enforces the shares: `sched_ext` or `cgroup`.
    pub by: &'static str,
    /// How long that lasts, in seconds.
    pub time_s: f64,
    /// Tasks that were chosen to run next.
    pub decisions: Option<u64>,
    /// Tasks that a processor took from another one, because it had nothing due itself.
    pub stolen: Option<u64>,
    /// Choices of tasks that had just left.
    pub missed: Option<u64>,
    /// Tasks that went ahead of all others because they had waited for seconds.
    pub hastened: Option<u64>,
    /// Why the kernel has ended it, in its words.
    pub ended: Option<String>,
}

impl Did {
    pub(crate) fn new(by: &'static str, time_s: f64, status: Option<&Status>) -> Did {
        let count = |number: fn(&Status) -> u64| status.map(number);
        Did {
            policy: "vtrr",
            by,
            time_s,
            decisions: count(|status| status.decisions),
            stolen: count(|status| status.stolen),
            missed: count(|status| status.missed),
            hastened: count(|status| status.hastened),
            ended: status.and_then(|status| status.ended.as_ref()).map(|ended| ended.reason.clone()),
        }
    }
}
