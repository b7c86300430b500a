//! What each recorded thread did, in terms of its own progress.

use std::collections::BTreeMap;

use mete_policy::{DomainIndex, Nanoseconds, Share};

use super::machine::Machine;
use super::text::Pid;

/// What a thread does after having computed for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It wakes another recorded thread, given as the index of its script.
    Wake(usize),
    /// It blocks for something outside the recorded threads (a timer, a device, a remote peer). `ns` is how
    /// long that took.
    Sleep {
        /// How long.
        ns: Nanoseconds,
    },
    /// It blocks until a recorded thread wakes it.
    Await,
    /// It has ended, or the recording has.
    End,
}

/// Compute, then act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Processor time since the last step.
    pub compute_ns: Nanoseconds,
    /// What follows.
    pub action: Action,
}

/// One thread's life in terms of its own progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The thread's number in the recording.
    pub pid: Pid,
    /// Its name, as last seen.
    pub name: String,
    /// What it did, in order; the last action is [`Action::End`].
    pub steps: Vec<Step>,
    /// How long it waited from each wake-up until it ran, as recorded.
    pub waits_ns: Vec<Nanoseconds>,
    /// Its priority as the kernel counts it: 120 is nice 0, below 100 is real time.
    pub priority: i32,
    /// The processors that it ran on, each with the time when it first came there.
    pub processors: BTreeMap<u32, Nanoseconds>,
    /// Whether it was created during the recording.
    pub is_new: bool,
    /// The domain that it is in, of [`Recording::domains`]. No recording says that.
    pub domain: DomainIndex,
}

/// The priority of a thread with nice 0.
pub(super) const NICE_0: i32 = 120;

impl Default for Script {
    fn default() -> Script {
        Script {
            pid: 0,
            name: String::new(),
            steps: Vec::new(),
            waits_ns: Vec::new(),
            priority: NICE_0,
            processors: BTreeMap::new(),
            is_new: false,
            domain: DomainIndex::ROOT,
        }
    }
}

impl Script {
    /// All processor time of the thread.
    pub fn service_ns(&self) -> Nanoseconds {
        self.steps.iter().map(|step| step.compute_ns).sum()
    }
}

/// A recorded schedule, ready to be run again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// One script for each thread that ran or was woken, in the order in which they were first seen.
    pub scripts: Vec<Script>,
    /// How many processors were seen.
    pub processors: usize,
    /// From the first event to the last.
    pub duration_ns: Nanoseconds,
    /// How often the recording contradicts itself or says that events are missing. Unless it is zero, the
    /// recorded progress of some threads may be wrong.
    pub gaps: u64,
    /// Processor time that belongs to no known thread. If a switch is missing, it is the
    /// time from the last event that agrees with the one before it. It is not in the work of `scripts`; all
    /// work and this time together are at most `processors` times `duration_ns`.
    pub uncertain_ns: Nanoseconds,
    /// How long each processor was seen to work, by its number.
    pub busy_ns: Vec<Nanoseconds>,
    /// The shares of domains, the first of which is number 1. No recording has them, and without them all threads
    /// are in the root.
    pub domains: Vec<Share>,
    /// What the recording tells of the machine on which it was made.
    pub machine: Machine,
}

impl Recording {
    /// The work of all threads.
    pub fn work_ns(&self) -> Nanoseconds {
        self.scripts.iter().map(Script::service_ns).sum()
    }

    /// What the processors could have done in that time.
    pub fn capacity_ns(&self) -> Nanoseconds {
        self.duration_ns.saturating_mul(self.processors as u64)
    }
}
