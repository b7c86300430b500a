//! What tests of whole measurements need: to run one at a time, to be stopped, and to see what is left
//! behind.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses its own part, and ends where something fails"
)]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mete_base::Progress;
use mete_measure::{Report, Verdict};
use rustix::mount::{MountPropagationFlags, mount_change};

/// The benchmark takes this process as a component, pins threads and attaches programs. So tests run one at a
/// time; otherwise one test would see what another one holds.
static ALONE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cancels after this number of steps.
pub struct StopAfter(pub u64);

impl Progress for StopAfter {
    fn begin(&mut self, _what: &str, _steps: u64) {}
    fn step(&mut self) {
        self.0 = self.0.saturating_sub(1);
    }
    fn is_cancelled(&self) -> bool {
        self.0 == 0
    }
}

/// Everything that a measurement could leave behind in or around this process.
#[derive(Debug, PartialEq, Eq)]
pub struct Traces {
    affinity: String,
    children: String,
    descriptors: Vec<String>,
    scratch: Vec<String>,
    sockets: Vec<String>,
    tracing: Option<Vec<String>>,
    /// Mounts, if this process has a mount namespace of its own. Without one it may not mount.
    mounts: Option<String>,
}

/// Other programs on this machine publish themselves, are killed and mount as well. So this process gets
/// sockets and mounts of its own. That must happen before the component in it looks for its directory, and
/// before there are threads, so it is the first of its constructors.
#[used]
#[unsafe(link_section = ".init_array.00001")]
static FIRST: extern "C" fn() = have_own_surroundings;
static HAS_OWN_MOUNTS: AtomicBool = AtomicBool::new(false);

extern "C" fn have_own_surroundings() {
    // SAFETY: there are no other threads yet that could read the environment or share the table of mounts.
    unsafe {
        std::env::set_var("METE_RUNTIME_DIR", own_directory());
        let is_apart = libc::unshare(libc::CLONE_NEWNS) == 0
            && mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).is_ok();
        HAS_OWN_MOUNTS.store(is_apart, Ordering::Relaxed);
        libc::atexit(remove_own_directory);
    }
}

fn own_directory() -> PathBuf {
    std::env::temp_dir().join(format!("mete-whole-{}", std::process::id()))
}

extern "C" fn remove_own_directory() {
    let _ = fs::remove_dir_all(own_directory());
}

pub fn traces() -> Traces {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("Cpus_allowed_list")).unwrap();
    // Another process may measure meanwhile.
    let mark = format!("mete-bench-{}", std::process::id());
    let own = |path| names(path).into_iter().filter(|name| name.contains(&mark)).collect();
    Traces {
        affinity: line.to_owned(),
        children: fs::read_to_string("/proc/thread-self/children").unwrap_or_default(),
        descriptors: kernel_objects(),
        scratch: own("/tmp"),
        sockets: names(own_directory().to_str().unwrap()),
        tracing: fs::exists("/sys/kernel/tracing/instances")
            .unwrap_or(false)
            .then(|| own("/sys/kernel/tracing/instances")),
        mounts: HAS_OWN_MOUNTS
            .load(Ordering::Relaxed)
            .then(|| fs::read_to_string("/proc/self/mounts").unwrap()),
    }
}

/// The number of programs, links and perf events that this process holds.
fn kernel_objects() -> Vec<String> {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(Result::ok);
    let targets = links.filter_map(|link| fs::read_link(link.path()).ok());
    let mut objects: Vec<_> = targets
        .map(|target| target.to_string_lossy().into_owned())
        .filter(|target| target.contains("bpf") || target.contains("perf_event"))
        .collect();
    objects.sort();
    objects
}

pub fn names(path: &str) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Every row has a value, or says why there is none.
pub fn all_are_said(report: &Report) {
    assert!(!report.rows.is_empty());
    for row in &report.rows {
        assert!(row.median.is_some() || !row.note.is_empty(), "{row:?}");
        assert_eq!(row.verdict.is_some(), row.bar.is_some(), "{row:?}");
        let is_absent = row.verdict.is_some() && row.median.is_none();
        assert_eq!(row.verdict == Some(Verdict::NotMeasured), is_absent, "{row:?}");
    }
}
