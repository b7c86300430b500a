//! Cgroups that have their shares, and what they were given, by the kernel's own account.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{ExtError, GroupScheduler, Share};

/// A cgroup whose share was set, and what it has used since.
#[derive(Debug)]
pub struct RuledCgroup {
    path: PathBuf,
    share: Share,
    before: Duration,
}

impl RuledCgroup {
    /// Sets the share of a cgroup.
    ///
    /// # Errors
    ///
    /// As [`GroupScheduler::set_share`]; and if the kernel does not say what the cgroup uses.
    pub fn new(scheduler: &GroupScheduler, path: &Path, share: Share) -> Result<RuledCgroup, ExtError> {
        scheduler.set_share(path, Some(share))?;
        Ok(RuledCgroup { path: path.into(), share, before: used(path)? })
    }

    /// The share that it was set.
    #[must_use]
    pub fn share(&self) -> Share {
        self.share
    }

    /// The processor time that its tasks have used since it has its share.
    ///
    /// # Errors
    ///
    /// If the cgroup is gone.
    pub fn used(&self) -> Result<Duration, ExtError> {
        Ok(used(&self.path)?.saturating_sub(self.before))
    }
}

/// The processor time of a cgroup, as the kernel accounts it.
fn used(path: &Path) -> Result<Duration, ExtError> {
    let failed = |why| ExtError::Cgroup { path: path.into(), why };
    let text =
        fs::read_to_string(path.join("cpu.stat")).map_err(|error| failed(format!("no cpu.stat: {error}")))?;
    let found = text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.parse().ok());
    found.map(Duration::from_micros).ok_or_else(|| failed("its cpu.stat has no usage_usec".into()))
}
