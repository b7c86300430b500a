//! Runs of programs that the kernel left out, because an interrupt came to their place in the middle of one. What they
//! would have recorded has no serial number, so no gap tells of it. The kernel counts them and does not say when; the
//! recorder looks at the count now and then, so that a trace says between which two moments they were.
//!
//! ```text
//!   look ───────────── look ───────────── look ─────
//!     │                  │  3 more than before: MISSED_RUNS, since the look before
//!     └──── since ───────┴── time of the mark
//! ```

use serde::{Deserialize, Serialize};

use crate::description::{Circumstances, Description, EventLayout, FieldKind, FieldLayout};
use crate::memory::Buffers;
use crate::record::{HEADER_BYTES, MISSED_RUNS};
use crate::recorder::Recorder;
use crate::switch::put;

/// The most stretches that a description lists. Where there are more, neighbours become one, so that none is left out.
const MOST_LISTED: usize = 1000;

/// Runs that the kernel left out between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedRuns {
    /// Not before this time stamp of the trace's clock.
    pub since: u64,
    /// Not after this one.
    pub until: u64,
    /// How many.
    pub runs: u64,
}

impl MissedRuns {
    fn overlaps(&self, from: Option<u64>, until: Option<u64>) -> bool {
        until.is_none_or(|until| self.since <= until) && from.is_none_or(|from| self.until >= from)
    }
}

impl Description {
    /// With the mark of runs that the kernel left out, for a recording of its programs.
    pub fn with_missed_runs(mut self) -> Description {
        self.events.push(mark());
        self
    }
}

impl Circumstances {
    /// What was missed, and may have been in this time. Of what no stretch is known, this is anywhere.
    pub(crate) fn narrow(&mut self, from: Option<u64>, until: Option<u64>) {
        let elsewhere = |missed: &&MissedRuns| !missed.overlaps(from, until);
        let left_out: u64 = self.missed.iter().filter(elsewhere).map(|missed| missed.runs).sum();
        self.missed.retain(|missed| missed.overlaps(from, until));
        self.missed_runs = self.missed_runs.saturating_sub(left_out);
    }

    fn miss(&mut self, missed: MissedRuns) {
        if self.missed.len() >= MOST_LISTED {
            let both = |pair: &[MissedRuns]| {
                let runs = pair.iter().map(|missed| missed.runs).sum();
                MissedRuns { since: pair[0].since, until: pair[pair.len() - 1].until, runs }
            };
            self.missed = self.missed.chunks(2).map(both).collect();
        }
        self.missed.push(missed);
        self.missed_runs += missed.runs;
    }
}

impl<B: Buffers> Recorder<B> {
    /// Looks how often programs were left out by the kernel so far. If that is more than at the look before, a mark says
    /// between which two moments it was, and the description lists it. Says how many more it is.
    ///
    /// # Errors
    ///
    /// Those of `count`.
    pub fn look_for_missed_runs<E>(&mut self, count: impl FnOnce() -> Result<u64, E>) -> Result<u64, E> {
        // What comes while it counts is found by this look or by the next one.
        let before = self.clock().now();
        let runs = count()?.saturating_sub(self.circumstances().missed_runs);
        let since = std::mem::replace(self.looked(), before);
        if runs > 0 {
            self.mark_missed(since, runs);
            let until = self.clock().now();
            self.circumstances().miss(MissedRuns { since, until, runs });
        }
        Ok(runs)
    }

    /// In one buffer of the kernel's: on which processor they were is not known.
    fn mark_missed(&self, since: u64, runs: u64) {
        if self.layout(|layout| layout.id == MISSED_RUNS).is_none() {
            return;
        }
        let buffers = self.buffers();
        let is_kernels = |nth: &usize| buffers.programs_of(*nth).is_none() && !buffers.is_gathered(*nth);
        if let Some(nth) = (0..buffers.processors()).find(is_kernels) {
            put(buffers.buffer(nth), MISSED_RUNS, &[since, runs], || self.clock().now());
        }
    }
}

/// The layout of the mark.
pub(crate) fn mark() -> EventLayout {
    let field = |name: &str, at: usize, doc: &str| FieldLayout {
        name: name.to_owned(),
        kind: FieldKind::Unsigned,
        offset: (HEADER_BYTES + at) as u16,
        bytes: 8,
        doc: doc.to_owned(),
    };
    EventLayout {
        id: MISSED_RUNS,
        name: "MISSED_RUNS".to_owned(),
        doc: "The kernel left out programs: what they would have recorded is missing, on whatever processor."
            .to_owned(),
        fields: vec![
            field("since", 0, "The time stamp before which this had not happened."),
            field("runs", 8, "How many runs of programs were left out since then."),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_6_stretches_are_listed_without_end_and_none_is_left_out() {
        let mut circumstances = Circumstances::default();
        for at in 0..10_000 {
            circumstances.miss(MissedRuns { since: at * 10, until: at * 10 + 5, runs: 1 });
        }
        let Circumstances { missed, missed_runs, .. } = &circumstances;
        assert!(missed.len() <= MOST_LISTED, "{}", missed.len());
        assert_eq!((*missed_runs, missed.iter().map(|missed| missed.runs).sum::<u64>()), (10_000, 10_000));
        assert_eq!((missed[0].since, missed[missed.len() - 1].until), (0, 99_995));
        assert!(missed.is_sorted_by(|one, other| one.until <= other.since));
    }

    #[test]
    fn new_2_of_what_was_missed_that_counts_which_may_have_been_in_the_time() {
        let missed = [(10, 20, 1), (30, 40, 2), (50, 60, 4)];
        let missed = missed.map(|(since, until, runs)| MissedRuns { since, until, runs });
        // One more of which an older recorder has said nothing.
        let circumstances =
            Circumstances { missed: missed.to_vec(), missed_runs: 8, ..Circumstances::default() };
        let within = |from, until| {
            let mut circumstances = circumstances.clone();
            circumstances.narrow(from, until);
            (circumstances.missed_runs, circumstances.missed.len())
        };
        assert_eq!(within(None, None), (8, 3));
        assert_eq!(within(Some(40), None), (7, 2));
        assert_eq!(within(Some(41), Some(49)), (1, 0));
        assert_eq!(within(None, Some(30)), (4, 2));
    }
}
