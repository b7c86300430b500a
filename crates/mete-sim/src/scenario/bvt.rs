//! The settings of borrowed virtual time in a scenario: `[policy.bvt]`.

use mete_policy::BvtSettings;
use mete_policy::bvt::Warp;

use super::error::Fault;
use super::names::Names;
use super::table::{BvtTable, WarpTable};
use super::value::{NS_PER_MS, ns};

/// The policy's settings: the table's keys over the defaults.
pub(super) fn settings(table: &BvtTable, names: &Names) -> Result<BvtSettings, Fault> {
    let usual = BvtSettings::default();
    let allowance_ns = match &table.allowance_ms {
        Some(ms) => ns("policy.bvt.allowance_ms", ms, NS_PER_MS)?,
        None => usual.allowance_ns,
    };
    let warp = table.warp.as_ref().map(|table| warp(table, names)).transpose()?;
    Ok(BvtSettings { allowance_ns, warp: warp.or(usual.warp) })
}

fn warp(table: &WarpTable, names: &Names) -> Result<Warp, Fault> {
    Ok(Warp {
        domain: names.domain(Some(&table.domain))?,
        warp_ns: ns("policy.bvt.warp.warp_ms", &table.warp_ms, NS_PER_MS)?,
        limit_ns: ns("policy.bvt.warp.limit_ms", &table.limit_ms, NS_PER_MS)?,
        rest_ns: ns("policy.bvt.warp.rest_ms", &table.rest_ms, NS_PER_MS)?,
    })
}
