//! PBratio, the part of its time that a mixed domain may spend boosted: figures 11 and 20 (TAVS paper, §5.1,
//! §5.5).

use mete_sim::scenario::Shipped;
use serde_json::json;

use super::{boosts_a_second, driver_percent, hog_percent, hog_units, mbit_per_s, own_percent};
use crate::simulated::{Case, Measure, Plan, Ran, scenario};
use crate::study::{Finding, Findings, StudyFile, about};

const BASE: &str = "base";
const BLOCK: &str = "block";
const NETWORK: &str = "network";
/// Cases in which a domain that would continue to run without a boost is not boosted. This is not the paper's
/// rule.
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
    about!("tavs-ratio", "what a mixed domain gains by how much it may be boosted (figures 11 and 20)");
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
        vec![
            ("block", growth(found, BLOCK, &BLOCK_THROUGHPUT)),
            ("network", growth(found, NETWORK, &NETWORK_THROUGHPUT)),
            ("sparing", growth(found, SPARING, &NETWORK_THROUGHPUT)),
            ("evenness", evenness(found)),
            ("driver", driver_use(found)),
            ("trade", trade(found)),
        ]
    }

    fn pictures(found: &Ran) -> Vec<StudyFile> {
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
}

/// A line's case at each PBratio.
fn sweep(line: &'static str, scenario: Shipped) -> [Case; 6] {
    RATIOS.map(|ratio| {
        Case::new(line, scenario, "credit-tavs", ("mixed", "reader"))
            .at(ratio)
            .with([format!("policy.credit.boost_ratio={ratio:?}")])
    })
}

/// Throughput over PBratio.
fn growth(found: &Ran, line: &str, measure: &Measure) -> Option<Finding> {
    let all = found.means(line, RATIOS, measure)?;
    // Where a greater PBratio gains nothing, the means of a few seeds fall as well as rise.
    let grows = all.windows(2).all(|pair| pair[1] > pair[0] * 0.98);
    // A growth that stays within the spread of the ends would be none.
    let holds = grows && all[all.len() - 1] > 1.2 * all[0];
    let ratios = RATIOS.map(|ratio| ratio.to_string());
    Some(Finding::new(json!({ "throughputs": all, "unit": measure.unit, "ratios": ratios }), holds))
}

fn evenness(found: &Ran) -> Option<Finding> {
    let [block, network, sparing] = [BLOCK, NETWORK, SPARING].map(|line| uneven_percent(found, line));
    let (block, network, sparing) = (block?, network?, sparing?);
    let values = json!({ "block": block, "network": network, "sparing": sparing });
    Some(Finding::new(values, block.max(network) < 5.0))
}

/// The greatest difference between the mixed domain's processor time and that of other domains.
fn uneven_percent(found: &Ran, line: &str) -> Option<f64> {
    // One missing case makes the answer `None`: the greatest value would not be known.
    let (own, others) = (found.means(line, RATIOS, &OWN)?, found.means(line, RATIOS, &OTHERS)?);
    Some(own.iter().zip(others).map(|(own, others)| (own / others - 1.0).abs() * 100.0).fold(0.0, f64::max))
}

/// A measure of the stream with the least and with the greatest PBratio.
fn ends(found: &Ran, measure: &Measure) -> Option<[f64; 2]> {
    Some([found.mean((NETWORK, 0.0), measure)?, found.mean((NETWORK, 1.0), measure)?])
}

fn driver_use(found: &Ran) -> Option<Finding> {
    let (driver, others) = (ends(found, &DRIVER)?, ends(found, &OTHERS)?);
    let grows = |[with_least, with_greatest]: [f64; 2]| with_greatest > with_least;
    let falls = |[with_least, with_greatest]: [f64; 2]| with_greatest < with_least;
    let holds = grows(driver) && falls(others);
    Some(Finding::new(json!({ "driver": driver, "others": others }), holds))
}

fn trade(found: &Ran) -> Option<Finding> {
    let change = |measure| ends(found, measure).map(|[before, after]| 100.0 * (after / before - 1.0));
    let (network, computed) = (change(&NETWORK_THROUGHPUT)?, change(&COMPUTED)?);
    let values = json!({ "network": network, "computed": -computed, "ratio": network / -computed });
    Some(Finding::new(values, network > -10.0 * computed && computed <= 0.0))
}

fn usage(line: &str) -> Vec<(&str, &str, &'static Measure)> {
    vec![("mixed domain", line, &OWN), ("domain that computes", line, &OTHERS), ("driver", line, &DRIVER)]
}
