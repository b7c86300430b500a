//! Whether boosts serve the task that they are for: by inspection window (figure 12), and by the width of
//! portmap counters (figure 13; TAVS paper, §5.2).

use mete_sim::metrics::Boosts;
use serde_json::json;

use super::{FAIR_KERNEL, boosts_a_second, counted_a_second, mean_response};
use crate::simulated::{Case, Measure, Place, Plan, Ran, scenario};
use crate::study::{Finding, Findings, StudyFile, about};

/// Reads are all sent at once; or late: at most two at a time.
const AT_ONCE: &str = "block at once, window";
const LATE: &str = "block late, window";
const AT_ONCE_NC: &str = "block at once, NC";
const LATE_NC: &str = "block late, NC";
/// The lines of figure 13. There are two kernels: a priority kernel like the paper's Linux 2.6.18, and one
/// that prefers the task that has used the processor least. For each there are both readings of what packets
/// for several ports teach (§3.5.2, §3.5.3).
const BITS: &str = "network, bits";
const SLICE_BITS: &str = "network, by driver slice, bits";
const FAIR_BITS: &str = "network, fair kernel, bits";
const FAIR_SLICE_BITS: &str = "network, fair kernel, by driver slice, bits";
const NC: &str = "network, NC";
const FAIR_NC: &str = "network, fair kernel, NC";
/// The lines of figure 13, each with the one without correlation.
const LINES: [(&str, &str, &str); 4] = [
    ("priority kernel", BITS, NC),
    ("priority kernel, by driver slice", SLICE_BITS, NC),
    ("fair kernel", FAIR_BITS, FAIR_NC),
    ("fair kernel, by driver slice", FAIR_SLICE_BITS, FAIR_NC),
];
const WINDOWS: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const NARROWEST: u8 = 1;
const WIDEST: u8 = 8;
/// The window up to which the paper's throughput grows.
const GROWS_TO: u8 = 5;
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
    about!(
        "tavs-correlation",
        "how many boosts go to the task they are for, by window and counter width (figures 12 and 13)"
    );
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
        vec![
            ("window-hits", windows(found, &HIT_RATIO, WIDEST, |narrowest, widest| widest < narrowest - 5.0)),
            (
                "window-throughput",
                windows(found, &THROUGHPUT, GROWS_TO, |narrowest, wide| wide > 1.05 * narrowest),
            ),
            ("one-bit", one_bit(found, BITS)),
            ("more-bits", more_bits(found, BITS)),
            ("responses", responses(found, BITS)),
            ("one-bit-fair", one_bit(found, FAIR_SLICE_BITS)),
            ("more-bits-fair", more_bits(found, FAIR_SLICE_BITS)),
            ("responses-fair", responses(found, FAIR_SLICE_BITS)),
            ("uncorrelated", uncorrelated(found)),
        ]
    }

    fn pictures(found: &Ran) -> Vec<StudyFile> {
        vec![
            ("figure-12-hits.svg".into(), by_window(found, &HIT_RATIO, "hit ratio, %")),
            ("figure-12-throughput.svg".into(), by_window(found, &THROUGHPUT, "throughput, MB/s")),
            ("figure-13-hits.svg".into(), bars_by_width(found, &HIT_RATIO, "hit ratio, %")),
            ("figure-13-response.svg".into(), bars_by_width(found, &RESPONSE, "mean response, ms")),
        ]
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

/// Figure 12, for reads that are sent late, for which the paper has its window (§3.5.1), and for reads that
/// are sent at once. `holds` gets the means with the narrowest window and with this one.
fn windows(found: &Ran, measure: &Measure, window: u8, holds: fn(f64, f64) -> bool) -> Option<Finding> {
    let (at_once, late) = (found.means(AT_ONCE, WINDOWS, measure)?, found.means(LATE, WINDOWS, measure)?);
    let of =
        |line| Some(holds(found.mean((line, NARROWEST), measure)?, found.mean((line, window), measure)?));
    let holds = of(LATE)? && of(AT_ONCE)?;
    Some(Finding::new(json!({ "late": late, "at_once": at_once, "unit": measure.unit }), holds))
}

/// A measure with counters of 1, 2 and 4 bits.
fn by_width(found: &Ran, line: &str, measure: &Measure) -> Option<[f64; 3]> {
    found.means(line, WIDTHS, measure)?.try_into().ok()
}

fn one_bit(found: &Ran, line: &str) -> Option<Finding> {
    let [one, two, _] = by_width(found, line, &HIT_RATIO)?;
    Some(Finding::new(json!({ "percent": one }), (54.0..=74.0).contains(&one) && one < two))
}

fn more_bits(found: &Ran, line: &str) -> Option<Finding> {
    let [_, two, four] = by_width(found, line, &HIT_RATIO)?;
    let holds = two > 80.0 && four >= two && four - two < 10.0;
    Some(Finding::new(json!({ "two": two, "four": four }), holds))
}

fn responses(found: &Ran, line: &str) -> Option<Finding> {
    let [one, two, four] = by_width(found, line, &RESPONSE)?;
    let holds = one > 1.1 * two && (two / four - 1.0).abs() < 0.2;
    Some(Finding::new(json!({ "one": one, "two": two, "four": four }), holds))
}

fn uncorrelated(found: &Ran) -> Option<Finding> {
    let (boosts, ratio) = (found.mean(NC, &BOOSTS)?, found.mean(NC, &HIT_RATIO)?);
    let response = found.mean(NC, &RESPONSE)?;
    let ([one, two, _], [_, with, _]) = (by_width(found, BITS, &RESPONSE)?, by_width(found, BITS, &BOOSTS)?);
    let values = json!({ "times": boosts / with, "ratio": ratio, "response": response, "two": two });
    Some(Finding::new(values, boosts > 4.0 * with && ratio < 25.0 && response < 1.5 * one))
}

fn by_window(found: &Ran, measure: &Measure, label: &str) -> String {
    let lines = [AT_ONCE, LATE].map(|line| (line, line, measure));
    found.lines("Figure 12: block reads", ["inspection window, tasks", label], &lines)
}

/// Bars of a measure without correlation and with each width of the counters.
fn bars_by_width(found: &Ran, measure: &Measure, label: &str) -> String {
    let groups = ["NC", "1 bit", "2 bits", "4 bits"].map(str::to_owned);
    let series = LINES.map(|(name, line, nc)| (name, places(line, nc), measure));
    found.bars("Figure 13: packets, by counter width", label, &groups, &series)
}

fn places(line: &'static str, nc: &'static str) -> Vec<Place<'static>> {
    // NC has no counters, and so no width.
    std::iter::once(nc.into()).chain(WIDTHS.map(|bits| (line, bits).into())).collect()
}
