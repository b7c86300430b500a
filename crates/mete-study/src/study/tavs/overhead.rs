//! What tracking tasks and ports costs the guests: section 5.5 of the TAVS paper.

use mete_sim::cost::measure;

use super::case::{Case, Outcome};
use super::plan::{Found, Measure, Plan, claim};
use super::{axis, scenario, starvation};
use crate::figure::Figure;
use crate::report::short;
use crate::svg::{self, Series};

const HACKBENCH: &str = "hackbench";
const PORTS: &str = "stream to a busy domain";
/// What each tracked event takes the host, in nanoseconds.
const TRACKED_NS: [u32; 5] = [0, 10, 30, 100, 300];
/// For ports, nothing and what no look-up takes.
const LOOKED_UP_NS: [u32; 2] = [0, 1000];
const PAPERS_PERCENT: f64 = 0.06;
/// Beyond this times the paper's, ours is another order of magnitude.
const LIKE: f64 = 3.0;

/// The guest is alone and over when hackbench is, so its processor time is the time that passes.
const TIME: Measure = Measure { name: "time of hackbench", unit: "s", of: seconds };
const THROUGHPUT: Measure = Measure { of: mbit_per_s, ..starvation::THROUGHPUT };

fn seconds(outcome: &Outcome) -> Option<f64> {
    let client = outcome.report.clients.get(outcome.client as usize);
    client.filter(|_| outcome.line == HACKBENCH).map(|client| client.ran_ns as f64 / 1e9)
}

fn mbit_per_s(outcome: &Outcome) -> Option<f64> {
    (starvation::THROUGHPUT.of)(outcome).filter(|_| outcome.line == PORTS)
}

pub(super) fn plan() -> Plan {
    let hackbench = TRACKED_NS.map(|track_ns| case(HACKBENCH, track_ns));
    let ports = LOOKED_UP_NS.map(|track_ns| case(PORTS, track_ns));
    Plan {
        folder: "tavs-overhead",
        title: "What tracking costs",
        cases: hackbench.into_iter().chain(ports).collect(),
        seeds: 3,
        measures: &[TIME, THROUGHPUT],
        figures,
        plots,
        prose: PROSE,
    }
}

fn case(line: &'static str, track_ns: u32) -> Case {
    let (scenario, watched) = match line {
        HACKBENCH => (scenario!("tavs-overhead", "hackbench"), ("hackbench", "sender of 0-1")),
        _ => (scenario!("tavs-overhead", "ports"), ("busy", "reader")),
    };
    Case {
        line,
        x: Some(f64::from(track_ns)),
        scenario,
        policy: "credit-tavs",
        settings: vec![format!("host.track_ns={track_ns}")],
        watched,
    }
}

/// By how much hackbench is slower than untracked, in percent.
fn slowdown_percent(found: &Found, track_ns: f64) -> Option<f64> {
    let untracked = found.mean(HACKBENCH, Some(0.0), &TIME)?;
    Some(100.0 * (found.mean(HACKBENCH, Some(track_ns), &TIME)? / untracked - 1.0))
}

/// What the policy takes longer for a call of hackbench's, nearly all of which are switches of tasks, when it
/// tracks them than when it does not; by this machine's clock.
fn measured_ns() -> Option<f64> {
    let scenario = case(HACKBENCH, 0).scenario().ok()?;
    let [without, with] =
        ["credit", "credit-tavs"].map(|policy| measure(&scenario, policy, 1).ok().flatten());
    let (without, with) = (without?, with?);
    Some(((with.ns - without.ns) / with.calls).max(0.0))
}

fn figures(found: &Found) -> Vec<Figure> {
    vec![
        claim(
            "TAVS §5.5",
            "tracking 400 tasks slows hackbench by 0.06 %, which is negligible",
            (|| {
                let of_100_ns = slowdown_percent(found, 100.0)?;
                let measured_ns = measured_ns()?;
                let percent = of_100_ns * measured_ns / 100.0;
                let ours = format!(
                    "{percent:.2} % with the {measured_ns:.1} ns that a switch costs our policy on this machine; {} % with 100 ns",
                    short(of_100_ns)
                );
                Some((ours, percent <= LIKE * PAPERS_PERCENT))
            })(),
        ),
        claim(
            "TAVS §5.5",
            "recording and checking ports takes no network throughput",
            (|| {
                let [without, with] =
                    LOOKED_UP_NS.map(|ns| found.mean(PORTS, Some(f64::from(ns)), &THROUGHPUT));
                let (without, with) = (without?, with?);
                let ours = format!("{} Mbit/s, and {} with 1000 ns an event", short(without), short(with));
                Some((ours, with > 0.999 * without))
            })(),
        ),
    ]
}

fn plots(found: &Found) -> Vec<(String, String)> {
    let points = TRACKED_NS.iter().filter_map(|&ns| {
        let x = f64::from(ns);
        Some((x, slowdown_percent(found, x)?))
    });
    let series = Series { name: HACKBENCH.into(), points: points.collect() };
    let (x, y) = (axis("cost of a tracked event, ns"), axis("slowdown, %"));
    vec![(
        "slowdown.svg".into(),
        svg::lines("Section 5.5: hackbench while its tasks are tracked", &x, &y, &[series]),
    )]
}

const PROSE: [&str; 2] = [
    "Ten groups of 20 senders and 20 receivers exchange 400,000 messages through sockets that hold 256 each. \
     The guest switches tasks some 700,000 times, each of which the host sees and takes its time for. The slowdown \
     is that number times the cost, so it is given over the cost; and for the cost that the code of `credit-tavs` \
     has on the machine where the study runs, measured by playing the calls of this very run to it and to \
     `credit`, which tracks nothing. In a second scenario a stream keeps a link of 100 Mbit/s full for a domain \
     that computes as well: events take the domain's time, which it has, and nothing from the link.",
    "The paper gives a slowdown and not what an event costs. Ours leaves out what a machine adds to the code: \
     the policy's data are warm in the caches, and the processor is some twenty years younger than the paper's. It also \
     leaves out entering the host, which under paravirtualization a switch between address spaces does in any \
     case. The guest's switches per message depend on its scheduler and on how messages wake receivers; the \
     paper does not say how often its guest switched. Fewer switches would allow a larger cost for the same figure.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tavs_8_the_slowdown_is_in_proportion_to_what_an_event_costs() {
        let time = |track_ns| {
            let outcome = case(HACKBENCH, track_ns).run(1).expect("it runs");
            let watched = &outcome.report.clients[outcome.client as usize];
            assert!(
                outcome.report.waiting.is_empty() && watched.ran_ns < outcome.report.measured_ns,
                "all have come"
            );
            watched.ran_ns
        };
        let [without, with_10, with_300] = [0, 10, 300].map(time);
        // Events fall where the guest's slices and ticks are a little later, so a few switches differ.
        let (small, large) = ((with_10 - without) as f64, (with_300 - without) as f64);
        assert!((large / small - 30.0).abs() < 1.0, "{small} and {large}");
    }
}
