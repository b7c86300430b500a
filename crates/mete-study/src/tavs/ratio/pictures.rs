//! Figures 11 and 20.

use super::{BLOCK, BLOCK_THROUGHPUT, COMPUTED, DRIVER, NETWORK, NETWORK_THROUGHPUT, OTHERS, OWN, SPARING};
use crate::simulated::{Measure, Ran};
use crate::study::StudyFile;

pub(super) fn of(found: &Ran) -> Vec<StudyFile> {
    let block = |measure| (BLOCK, BLOCK, measure);
    let network = |measure| (NETWORK, NETWORK, measure);
    let (block_title, network_title) = ("Figure 11(a): block", "Figure 11(b): network");
    let streams = [network(&NETWORK_THROUGHPUT), (SPARING, SPARING, &NETWORK_THROUGHPUT)];
    let pictures = [
        ("figure-11a-throughput.svg", block_title, "throughput, MB/s", vec![block(&BLOCK_THROUGHPUT)]),
        ("figure-11a-usage.svg", block_title, "processor time, %", usage(BLOCK)),
        ("figure-11b-throughput.svg", network_title, "throughput, Mbit/s", streams.to_vec()),
        ("figure-11b-usage.svg", network_title, "processor time, %", usage(NETWORK)),
        ("figure-20.svg", "Figure 20: computation", "units of 10 ms a second", vec![network(&COMPUTED)]),
    ];
    let drawn = pictures
        .into_iter()
        .map(|(name, title, y, lines)| (name.to_owned(), found.lines(title, ["PBratio", y], &lines)));
    drawn.collect()
}

fn usage(line: &str) -> Vec<(&str, &str, &'static Measure)> {
    vec![("mixed domain", line, &OWN), ("domain that computes", line, &OTHERS), ("driver", line, &DRIVER)]
}
