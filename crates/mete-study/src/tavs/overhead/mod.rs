//! What the tracking of tasks and ports costs the guests: section 5.5 of the TAVS paper.

mod findings;
mod pictures;
mod switch;

use mete_measure::report::Report;

use super::measures::mbit_per_s;
use crate::simulated::{Case, Measure, Outcome, Plan, Ran, scenario};
use crate::study::{Findings, StudyFile, StudyTexts, texts};

const HACKBENCH: &str = "hackbench";
const PORTS: &str = "stream to a busy domain";
/// Nanoseconds that each tracked event takes the host.
const TRACKED_NS: [u32; 5] = [0, 10, 30, 100, 300];
/// The same for ports: zero, and more than any look-up takes.
const LOOKED_UP_NS: [u32; 2] = [0, 1000];

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
    const NAME: &'static str = "tavs-overhead";
    const SHOWS: &'static str = "what it costs that tasks and ports are tracked (section 5.5)";
    const TEXTS: StudyTexts = texts!("tavs-overhead");
    const SEEDS: u64 = 3;
    const MEASURES: &'static [Measure] = &[TIME, THROUGHPUT];
    /// How much longer a switch takes the policy with tracking, in nanoseconds, round by round. Nothing if it could not
    /// be measured.
    type Besides = Vec<f64>;

    fn cases() -> Vec<Case> {
        TRACKED_NS.map(hackbench).into_iter().chain(LOOKED_UP_NS.map(ports)).collect()
    }

    fn besides(report: &mut Report) -> Vec<f64> {
        switch::told(switch::measured_ns(&hackbench(0)), report)
    }

    fn findings(found: &Ran<Vec<f64>>) -> Findings {
        findings::of(found)
    }

    fn pictures(found: &Ran<Vec<f64>>) -> Vec<StudyFile> {
        pictures::of(found)
    }
}

fn hackbench(track_ns: u32) -> Case {
    tracked(
        Case::new(
            HACKBENCH,
            scenario!("tavs-overhead", "hackbench"),
            "credit-tavs",
            ("hackbench", "sender of 0-1"),
        ),
        track_ns,
    )
}

fn ports(track_ns: u32) -> Case {
    tracked(
        Case::new(PORTS, scenario!("tavs-overhead", "ports"), "credit-tavs", ("busy", "reader")),
        track_ns,
    )
}

fn tracked(case: Case, track_ns: u32) -> Case {
    case.at(track_ns).with([format!("host.track_ns={track_ns}")])
}

/// How much slower hackbench is than without tracking.
fn slowdown_percent(found: &Ran<Vec<f64>>, track_ns: u32) -> Option<f64> {
    let untracked = found.mean((HACKBENCH, 0), &TIME)?;
    Some(100.0 * (found.mean((HACKBENCH, track_ns), &TIME)? / untracked - 1.0))
}

#[cfg(test)]
mod tests {
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
        // Tracking delays the guest's slices and ticks a little, so events meet them at other places and a few
        // switches differ.
        let (small, large) = ((with_10 - without).as_millis_f64(), (with_300 - without).as_millis_f64());
        assert!((large / small - 30.0).abs() < 1.0, "{small} and {large}");
    }
}
