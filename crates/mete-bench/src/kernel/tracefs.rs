//! The kernel's own tracer, ftrace, in an instance of its own. The tracing of other users is not touched, and
//! all settings disappear with the instance.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use mete_measure::reason::Reason;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// The tracing file system. It is mounted for this process alone, and at no place in the directory tree. So
/// the mount ends with its descriptor.
pub struct Tracefs {
    root: OwnedFd,
}

impl Tracefs {
    /// Mounts the file system and opens its root.
    ///
    /// # Errors
    ///
    /// If the kernel has no tracing file system, or this process may not mount it.
    pub fn open() -> Result<Tracefs, Reason> {
        let open = || -> io::Result<OwnedFd> {
            let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(&context)?;
            Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
        };
        let root = open().map_err(Reason::while_trying("open the tracing file system (is this root?)"))?;
        Ok(Tracefs { root })
    }

    /// The id of a tracepoint, `group/name`, as perf uses it.
    ///
    /// # Errors
    ///
    /// If there is no such tracepoint.
    pub fn tracepoint_id(&self, tracepoint: &str) -> Result<u64, Reason> {
        let path = format!("events/{tracepoint}/id");
        let text = self.file(&path, OFlags::RDONLY).and_then(io::read_to_string);
        let id = text.and_then(|text| text.trim().parse().map_err(io::Error::other));
        id.map_err(Reason::while_trying(format!("read {path} of the tracing file system")))
    }

    fn file(&self, path: &str, flags: OFlags) -> io::Result<File> {
        Ok(openat(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// The names of all instances, including those of other users.
    #[cfg(test)]
    pub fn instances(&self) -> Vec<String> {
        self.list().unwrap_or_default()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let directory = self.file("instances", OFlags::RDONLY | OFlags::DIRECTORY)?;
        let entries = Dir::read_from(&directory)?.filter_map(Result::ok);
        Ok(entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }

    /// Removes the instances of earlier runs of this program that were killed.
    fn remove_stale(&self) {
        for name in self.list().unwrap_or_default() {
            if owner(&name).is_some_and(has_ended) {
                // A process may still read from the instance. Then the next run tries again.
                let _ = unlinkat(&self.root, format!("instances/{name}"), AtFlags::REMOVEDIR);
            }
        }
    }
}

/// The process that made the instance, if it was this program.
fn owner(instance: &str) -> Option<u32> {
    instance.strip_prefix(PREFIX)?.parse().ok()
}

/// Whether a process has ended. A zombie counts as ended, because perhaps no process ever waits for it.
fn has_ended(pid: u32) -> bool {
    // The line contains the process's name, which may be no valid text. Its state follows the last
    // parenthesis.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    String::from_utf8_lossy(&stat).rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

const PREFIX: &str = "mete-bench-";
/// How often removing an instance is tried, and how long after each other.
const REMOVALS: u32 = 50;
const BETWEEN_REMOVALS: Duration = Duration::from_millis(10);

/// An instance that records its tracepoints as long as this lives.
pub struct Instance<'a> {
    tracefs: &'a Tracefs,
    name: String,
}

impl<'a> Instance<'a> {
    /// Makes an instance and switches the tracepoints on, `group/name` each.
    ///
    /// # Errors
    ///
    /// If the kernel refuses. Then nothing stays switched on.
    pub fn recording(tracefs: &'a Tracefs, tracepoints: &[&str]) -> Result<Instance<'a>, Reason> {
        tracefs.remove_stale();
        let name = format!("{PREFIX}{}", std::process::id());
        mkdirat(&tracefs.root, format!("instances/{name}"), Mode::RWXU)
            .map_err(Reason::while_trying("make an ftrace instance"))?;
        // Made before the tracepoints are switched on, so that a failure below removes the instance.
        let instance = Instance { tracefs, name };
        tracepoints.iter().try_for_each(|tracepoint| instance.set(tracepoint, true))?;
        Ok(instance)
    }

    fn set(&self, tracepoint: &str, on: bool) -> Result<(), Reason> {
        let switch = format!("events/{tracepoint}/enable");
        let mut file = self.file(&switch, OFlags::WRONLY).map_err(Reason::while_trying(&switch))?;
        file.write_all(if on { b"1" } else { b"0" })
            .map_err(Reason::while_trying(format!("switch {tracepoint} for ftrace")))
    }

    /// The file with the raw events of a processor.
    ///
    /// # Errors
    ///
    /// The error of the file system.
    pub fn raw_pipe(&self, processor: usize) -> io::Result<File> {
        let path = format!("per_cpu/cpu{processor}/trace_pipe_raw");
        self.file(&path, OFlags::RDONLY | OFlags::NONBLOCK)
    }

    fn file(&self, path: &str, flags: OFlags) -> io::Result<File> {
        self.tracefs.file(&format!("instances/{}/{path}", self.name), flags)
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        let path = format!("instances/{}", self.name);
        // Removing an instance switches its events off. The kernel refuses this while a reader has a file open, so
        // readers must end before. A process that another thread is about to start has all files open for a moment.
        // An instance that stays is removed by the next run.
        for _ in 0..REMOVALS {
            if unlinkat(&self.tracefs.root, &path, AtFlags::REMOVEDIR) != Err(Errno::BUSY) {
                return;
            }
            std::thread::sleep(BETWEEN_REMOVALS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ftrace_instance_records_while_it_lives_and_leaves_nothing() {
        let Ok(tracefs) = Tracefs::open() else {
            println!("SKIPPED: the tracing file system needs root");
            return;
        };
        let before = tracefs.instances();
        let instance = Instance::recording(&tracefs, &["raw_syscalls/sys_enter"]).unwrap();
        assert_eq!(tracefs.instances().len(), before.len() + 1);
        let enabled = instance.file("events/raw_syscalls/sys_enter/enable", OFlags::RDONLY).unwrap();
        assert_eq!(io::read_to_string(enabled).unwrap(), "1\n");
        drop(instance);
        assert_eq!(tracefs.instances(), before);
        assert!(Instance::recording(&tracefs, &["no/such"]).is_err());
        assert_eq!(tracefs.instances(), before);
    }
}
