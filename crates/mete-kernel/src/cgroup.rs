//! Control groups as directories, of either version.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use crate::KernelError;

/// One cgroup.
pub(crate) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// The cgroup at this directory.
    pub(crate) fn open(path: &Path) -> Result<Cgroup, KernelError> {
        let failed = |source| KernelError::Cgroup { path: path.into(), source };
        let cgroup = Cgroup { path: fs::canonicalize(path).map_err(failed)? };
        cgroup.task_file().map_err(failed)?;
        Ok(cgroup)
    }

    fn failed(&self, source: io::Error) -> KernelError {
        KernelError::Cgroup { path: self.path.clone(), source }
    }

    /// The kernel's identifier, which is unique in the hierarchy: the inode number of the directory.
    pub(crate) fn id(&self) -> Result<u64, KernelError> {
        let directory = fs::metadata(&self.path).map_err(|source| self.failed(source))?;
        Ok(directory.ino())
    }

    /// The kernel's number of the hierarchy; 0 is version 2.
    pub(crate) fn hierarchy(&self) -> Result<i32, KernelError> {
        hierarchy_of(&self.path).map_err(|source| self.failed(source))
    }

    fn task_file(&self) -> io::Result<PathBuf> {
        let names = ["cgroup.threads", "tasks"];
        let found = names.map(|name| self.path.join(name)).into_iter().find(|file| file.exists());
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this directory is no cgroup"))
    }
}

fn hierarchy_of(directory: &Path) -> io::Result<i32> {
    let device = device(&fs::metadata(directory)?);
    let (mounts, hierarchies) = (read_lossy("/proc/self/mountinfo")?, read_lossy("/proc/self/cgroup")?);
    find_hierarchy(&device, &mounts, &hierarchies).ok_or(io::ErrorKind::NotFound.into())
}

/// A file as text. Mounts and cgroups of other users may have any name, but numbers and controllers are
/// always text.
fn read_lossy(path: &str) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn device(directory: &Metadata) -> String {
    format!("{}:{}", major(directory.dev()), minor(directory.dev()))
}

/// The number of the hierarchy that is mounted from `device`. Both files name a hierarchy by its controllers.
fn find_hierarchy(device: &str, mountinfo: &str, own_cgroups: &str) -> Option<i32> {
    let (kind, options) = mountinfo.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut words = filesystem.split(' ');
        let kind = words.next().filter(|kind| kind.starts_with("cgroup"))?;
        (mount.split(' ').nth(2)? == device).then(|| (kind, words.next_back().unwrap_or_default()))
    })?;
    // Version 2 has only one hierarchy.
    if kind == "cgroup2" {
        return Some(0);
    }
    let options: BTreeSet<_> = options.split(',').collect();
    own_cgroups.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, _) = rest.split_once(':')?;
        // The line of version 2 names no controllers.
        let is_this = !controllers.is_empty() && controllers.split(',').all(|name| options.contains(name));
        is_this.then(|| number.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::find_hierarchy;

    const MOUNTS: &str = "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
        31 24 0:27 / /sys/fs/cgroup/systemd rw shared:9 - cgroup cgroup rw,xattr,name=systemd\n\
        32 24 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n\
        33 24 0:29 / /tmp rw - tmpfs tmpfs rw\n";
    const OWN: &str = "5:name=systemd:/\n4:cpu,cpuacct:/a:b\n0::/\n";

    #[test]
    fn log_6_hierarchies_of_both_versions_are_told_apart() {
        assert_eq!(find_hierarchy("0:26", MOUNTS, OWN), Some(4));
        assert_eq!(find_hierarchy("0:27", MOUNTS, OWN), Some(5));
        assert_eq!(find_hierarchy("0:28", MOUNTS, OWN), Some(0));
        assert_eq!(find_hierarchy("0:29", MOUNTS, OWN), None);
        assert_eq!(find_hierarchy("0:99", MOUNTS, OWN), None);
    }
}
