//! What the tracking of tasks and ports costs the guests: section 5.5 of the TAVS paper.

use mete_sim::cost::measure_in_turns;

use super::case::{Case, Outcome};
use super::plan::{Measure, Plan, RanCases, claim};
use super::{axis, scenario, starvation};
use crate::figure::{Figure, Verdict};
use crate::machine::Machine;
use crate::reason::Reason;
use crate::report::{Bar, Row};
use crate::statistics::median;
use mete_plot::{self as plot, Series, short};

const HACKBENCH: &str = "hackbench";
const PORTS: &str = "stream to a busy domain";
/// Nanoseconds that each tracked event takes the host.
const TRACKED_NS: [u32; 5] = [0, 10, 30, 100, 300];
/// The same for ports: zero, and more than any look-up takes.
const LOOKED_UP_NS: [u32; 2] = [0, 1000];
const TRACKING: (&str, &str) =
    ("TAVS §5.5", "tracking 400 tasks slows hackbench by 0.06 %, which is negligible");
const PAPERS_PERCENT: f64 = 0.06;
/// The greatest quotient of our value and the paper's that counts as the same order of magnitude.
const LIKE: f64 = 3.0;

/// The guest is alone and ends with hackbench, so its processor time is the time that passes.
const TIME: Measure = Measure { name: "time of hackbench", unit: "s", of: seconds };
const THROUGHPUT: Measure = Measure { of: mbit_per_s, ..starvation::THROUGHPUT };

fn seconds(outcome: &Outcome) -> Option<f64> {
    let client = outcome.report.clients.get(outcome.client.index());
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

/// How much slower hackbench is than without tracking, in percent.
fn slowdown_percent(found: &RanCases, track_ns: f64) -> Option<f64> {
    let untracked = found.mean(HACKBENCH, Some(0.0), &TIME)?;
    Some(100.0 * (found.mean(HACKBENCH, Some(track_ns), &TIME)? / untracked - 1.0))
}

/// How often the calls of a run are timed with tracking and without. That is often enough that the interval of the
/// median does not end with the least and the greatest sample.
const ROUNDS: usize = 21;

/// How much longer the policy takes for a call of hackbench with tracking than without, by this machine's clock,
/// round by round. Nearly all calls are switches of tasks.
///
/// # Errors
///
/// The reason why it could not be measured.
fn measured_ns() -> Result<Vec<f64>, Reason> {
    let scenario = case(HACKBENCH, 0).scenario()?;
    let rounds = measure_in_turns(&scenario, ["credit", "credit-tavs"], 1, ROUNDS);
    let rounds = rounds.map_err(Reason::while_trying("simulate hackbench"))?;
    Ok(rounds.iter().map(|[without, with]| (with.ns - without.ns) / with.calls).collect())
}

/// The paper's slowdown and ours, which follows from the measured cost of a switch.
fn tracking(of_100_ns: f64, measured_ns: Result<Vec<f64>, Reason>) -> Figure {
    let measured_ns = match measured_ns {
        Ok(measured_ns) => measured_ns,
        Err(why) => return Figure::missing(TRACKING.0, TRACKING.1, why.to_string()),
    };
    let percents = measured_ns.iter().map(|ns| of_100_ns * ns / 100.0).collect();
    let row = Row::new("", "percent", Ok(percents)).bar(Bar::AtMost(LIKE * PAPERS_PERCENT));
    let (Some(percent), Some(verdict)) = (row.median, row.verdict) else {
        return claim(TRACKING.0, TRACKING.1, None);
    };
    let ns = median(&measured_ns).unwrap_or_default();
    let ours = format!(
        "{percent:.2} % with the {ns:.1} ns that a switch costs our policy on this machine, {} (95 %: {} %); {} % with 100 ns",
        Machine::here().processor,
        row.interval_text(|percent| format!("{percent:.2}")),
        short(of_100_ns)
    );
    Figure { verdict: Verdict::from(verdict), ..Figure::new(TRACKING.0, TRACKING.1, ours, true) }
}

fn figures(found: &RanCases) -> Vec<Figure> {
    vec![
        slowdown_percent(found, 100.0).map_or_else(
            || claim(TRACKING.0, TRACKING.1, None),
            |of_100_ns| tracking(of_100_ns, measured_ns()),
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

fn plots(found: &RanCases) -> Vec<(String, String)> {
    let points = TRACKED_NS.iter().filter_map(|&ns| {
        let x = f64::from(ns);
        Some((x, slowdown_percent(found, x)?))
    });
    let series = Series { name: HACKBENCH.into(), points: points.collect() };
    let (x, y) = (axis("cost of a tracked event, ns"), axis("slowdown, %"));
    vec![(
        "slowdown.svg".into(),
        plot::lines("Section 5.5: hackbench while its tasks are tracked", &x, &y, &[series]),
    )]
}

const PROSE: [&str; 2] = [
    "Ten groups of 20 senders and 20 receivers exchange 400,000 messages through sockets that hold 256 each. \
     The guest switches tasks some 700,000 times, each of which the host sees and takes its time for. The slowdown \
     is that number times the cost, so it is given over the cost; and for the cost that the code of `credit-tavs` \
     has on the machine where the study runs, measured by playing the calls of this very run to it and to \
     `credit`, which tracks nothing, in turns: the verdict is that of the interval in which the median of the differences lies, \
     as with `mete bench`. In a second scenario a stream keeps a link of 100 Mbit/s full for a domain \
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
    fn tavs_8_a_cost_that_is_a_part_of_its_noise_has_no_verdict() {
        let of = |least: f64, most: f64| {
            let step = (most - least) / 20.0;
            let samples: Vec<f64> = (0..21).map(|nth| least + step * f64::from(nth)).collect();
            tracking(2.0, Ok(samples)).verdict
        };
        assert_eq!(of(2.0, 4.0), Verdict::Agrees);
        assert_eq!(of(20.0, 40.0), Verdict::Differs);
        assert_eq!(of(5.0, 13.0), Verdict::TooNoisy, "on both sides of three times the paper's");
        assert_eq!(of(-4.0, 8.0), Verdict::TooNoisy, "nothing at all is within the interval");
        assert_eq!(tracking(2.0, Ok(Vec::new())).verdict, Verdict::NotMeasured);
        let failed = tracking(2.0, Err(Reason::new("no clock")));
        assert_eq!((failed.verdict, failed.ours.as_str()), (Verdict::NotMeasured, "no clock"));
    }

    #[test]
    fn tavs_8_the_slowdown_is_in_proportion_to_what_an_event_costs() {
        let time = |track_ns| {
            let outcome = case(HACKBENCH, track_ns).run(1).expect("it runs");
            let watched = &outcome.report.clients[outcome.client.index()];
            assert!(
                outcome.report.waiting.is_empty() && watched.ran_ns < outcome.report.measured_ns,
                "all have come"
            );
            watched.ran_ns
        };
        let [without, with_10, with_300] = [0, 10, 300].map(time);
        // Tracking delays the guest's slices and ticks a little, so events meet them at other places and a few
        // switches differ.
        let (small, large) = ((with_10 - without) as f64, (with_300 - without) as f64);
        assert!((large / small - 30.0).abs() < 1.0, "{small} and {large}");
    }
}
