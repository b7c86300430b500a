//! The studies of the TAVS paper (TAVS-8): scenarios of a host with a driver domain, run over several seeds
//! with parts of the credit scheduler and of TAVS switched on and off.
//!
//! Each study is a [`Plan`](crate::simulated::Plan): its cases, what is measured of them, what came out of
//! the paper's claims, and the paper's figures.

pub(crate) mod belief;
pub(crate) mod correlation;
pub(crate) mod keep;
pub(crate) mod overhead;
pub(crate) mod ratio;
pub(crate) mod response;
pub(crate) mod starvation;

use mete_policy::Nanoseconds;
use mete_sim::metrics::Latencies;

use crate::simulated::Outcome;

/// The paper's baseline, and the line that is compared with it.
const BASELINE: &str = "baseline";
const TAVS: &str = "TAVS";
const INHERITANCE: &str = "priority inheritance";

/// A guest kernel that prefers the task that has used the processor least.
const FAIR_KERNEL: &str = "guest.mixed.scheduler={ fair = { latency_ms = 20, least_ms = 4 } }";

/// The bits of a TCP segment over Ethernet, which has 1460 bytes.
const SEGMENT_BITS: f64 = 1460.0 * 8.0;

fn mean_ms(times: &Latencies) -> Option<f64> {
    times.mean_ns().map(|ns| ns / 1e6)
}

/// The time within which this part (0 to 1) of the times lies.
fn quantile_ms(times: &Latencies, part: f64) -> Option<f64> {
    times.quantile_ns(part).map(Nanoseconds::as_millis_f64)
}

fn mean_response(outcome: &Outcome) -> Option<f64> {
    mean_ms(&outcome.probe.responses)
}

fn median_response(outcome: &Outcome) -> Option<f64> {
    quantile_ms(&outcome.probe.responses, 0.5)
}

/// The percentage of all processor time that the watched domain had.
fn own_percent(outcome: &Outcome) -> Option<f64> {
    outcome.got_percent(outcome.client)
}

/// The same of a domain that computes.
fn hog_percent(outcome: &Outcome) -> Option<f64> {
    outcome.got_by_each("hog")
}

fn driver_percent(outcome: &Outcome) -> Option<f64> {
    outcome.got_by_each("driver")
}

/// What a domain that computes does in a second. A unit of computation is 10 ms long.
fn hog_units(outcome: &Outcome) -> Option<f64> {
    outcome.done_by_each("hog")
}

/// The throughput of a stream: the bytes that the watched task has taken.
fn mbit_per_s(outcome: &Outcome) -> Option<f64> {
    Some(outcome.probe.done as f64 * SEGMENT_BITS / 1e6 / outcome.seconds())
}

/// The partial boosts of the watched domain in a second.
fn boosts_a_second(outcome: &Outcome) -> Option<f64> {
    Some(outcome.a_second(outcome.probe.boosts.granted()))
}

/// One of the policy's counters, as a number a second.
fn counted_a_second(outcome: &Outcome, counter: &str) -> Option<f64> {
    Some(outcome.counter(counter)? / outcome.seconds())
}
