//! What came out of the paper's claims on a desktop's programs.

use serde_json::{Value, json};

use super::believed::{Believed, CHANGES, Change, SETTLED_S, THRESHOLD};
use super::curve::Curve;
use super::pair::{PAIRS, Pair};
use super::{BROWSE, COMPILE, MEDIAN, OTHERS, OWN, PAUSES, PREFERS, RATE, RESPONSE};
use crate::simulated::Ran;
use crate::study::{Finding, Findings};

/// A difference below this percentage may be due to chance.
const CHANCE: f64 = 5.0;
/// A gain below this percentage is a small one.
const LITTLE: f64 = 20.0;

pub(super) fn of(found: &Ran<Believed>) -> Findings {
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

/// The percentage of the time for which the tasks of a pair are classified rightly; of the two tasks, the smaller
/// value.
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
