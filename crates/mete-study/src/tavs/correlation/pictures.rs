//! Figures 12 and 13.

use super::{
    AT_ONCE, BITS, FAIR_BITS, FAIR_NC, FAIR_SLICE_BITS, HIT_RATIO, LATE, NC, RESPONSE, SLICE_BITS,
    THROUGHPUT, WIDTHS,
};
use crate::simulated::{Measure, Place, Ran};
use crate::study::StudyFile;

/// The lines of figure 13, each with the one without correlation.
const LINES: [(&str, &str, &str); 4] = [
    ("priority kernel", BITS, NC),
    ("priority kernel, by driver slice", SLICE_BITS, NC),
    ("fair kernel", FAIR_BITS, FAIR_NC),
    ("fair kernel, by driver slice", FAIR_SLICE_BITS, FAIR_NC),
];

pub(super) fn of(found: &Ran) -> Vec<StudyFile> {
    vec![
        ("figure-12-hits.svg".into(), by_window(found, &HIT_RATIO, "hit ratio, %")),
        ("figure-12-throughput.svg".into(), by_window(found, &THROUGHPUT, "throughput, MB/s")),
        ("figure-13-hits.svg".into(), by_width(found, &HIT_RATIO, "hit ratio, %")),
        ("figure-13-response.svg".into(), by_width(found, &RESPONSE, "mean response, ms")),
    ]
}

fn by_window(found: &Ran, measure: &Measure, label: &str) -> String {
    let lines = [AT_ONCE, LATE].map(|line| (line, line, measure));
    found.lines("Figure 12: block reads", ["inspection window, tasks", label], &lines)
}

/// Bars of a measure without correlation and with each width of the counters.
fn by_width(found: &Ran, measure: &Measure, label: &str) -> String {
    let groups = ["NC", "1 bit", "2 bits", "4 bits"].map(str::to_owned);
    let series = LINES.map(|(name, line, nc)| (name, places(line, nc), measure));
    found.bars("Figure 13: packets, by counter width", label, &groups, &series)
}

fn places(line: &'static str, nc: &'static str) -> Vec<Place<'static>> {
    // NC has no counters, and so no width.
    std::iter::once(nc.into()).chain(WIDTHS.map(|bits| (line, bits).into())).collect()
}
