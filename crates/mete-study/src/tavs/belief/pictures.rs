//! Figures 16 to 19.

use mete_plot::{self as plot, Series};

use super::believed::{Believed, CHANGES, Change, THRESHOLD};
use super::curve::Curve;
use super::pair::{PAIRS, Pair};
use super::{BROWSE, COMPILE, RATE};
use crate::simulated::{Ran, axis};
use crate::study::StudyFile;
use crate::tavs::{BASELINE, TAVS};

/// The cases without and with something, of a pair.
type Lines = fn(&Pair) -> [&'static str; 2];

pub(super) fn of(found: &Ran<Believed>) -> Vec<StudyFile> {
    let mut pictures = vec![
        ("figure-17a.svg".to_owned(), gains(found)),
        ("figure-19.svg".to_owned(), inherited(found)),
        ("figure-16a.svg".to_owned(), editing(found, COMPILE)),
        ("figure-16b.svg".to_owned(), editing(found, BROWSE)),
    ];
    pictures.extend(PAIRS.iter().map(|pair| believed(found, pair)));
    // The changes with another program are claims only.
    pictures.extend(CHANGES.iter().filter(|of| of.program.is_none()).map(|change| changed(found, change)));
    pictures
}

fn editing(found: &Ran<Believed>, lines: [&str; 2]) -> String {
    let title = format!("Figure 16: text editing, {}", lines[0].trim_end_matches(", baseline"));
    let axes = ["response time, ms", "responses, %"];
    found.distributions(&title, axes, &lines, |outcome| &outcome.probe.responses)
}

fn believed(found: &Ran<Believed>, pair: &Pair) -> StudyFile {
    let title = format!("Figure 17(b): {} and {}", pair.io, pair.cpu);
    (format!("figure-17b-{}.svg", pair.io), beliefs(&title, found.besides.find(pair.io)))
}

fn changed(found: &Ran<Believed>, change: &Change) -> StudyFile {
    let Change { id, pair, from_ms, to_ms, .. } = change;
    let title = format!("Figure 18: {} and {}, {from_ms} ms, from 20 s on {to_ms} ms", pair.io, pair.cpu);
    (format!("figure-18-{}.svg", pair.io), beliefs(&title, found.besides.find(id)))
}

fn beliefs(title: &str, curves: Option<&[Curve]>) -> String {
    let mut series: Vec<Series> = curves.unwrap_or_default().iter().map(Curve::series).collect();
    let end = series.iter().flat_map(|series| &series.points).map(|point| point.0).fold(0.0, f64::max);
    series.push(Series { name: "BelThreshold".into(), points: vec![(0.0, THRESHOLD), (end, THRESHOLD)] });
    plot::lines(title, &axis("time, s"), &axis("degree of belief"), &series)
}

fn gains(found: &Ran<Believed>) -> String {
    let title = "Figure 17(a): work of I/O-bound programs, of that under the baseline";
    let lines: [(_, Lines); 2] =
        [(BASELINE, |pair| [pair.baseline, pair.baseline]), (TAVS, |pair| [pair.baseline, pair.tavs])];
    compared(found, title, lines)
}

fn inherited(found: &Ran<Believed>) -> String {
    let title = "Figure 19: work of I/O-bound programs, of that under the baseline";
    let lines: [(_, Lines); 2] = [
        (BASELINE, |pair| [pair.alone, pair.alone]),
        ("priority inheritance", |pair| [pair.alone, pair.inherits]),
    ];
    compared(found, title, lines)
}

/// The work of each pair in two lines, as a percentage of that in the first one.
fn compared(found: &Ran<Believed>, title: &str, lines: [(&str, Lines); 2]) -> String {
    let series = lines.map(|(name, lines)| {
        let percents = PAIRS.iter().filter_map(|pair| {
            let [before, after] = lines(pair);
            Some(100.0 * found.mean(after, &RATE)? / found.mean(before, &RATE)?)
        });
        (name.to_owned(), percents.collect())
    });
    plot::bars(title, &axis("work, %"), &PAIRS.map(|pair| pair.io.to_owned()), &series)
}
