//! How a trace was recorded.

use mete_log::Ticks;
use serde::{Deserialize, Serialize};

use super::missed::MissedRuns;
use super::switches::Switches;

/// The most stretches of missed runs that a description lists. If there are more, neighbours are joined, so
/// that no run is left out.
const MOST_LISTED: usize = 1000;

/// How a trace was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circumstances {
    /// Bytes of each processor's buffer.
    pub buffer_bytes: u64,
    /// The low-water mark when recording began: the percentage of the buffer that was to stay free.
    pub low_water_percent: u8,
    /// Why the buffers were not locked into memory, if they were not.
    pub not_locked: Option<String>,
    /// Bytes that a flight recorder kept, if it was one. Older records are not in the trace.
    pub flight_bytes: Option<u64>,
    /// How often the kernel left out a program that would have recorded something, because an interrupt came
    /// to the program's place while the program was already running there. What the program would have
    /// recorded has no serial number. So this is a loss that no gap shows.
    #[serde(default)]
    pub missed_runs: u64,
    /// Between which moments these runs were, in order, as far as the recorder looked while it recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedRuns>,
    /// Names of the accounting domains by their numbers, if any principal was bound to a domain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Events that were off, and events that were switched while recording.
    #[serde(default)]
    pub switches: Switches,
    /// Each flush thread.
    pub flush_threads: Vec<FlushThread>,
}

/// How one flush thread ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushThread {
    /// The processor whose buffer it flushed.
    pub processor: u32,
    /// Its priority, or why the priority is an ordinary one.
    pub scheduling: String,
    /// Whether it was bound to its processor, or why not.
    pub placement: String,
    /// The last fault in the buffer: a program wrote something into it that is no record. What the recorder
    /// threw away because of it shows as a gap. The faulty program may have determined the size of that gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub garbled: Option<String>,
}

impl Circumstances {
    /// Keeps the missed runs that may have been in this time. A run with no known stretch may have been at
    /// any time.
    pub(crate) fn narrow(&mut self, from: Option<Ticks>, until: Option<Ticks>) {
        let outside = self.missed.iter().filter(|missed| !missed.overlaps(from, until));
        let left_out: u64 = outside.map(|missed| missed.runs).sum();
        self.missed.retain(|missed| missed.overlaps(from, until));
        // Both numbers come from a file and need not agree.
        self.missed_runs = self.missed_runs.saturating_sub(left_out);
    }

    /// Adds runs that the kernel left out after all that are listed.
    pub(crate) fn miss(&mut self, missed: MissedRuns) {
        if self.missed.len() >= MOST_LISTED {
            // Half of them remain, so the next thousand stretches cost one such pass for every five hundred.
            self.missed = self.missed.chunks(2).map(MissedRuns::joined).collect();
        }
        self.missed.push(missed);
        self.missed_runs += missed.runs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed(stretch: [u64; 2], runs: u64) -> MissedRuns {
        let [since, until] = stretch.map(Ticks::new);
        MissedRuns { since, until, runs }
    }

    #[test]
    fn klog_6_stretches_are_listed_without_end_and_none_is_left_out() {
        let mut circumstances = Circumstances::default();
        for at in 0..10_000 {
            circumstances.miss(missed([at * 10, at * 10 + 5], 1));
        }
        let Circumstances { missed, missed_runs, .. } = &circumstances;
        assert!(missed.len() <= MOST_LISTED, "{}", missed.len());
        assert_eq!((*missed_runs, missed.iter().map(|missed| missed.runs).sum::<u64>()), (10_000, 10_000));
        assert_eq!((missed[0].since, missed[missed.len() - 1].until), (Ticks::new(0), Ticks::new(99_995)));
        assert!(missed.is_sorted_by(|one, other| one.until <= other.since));
    }

    #[test]
    fn new_2_only_missed_runs_that_may_have_been_in_the_time_count() {
        let missed = [missed([10, 20], 1), missed([30, 40], 2), missed([50, 60], 4)];
        // The sum is 7. The eighth run is one for which an older recorder has listed no stretch.
        let circumstances =
            Circumstances { missed: missed.to_vec(), missed_runs: 8, ..Circumstances::default() };
        let within = |from: Option<u64>, until: Option<u64>| {
            let mut circumstances = circumstances.clone();
            circumstances.narrow(from.map(Ticks::new), until.map(Ticks::new));
            (circumstances.missed_runs, circumstances.missed.len())
        };
        assert_eq!(within(None, None), (8, 3));
        assert_eq!(within(Some(40), None), (7, 2));
        assert_eq!(within(Some(41), Some(49)), (1, 0));
        assert_eq!(within(None, Some(30)), (4, 2));
    }
}
