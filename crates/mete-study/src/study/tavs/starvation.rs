//! A domain that receives a stream starves beside domains that compute, unless the driver inherits its
//! priority: figures 7 and 14 (TAVS paper, §4.1.1, §5.3).

use super::case::{Case, Outcome};
use super::plan::{Found, Measure, Plan, claim};
use super::{BASELINE, SEGMENT_BITS, axis, scenario};
use crate::figure::Figure;
use crate::report::short;
use crate::svg;

const INHERITANCE: &str = "priority inheritance";
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

fn figures(found: &Found) -> Vec<Figure> {
    let at = |line, hogs| found.mean(line, Some(hogs), &THROUGHPUT);
    vec![
        claim(
            "TAVS fig. 7(a)",
            "throughput falls with each domain that computes; with more than two it almost starves",
            (|| {
                let [Some(none), Some(two), Some(third), Some(five)] =
                    [0.0, 2.0, THIRD, 5.0].map(|hogs| at(BASELINE, hogs))
                else {
                    return None;
                };
                let [a, b, c, d] = [none, two, third, five].map(short);
                let ours = format!("alone {a}, with two {b}, three {c}, five {d} Mbit/s");
                Some((ours, third < two && third < none / 5.0 && five < none / 5.0))
            })(),
        ),
        claim(
            "TAVS fig. 14",
            "with inheritance it does not starve beside more than two",
            (|| {
                let (none, before, after) =
                    (at(INHERITANCE, 0.0)?, at(BASELINE, 5.0)?, at(INHERITANCE, 5.0)?);
                let ours =
                    format!("with five {} Mbit/s, without inheritance {}", short(after), short(before));
                Some((ours, after > none / 5.0 && after > 3.0 * before))
            })(),
        ),
        claim(
            "TAVS fig. 14",
            "with inheritance throughput drops gradually (compared up to five)",
            (|| {
                let all: Option<Vec<f64>> = (0..=HOGS).map(|hogs| at(INHERITANCE, f64::from(hogs))).collect();
                let all = all?;
                let said: Vec<String> = all.iter().copied().map(short).collect();
                let ours = format!("{} Mbit/s with 0 to {HOGS}", said.join(", "));
                let gradual = |pair: &[f64]| pair[1] > 0.5 * pair[0] && pair[1] < 1.02 * pair[0];
                Some((ours, all[..=FIVE].windows(2).all(gradual)))
            })(),
        ),
    ]
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
    "The paper's stream almost starves from the third domain on; here it loses two thirds there and \
     starves from the fourth on. In the paper's trace the driver stays at a low priority for nearly the \
     whole time. Here it comes out of it whenever it has done all that there is to do, blocks, and is \
     boosted anew by the next packet; the simulated driver does nothing else, and its rings are empty \
     sooner than those of a Linux with other things to do. With a cost of 5 to 30 us a packet (`--set \
     driver.receive_us=`, `driver.transmit_us=`; the scenario has 10) the stream starves from the fourth \
     domain on all the same. Beyond six domains inheritance does not help either: at full speed the \
     driver needs 12 % of the processor, which is more than its share then is, so that it has no credit \
     left and is not boosted; charging its time to the domain that it works for (section 4.2, future \
     work) is what that calls for. What a packet takes the reader varies a little in the scenario, so \
     that nothing runs in lockstep.",
];
