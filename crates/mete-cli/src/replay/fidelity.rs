//! How far the replay of the recorded policy is from the recording, and which results of a replay mean something.

use mete_command::table::grouped;
use mete_sim::ClientReport;
use mete_sim::metrics::Latencies;
use mete_sim::replay::{Kernel, Outcome, Recording, all_waits};
use serde::Serialize;

use super::{LINUX, Options, kernel};
use crate::latency::milliseconds;

/// Marks a figure whose difference is within the replay's error, and so means nothing.
pub(super) const WITHIN: &str = "≈";
/// If a figure is further off than this, the output says what is known of the reason.
const CLOSE_PERCENT: f64 = 25.0;

/// The names of the figures by which policies are compared, in text.
const NAMES: [&str; 3] = ["median", "mean", "99 %"];
/// The same in JSON.
pub(super) const KEYS: [&str; 3] = ["median_ns", "mean_ns", "p99_ns"];

/// One figure, as recorded and as replayed.
#[derive(Clone, Copy, Serialize)]
struct ComparedFigure {
    recorded_ns: u64,
    replayed_ns: u64,
    /// By how much the replay's is higher, in percent.
    off_percent: f64,
}

impl ComparedFigure {
    fn new(recorded_ns: u64, replayed_ns: u64) -> ComparedFigure {
        // A recorded time may be zero, by which nothing can be divided.
        let off_percent = 100.0 * (replayed_ns as f64 / recorded_ns.max(1) as f64 - 1.0);
        ComparedFigure { recorded_ns, replayed_ns, off_percent }
    }

    /// Whether a time is as close to the replayed one as that is to the recorded one, or closer.
    fn covers(self, ns: u64) -> bool {
        self.replayed_ns.abs_diff(ns) <= self.replayed_ns.abs_diff(self.recorded_ns)
    }
}

/// How far a replay under the recorded policy is from the recording.
#[derive(Serialize)]
pub(super) struct Fidelity {
    kind: &'static str,
    policy: &'static str,
    tick_ns: u64,
    slice_ns: u64,
    median_ns: ComparedFigure,
    mean_ns: ComparedFigure,
    p99_ns: ComparedFigure,
    end_ns: ComparedFigure,
    wakes: u64,
    recorded_wakes: u64,
    /// How much the processor's part of all work differs, in percent of all work; of the processor with the largest
    /// difference.
    processors_off_percent: f64,
    #[serde(skip)]
    is_tick_known: bool,
    #[serde(skip)]
    p99_by_thread: Vec<Option<u64>>,
}

/// In the order of [`NAMES`].
fn figures(waits: &Latencies) -> Option<[u64; 3]> {
    Some([waits.quantile_ns(0.5)?, waits.mean_ns()? as u64, waits.quantile_ns(0.99)?])
}

fn p99_ns(thread: &ClientReport) -> Option<u64> {
    thread.wake_to_run.as_ref()?.quantile_ns(0.99)
}

impl Fidelity {
    /// `None` if the recorded policy is not known, no wait was recorded, or the replay has another number of
    /// processors.
    pub(super) fn of(
        options: &Options,
        recording: &Recording,
        recorded: &[ClientReport],
        outcomes: &[Outcome],
    ) -> Option<Fidelity> {
        let is_same = !recording.machine.is_simulated
            && options.processors.is_none_or(|processors| usize::from(processors) == recording.processors);
        let linux = outcomes.iter().find(|outcome| outcome.policy == LINUX).filter(|_| is_same)?;
        let (was, is) = (all_waits(recorded), all_waits(&linux.threads));
        let (old, new) = (figures(&was)?, figures(&is)?);
        let [median_ns, mean_ns, p99_ns_] =
            std::array::from_fn(|nth| ComparedFigure::new(old[nth], new[nth]));
        let Kernel { tick_ns, slice_ns, .. } = kernel(options, recording);
        Some(Fidelity {
            kind: "error",
            policy: LINUX,
            tick_ns,
            slice_ns,
            median_ns,
            mean_ns,
            p99_ns: p99_ns_,
            end_ns: ComparedFigure::new(recording.duration_ns, linux.end_ns),
            wakes: is.count(),
            recorded_wakes: was.count(),
            processors_off_percent: parts_apart(&recording.busy_ns, &linux.busy_ns),
            is_tick_known: recording.machine.tick_ns().is_some(),
            p99_by_thread: linux.threads.iter().map(p99_ns).collect(),
        })
    }

    fn all(&self) -> [ComparedFigure; 3] {
        [self.median_ns, self.mean_ns, self.p99_ns]
    }

    /// The names of the figures that are within the error under a policy.
    pub(super) fn within(
        &self,
        names: [&'static str; 3],
        policy: &str,
        threads: &[ClientReport],
    ) -> Vec<&'static str> {
        let Some(figures) = figures(&all_waits(threads)).filter(|_| policy != LINUX) else {
            return Vec::new();
        };
        let is_within = self.all().into_iter().zip(figures).map(|(error, ns)| error.covers(ns));
        names.into_iter().zip(is_within).filter(|(_, is_within)| *is_within).map(|(name, _)| name).collect()
    }

    /// Whether a thread's waits under a policy are within the error of that thread.
    pub(super) fn is_within_of_thread(
        &self,
        thread: usize,
        recorded: &[ClientReport],
        outcome: &Outcome,
    ) -> bool {
        let figures =
            (p99_ns(&recorded[thread]), self.p99_by_thread[thread], p99_ns(&outcome.threads[thread]));
        match figures {
            (Some(was), Some(is), Some(other)) => {
                outcome.policy != LINUX && ComparedFigure::new(was, is).covers(other)
            }
            _ => false,
        }
    }

    pub(super) fn text(&self, outcomes: &[Outcome]) -> String {
        let mut lines = vec![format!(
            "how far this replay is from the recording, by {LINUX} (tick {} ms{}, slice {} ms):",
            milliseconds(self.tick_ns),
            if self.is_tick_known { "" } else { ", assumed" },
            milliseconds(self.slice_ns),
        )];
        let named = NAMES.into_iter().zip(self.all()).chain([("end", self.end_ns)]);
        let parts = named.map(|(name, compared)| format!("{name} {:+.0} %", compared.off_percent));
        lines.push(format!(
            "{}; processors' parts of the work {:.1} % apart",
            parts.collect::<Vec<_>>().join(", "),
            self.processors_off_percent
        ));
        if self.all().iter().any(|compared| compared.off_percent.abs() > CLOSE_PERCENT) {
            lines.push(self.why());
        }
        for outcome in outcomes {
            let within = self.within(NAMES, outcome.policy, &outcome.threads);
            if !within.is_empty() {
                lines.push(format!("{}: {} within the replay's error", outcome.policy, within.join(", ")));
            }
        }
        lines.join("\n")
    }

    /// Says what is known of the reason for a large distance, and what is not known.
    fn why(&self) -> String {
        let met = self.wakes.min(self.recorded_wakes);
        let known = format!(
            "{} of {} recorded wake-ups found their thread asleep here. The others came while\n\
             it still ran, so these figures are of fewer waits than the recorded ones. Why else",
            grouped(met),
            grouped(self.recorded_wakes),
        );
        let why = if met < self.recorded_wakes { known } else { "Why".to_owned() };
        format!(
            "That is far. {why} is not known:\n\
             a recording lacks what could explain it, such as the shares of groups (cgroups,\n\
             sessions), masks of processors, and the timers that woke threads."
        )
    }
}

/// The largest difference between a processor's parts of all work, before and now, in percent of all work.
fn parts_apart(was_ns: &[u64], is_ns: &[u64]) -> f64 {
    let part = |all: &[u64], nth: usize| {
        let sum = all.iter().sum::<u64>().max(1) as f64;
        all.get(nth).copied().unwrap_or(0) as f64 / sum
    };
    let apart = (0..was_ns.len().max(is_ns.len())).map(|nth| (part(was_ns, nth) - part(is_ns, nth)).abs());
    100.0 * apart.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far_off(wakes: u64) -> String {
        let far = ComparedFigure::new(100, 200);
        let fidelity = Fidelity {
            kind: "error",
            policy: LINUX,
            tick_ns: 4_000_000,
            slice_ns: 1_400_000,
            median_ns: far,
            mean_ns: far,
            p99_ns: far,
            end_ns: far,
            wakes,
            recorded_wakes: 1000,
            processors_off_percent: 0.0,
            is_tick_known: true,
            p99_by_thread: Vec::new(),
        };
        fidelity.text(&[])
    }

    #[test]
    fn new_1_of_why_a_replay_is_far_off_only_what_was_counted_is_said_to_be_known() {
        let text = far_off(400);
        assert!(text.contains("400 of 1,000 recorded wake-ups found their thread asleep here"), "{text}");
        assert!(text.contains("Why else is not known"), "{text}");
        let text = far_off(1000);
        assert!(!text.contains("asleep here") && text.contains("far. Why is not known"), "{text}");
    }
}
