//! What the kernel lets threads of a control group have in real time, where it was built with `CONFIG_RT_GROUP_SCHED`.
//!
//! A thread in front takes that from its group, and is kept from running when it is used up. So shares would be what the
//! groups' bounds say. All groups together may not have more than the topmost one, which has nineteen twentieths as a rule.

use std::fs;
use std::path::{Path, PathBuf};

use mete_sched::domains::group_under;

use crate::error::DispatchError;
use crate::members::Candidate;

/// The part that a group has to have, in tenths: the rest of the machine takes some of the others.
const LEAST: i64 = 9;

/// Whether the threads may have enough of it.
///
/// # Errors
///
/// [`DispatchError::LittleRealTime`]
pub(crate) fn check<'a>(candidates: impl Iterator<Item = &'a Candidate>) -> Result<(), DispatchError> {
    let mut seen: Option<PathBuf> = None;
    for candidate in candidates {
        let Some(group) = group_under(candidate.process.pid, "cpu") else { continue };
        if seen.as_ref() != Some(&group) {
            check_group(&group)?;
            seen = Some(group);
        }
    }
    Ok(())
}

fn check_group(group: &Path) -> Result<(), DispatchError> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<i64>().ok();
    match read("cpu.rt_runtime_us").zip(read("cpu.rt_period_us")) {
        Some((runtime_us, period_us))
            if runtime_us >= 0 && runtime_us.saturating_mul(10) < period_us.saturating_mul(LEAST) =>
        {
            Err(DispatchError::LittleRealTime { group: group.into(), runtime_us, period_us })
        }
        _ => Ok(()),
    }
}
