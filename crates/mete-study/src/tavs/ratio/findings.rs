//! What came out of the paper's claims on PBratio.

use serde_json::json;

use super::{
    BLOCK, BLOCK_THROUGHPUT, COMPUTED, DRIVER, NETWORK, NETWORK_THROUGHPUT, OTHERS, OWN, RATIOS, SPARING,
};
use crate::simulated::{Measure, Ran};
use crate::study::{Finding, Findings};

pub(super) fn of(found: &Ran) -> Findings {
    vec![
        ("block", growth(found, BLOCK, &BLOCK_THROUGHPUT)),
        ("network", growth(found, NETWORK, &NETWORK_THROUGHPUT)),
        ("sparing", growth(found, SPARING, &NETWORK_THROUGHPUT)),
        ("evenness", evenness(found)),
        ("driver", driver_use(found)),
        ("trade", trade(found)),
    ]
}

/// Throughput over PBratio.
fn growth(found: &Ran, line: &str, measure: &Measure) -> Option<Finding> {
    let all = found.means(line, RATIOS, measure)?;
    let grows = all.windows(2).all(|pair| pair[1] > pair[0] * 0.98);
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
    let holds = driver[1] > driver[0] && others[1] < others[0];
    Some(Finding::new(json!({ "driver": driver, "others": others }), holds))
}

fn trade(found: &Ran) -> Option<Finding> {
    let change = |measure| ends(found, measure).map(|[before, after]| 100.0 * (after / before - 1.0));
    let (network, computed) = (change(&NETWORK_THROUGHPUT)?, change(&COMPUTED)?);
    let values = json!({ "network": network, "computed": -computed, "ratio": network / -computed });
    Some(Finding::new(values, network > -10.0 * computed && computed <= 0.0))
}
