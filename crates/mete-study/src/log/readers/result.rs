//! What is compared under which load, and the results of one reader with one size under one load.

use mete_measure::Row;
use mete_measure::statistics::{Summary, quantile};

/// The readers that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scheme {
    /// Our reader: one pass, and losses are counted.
    Ours,
    /// The papers' reader, which clears the flags after a failure (figure 5.4).
    RestartClearing,
    /// The papers' reader, which only tries again (figure 5.5).
    Restart,
}

impl Scheme {
    pub(super) const ALL: [Scheme; 3] = [Scheme::Ours, Scheme::RestartClearing, Scheme::Restart];

    pub(super) fn name(self) -> &'static str {
        match self {
            Scheme::Ours => "one pass",
            Scheme::RestartClearing => "restart, clearing flags",
            Scheme::Restart => "restart",
        }
    }
}

/// The writers under which readers are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Load {
    /// No writer, as on the reader's own processor in the thesis, whose kernel is not preempted.
    NoWriter,
    /// A writer of one row in each message of the thesis.
    ThesisPace,
    /// A writer that is as fast as the probe allows.
    FullSpeed,
}

impl Load {
    pub(super) const ALL: [Load; 3] = [Load::NoWriter, Load::ThesisPace, Load::FullSpeed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Load::NoWriter => "no writer",
            Load::ThesisPace => "writer at the thesis' pace",
            Load::FullSpeed => "writer at full speed",
        }
    }
}

/// The sizes of log files, in bytes.
pub(super) fn sizes() -> impl ExactSizeIterator<Item = u64> {
    (5u32..21).map(|log2| 1 << log2)
}

/// The number of trials after which the papers' reader gives up. Without a limit it could go on forever.
pub(super) const TRIALS: u32 = 200;

/// The results of one reader with one size under one load.
pub(crate) struct ReaderResult {
    pub scheme: Scheme,
    pub load: Load,
    pub bytes: u64,
    pub trials: Vec<f64>,
    pub ns: Vec<f64>,
    /// The number of analyses that gave up.
    pub starved: usize,
    /// The number of rows that were handed out.
    pub read: u64,
    /// The number of rows that were written, and of occurrences that became no row because the flags were
    /// cleared.
    pub written: u64,
    pub unlogged: u64,
}

impl ReaderResult {
    /// The result before the first analysis.
    pub(super) fn empty(scheme: Scheme, load: Load, bytes: u64) -> ReaderResult {
        let (trials, ns) = (Vec::new(), Vec::new());
        ReaderResult { scheme, load, bytes, trials, ns, starved: 0, read: 0, written: 0, unlogged: 0 }
    }

    /// The number of trials of the 95th of a hundred analyses, in order of trials.
    pub(super) fn trials_95(&self) -> f64 {
        let mut sorted = self.trials.clone();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() { 0.0 } else { quantile(&sorted, 0.95) }
    }

    pub(super) fn mean_trials(&self) -> f64 {
        self.trials.iter().sum::<f64>() / self.count()
    }

    pub(super) fn median_ns(&self) -> f64 {
        Summary::of(&self.ns).map_or(0.0, |summary| summary.median)
    }

    /// The analyses in a hundred that gave up.
    pub(super) fn starved_percent(&self) -> f64 {
        100.0 * self.starved as f64 / self.count()
    }

    /// The number of analyses. A run that was stopped can have none; then sums are divided by 1.
    fn count(&self) -> f64 {
        self.trials.len().max(1) as f64
    }

    pub(super) fn rows(&self) -> [Row; 2] {
        let name = format!("{}, {}, {} B", self.scheme.name(), self.load.name(), self.bytes);
        let fate = format!(
            "{} analyses, {} gave up after {TRIALS} trials; {} rows written, {} read, {} occurrences without a row",
            self.trials.len(),
            self.starved,
            self.written,
            self.read,
            self.unlogged
        );
        [
            Row::new(format!("{name}: trials"), "trials", Ok(self.trials.clone())).note(fate),
            Row::new(format!("{name}: time"), "ns", Ok(self.ns.clone())),
        ]
    }
}

/// The results of one reader under one load, by size.
pub(super) fn of(
    found: &[ReaderResult],
    scheme: Scheme,
    load: Load,
) -> impl Iterator<Item = &ReaderResult> + Clone {
    found.iter().filter(move |result| result.scheme == scheme && result.load == load)
}

pub(super) fn find(found: &[ReaderResult], scheme: Scheme, load: Load, bytes: u64) -> Option<&ReaderResult> {
    of(found, scheme, load).find(|result| result.bytes == bytes)
}
