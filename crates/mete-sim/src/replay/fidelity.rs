//! How far the replay of the recorded policy is from the recording, and which results of a replay mean
//! something.

use mete_policy::Nanoseconds;
use serde::Serialize;

use super::linux::Kernel;
use super::outcome::{Outcome, all_waits};
use super::recording::Recording;
use crate::client_report::ClientReport;
use crate::metrics::Latencies;

/// One figure, as recorded and as replayed.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ComparedFigure {
    /// As recorded.
    pub recorded_ns: u64,
    /// As replayed.
    pub replayed_ns: u64,
    /// By how much the replay's is higher, in percent.
    pub off_percent: f64,
}

impl ComparedFigure {
    /// The two, and the distance between them.
    pub fn new(recorded_ns: u64, replayed_ns: u64) -> ComparedFigure {
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
#[derive(Debug, Default, Serialize)]
pub struct Fidelity {
    kind: &'static str,
    /// The name of the recorded policy.
    pub policy: &'static str,
    /// The kernel's tick, in nanoseconds.
    pub tick_ns: u64,
    /// The kernel's time slice, in nanoseconds.
    pub slice_ns: u64,
    /// From waking to running, half of all times.
    pub median_ns: ComparedFigure,
    /// From waking to running, on average.
    pub mean_ns: ComparedFigure,
    /// From waking to running, 99 in 100 times.
    pub p99_ns: ComparedFigure,
    /// When all work was done.
    pub end_ns: ComparedFigure,
    /// Wake-ups in the replay that found their thread asleep.
    pub wakes: u64,
    /// Wake-ups in the recording.
    pub recorded_wakes: u64,
    /// How much the processor's part of all work differs, in percent of all work; of the processor with the
    /// largest difference.
    pub processors_off_percent: f64,
    /// Whether the recording tells the tick; otherwise it is assumed.
    #[serde(skip)]
    pub is_tick_known: bool,
    #[serde(skip)]
    p99_by_thread: Vec<Option<u64>>,
}

/// Median, mean and 99th percentile.
fn figures(waits: &Latencies) -> Option<[u64; 3]> {
    Some([waits.quantile_ns(0.5)?.get(), waits.mean_ns()? as u64, waits.quantile_ns(0.99)?.get()])
}

fn p99_ns(thread: &ClientReport) -> Option<u64> {
    thread.wake_to_run.as_ref()?.quantile_ns(0.99).map(Nanoseconds::get)
}

impl Fidelity {
    /// Compares the replay under the recorded policy with the recording, whose threads are `recorded`. `None`
    /// if no wait was recorded.
    pub fn of(
        recording: &Recording,
        recorded: &[ClientReport],
        replayed: &Outcome,
        kernel: Kernel,
    ) -> Option<Fidelity> {
        let (was, is) = (all_waits(recorded), all_waits(&replayed.threads));
        let (old, new) = (figures(&was)?, figures(&is)?);
        let [median_ns, mean_ns, p99] = std::array::from_fn(|nth| ComparedFigure::new(old[nth], new[nth]));
        Some(Fidelity {
            kind: "error",
            policy: replayed.policy,
            tick_ns: kernel.tick_ns.get(),
            slice_ns: kernel.slice_ns.get(),
            median_ns,
            mean_ns,
            p99_ns: p99,
            end_ns: ComparedFigure::new(recording.duration_ns.get(), replayed.end_ns.get()),
            wakes: is.count(),
            recorded_wakes: was.count(),
            processors_off_percent: parts_apart(&recording.busy_ns, &replayed.busy_ns),
            is_tick_known: recording.machine.tick_ns().is_some(),
            p99_by_thread: replayed.threads.iter().map(p99_ns).collect(),
        })
    }

    /// The figures by which policies are compared: median, mean and 99th percentile.
    pub fn all(&self) -> [ComparedFigure; 3] {
        [self.median_ns, self.mean_ns, self.p99_ns]
    }

    /// Of the names of [`Fidelity::all`], those whose figure under a policy is within the error.
    pub fn within(
        &self,
        names: [&'static str; 3],
        policy: &str,
        threads: &[ClientReport],
    ) -> Vec<&'static str> {
        let Some(figures) = figures(&all_waits(threads)).filter(|_| policy != self.policy) else {
            return Vec::new();
        };
        let is_within = self.all().into_iter().zip(figures).map(|(compared, ns)| compared.covers(ns));
        names.into_iter().zip(is_within).filter(|(_, is_within)| *is_within).map(|(name, _)| name).collect()
    }

    /// Whether a thread's waits under a policy are within the error of that thread.
    pub fn is_within_of_thread(&self, thread: usize, recorded: &[ClientReport], outcome: &Outcome) -> bool {
        let figures =
            (p99_ns(&recorded[thread]), self.p99_by_thread[thread], p99_ns(&outcome.threads[thread]));
        match figures {
            (Some(was), Some(is), Some(other)) => {
                outcome.policy != self.policy && ComparedFigure::new(was, is).covers(other)
            }
            _ => false,
        }
    }
}

/// The largest difference between a processor's parts of all work, before and now, in percent of all work.
fn parts_apart(was_ns: &[Nanoseconds], is_ns: &[Nanoseconds]) -> f64 {
    let part = |all: &[Nanoseconds], nth: usize| {
        all.get(nth).copied().unwrap_or_default().part_of(all.iter().copied().sum())
    };
    let apart = (0..was_ns.len().max(is_ns.len())).map(|nth| (part(was_ns, nth) - part(is_ns, nth)).abs());
    100.0 * apart.fold(0.0, f64::max)
}
