//! Programs like those of a desktop: what they gain by boosting and by inheritance (figures 16, 17(a) and
//! 19), and the degrees of belief in their tasks (figures 17(b) and 18; TAVS paper, §5.4).

mod believed;

use mete_measure::Report;
use mete_plot::{self as plot, Axis, Series};
use mete_sim::scenario::Shipped;
use serde_json::{Value, json};

use self::believed::{Believed, CHANGES, Change, Curve, PAIRS, Pair, SETTLED_S, THRESHOLD};
use super::{
    BASELINE, FAIR_KERNEL, INHERITANCE, TAVS, hog_percent, mean_response, median_response, own_percent,
};
use crate::simulated::{Case, Measure, Outcome, Plan, Ran, scenario};
use crate::study::{Finding, Findings, StudyFile, about};

/// The lines of figure 16, without and with TAVS.
const COMPILE: [&str; 2] = ["editor + cc1, baseline", "editor + cc1, TAVS"];
const BROWSE: [&str; 2] = ["editor + browser, baseline", "editor + browser, TAVS"];
/// A browser that pauses after each picture, as if it had the time.
const PAUSES: [&str; 2] = ["editor + browser that pauses, baseline", "editor + browser that pauses, TAVS"];
const PAUSING: &str =
    "guest.mixed.task.browser.program=[{ compute_ms = { uniform = [10, 30] } }, { sleep_ms = 30 }, \"done\"]";
/// The same in a guest whose kernel prefers the task that has used the processor least.
const PREFERS: [&str; 2] = [
    "editor + browser that pauses, fair kernel, baseline",
    "editor + browser that pauses, fair kernel, TAVS",
];

const RATE: Measure = Measure::new("work of the I/O-bound program", "units/s", |outcome| {
    (!edits(outcome)).then(|| outcome.a_second(outcome.probe.done))
});
const RESPONSE: Measure = Measure::new("mean response", "ms", mean_response);
const MEDIAN: Measure = Measure::new("median response", "ms", median_response);
const OWN: Measure = Measure::new("processor time of the mixed domain", "%", own_percent);
const OTHERS: Measure = Measure::new("of a domain that computes", "%", hog_percent);

/// A difference below this percentage may be due to chance.
const CHANCE: f64 = 5.0;
/// A gain below this percentage is a small one.
const LITTLE: f64 = 20.0;

fn edits(outcome: &Outcome) -> bool {
    [COMPILE, BROWSE, PAUSES, PREFERS].as_flattened().contains(&outcome.line)
}

pub(crate) struct Belief;

impl Plan for Belief {
    about!(
        "tavs-belief",
        "what realistic mixes gain, and what is believed of their tasks (figures 16 to 19)"
    );
    const SEEDS: u64 = 20;
    const MEASURES: &'static [Measure] = &[RATE, RESPONSE, MEDIAN, OWN, OTHERS];
    type Besides = Believed;

    fn cases() -> Vec<Case> {
        let browser = scenario!("tavs-belief", "edit-browse");
        editing(COMPILE, scenario!("tavs-belief", "edit-compile"), &[])
            .into_iter()
            .chain(editing(BROWSE, browser, &[]))
            .chain(editing(PAUSES, browser, &[PAUSING]))
            .chain(editing(PREFERS, browser, &[PAUSING, FAIR_KERNEL]))
            .chain(PAIRS.iter().flat_map(Pair::cases))
            .collect()
    }

    fn besides(_: &mut Report) -> Believed {
        Believed::simulated()
    }

    fn findings(found: &Ran<Believed>) -> Findings {
        let mut findings = vec![
            ("compile", edit(found, COMPILE)),
            ("browse", edit(found, BROWSE)),
            ("browse-pauses", edit(found, PAUSES)),
            ("browse-fair", edit(found, PREFERS)),
            ("mixes", mixes(found)),
            ("evenness", evenness(found)),
            ("believed", believed(found)),
        ];
        findings.extend(CHANGES.iter().map(|change| (change.id, told(found, change))));
        findings.push(("inheritance", inheritance(found)));
        findings
    }

    fn pictures(found: &Ran<Believed>) -> Vec<StudyFile> {
        let mut pictures = vec![
            ("figure-17a.svg".to_owned(), compared(found, "17(a)", TAVS, |pair| [pair.baseline, pair.tavs])),
            (
                "figure-19.svg".to_owned(),
                compared(found, "19", INHERITANCE, |pair| [pair.alone, pair.inherits]),
            ),
            ("figure-16a.svg".to_owned(), responses(found, COMPILE)),
            ("figure-16b.svg".to_owned(), responses(found, BROWSE)),
        ];
        pictures.extend(PAIRS.iter().map(|pair| belief_picture(found, pair)));
        // The changes with another program are claims only.
        pictures
            .extend(CHANGES.iter().filter(|of| of.program.is_none()).map(|change| changed(found, change)));
        pictures
    }
}

fn editing([baseline, tavs]: [&'static str; 2], scenario: Shipped, settings: &[&str]) -> [Case; 2] {
    [(baseline, "credit"), (tavs, "credit-tavs")].map(|(line, policy)| {
        Case::new(line, scenario, policy, ("mixed", "editor")).with(settings.iter().copied())
    })
}

fn edit(found: &Ran<Believed>, [baseline, tavs]: [&str; 2]) -> Option<Finding> {
    let (before, after) = (found.mean(baseline, &RESPONSE)?, found.mean(tavs, &RESPONSE)?);
    let median = found.mean(tavs, &MEDIAN)?;
    let values = json!({ "before": before, "after": after, "median": median });
    Some(Finding::new(values, after < before / 2.0))
}

fn mixes(found: &Ran<Believed>) -> Option<Finding> {
    let gains = of_each(|pair| gain_percent(found, [pair.baseline, pair.tavs]))?;
    Some(Finding::new(listed(&gains), gains.iter().all(|gain| *gain > CHANCE)))
}

fn evenness(found: &Ran<Believed>) -> Option<Finding> {
    let off = of_each(|pair| {
        let (own, others) = (found.mean(pair.tavs, &OWN)?, found.mean(pair.tavs, &OTHERS)?);
        Some(100.0 * (own / others - 1.0).abs())
    });
    let most = off?.into_iter().fold(0.0, f64::max);
    Some(Finding::new(json!({ "most": most }), most < 5.0))
}

fn believed(found: &Ran<Believed>) -> Option<Finding> {
    let rights = of_each(|pair| Some(right_percent(pair, found.besides.find(pair.io)?)))?;
    Some(Finding::new(listed(&rights), rights.iter().all(|right| *right > 95.0)))
}

fn inheritance(found: &Ran<Believed>) -> Option<Finding> {
    let gains = of_each(|pair| gain_percent(found, [pair.alone, pair.inherits]))?;
    // grep and find only use the disk, and the claim is about the network.
    let [_, _, wget, smb, acrobat, svn] = gains[..] else { return None };
    Some(Finding::new(listed(&gains), wget.min(smb) > 10.0 && acrobat.max(svn) < LITTLE))
}

/// A value of each pair. `None` if one is missing.
fn of_each(value: impl FnMut(&Pair) -> Option<f64>) -> Option<Vec<f64>> {
    PAIRS.iter().map(value).collect()
}

/// The percentages of all pairs as values of a sentence.
fn listed(percents: &[f64]) -> Value {
    let each = PAIRS.iter().zip(percents).map(|(pair, percent)| json!({ "io": pair.io, "percent": percent }));
    json!({ "pairs": each.collect::<Vec<_>>() })
}

/// How much less time the program takes for the same work.
fn gain_percent(found: &Ran<Believed>, [before, after]: [&str; 2]) -> Option<f64> {
    Some(100.0 * (1.0 - found.mean(before, &RATE)? / found.mean(after, &RATE)?))
}

/// The percentage of the time for which the tasks of a pair are classified rightly; of the two tasks, the
/// smaller value.
fn right_percent(pair: &Pair, curves: &[Curve]) -> f64 {
    let parts = curves.iter().map(|curve| {
        let above = curve.part_above(THRESHOLD, SETTLED_S..f64::INFINITY);
        if curve.task == pair.io { above } else { 1.0 - above }
    });
    100.0 * parts.fold(1.0, f64::min)
}

/// Whether a change of IOthreshold after 20 s tells the tasks apart.
fn told(found: &Ran<Believed>, change: &Change) -> Option<Finding> {
    let curves = found.besides.find(change.id)?;
    let of = |task| curves.iter().find(|curve| curve.task == task);
    let (io, cpu) = (of(change.pair.io)?, of(change.pair.cpu)?);
    let late = 2.0 * SETTLED_S..f64::INFINITY;
    let before = io.part_above(THRESHOLD, 0.0..SETTLED_S);
    let (after, wrong) = (io.part_above(THRESHOLD, late.clone()), cpu.part_above(THRESHOLD, late));
    let first_s = io.above_from(THRESHOLD, SETTLED_S).map(|at_s| at_s - SETTLED_S);
    let values = json!({
        "threshold": format!("{THRESHOLD}"),
        "before": 100.0 * before,
        "after": 100.0 * after,
        "first_s": first_s,
    });
    Some(Finding::new(values, before < 0.2 && after > 0.8 && wrong < 0.05))
}

fn responses(found: &Ran<Believed>, lines: [&str; 2]) -> String {
    let title = format!("Figure 16: text editing, {}", lines[0].trim_end_matches(", baseline"));
    let axes = ["response time, ms", "responses, %"];
    found.distributions(&title, axes, &lines, |outcome| &outcome.probe.responses)
}

fn belief_picture(found: &Ran<Believed>, pair: &Pair) -> StudyFile {
    let title = format!("Figure 17(b): {} and {}", pair.io, pair.cpu);
    (format!("figure-17b-{}.svg", pair.io), beliefs(&title, found.besides.find(pair.io)))
}

fn changed(found: &Ran<Believed>, change: &Change) -> StudyFile {
    let Change { id, pair, from_ms, to_ms, .. } = change;
    let title = format!("Figure 18: {} and {}, {from_ms} ms, from 20 s on {to_ms} ms", pair.io, pair.cpu);
    (format!("figure-18-{}.svg", pair.io), beliefs(&title, found.besides.find(id)))
}

fn beliefs(title: &str, curves: Option<&[Curve]>) -> String {
    let curves = curves.unwrap_or_default().iter();
    let mut series: Vec<_> = curves.map(|curve| Series::new(&curve.task, curve.points.clone())).collect();
    let end = series.iter().flat_map(|series| &series.points).map(|point| point.0).fold(0.0, f64::max);
    series.push(Series::new("BelThreshold", [(0.0, THRESHOLD), (end, THRESHOLD)]));
    plot::lines(title, &Axis::linear("time, s"), &Axis::linear("degree of belief"), &series)
}

/// The work of each pair in its two cases, as a percentage of that in the first one.
fn compared(
    found: &Ran<Believed>,
    figure: &str,
    name: &str,
    cases: fn(&Pair) -> [&'static str; 2],
) -> String {
    let title = format!("Figure {figure}: work of I/O-bound programs, of that under the baseline");
    let series = [(BASELINE, 0), (name, 1)].map(|(name, nth)| {
        let percents = PAIRS
            .iter()
            .map(cases)
            .filter_map(|cases| Some(100.0 * found.mean(cases[nth], &RATE)? / found.mean(cases[0], &RATE)?));
        (name.to_owned(), percents.collect())
    });
    plot::bars(&title, &Axis::linear("work, %"), &PAIRS.map(|pair| pair.io.to_owned()), &series)
}
