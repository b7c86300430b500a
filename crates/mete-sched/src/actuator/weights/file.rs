//! The file with a control group's weight: `cpu.weight` in version 2, `cpu.shares` in version 1.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::domains::{in_controller, is_cgroup, is_root};

/// In the order in which they are looked for.
const NAMES: [&str; 2] = ["cpu.weight", "cpu.shares"];
/// What a group of version 1 has that nothing was said about, where one of version 2 has 100.
const ORDINARY_SHARES: u64 = 1024;
const ORDINARY_WEIGHT: u64 = 100;
const NO_CONTROLLER: &str = "it has no weight, because its parent does not distribute processor time: write +cpu into \
                             the parent's cgroup.subtree_control";

/// The file with a group's weight, and which file it is: another group may have the same path later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WeightFile {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
}

impl WeightFile {
    /// That of a group. A group of version 1 may be named by its directory under any controller.
    pub fn of(group: &Path) -> Result<WeightFile, String> {
        let other = in_controller(group, "cpu");
        let folders = [Some(group), other.as_deref()];
        let paths = folders.into_iter().flatten().flat_map(|folder| NAMES.map(|name| folder.join(name)));
        // The root of version 1 has such a file, too.
        let path = paths.into_iter().find(|path| path.exists() && !is_root(group));
        let path = path.ok_or_else(|| why_none(group))?;
        // The processes that put weights back run in another directory, so a relative path would mean nothing to them.
        let path = fs::canonicalize(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let found = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(WeightFile { path, device: found.dev(), inode: found.ino() })
    }

    /// A weight in the unit of this file.
    pub fn value_of(&self, weight: u32) -> u64 {
        let weight = u64::from(weight);
        if self.path.ends_with(NAMES[0]) { weight } else { weight * ORDINARY_SHARES / ORDINARY_WEIGHT }
    }

    /// Whether it is still the same file.
    pub fn is_there(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode))
    }

    pub fn read(&self) -> io::Result<u64> {
        let text = fs::read_to_string(&self.path)?;
        text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no number"))
    }

    pub fn write(&self, value: u64) -> io::Result<()> {
        fs::write(&self.path, value.to_string())
    }

    /// What went wrong, for people.
    pub fn refused(&self, done: &str, error: &io::Error) -> String {
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "; this needs root, or a group that was delegated to this user"
            }
            _ => "",
        };
        format!("{} cannot be {done}: {error}{advice}", self.path.display())
    }
}

/// Why a directory has no such file, and what to do.
fn why_none(group: &Path) -> &'static str {
    if !is_cgroup(group) {
        "this is no control group"
    } else if is_root(group) {
        "the root competes with no other group"
    } else {
        NO_CONTROLLER
    }
}
