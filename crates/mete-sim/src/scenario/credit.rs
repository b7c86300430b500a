//! The settings of the credit scheduler in a scenario: `[policy.credit]`.
//!
//! Each key replaces a setting of `credit` (Xen's, nothing of TAVS) or of `credit-tavs` (everything of TAVS),
//! so that the parts of TAVS can be switched on and off one by one. [`CreditSettings`] says what each setting
//! means and gives the papers' values.

use mete_policy::{CreditSettings, Nanoseconds, Permille, TavsSettings};
use serde::Deserialize;

use super::value::whole;

/// The table's keys, all of them optional.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CreditTable {
    tick_ms: Option<f64>,
    accounting_ticks: Option<u32>,
    slice_ms: Option<f64>,
    precise_accounting: Option<bool>,
    inference: Option<bool>,
    io_threshold_ms: Option<f64>,
    positive_evidence: Option<i16>,
    negative_evidence: Option<i16>,
    belief_threshold: Option<i16>,
    belief_min: Option<i16>,
    belief_max: Option<i16>,
    aggressive_boosting: Option<bool>,
    partial_boosting: Option<bool>,
    boost_max_ms: Option<f64>,
    boost_ratio: Option<f64>,
    skip_needless_boosts: Option<bool>,
    block_correlation: Option<bool>,
    inspection_window: Option<u8>,
    network_correlation: Option<bool>,
    portmap_bits: Option<u8>,
    ports_per_slice: Option<u16>,
    learn_by_driver_slice: Option<bool>,
    priority_inheritance: Option<bool>,
    keep_on_run_queue: Option<bool>,
    charge_driver_time: Option<bool>,
}

/// Sets each of these settings to the key of its name, if the table has that.
macro_rules! replace {
    ($settings:ident by $table:ident: $($key:ident),* $(,)?) => {
        $($settings.$key = $table.$key.unwrap_or($settings.$key);)*
    };
}

/// As [`replace`], for numbers from `least` to `most`.
macro_rules! replace_within {
    ($settings:ident by $table:ident: $($key:ident in $least:literal..=$most:expr),* $(,)?) => {
        $($settings.$key = within(stringify!($key), $table.$key.unwrap_or($settings.$key), $least, $most)?;)*
    };
}

/// As [`replace`], for times: their keys end in `_ms`, and their settings in `_ns`.
macro_rules! replace_times {
    ($settings:ident by $table:ident: $($time_ns:ident by $key:ident),* $(,)?) => {
        $($settings.$time_ns = time(stringify!($key), $table.$key, $settings.$time_ns)?;)*
    };
}

impl CreditTable {
    /// `base` with the keys of the table. An error names the key and what is allowed.
    pub(super) fn settings(&self, base: CreditSettings) -> Result<CreditSettings, String> {
        let mut settings = CreditSettings { tavs: self.tavs(base.tavs)?, ..base };
        replace_times!(settings by self: tick_ns by tick_ms, slice_ns by slice_ms);
        replace_within!(settings by self: accounting_ticks in 1..=1000);
        replace!(settings by self: precise_accounting);
        Ok(settings)
    }

    fn tavs(&self, base: TavsSettings) -> Result<TavsSettings, String> {
        let mut settings = base;
        replace_times!(settings by self: io_threshold_ns by io_threshold_ms, boost_max_ns by boost_max_ms);
        // Both kinds of evidence are sizes: the policy subtracts the negative one from the belief.
        replace_within!(settings by self:
            positive_evidence in 0..=i16::MAX, negative_evidence in 0..=i16::MAX,
            inspection_window in 1..=16, portmap_bits in 1..=8,
        );
        replace!(settings by self:
            inference, belief_threshold, belief_min, belief_max, aggressive_boosting, partial_boosting,
            skip_needless_boosts, block_correlation, network_correlation, ports_per_slice, learn_by_driver_slice,
            priority_inheritance, keep_on_run_queue, charge_driver_time,
        );
        settings.boost_ratio = self.boost_ratio.map_or(Ok(base.boost_ratio), permille)?;
        if settings.belief_min > settings.belief_max {
            let (least, most) = (settings.belief_min, settings.belief_max);
            return Err(format!("policy.credit.belief_min: at most belief_max, {most}, not {least}"));
        }
        Ok(settings)
    }
}

fn time(key: &str, ms: Option<f64>, otherwise: Nanoseconds) -> Result<Nanoseconds, String> {
    let Some(ms) = ms else { return Ok(otherwise) };
    match whole(ms, 1e6).map_err(|what| format!("policy.credit.{key}: {what}"))? {
        0 => Err(format!("policy.credit.{key}: more than 0, not {ms}")),
        ns => Ok(Nanoseconds::new(ns)),
    }
}

fn within<N: PartialOrd + std::fmt::Display>(key: &str, number: N, least: N, most: N) -> Result<N, String> {
    if least <= number && number <= most {
        return Ok(number);
    }
    Err(format!("policy.credit.{key}: {least} to {most}, not {number}"))
}

fn permille(ratio: f64) -> Result<Permille, String> {
    let ratio = within("boost_ratio", ratio, 0.0, 1.0)?;
    Ok(Permille::new(libm::round(ratio * 1e3) as u32))
}
