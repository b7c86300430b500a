//! Simulated times in tables: to the microsecond, because they are exact.

use mete_sim::metrics::Latencies;

pub use mete_command::table::NOTHING;

/// Nanoseconds as milliseconds, to three digits.
pub fn milliseconds(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// Nanoseconds that may be negative, as milliseconds, to three digits.
pub fn signed_milliseconds(ns: i64) -> String {
    // Adding 0 turns -0 into 0, so that a small negative number is not shown as -0.000.
    format!("{:.3}", (ns as f64 / 1e3).round() / 1e3 + 0.0)
}

/// The time that a part (0 to 1) of all times do not exceed, in milliseconds.
pub fn quantile(times: Option<&Latencies>, part: f64) -> String {
    times.and_then(|times| times.quantile_ns(part)).map_or(NOTHING.into(), |time| milliseconds(time.get()))
}
