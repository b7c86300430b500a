//! PBratio, the part of its time that a mixed domain may spend boosted: figures 11 and 20 (TAVS paper, §5.1, §5.5).

use super::case::{Case, Outcome};
use super::plan::{Measure, Plan, RanCases, claim, mean_of};
use super::{SEGMENT_BITS, axis, scenario};
use crate::study::figure::Figure;
use mete_plot::short;
use mete_plot::{self as plot, Series};

const BASE: &str = "base";
const BLOCK: &str = "block";
const NETWORK: &str = "network";
/// Cases in which a domain that would continue to run without a boost is not boosted. This is not the paper's rule.
const SPARING: &str = "network, needless boosts skipped";
const RATIOS: [f64; 6] = [0.0, 0.0625, 0.125, 0.25, 0.5, 1.0];
/// The size of the reader's files, 128 KiB.
const FILE_MB: f64 = 128.0 * 1024.0 / 1e6;

const BLOCK_THROUGHPUT: Measure = Measure {
    name: "block throughput",
    unit: "MB/s",
    of: |outcome| of_line(outcome, BLOCK).map(|a_second| a_second * FILE_MB),
};
const NETWORK_THROUGHPUT: Measure = Measure {
    name: "network throughput",
    unit: "Mbit/s",
    of: |outcome| {
        let a_second = of_line(outcome, NETWORK).or_else(|| of_line(outcome, SPARING));
        a_second.map(|a_second| a_second * SEGMENT_BITS / 1e6)
    },
};
const OWN: Measure = Measure {
    name: "processor time of the mixed domain",
    unit: "%",
    of: |outcome| outcome.got_percent(outcome.client),
};
const OTHERS: Measure =
    Measure { name: "of a domain that computes", unit: "%", of: |outcome| outcome.got_by_each("hog") };
const DRIVER: Measure =
    Measure { name: "of the driver", unit: "%", of: |outcome| outcome.got_by_each("driver") };
/// A unit of computation is 10 ms long.
const COMPUTED: Measure = Measure {
    name: "computation of a domain that computes",
    unit: "units/s",
    of: |outcome| outcome.done_by_each("hog"),
};
const BOOSTS: Measure = Measure {
    name: "partial boosts a second",
    unit: "1/s",
    of: |outcome| Some(outcome.a_second(outcome.probe.boosts.granted())),
};

/// The units of work of the watched task in a second; `None` for cases of other lines.
fn of_line(outcome: &Outcome, line: &str) -> Option<f64> {
    (outcome.line == line).then(|| outcome.a_second(outcome.probe.done))
}

pub(super) fn plan() -> Plan {
    let sweep = |line, scenario| RATIOS.map(|ratio| case(line, scenario, ratio));
    let base = Case {
        line: BASE,
        x: None,
        scenario: scenario!("tavs-ratio", "base"),
        policy: "credit-tavs",
        settings: Vec::new(),
        watched: ("mixed", "hog"),
    };
    let block = sweep(BLOCK, scenario!("tavs-ratio", "block"));
    let network = sweep(NETWORK, scenario!("tavs-ratio", "network"));
    let mut sparing = sweep(SPARING, scenario!("tavs-ratio", "network"));
    for case in &mut sparing {
        case.settings.push("policy.credit.skip_needless_boosts=true".to_owned());
    }
    Plan {
        folder: "tavs-ratio",
        title: "What a domain may spend boosted",
        cases: [base].into_iter().chain(block).chain(network).chain(sparing).collect(),
        seeds: 5,
        measures: &[BLOCK_THROUGHPUT, NETWORK_THROUGHPUT, OWN, OTHERS, DRIVER, COMPUTED, BOOSTS],
        figures,
        plots,
        prose: PROSE,
    }
}

fn case(line: &'static str, scenario: mete_sim::scenario::Shipped, ratio: f64) -> Case {
    Case {
        line,
        x: Some(ratio),
        scenario,
        policy: "credit-tavs",
        settings: vec![format!("policy.credit.boost_ratio={ratio:?}")],
        watched: ("mixed", "reader"),
    }
}

fn figures(found: &RanCases) -> Vec<Figure> {
    vec![
        growth(found, "TAVS fig. 11(a)", BLOCK, &BLOCK_THROUGHPUT),
        growth(found, "TAVS fig. 11(b)", NETWORK, &NETWORK_THROUGHPUT),
        growth(found, "TAVS fig. 11(b), needless boosts skipped", SPARING, &NETWORK_THROUGHPUT),
        evenness(found),
        driver_use(found),
        trade(found),
    ]
}

/// The greatest difference between the mixed domain's processor time and that of other domains, in percent.
fn uneven(found: &RanCases, line: &str) -> Option<f64> {
    let off = RATIOS.iter().map(|&ratio| {
        let own = found.mean(line, Some(ratio), &OWN)?;
        Some((own / found.mean(line, Some(ratio), &OTHERS)? - 1.0).abs() * 100.0)
    });
    // One missing case makes the answer `None`: the greatest value would not be known.
    off.collect::<Option<Vec<_>>>().map(|off| off.into_iter().fold(0.0, f64::max))
}

fn evenness(found: &RanCases) -> Figure {
    claim("TAVS fig. 11", "guest domains have the same processor time in all cases", judge_evenness(found))
}

fn judge_evenness(found: &RanCases) -> Option<(String, bool)> {
    let [block, network, sparing] = [BLOCK, NETWORK, SPARING].map(|line| uneven(found, line));
    let (block, network, sparing) = (block?, network?, sparing?);
    let ours = format!(
        "the mixed domain is off by at most {} % of what others have (block), {} % (network), {} % \
             (needless boosts skipped)",
        short(block),
        short(network),
        short(sparing)
    );
    Some((ours, block.max(network) < 5.0))
}

fn driver_use(found: &RanCases) -> Figure {
    let paper = "the driver uses more as throughput grows, at the cost of the domains that compute";
    claim("TAVS fig. 11", paper, judge_driver_use(found))
}

fn judge_driver_use(found: &RanCases) -> Option<(String, bool)> {
    let at = |ratio, measure: &Measure| found.mean(NETWORK, Some(ratio), measure);
    let (before, after) = (at(0.0, &DRIVER)?, at(1.0, &DRIVER)?);
    let (others_before, others_after) = (at(0.0, &OTHERS)?, at(1.0, &OTHERS)?);
    let [driver_from, driver_to] = [before, after].map(short);
    let [from, to] = [others_before, others_after].map(short);
    let ours =
        format!("network, from 0 to 1: the driver {driver_from} to {driver_to} %, others {from} to {to} %");
    Some((ours, after > before && others_after < others_before))
}

/// Throughput over PBratio.
fn growth(found: &RanCases, figure: &str, line: &str, measure: &Measure) -> Figure {
    let paper = "throughput grows with PBratio";
    let all: Option<Vec<f64>> = RATIOS.iter().map(|&ratio| found.mean(line, Some(ratio), measure)).collect();
    let found = all.map(|all| {
        let said: Vec<String> = all.iter().copied().map(short).collect();
        let ratios: Vec<String> = RATIOS.iter().map(f64::to_string).collect();
        let ours = format!("{} {} at {}", said.join(", "), measure.unit, ratios.join(", "));
        let grows = all.windows(2).all(|pair| pair[1] > pair[0] * 0.98);
        (ours, grows && all[all.len() - 1] > 1.2 * all[0])
    });
    claim(figure, paper, found)
}

fn trade(found: &RanCases) -> Figure {
    claim(
        "TAVS fig. 20",
        "network throughput grows by far more than computation drops: 48 to 1",
        (|| {
            let at = |ratio, measure: &Measure| found.mean(NETWORK, Some(ratio), measure);
            let change = |measure: &Measure| Some(100.0 * (at(1.0, measure)? / at(0.0, measure)? - 1.0));
            let (network, computed) = (change(&NETWORK_THROUGHPUT)?, change(&COMPUTED)?);
            let ours = format!(
                "network {} % more, computation {} % less: {} to 1",
                short(network),
                short(-computed),
                short(network / -computed)
            );
            Some((ours, network > -10.0 * computed && computed <= 0.0))
        })(),
    )
}

fn plots(found: &RanCases) -> Vec<(String, String)> {
    let x = "PBratio";
    let usage = |title: &str, line: &str| {
        let domains = [("mixed domain", &OWN), ("domain that computes", &OTHERS), ("driver", &DRIVER)];
        let (series, intervals): (Vec<_>, Vec<_>) = domains
            .map(|(name, measure)| {
                let own = found.series(measure).into_iter().find(|series| series.name == line);
                let series =
                    Series { name: name.into(), points: own.map_or(Vec::new(), |series| series.points) };
                let intervals = found.intervals(line, &series, measure);
                (series, intervals)
            })
            .into_iter()
            .unzip();
        let y = axis(&mean_of("processor time, %"));
        plot::lines_with_intervals(title, &axis(x), &y, &series, &intervals)
    };
    vec![
        (
            "figure-11a-throughput.svg".into(),
            found.drawn("Figure 11(a): block", [x, "throughput, MB/s"], &BLOCK_THROUGHPUT, &[BLOCK]),
        ),
        ("figure-11a-usage.svg".into(), usage("Figure 11(a): block", BLOCK)),
        (
            "figure-11b-throughput.svg".into(),
            found.drawn(
                "Figure 11(b): network",
                [x, "throughput, Mbit/s"],
                &NETWORK_THROUGHPUT,
                &[NETWORK, SPARING],
            ),
        ),
        ("figure-11b-usage.svg".into(), usage("Figure 11(b): network", NETWORK)),
        (
            "figure-20.svg".into(),
            found.drawn("Figure 20: computation", [x, "units of 10 ms a second"], &COMPUTED, &[NETWORK]),
        ),
    ]
}

const PROSE: [&str; 2] = [
    "A domain reads files, or receives a stream, and computes; five compute only. PBratio is what part of \
     its processor time the domain may spend boosted: at 0 TAVS does what the baseline does. Reading is \
     fully served once a quarter of its time may be boosted, and the others lose hardly anything by it: \
     there are few requests and each is large. The stream goes on growing up to 1. Each packet costs the \
     driver, too, so the driver's time grows with the throughput and all domains that compute have that \
     much less (figure 20).",
    "Up to an eighth the stream gains little. The driver preempts the domain for each packet in the \
     domain's own turn, too, and the domain is boosted then, although it stands at the head of its list \
     and would go on in any case: nearly all packets are taken boosted, and the allowance is spent where \
     it gains nothing. The paper does not except that case; where it is excepted (`skip_needless_boosts`, \
     the last cases) the stream gains from the beginning. A boost in its own turn leaves the domain that \
     turn, and all domains have the same processor time at every PBratio, switches included: each is \
     charged from the switch to it on, as by Xen's time stamps, and counted so. What a packet or read \
     costs the driver (10 us), a switch (5 us), the disk and TCP's window are choices of the scenario \
     files, and the slopes are theirs; so is the ratio of figure 20, which has the paper's direction and \
     not its size. What tracking tasks itself costs (section 5.5, hackbench) is a matter of real \
     processors and is not simulated.",
];
