//! What several of the studies measure of a run.

use mete_policy::Nanoseconds;
use mete_sim::metrics::Latencies;

use crate::simulated::Outcome;

/// The bits of a TCP segment over Ethernet, which has 1460 bytes.
const SEGMENT_BITS: f64 = 1460.0 * 8.0;

pub(super) fn mean_ms(times: &Latencies) -> Option<f64> {
    times.mean_ns().map(|ns| ns / 1e6)
}

/// The time within which this part (0 to 1) of the times lies.
pub(super) fn quantile_ms(times: &Latencies, part: f64) -> Option<f64> {
    times.quantile_ns(part).map(Nanoseconds::as_millis_f64)
}

pub(super) fn mean_response(outcome: &Outcome) -> Option<f64> {
    mean_ms(&outcome.probe.responses)
}

pub(super) fn median_response(outcome: &Outcome) -> Option<f64> {
    quantile_ms(&outcome.probe.responses, 0.5)
}

/// The percentage of all processor time that the watched domain had.
pub(super) fn own_percent(outcome: &Outcome) -> Option<f64> {
    outcome.got_percent(outcome.client)
}

/// The same of a domain that computes.
pub(super) fn hog_percent(outcome: &Outcome) -> Option<f64> {
    outcome.got_by_each("hog")
}

pub(super) fn driver_percent(outcome: &Outcome) -> Option<f64> {
    outcome.got_by_each("driver")
}

/// What a domain that computes does in a second. A unit of computation is 10 ms long.
pub(super) fn hog_units(outcome: &Outcome) -> Option<f64> {
    outcome.done_by_each("hog")
}

/// The throughput of a stream: the bytes that the watched task has taken.
pub(super) fn mbit_per_s(outcome: &Outcome) -> Option<f64> {
    Some(outcome.probe.done as f64 * SEGMENT_BITS / 1e6 / outcome.seconds())
}

/// The partial boosts of the watched domain in a second.
pub(super) fn boosts_a_second(outcome: &Outcome) -> Option<f64> {
    Some(outcome.a_second(outcome.probe.boosts.granted()))
}

/// One of the policy's counters, as a number a second.
pub(super) fn counted_a_second(outcome: &Outcome, counter: &str) -> Option<f64> {
    Some(outcome.counter(counter)? / outcome.seconds())
}
