//! A domain that receives a stream starves beside domains that compute, unless the driver inherits its
//! priority: figures 7 and 14 (TAVS paper, §4.1.1, §5.3).

use serde_json::json;

use super::{BASELINE, INHERITANCE, counted_a_second, driver_percent, mbit_per_s, own_percent};
use crate::simulated::{Case, Measure, Plan, Ran, scenario};
use crate::study::{Finding, Findings, StudyFile, about};

/// The same with a driver that hands on each packet by itself. This is one reading of the paper's words that
/// the driver is preempted "whenever delivering received I/O events to the requesting domain" (§4.1.1). By
/// default the driver hands on all packets that it finds, as that of Linux does.
const ALONE: &str = "baseline, each packet by itself";
const ALONE_INHERITANCE: &str = "priority inheritance, each packet by itself";
const BY_ITSELF: &str = "driver.batch=1";

/// Other assumptions about what the paper leaves open: what a packet costs the driver and the domain, whether
/// the host sees events for packets that were sent, how use is charged, and the parameters of TCP.
struct Variant {
    /// The names of the lines: with the driver's default, and with each packet by itself.
    line: &'static str,
    alone: &'static str,
    name: &'static str,
    settings: &'static [&'static str],
}

/// A variant, with its lines named after it.
macro_rules! variant {
    ($name:literal, $($setting:expr),+) => {
        Variant {
            line: concat!("baseline, ", $name),
            alone: concat!("each packet by itself, ", $name),
            name: $name,
            settings: &[$($setting),+],
        }
    };
}

const VARIANTS: [Variant; 12] = [
    variant!("5 us a packet", "driver.receive_us=5", "driver.transmit_us=5"),
    variant!("8 us", "driver.receive_us=8", "driver.transmit_us=8"),
    variant!("15 us", "driver.receive_us=15", "driver.transmit_us=15"),
    variant!("20 us", "driver.receive_us=20", "driver.transmit_us=20"),
    variant!("40 us", "driver.receive_us=40", "driver.transmit_us=40"),
    variant!("20 us for the domain", SLOW_READER),
    variant!("no events for what was sent", "driver.tell_sent=false"),
    variant!("charged by ticks", "policy.credit.precise_accounting=false"),
    variant!("1 s at least until TCP sends again", "remote.sender.sends.patience_ms=1000"),
    variant!("1 MB under way", "remote.sender.sends.window=700"),
    variant!("a card for 16 packets", "driver.receive_ring=16"),
    variant!("1 MB under way, a card for 256", "remote.sender.sends.window=700", "driver.receive_ring=256"),
];
const SLOW_READER: &str = "guest.stream.task.reader.program=\
     [{ receive = { port = 7 } }, { compute_us = { uniform = [18, 22] } }, \"done\"]";
/// The greatest number of domains that compute.
const HOGS: u32 = 8;
/// The number of domains from which on the stream starves in the paper; then the number in its other figures.
const THIRD: u32 = 3;
const FIVE: u32 = 5;
/// The part of the throughput without other domains below which a stream almost starves.
const ALMOST: f64 = 0.2;

const THROUGHPUT: Measure = Measure::new("throughput", "Mbit/s", mbit_per_s);
const DRIVER: Measure = Measure::new("processor time of the driver", "%", driver_percent);
const OWN: Measure = Measure::new("of the domain", "%", own_percent);
const PREEMPTIONS: Measure =
    Measure::new("preemptions a second", "1/s", |outcome| counted_a_second(outcome, "preemptions"));
const LOST: Measure =
    Measure::new("packets lost", "1/s", |outcome| Some(outcome.a_second(outcome.report.network.lost)));
const TIMERS: Measure = Measure::new("timers that ran out", "1/min", |outcome| {
    Some(60.0 * outcome.report.network.senders.ran_out as f64 / outcome.seconds())
});

pub(crate) struct Starvation;

impl Plan for Starvation {
    about!(
        "tavs-starvation",
        "how a stream starves beside domains that compute, without and with inheritance (figures 7 and 14)"
    );
    const SEEDS: u64 = 20;
    const MEASURES: &'static [Measure] = &[THROUGHPUT, DRIVER, OWN, PREEMPTIONS, LOST, TIMERS];
    type Besides = ();

    fn cases() -> Vec<Case> {
        let lines: [(_, _, &[&str]); 4] = [
            (BASELINE, false, &[]),
            (INHERITANCE, true, &[]),
            (ALONE, false, &[BY_ITSELF]),
            (ALONE_INHERITANCE, true, &[BY_ITSELF]),
        ];
        let lines = lines.into_iter().flat_map(|(line, inherits, others)| {
            (0..=HOGS).map(move |hogs| case(line, inherits, hogs).with(others.iter().copied()))
        });
        lines.chain(VARIANTS.iter().flat_map(variant)).collect()
    }

    fn findings(found: &Ran) -> Findings {
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

    fn pictures(found: &Ran) -> Vec<StudyFile> {
        let lines = [BASELINE, INHERITANCE, ALONE, ALONE_INHERITANCE];
        let picture = found.lines(
            "Figures 7(a) and 14: throughput of a stream",
            ["domains that compute", "throughput, Mbit/s"],
            &lines.map(|line| (line, line, &THROUGHPUT)),
        );
        vec![("figure-7-14.svg".into(), picture)]
    }
}

fn case(line: &'static str, inherits: bool, hogs: u32) -> Case {
    let scenario = match hogs {
        0 => scenario!("tavs-starvation", "alone"),
        _ => scenario!("tavs-starvation", "stream"),
    };
    let count = (hogs > 0).then(|| format!("guest.hog.count={hogs}"));
    Case::new(line, scenario, "credit", ("stream", "reader"))
        .at(hogs)
        .with([format!("policy.credit.priority_inheritance={inherits}")])
        .with(count)
}

/// The cases of a variant: without inheritance, beside three and five domains that compute.
fn variant(of: &'static Variant) -> impl Iterator<Item = Case> {
    let lines = [(of.line, None), (of.alone, Some(BY_ITSELF))];
    lines.into_iter().flat_map(move |(line, by_itself)| {
        [THIRD, FIVE]
            .map(move |hogs| case(line, false, hogs).with(of.settings.iter().copied().chain(by_itself)))
    })
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
    let (mut variants, mut holds) = (Vec::new(), true);
    for variant in &VARIANTS {
        let mbit = found.means(line(variant), [THIRD, FIVE], &THROUGHPUT)?;
        holds &= found.mean((line(variant), THIRD), &THROUGHPUT)? < ALMOST * alone;
        variants.push(json!({ "name": variant.name, "mbit": mbit }));
    }
    Some(Finding::new(json!({ "variants": variants }), holds))
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
    // A domain that computes may leave the throughput as it is, give or take the spread of its mean.
    let is_gradual = |pair: &[f64]| pair[1] > 0.5 * pair[0] && pair[1] < 1.02 * pair[0];
    let holds = mbit[..=FIVE as usize].windows(2).all(is_gradual);
    Some(Finding::new(json!({ "mbit": mbit, "most": HOGS }), holds))
}
