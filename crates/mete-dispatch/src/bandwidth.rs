//! What the kernel lets threads of a control group have in real time, where it was built with
//! `CONFIG_RT_GROUP_SCHED`.
//!
//! A thread in front takes that from its group, and is kept from running when it is used up. So shares would
//! be what the groups' bounds say. All groups together may not have more than the topmost one, which has
//! nineteen twentieths as a rule.

use std::fs;
use std::path::{Path, PathBuf};

use mete_sched::domains::{controller_mount, group_under};

use crate::error::DispatchError;
use crate::members::Candidate;

/// The part that a group has to have, in tenths: the rest of the machine takes some of the others.
const LEAST: i64 = 9;

const CONTROLLER: &str = "cpu";
const RUNTIME: &str = "cpu.rt_runtime_us";
const PERIOD: &str = "cpu.rt_period_us";

/// Where groups have such bounds; nowhere, as a rule.
#[derive(Debug)]
pub(crate) struct Bandwidth(Option<PathBuf>);

impl Bandwidth {
    pub fn here() -> Bandwidth {
        Bandwidth(controller_mount(CONTROLLER).filter(|mount| mount.join(RUNTIME).exists()))
    }

    /// Whether the thread may have enough real time.
    ///
    /// # Errors
    ///
    /// [`DispatchError::LittleRealTime`]
    pub fn check(&self, candidate: &Candidate) -> Result<(), DispatchError> {
        let Some(mount) = &self.0 else { return Ok(()) };
        let group = group_under(candidate.process.pid, CONTROLLER);
        group.map_or(Ok(()), |group| check_group(&mount.join(group)))
    }
}

fn check_group(group: &Path) -> Result<(), DispatchError> {
    let read = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<i64>().ok();
    match read(RUNTIME).zip(read(PERIOD)) {
        Some((runtime_us, period_us))
            if runtime_us >= 0 && runtime_us.saturating_mul(10) < period_us.saturating_mul(LEAST) =>
        {
            Err(DispatchError::LittleRealTime { group: group.into(), runtime_us, period_us })
        }
        _ => Ok(()),
    }
}
