//! What came out of the two statements of figure 5.2, across address spaces, with rows from the kernel as in the
//! thesis.

use mete_bench::traffic::Partner;
use mete_bench::user::scheduler::Logging;
use serde_json::json;

use super::line::{CostLine, find};
use super::setting::{Setting, Source};
use crate::study::{Finding, Findings};

pub(super) fn of(lines: &[CostLine]) -> Findings {
    let [probes, kernel] = Source::ALL.map(|source| find(lines, source, Partner::OtherAddressSpace));
    vec![("disabled", probes.and_then(disabled)), ("stamp", kernel.and_then(stamp))]
}

/// The cost of a disabled event is less than the noise, so up to a fiftieth of a message's time counts as nothing.
fn disabled(probes: &CostLine) -> Option<Finding> {
    let (added, native) = (probes.ns(Setting::Disabled)?, probes.ns(Setting::Native)?);
    let finding = Finding::new(json!({ "added_ns": added, "native_ns": native }), added <= native / 50.0);
    Some(finding.unless_noisy(probes.is_noisy(Setting::Disabled)))
}

fn stamp(kernel: &CostLine) -> Option<Finding> {
    const FOUR: Setting = Setting::On(Logging::Four);
    let (five, four) = (kernel.ns(Setting::FIVE)?, kernel.ns(FOUR)?);
    let finding = Finding::new(json!({ "stamp_ns": five - four, "row_ns": five }), five - four >= five / 4.0);
    Some(finding.unless_noisy([Setting::FIVE, FOUR].into_iter().any(|setting| kernel.is_noisy(setting))))
}
