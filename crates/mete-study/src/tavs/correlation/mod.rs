//! Whether boosts serve the task that they are for: by inspection window (figure 12), and by the width of portmap
//! counters (figure 13; TAVS paper, §5.2).

mod findings;
mod pictures;

use mete_sim::metrics::Boosts;

use super::FAIR_KERNEL;
use super::measures::{boosts_a_second, counted_a_second, mean_response};
use crate::simulated::{Case, Measure, Plan, Ran, scenario};
use crate::study::{Findings, StudyFile, StudyTexts, texts};

/// Reads are all sent at once; or late: at most two at a time.
const AT_ONCE: &str = "block at once, window";
const LATE: &str = "block late, window";
const AT_ONCE_NC: &str = "block at once, NC";
const LATE_NC: &str = "block late, NC";
/// The lines of figure 13. There are two kernels: a priority kernel like the paper's Linux 2.6.18, and one that
/// prefers the task that has used the processor least. For each there are both readings of what packets for several
/// ports teach (§3.5.2, §3.5.3).
const BITS: &str = "network, bits";
const SLICE_BITS: &str = "network, by driver slice, bits";
const FAIR_BITS: &str = "network, fair kernel, bits";
const FAIR_SLICE_BITS: &str = "network, fair kernel, by driver slice, bits";
const NC: &str = "network, NC";
const FAIR_NC: &str = "network, fair kernel, NC";
const WINDOWS: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const WIDTHS: [u8; 3] = [1, 2, 4];
const BY_SLICE: &str = "policy.credit.learn_by_driver_slice=true";
const UNCORRELATED: [&str; 2] =
    ["policy.credit.block_correlation=false", "policy.credit.network_correlation=false"];
/// The size of a read, 16 KiB.
const READ_MB: f64 = 16.0 * 1024.0 / 1e6;

const HIT_RATIO: Measure = Measure::new("hit ratio", "%", |outcome| hit_percent(&outcome.probe.boosts));
const ALONE: Measure = Measure::new("hit ratio where nothing else is pending", "%", |outcome| {
    hit_percent(&outcome.probe.boosts_alone)
});
const BOOSTS: Measure = Measure::new("partial boosts", "1/s", boosts_a_second);
const RESPONSE: Measure = Measure::new("mean response", "ms", mean_response);
const THROUGHPUT: Measure = Measure::new("block throughput", "MB/s", |outcome| {
    outcome.line.starts_with("block").then(|| outcome.a_second(outcome.probe.done) * READ_MB)
});
const BY_RATIO: Measure =
    Measure::new("refused by PBratio", "1/s", |outcome| counted_a_second(outcome, "refused_by_ratio"));

fn hit_percent(boosts: &Boosts) -> Option<f64> {
    boosts.hit_ratio().map(|ratio| ratio * 100.0)
}

pub(crate) struct Correlation;

impl Plan for Correlation {
    const NAME: &'static str = "tavs-correlation";
    const SHOWS: &'static str =
        "how many boosts go to the task they are for, by window and counter width (figures 12 and 13)";
    const TEXTS: StudyTexts = texts!("tavs-correlation");
    const SEEDS: u64 = 10;
    const MEASURES: &'static [Measure] = &[HIT_RATIO, ALONE, BOOSTS, RESPONSE, THROUGHPUT, BY_RATIO];
    type Besides = ();

    fn cases() -> Vec<Case> {
        blocks(AT_ONCE, AT_ONCE_NC, "guest.mixed.read_depth=0")
            .into_iter()
            .chain(blocks(LATE, LATE_NC, "guest.mixed.read_depth=2"))
            .chain([network(NC).with(UNCORRELATED), network(FAIR_NC).with([FAIR_KERNEL]).with(UNCORRELATED)])
            .chain(packets(BITS, &[]))
            .chain(packets(SLICE_BITS, &[BY_SLICE]))
            .chain(packets(FAIR_BITS, &[FAIR_KERNEL]))
            .chain(packets(FAIR_SLICE_BITS, &[FAIR_KERNEL, BY_SLICE]))
            .collect()
    }

    fn findings(found: &Ran) -> Findings {
        findings::of(found)
    }

    fn pictures(found: &Ran) -> Vec<StudyFile> {
        pictures::of(found)
    }
}

/// The cases of figure 12 for one depth of reading: without correlation, and by window.
fn blocks(line: &'static str, nc: &'static str, depth: &str) -> Vec<Case> {
    let block = |line| {
        let scenario = scenario!("tavs-correlation", "block");
        Case::new(line, scenario, "credit-tavs", ("mixed", "reader-0")).with([depth])
    };
    let windows = WINDOWS
        .map(|window| block(line).at(window).with([format!("policy.credit.inspection_window={window}")]));
    [block(nc).with(UNCORRELATED)].into_iter().chain(windows).collect()
}

/// The cases of a line of figure 13, by width.
fn packets(line: &'static str, settings: &'static [&str]) -> [Case; 3] {
    WIDTHS.map(|bits| {
        network(line)
            .at(bits)
            .with(settings.iter().copied())
            .with([format!("policy.credit.portmap_bits={bits}")])
    })
}

fn network(line: &'static str) -> Case {
    Case::new(line, scenario!("tavs-correlation", "network"), "credit-tavs", ("mixed", "server-0"))
}
