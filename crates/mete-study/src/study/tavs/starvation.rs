//! A domain that receives a stream starves beside domains that compute, unless the driver inherits its
//! priority: figures 7 and 14 (TAVS paper, §4.1.1, §5.3).

use super::case::{Case, Outcome};
use super::plan::{Found, Measure, Plan, claim};
use super::{BASELINE, SEGMENT_BITS, axis, scenario};
use crate::figure::Figure;
use crate::report::short;
use crate::svg;

const INHERITANCE: &str = "priority inheritance";
/// The same with other assumptions about what the paper does not give: what a packet costs the driver and
/// the domain, whether the host sees events for what was sent, and how use is charged.
const VARIANTS: [(&str, &str, &[&str]); 8] = [
    ("baseline, 5 us a packet", "5 us a packet", &["driver.receive_us=5", "driver.transmit_us=5"]),
    ("baseline, 8 us a packet", "8 us", &["driver.receive_us=8", "driver.transmit_us=8"]),
    ("baseline, 15 us a packet", "15 us", &["driver.receive_us=15", "driver.transmit_us=15"]),
    ("baseline, 20 us a packet", "20 us", &["driver.receive_us=20", "driver.transmit_us=20"]),
    ("baseline, 40 us a packet", "40 us", &["driver.receive_us=40", "driver.transmit_us=40"]),
    ("baseline, 20 us a packet for the domain", "20 us for the domain", &[SLOW_READER]),
    ("baseline, no events for what was sent", "no events for what was sent", &["driver.tell_sent=false"]),
    ("baseline, charged by ticks", "charged by ticks", &["policy.credit.precise_accounting=false"]),
];
const SLOW_READER: &str = "guest.stream.task.reader.program=\
     [{ receive = { port = 7 } }, { compute_us = { uniform = [18, 22] } }, \"done\"]";
/// Domains that compute.
const HOGS: u32 = 8;
/// From how many on the paper's starves, and how many its other figures have.
const THIRD: f64 = 3.0;
const FIVE: usize = 5;

pub(super) const THROUGHPUT: Measure = Measure { name: "throughput", unit: "Mbit/s", of: mbit_per_s };
const DRIVER: Measure =
    Measure { name: "processor time of the driver", unit: "%", of: |outcome| outcome.got_by_each("driver") };
const OWN: Measure =
    Measure { name: "of the domain", unit: "%", of: |outcome| outcome.got_percent(outcome.client) };
const PREEMPTIONS: Measure = Measure {
    name: "preemptions a second",
    unit: "1/s",
    of: |outcome| Some(outcome.counter("preemptions")? / outcome.seconds()),
};

/// What the watched task has taken of TCP's bytes.
fn mbit_per_s(outcome: &Outcome) -> Option<f64> {
    Some(outcome.probe.done as f64 * SEGMENT_BITS / 1e6 / outcome.seconds())
}

pub(super) fn plan() -> Plan {
    Plan {
        folder: "tavs-starvation",
        title: "Starvation of a domain that receives a stream",
        cases: [(BASELINE, false), (INHERITANCE, true)]
            .into_iter()
            .flat_map(|(line, inherits)| (0..=HOGS).map(move |hogs| case(line, inherits, hogs)))
            .chain(VARIANTS.into_iter().flat_map(variant))
            .collect(),
        seeds: 5,
        measures: &[THROUGHPUT, DRIVER, OWN, PREEMPTIONS],
        figures,
        plots,
        prose: PROSE,
    }
}

fn case(line: &'static str, inherits: bool, hogs: u32) -> Case {
    let mut settings = vec![format!("policy.credit.priority_inheritance={inherits}")];
    if hogs > 0 {
        settings.push(format!("guest.hog.count={hogs}"));
    }
    Case {
        line,
        x: Some(f64::from(hogs)),
        scenario: if hogs == 0 {
            scenario!("tavs-starvation", "alone")
        } else {
            scenario!("tavs-starvation", "stream")
        },
        policy: "credit",
        settings,
        watched: ("stream", "reader"),
    }
}

/// The baseline with one to five domains that compute, with other settings.
fn variant((line, _, settings): (&'static str, &str, &'static [&'static str])) -> impl Iterator<Item = Case> {
    (1..=FIVE as u32).map(move |hogs| {
        let case = case(line, false, hogs);
        let others = settings.iter().map(|&setting| setting.to_owned());
        Case { settings: case.settings.into_iter().chain(others).collect(), ..case }
    })
}

fn figures(found: &Found) -> Vec<Figure> {
    vec![starves(found), starves_anyway(found), does_not_starve(found), drops_gradually(found)]
}

fn at(found: &Found, line: &str, hogs: f64) -> Option<f64> {
    found.mean(line, Some(hogs), &THROUGHPUT)
}

const STARVES: &str = "throughput falls with each domain that computes; with more than two it almost starves";
/// Below this part of the throughput alone a stream almost starves.
const ALMOST: f64 = 0.2;

fn starves(found: &Found) -> Figure {
    let judge = || {
        let of = |hogs| at(found, BASELINE, hogs);
        let (none, two, third, four, five) = (of(0.0)?, of(2.0)?, of(THIRD)?, of(4.0)?, of(5.0)?);
        let [a, b, c, d, e] = [none, two, third, four, five].map(short);
        let ours = format!("alone {a}, with two {b}, three {c}, four {d}, five {e} Mbit/s");
        Some((ours, third < two && third < ALMOST * none && five < ALMOST * none))
    };
    claim("TAVS fig. 7(a)", STARVES, judge())
}

/// The same under each assumption about what the paper does not give.
fn starves_anyway(found: &Found) -> Figure {
    let judge = || {
        let none = at(found, BASELINE, 0.0)?;
        let of = |hogs| -> Option<Vec<f64>> {
            VARIANTS.iter().map(|(line, _, _)| at(found, line, hogs)).collect()
        };
        let (thirds, fives) = (of(THIRD)?, of(5.0)?);
        let pairs = VARIANTS.iter().zip(thirds.iter().zip(&fives));
        let said = pairs
            .map(|((_, name, _), (&third, &five))| format!("{name}: {} and {}", short(third), short(five)));
        let ours = format!("with three and five, Mbit/s: {}", said.collect::<Vec<_>>().join("; "));
        Some((ours, thirds.iter().all(|&third| third < ALMOST * none)))
    };
    claim("TAVS fig. 7(a), under other assumptions", STARVES, judge())
}

fn does_not_starve(found: &Found) -> Figure {
    let judge = || {
        let of = |line, hogs| at(found, line, hogs);
        let (none, before, after) = (of(INHERITANCE, 0.0)?, of(BASELINE, 5.0)?, of(INHERITANCE, 5.0)?);
        let ours = format!("with five {} Mbit/s, without inheritance {}", short(after), short(before));
        Some((ours, after > ALMOST * none && after > 3.0 * before))
    };
    claim("TAVS fig. 14", "with inheritance it does not starve beside more than two", judge())
}

fn drops_gradually(found: &Found) -> Figure {
    let judge = || {
        let all = (0..=HOGS).map(|hogs| at(found, INHERITANCE, f64::from(hogs)));
        let all = all.collect::<Option<Vec<f64>>>()?;
        let said: Vec<String> = all.iter().copied().map(short).collect();
        let ours = format!("{} Mbit/s with 0 to {HOGS}", said.join(", "));
        let gradual = |pair: &[f64]| pair[1] > 0.5 * pair[0] && pair[1] < 1.02 * pair[0];
        Some((ours, all[..=FIVE].windows(2).all(gradual)))
    };
    claim("TAVS fig. 14", "with inheritance throughput drops gradually (compared up to five)", judge())
}

fn plots(found: &Found) -> Vec<(String, String)> {
    let (x, y) = (axis("domains that compute"), axis("throughput, Mbit/s"));
    let plot = svg::lines("Figures 7(a) and 14: throughput of a stream", &x, &y, &found.series(&THROUGHPUT));
    vec![("figure-7-14.svg".into(), plot)]
}

const PROSE: [&str; 2] = [
    "A remote machine sends a stream to one domain as fast as TCP's window lets it; up to eight domains \
     compute beside it. Domain and driver wake each other and are boosted for it. But a tick takes the \
     driver's boost away while it works; then the domain, boosted by the packets that the driver hands \
     on, preempts the driver, which waits at the tail for a slice of every domain that computes, and so \
     does the next window of the stream. With priority inheritance the domain's next acknowledgement \
     lifts the driver to the domain's own priority. What remains of the loss is the share that the work \
     of the domain and of the driver has of the processor.",
    "The paper's stream almost starves beside more than two; here the fall comes one domain later, \
     beside more than three. The paper's phase, in which the domain keeps preempting the driver \
     (figure 7(b)), is here, too: Xen's network frontend asks for an event of what it has sent, so both \
     what the driver brings and what it has sent wake the domain, which is boosted and sends the driver \
     to the tail, so that each window takes two waits of 30 ms for each domain that computes and has \
     credit. It ends when the driver's turn comes while all that compute are over their credit: then the \
     driver goes on at once, finishes, blocks, and is boosted anew, and the stream runs at full speed \
     until a tick finds the driver running. Credit is handed out by use, and what the driver and the \
     domain save up the others lack together: while the two use less than their parts, those that \
     compute are in debt and the phase is short. Beside three a part is 20 % of the processor, beside \
     four less than what the driver uses at full speed. Where the fall comes depends little on what the \
     paper leaves open: not on what a packet costs the driver or the domain, nor on whether the host sees \
     events for what was sent, nor on whether use is charged by time stamp or by ticks; under none of these \
     do three domains make the stream starve. TCP's retransmission timer is not simulated, 200 ms at least \
     under Linux: beside two domains a window waits for some 120 ms, beside three for 181 and more, so that \
     it may be what the paper's stream has besides. Who is active in the accounting is left to ticks, as in Xen's \
     own accounting by time stamp, which is younger than the paper. Beyond six domains inheritance does not \
     help either: at full speed the driver needs more than its share then is, so that it has no credit left \
     and is not boosted; charging its time to the domain that it works for (section 4.2, future work) is \
     what that calls for. What a packet takes the reader varies a little in the scenario, so that nothing \
     runs in lockstep.",
];
