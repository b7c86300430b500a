//! The files with a control group's weight and limit: `cpu.weight` and `cpu.max` in version 2, `cpu.shares` and
//! `cpu.cfs_quota_us` in version 1.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mete_kernel::{Limit, Weight};
use rustix::fs::{CWD, Mode, OFlags, StatFs, fstatfs, openat, statfs};

use crate::domains::{in_controller, is_cgroup, is_root};

/// In the order in which they are looked for.
const WEIGHTS: [&str; 2] = ["cpu.weight", "cpu.shares"];
const LIMITS: [&str; 2] = ["cpu.max", "cpu.cfs_quota_us"];
/// What a limit is where there is none, and how the files say that.
const NONE: u64 = u64::MAX;
const NO_LIMIT: [&str; 2] = ["max", "-1"];
/// The period of a limit, in microseconds: with it in version 2, in a file of its own in version 1.
const PERIOD: &str = "cpu.cfs_period_us";
/// What a group of version 1 has that nothing was said about, where one of version 2 has 100.
const ORDINARY_SHARES: u64 = 1024;
/// What `statfs` says of control groups, of version 2 and of version 1 (`linux/magic.h`).
const MAGICS: [i64; 2] = [0x6367_7270, 0x0027_e0eb];
/// How many groups are looked at to find one that was renamed.
const MOST_LOOKED_AT: usize = 4096;
/// Version 1, where each controller may have a hierarchy of its own.
const NOT_THERE: &str = "it has no weight, because it is not there for the controller cpu: make a group of this name there, too, \
                         and put its processes into both";
const NO_CONTROLLER: &str = "it has no weight, because its parent does not distribute processor time: write +cpu into \
                             the parent's cgroup.subtree_control";

/// The file with a group's weight or limit, and which file it is: another group may have the same path later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupFile {
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
}

impl GroupFile {
    /// That with the weight of a group. A group of version 1 may be named by its directory under any controller.
    pub fn of_weight(group: &Path) -> Result<GroupFile, String> {
        GroupFile::of(group, WEIGHTS)
    }

    /// That with its limit.
    pub fn of_limit(group: &Path) -> Result<GroupFile, String> {
        GroupFile::of(group, LIMITS)
    }

    fn of(group: &Path, names: [&str; 2]) -> Result<GroupFile, String> {
        let other = in_controller(group, "cpu");
        let folders = [Some(group), other.as_deref()];
        let paths = folders.into_iter().flatten().flat_map(|folder| names.map(|name| folder.join(name)));
        // The root of version 1 has such a file, too.
        let path = paths.into_iter().find(|path| path.exists() && !is_root(group));
        let path = path.ok_or_else(|| why_none(group))?;
        // The processes that put weights back run in another directory, so a relative path would mean nothing
        // to them.
        let path = fs::canonicalize(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let found = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(GroupFile { path, device: found.dev(), inode: found.ino() })
    }

    /// A weight in the unit of this file.
    pub fn weight(&self, weight: Weight) -> u64 {
        let weight = u64::from(weight.get());
        if self.path.ends_with(WEIGHTS[0]) {
            weight
        } else {
            weight * ORDINARY_SHARES / u64::from(Weight::ORDINARY.get())
        }
    }

    /// A limit as a part of the period that the group has, which stays.
    ///
    /// # Errors
    ///
    /// As [`GroupFile::read`].
    pub fn limit(&self, limit: Limit) -> io::Result<u64> {
        let text = match self.path.ends_with(LIMITS[0]) {
            true => self.text()?.split_ascii_whitespace().nth(1).unwrap_or_default().to_owned(),
            false => fs::read_to_string(self.path.with_file_name(PERIOD))?,
        };
        Ok(limit.of_period(number(&text)?))
    }

    fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        self.open(OFlags::RDONLY)?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// What it says: of a limit, how much of a period.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `NotFound` if the group is gone.
    pub fn read(&self) -> io::Result<u64> {
        let text = self.text()?;
        let word = text.split_ascii_whitespace().next().unwrap_or_default();
        if self.is_limit() && NO_LIMIT.contains(&word) { Ok(NONE) } else { number(word) }
    }

    /// Has it say this.
    ///
    /// # Errors
    ///
    /// As [`GroupFile::read`].
    pub fn write(&self, value: u64) -> io::Result<()> {
        let no_limit = NO_LIMIT[usize::from(self.path.ends_with(LIMITS[1]))];
        let text = if self.is_limit() && value == NONE { no_limit.to_owned() } else { value.to_string() };
        self.open(OFlags::WRONLY)?.write_all(text.as_bytes())
    }

    fn is_limit(&self) -> bool {
        LIMITS.iter().any(|name| self.path.ends_with(name))
    }

    /// Version 1, which renames groups.
    fn may_be_renamed(&self) -> bool {
        [WEIGHTS[1], LIMITS[1]].iter().any(|name| self.path.ends_with(name))
    }

    /// Whether the group is still there.
    pub fn is_there(&self) -> bool {
        self.open(OFlags::RDONLY).is_ok()
    }

    /// Opens this file. Its path may come from a journal, and another file may be there by now: that one is
    /// not opened.
    fn open(&self, access: OFlags) -> io::Result<File> {
        match self.open_at(&self.path, access) {
            // A service that is restarted often leaves many that are gone, and version 2 renames none.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.may_be_renamed() => {
                let renamed = self.renamed().ok_or(error)?;
                self.open_at(&renamed, access)
            }
            opened => opened,
        }
    }

    fn open_at(&self, path: &Path, access: OFlags) -> io::Result<File> {
        let is_one = WEIGHTS.iter().chain(&LIMITS).any(|name| path.ends_with(name));
        if !path.is_absolute() || !is_one {
            return Err(io::ErrorKind::NotFound.into());
        }
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat(CWD, path, flags, Mode::empty())?);
        let found = file.metadata()?;
        let is_it = (found.dev(), found.ino()) == (self.device, self.inode) && is_of_groups(&fstatfs(&file)?);
        is_it.then_some(file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Where the file is if its group, or one above it, was renamed, which version 1 allows.
    fn renamed(&self) -> Option<PathBuf> {
        let (name, folder) = (self.path.file_name()?, self.path.parent()?);
        let above = folder.ancestors().skip(1).find(|above| above.is_dir())?;
        if !statfs(above).is_ok_and(|found| is_of_groups(&found)) {
            return None;
        }
        let mut folders = vec![above.to_owned()];
        for nth in 0..MOST_LOOKED_AT {
            let entries = fs::read_dir(folders.get(nth)?).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                let path = entry.path().join(name);
                let found = fs::symlink_metadata(&path);
                if found.is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode)) {
                    return Some(path);
                }
                folders.push(entry.path());
            }
        }
        None
    }

    /// What went wrong, for people.
    pub fn refused(&self, done: &str, error: &io::Error) -> String {
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "; this needs root, or a group that was delegated to this user"
            }
            io::ErrorKind::InvalidInput if self.is_limit() => {
                "; a limit is at least a millisecond of a period (and cpu.cfs_burst_us), at most that of the group above, and at least those \
                 of the groups in it"
            }
            io::ErrorKind::InvalidInput if self.is_idle() => {
                "; an idle group has no weight: write 0 into its cpu.idle first"
            }
            _ => "",
        };
        format!("{} cannot be {done}: {error}{advice}", self.path.display())
    }

    /// Whether the group runs only when no other wants the processor.
    fn is_idle(&self) -> bool {
        fs::read_to_string(self.path.with_file_name("cpu.idle")).is_ok_and(|text| text.trim() == "1")
    }
}

fn number(text: &str) -> io::Result<u64> {
    text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no number"))
}

fn is_of_groups(found: &StatFs) -> bool {
    MAGICS.contains(&found.f_type)
}

/// Why a directory has no such file, and what to do.
fn why_none(group: &Path) -> &'static str {
    if !is_cgroup(group) {
        "this is no control group"
    } else if is_root(group) {
        "the root competes with no other group: name groups that are below it"
    } else if group.join("cgroup.controllers").exists() {
        NO_CONTROLLER
    } else {
        NOT_THERE
    }
}
