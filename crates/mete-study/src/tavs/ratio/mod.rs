//! PBratio, the part of its time that a mixed domain may spend boosted: figures 11 and 20 (TAVS paper, §5.1, §5.5).

mod findings;
mod pictures;

use mete_sim::scenario::Shipped;

use super::measures::{boosts_a_second, driver_percent, hog_percent, hog_units, mbit_per_s, own_percent};
use crate::simulated::{Case, Measure, Plan, Ran, scenario};
use crate::study::{Findings, StudyFile, StudyTexts, texts};

const BASE: &str = "base";
const BLOCK: &str = "block";
const NETWORK: &str = "network";
/// Cases in which a domain that would continue to run without a boost is not boosted. This is not the paper's rule.
const SPARING: &str = "network, needless boosts skipped";
const RATIOS: [f64; 6] = [0.0, 0.0625, 0.125, 0.25, 0.5, 1.0];
/// The size of the reader's files, 128 KiB.
const FILE_MB: f64 = 128.0 * 1024.0 / 1e6;

const BLOCK_THROUGHPUT: Measure = Measure::new("block throughput", "MB/s", |outcome| {
    (outcome.line == BLOCK).then(|| outcome.a_second(outcome.probe.done) * FILE_MB)
});
const NETWORK_THROUGHPUT: Measure = Measure::new("network throughput", "Mbit/s", |outcome| {
    if [NETWORK, SPARING].contains(&outcome.line) { mbit_per_s(outcome) } else { None }
});
const OWN: Measure = Measure::new("processor time of the mixed domain", "%", own_percent);
const OTHERS: Measure = Measure::new("of a domain that computes", "%", hog_percent);
const DRIVER: Measure = Measure::new("of the driver", "%", driver_percent);
/// A unit of computation is 10 ms long.
const COMPUTED: Measure = Measure::new("computation of a domain that computes", "units/s", hog_units);
const BOOSTS: Measure = Measure::new("partial boosts a second", "1/s", boosts_a_second);

pub(crate) struct Ratio;

impl Plan for Ratio {
    const NAME: &'static str = "tavs-ratio";
    const SHOWS: &'static str = "what a mixed domain gains by how much it may be boosted (figures 11 and 20)";
    const TEXTS: StudyTexts = texts!("tavs-ratio");
    const SEEDS: u64 = 5;
    const MEASURES: &'static [Measure] =
        &[BLOCK_THROUGHPUT, NETWORK_THROUGHPUT, OWN, OTHERS, DRIVER, COMPUTED, BOOSTS];
    type Besides = ();

    fn cases() -> Vec<Case> {
        let base = Case::new(BASE, scenario!("tavs-ratio", "base"), "credit-tavs", ("mixed", "hog"));
        let network = scenario!("tavs-ratio", "network");
        let sparing =
            sweep(SPARING, network).map(|case| case.with(["policy.credit.skip_needless_boosts=true"]));
        [base]
            .into_iter()
            .chain(sweep(BLOCK, scenario!("tavs-ratio", "block")))
            .chain(sweep(NETWORK, network))
            .chain(sparing)
            .collect()
    }

    fn findings(found: &Ran) -> Findings {
        findings::of(found)
    }

    fn pictures(found: &Ran) -> Vec<StudyFile> {
        pictures::of(found)
    }
}

/// A line's case at each PBratio.
fn sweep(line: &'static str, scenario: Shipped) -> [Case; 6] {
    RATIOS.map(|ratio| {
        Case::new(line, scenario, "credit-tavs", ("mixed", "reader"))
            .at(ratio)
            .with([format!("policy.credit.boost_ratio={ratio:?}")])
    })
}
