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

impl CreditTable {
    /// `base` with the keys of the table. An error names the key and what is allowed.
    pub(super) fn settings(&self, base: CreditSettings) -> Result<CreditSettings, String> {
        Ok(CreditSettings {
            tick_ns: time("tick_ms", self.tick_ms, base.tick_ns)?,
            accounting_ticks: within(
                "accounting_ticks",
                self.accounting_ticks,
                base.accounting_ticks,
                1,
                1000,
            )?,
            slice_ns: time("slice_ms", self.slice_ms, base.slice_ns)?,
            precise_accounting: self.precise_accounting.unwrap_or(base.precise_accounting),
            tavs: self.tavs(base.tavs)?,
        })
    }

    fn tavs(&self, base: TavsSettings) -> Result<TavsSettings, String> {
        let settings = TavsSettings {
            inference: self.inference.unwrap_or(base.inference),
            io_threshold_ns: time("io_threshold_ms", self.io_threshold_ms, base.io_threshold_ns)?,
            positive_evidence: evidence("positive_evidence", self.positive_evidence, base.positive_evidence)?,
            negative_evidence: evidence("negative_evidence", self.negative_evidence, base.negative_evidence)?,
            belief_threshold: self.belief_threshold.unwrap_or(base.belief_threshold),
            belief_min: self.belief_min.unwrap_or(base.belief_min),
            belief_max: self.belief_max.unwrap_or(base.belief_max),
            aggressive_boosting: self.aggressive_boosting.unwrap_or(base.aggressive_boosting),
            partial_boosting: self.partial_boosting.unwrap_or(base.partial_boosting),
            boost_max_ns: time("boost_max_ms", self.boost_max_ms, base.boost_max_ns)?,
            boost_ratio: self.boost_ratio.map_or(Ok(base.boost_ratio), permille)?,
            skip_needless_boosts: self.skip_needless_boosts.unwrap_or(base.skip_needless_boosts),
            block_correlation: self.block_correlation.unwrap_or(base.block_correlation),
            inspection_window: within(
                "inspection_window",
                self.inspection_window,
                base.inspection_window,
                1,
                16,
            )?,
            network_correlation: self.network_correlation.unwrap_or(base.network_correlation),
            portmap_bits: within("portmap_bits", self.portmap_bits, base.portmap_bits, 1, 8)?,
            ports_per_slice: self.ports_per_slice.unwrap_or(base.ports_per_slice),
            learn_by_driver_slice: self.learn_by_driver_slice.unwrap_or(base.learn_by_driver_slice),
            priority_inheritance: self.priority_inheritance.unwrap_or(base.priority_inheritance),
            keep_on_run_queue: self.keep_on_run_queue.unwrap_or(base.keep_on_run_queue),
            charge_driver_time: self.charge_driver_time.unwrap_or(base.charge_driver_time),
            ..base
        };
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

fn within<N: Copy + PartialOrd + std::fmt::Display>(
    key: &str,
    number: Option<N>,
    otherwise: N,
    least: N,
    most: N,
) -> Result<N, String> {
    let number = number.unwrap_or(otherwise);
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(format!("policy.credit.{key}: {least} to {most}, not {number}"))
    }
}

/// Both kinds of evidence are sizes: the policy subtracts the negative one from the belief.
fn evidence(key: &str, size: Option<i16>, otherwise: i16) -> Result<i16, String> {
    within(key, size, otherwise, 0, i16::MAX)
}

fn permille(ratio: f64) -> Result<Permille, String> {
    let in_range = (0.0..=1.0).contains(&ratio);
    if in_range {
        Ok(Permille::new(libm::round(ratio * 1e3) as u32))
    } else {
        Err(format!("policy.credit.boost_ratio: 0 to 1, not {ratio}"))
    }
}
