//! What came out of the paper's claims on starvation.

use serde_json::json;

use super::{
    ALONE, ALONE_INHERITANCE, BASELINE, FIVE, HOGS, INHERITANCE, THIRD, THROUGHPUT, VARIANTS, Variant,
};
use crate::simulated::Ran;
use crate::study::{Finding, Findings};

/// The part of the throughput without other domains below which a stream almost starves.
const ALMOST: f64 = 0.2;

pub(super) fn of(found: &Ran) -> Findings {
    vec![
        ("starves", starves(found, BASELINE)),
        ("starves-by-itself", starves(found, ALONE)),
        ("starves-otherwise", starves_otherwise(found, |variant| variant.line)),
        ("starves-otherwise-by-itself", starves_otherwise(found, |variant| variant.alone)),
        ("inherits", does_not_starve(found, [BASELINE, INHERITANCE])),
        ("inherits-by-itself", does_not_starve(found, [ALONE, ALONE_INHERITANCE])),
        ("gradual", drops_gradually(found, INHERITANCE)),
        ("gradual-by-itself", drops_gradually(found, ALONE_INHERITANCE)),
    ]
}

/// Throughput falls with each domain that computes, up to five, and is small beside three.
fn starves(found: &Ran, line: &str) -> Option<Finding> {
    let mbit = found.means(line, 0..=FIVE, &THROUGHPUT)?;
    let almost = |hogs| mbit[hogs as usize] < ALMOST * mbit[0];
    let falls = mbit.windows(2).all(|pair| pair[1] < pair[0]);
    let holds = falls && almost(THIRD) && almost(FIVE);
    Some(Finding::new(json!({ "mbit": mbit }), holds))
}

/// The statement on starvation under each assumption about what the paper leaves open.
fn starves_otherwise(found: &Ran, line: fn(&Variant) -> &'static str) -> Option<Finding> {
    let alone = found.mean((BASELINE, 0), &THROUGHPUT)?;
    let variants = VARIANTS.iter().map(|variant| found.means(line(variant), [THIRD, FIVE], &THROUGHPUT));
    let variants = variants.collect::<Option<Vec<_>>>()?;
    let said =
        VARIANTS.iter().zip(&variants).map(|(variant, mbit)| json!({ "name": variant.name, "mbit": mbit }));
    let holds = variants.iter().all(|mbit| mbit[0] < ALMOST * alone);
    Some(Finding::new(json!({ "variants": said.collect::<Vec<_>>() }), holds))
}

fn does_not_starve(found: &Ran, [without, with]: [&str; 2]) -> Option<Finding> {
    let alone = found.mean((with, 0), &THROUGHPUT)?;
    let [before, after] = [without, with].map(|line| found.mean((line, FIVE), &THROUGHPUT));
    let (before, after) = (before?, after?);
    let holds = after > ALMOST * alone && after > 3.0 * before;
    Some(Finding::new(json!({ "before": before, "after": after }), holds))
}

fn drops_gradually(found: &Ran, line: &str) -> Option<Finding> {
    let mbit = found.means(line, 0..=HOGS, &THROUGHPUT)?;
    let is_gradual = |pair: &[f64]| pair[1] > 0.5 * pair[0] && pair[1] < 1.02 * pair[0];
    let holds = mbit[..=FIVE as usize].windows(2).all(is_gradual);
    Some(Finding::new(json!({ "mbit": mbit, "most": HOGS }), holds))
}
