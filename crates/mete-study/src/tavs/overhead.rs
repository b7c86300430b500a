//! What the tracking of tasks and ports costs the guests: section 5.5 of the TAVS paper.

use mete_measure::statistics::median;
use mete_measure::{Bar, Machine, Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use mete_policy::by_name;
use mete_sim::cost::measure_in_turns;
use mete_sim::scenario::Shipped;
use serde_json::json;

use super::mbit_per_s;
use crate::simulated::{Case, Measure, Outcome, Plan, Ran, scenario};
use crate::study::{Finding, Findings, StudyFile, about};

const HACKBENCH: &str = "hackbench";
const PORTS: &str = "stream to a busy domain";
/// Nanoseconds that each tracked event takes the host.
const TRACKED_NS: [u32; 5] = [0, 10, 30, 100, 300];
/// The same for ports: zero, and more than any look-up takes.
const LOOKED_UP_NS: [u32; 2] = [0, 1000];
/// By how much tracking 400 tasks slows hackbench in the paper.
const PAPERS_PERCENT: f64 = 0.06;
/// The greatest quotient of our value and the paper's that counts as the same order of magnitude.
const LIKE: f64 = 3.0;
/// How often the calls of a run are timed with tracking and without. That is often enough that the interval
/// of the median does not end with the least and the greatest sample.
const ROUNDS: usize = 21;

/// The guest is alone and ends with hackbench, so its processor time is the time that passes.
const TIME: Measure = Measure::new("time of hackbench", "s", seconds);
const THROUGHPUT: Measure =
    Measure::new("throughput", "Mbit/s", |outcome| mbit_per_s(outcome).filter(|_| outcome.line == PORTS));

fn seconds(outcome: &Outcome) -> Option<f64> {
    let client = outcome.report.clients.get(outcome.client.index());
    client.filter(|_| outcome.line == HACKBENCH).map(|client| client.ran_ns.as_secs_f64())
}

pub(crate) struct Overhead;

impl Plan for Overhead {
    about!("tavs-overhead", "what it costs that tasks and ports are tracked (section 5.5)");
    const SEEDS: u64 = 3;
    const MEASURES: &'static [Measure] = &[TIME, THROUGHPUT];
    /// How much longer a switch takes the policy with tracking, in nanoseconds, round by round. Nothing if it
    /// could not be measured.
    type Besides = Vec<f64>;

    fn cases() -> Vec<Case> {
        TRACKED_NS.map(hackbench).into_iter().chain(LOOKED_UP_NS.map(ports)).collect()
    }

    fn besides(report: &mut Report) -> Vec<f64> {
        told(measured_ns(&hackbench(0)), report)
    }

    fn findings(found: &Ran<Vec<f64>>) -> Findings {
        let of_100_ns = slowdown_percent(found, 100);
        vec![
            ("tracking", of_100_ns.and_then(|of_100_ns| tracking(of_100_ns, &found.besides))),
            ("ports", throughput_stays(found)),
        ]
    }

    fn pictures(found: &Ran<Vec<f64>>) -> Vec<StudyFile> {
        let points = TRACKED_NS.iter().filter_map(|&ns| Some((f64::from(ns), slowdown_percent(found, ns)?)));
        let (x, y) = (Axis::linear("cost of a tracked event, ns"), Axis::linear("slowdown, %"));
        let title = "Section 5.5: hackbench while its tasks are tracked";
        vec![("slowdown.svg".into(), plot::lines(title, &x, &y, &[Series::new(HACKBENCH, points)]))]
    }
}

fn hackbench(track_ns: u32) -> Case {
    let watched = ("hackbench", "sender of 0-1");
    tracked(HACKBENCH, scenario!("tavs-overhead", "hackbench"), watched, track_ns)
}

fn ports(track_ns: u32) -> Case {
    tracked(PORTS, scenario!("tavs-overhead", "ports"), ("busy", "reader"), track_ns)
}

fn tracked(
    line: &'static str,
    scenario: Shipped,
    watched: (&'static str, &'static str),
    track_ns: u32,
) -> Case {
    let case = Case::new(line, scenario, "credit-tavs", watched);
    case.at(track_ns).with([format!("host.track_ns={track_ns}")])
}

/// How much slower hackbench is than without tracking.
fn slowdown_percent(found: &Ran<Vec<f64>>, track_ns: u32) -> Option<f64> {
    let untracked = found.mean((HACKBENCH, 0), &TIME)?;
    Some(100.0 * (found.mean((HACKBENCH, track_ns), &TIME)? / untracked - 1.0))
}

/// Our slowdown, which follows from that of a cost of 100 ns and from the measured cost of a switch.
fn tracking(of_100_ns: f64, measured_ns: &[f64]) -> Option<Finding> {
    let percents = measured_ns.iter().map(|ns| of_100_ns * ns / 100.0).collect();
    let row = Row::new("", "percent", Ok(percents)).bar(Bar::AtMost(LIKE * PAPERS_PERCENT));
    let (percent, verdict) = (row.median?, row.verdict?);
    let values = json!({
        "percent": percent,
        "interval": row.interval_text(|percent| format!("{percent:.2}")),
        "ns": median(measured_ns)?,
        "processor": Machine::here().processor,
        "of_100_ns": of_100_ns,
    });
    // The verdict is that of the interval and not of the median, because the cost is small beside its noise.
    Some(Finding { verdict, ..Finding::new(values, true) })
}

fn throughput_stays(found: &Ran<Vec<f64>>) -> Option<Finding> {
    let [without, with] = LOOKED_UP_NS.map(|ns| found.mean((PORTS, ns), &THROUGHPUT));
    let (without, with) = (without?, with?);
    Some(Finding::new(json!({ "without": without, "with": with }), with > 0.999 * without))
}

/// How much longer the policy takes for a call of hackbench with tracking than without, round by round.
/// Nearly all calls are switches of tasks.
///
/// # Errors
///
/// The reason why it could not be measured.
fn measured_ns(hackbench: &Case) -> Result<Vec<f64>, Reason> {
    let scenario = hackbench.scenario()?;
    let policy = |name| by_name(name).ok_or_else(|| Reason::new(format!("there is no policy {name:?}")));
    let rounds = measure_in_turns(&scenario, [policy("credit")?, policy("credit-tavs")?], 1, ROUNDS);
    let rounds = rounds.map_err(Reason::while_trying("simulate hackbench"))?;
    Ok(rounds.iter().map(|[without, with]| (with.ns - without.ns) / with.calls).collect())
}

/// What was measured. If it could not be measured, a row says why.
fn told(measured: Result<Vec<f64>, Reason>, report: &mut Report) -> Vec<f64> {
    measured.unwrap_or_else(|why| {
        report.rows.push(Row::new("cost of a tracked switch", "ns", Err(why)));
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use mete_measure::Verdict;

    use super::*;

    #[test]
    fn tavs_8_the_slowdown_is_in_proportion_to_what_an_event_costs() {
        let time = |track_ns| {
            let outcome = hackbench(track_ns).run(1).expect("it runs");
            let watched = &outcome.report.clients[outcome.client.index()];
            assert!(
                outcome.report.waiting.is_empty() && watched.ran_ns < outcome.report.measured_ns,
                "all have come"
            );
            watched.ran_ns
        };
        let [without, with_10, with_300] = [0, 10, 300].map(time);
        // Tracking delays the guest's slices and ticks a little, so events meet them at other places and a
        // few switches differ.
        let (small, large) = ((with_10 - without).as_millis_f64(), (with_300 - without).as_millis_f64());
        assert!((large / small - 30.0).abs() < 1.0, "{small} and {large}");
    }

    #[test]
    fn tavs_8_a_cost_that_is_a_part_of_its_noise_has_no_verdict() {
        let of = |least: f64, most: f64| {
            let step = (most - least) / 20.0;
            let samples: Vec<f64> = (0..21).map(|nth| least + step * f64::from(nth)).collect();
            tracking(2.0, &samples).expect("it was measured").verdict
        };
        assert_eq!(of(2.0, 4.0), Verdict::Holds);
        assert_eq!(of(20.0, 40.0), Verdict::Fails);
        assert_eq!(of(5.0, 13.0), Verdict::TooNoisy, "on both sides of three times the paper's");
        assert_eq!(of(-4.0, 8.0), Verdict::TooNoisy, "nothing at all is within the interval");
        let mut report = Report::new("");
        let failed = told(Err(Reason::new("no clock")), &mut report);
        assert_eq!(tracking(2.0, &failed), None, "so the page says that it was not measured");
        assert_eq!(report.rows[0].note, "no clock");
    }
}
