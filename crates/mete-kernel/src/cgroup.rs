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

    /// The kernel's identifier, unique in its hierarchy: the directory's inode number.
    pub(crate) fn id(&self) -> Result<u64, KernelError> {
        let directory = fs::metadata(&self.path).map_err(|source| self.failed(source))?;
        Ok(directory.ino())
    }

    /// The kernel's number of the hierarchy; 0 is version 2.
    pub(crate) fn hierarchy(&self) -> Result<i32, KernelError> {
        let read = || {
            let directory = fs::metadata(&self.path)?;
            // What others have mounted and made may have any name; numbers and controllers are text.
            let lossy = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let (mounts, hierarchies) = (lossy("/proc/self/mountinfo")?, lossy("/proc/self/cgroup")?);
            find_hierarchy(&device(&directory), &mounts, &hierarchies).ok_or(io::ErrorKind::NotFound.into())
        };
        read().map_err(|source| self.failed(source))
    }

    fn task_file(&self) -> io::Result<PathBuf> {
        let names = ["cgroup.threads", "tasks"];
        let found = names.map(|name| self.path.join(name)).into_iter().find(|file| file.exists());
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this directory is no cgroup"))
    }
}

fn device(directory: &Metadata) -> String {
    format!("{}:{}", major(directory.dev()), minor(directory.dev()))
}

/// The hierarchy mounted from `device`: by the controllers that name it in both files.
fn find_hierarchy(device: &str, mountinfo: &str, own_cgroups: &str) -> Option<i32> {
    let (kind, options) = mountinfo.lines().find_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut words = filesystem.split(' ');
        let kind = words.next().filter(|kind| kind.starts_with("cgroup"))?;
        (mount.split(' ').nth(2)? == device).then(|| (kind, words.next_back().unwrap_or_default()))
    })?;
    if kind == "cgroup2" {
        return Some(0);
    }
    let options: BTreeSet<_> = options.split(',').collect();
    own_cgroups.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, _) = rest.split_once(':')?;
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
