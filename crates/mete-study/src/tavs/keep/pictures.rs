//! Figures 9 and 15.

use super::{BASELINE, COMPUTED, COMPUTED_ELSEWHERE, KEEP, OTHERS, OWN};
use crate::simulated::{Measure, Ran};
use crate::study::StudyFile;

pub(super) fn of(found: &Ran) -> Vec<StudyFile> {
    let allocation =
        bars(found, "Figures 9(a) and 15(a): CPU allocation", "processor time, %", [&OWN, &OTHERS]);
    let computation = bars(
        found,
        "Figures 9(b) and 15(b): computation",
        "units of 10 ms a second",
        [&COMPUTED, &COMPUTED_ELSEWHERE],
    );
    vec![("figure-9a-15a.svg".into(), allocation), ("figure-9b-15b.svg".into(), computation)]
}

/// A measure of the domain with the stream beside that of a domain without, for both schedulers.
fn bars(found: &Ran, title: &str, label: &str, [own, others]: [&Measure; 2]) -> String {
    let lines = [BASELINE, KEEP];
    let places = || lines.map(Into::into).to_vec();
    let series = [("domain with the stream", places(), own), ("domain without", places(), others)];
    found.bars(title, label, &lines.map(str::to_owned), &series)
}
