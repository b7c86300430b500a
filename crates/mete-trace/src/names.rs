//! The names of threads: events say numbers, people think in names.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A thread that lived while it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadName {
    /// The kernel's number of it.
    pub thread: u32,
    /// The number of the process that it belongs to.
    pub process: u32,
    /// What it was called when it was looked at last.
    pub name: String,
}

/// The number of the namespace in which processes have the numbers that the kernel's events say.
const INITIAL_NAMESPACE: u64 = 0xefff_fffc;

/// All threads that live, in the order of their numbers; of other users' too, where `/proc` shows them. Those that
/// end while this looks are left out. None in another namespace of processes than the first: their numbers there
/// would be held for those of others.
pub fn living() -> Vec<ThreadName> {
    if !is_initial_namespace() {
        return Vec::new();
    }
    let mut all: Vec<_> = numbers(Path::new("/proc")).flat_map(of_process).collect();
    all.sort_by_key(|of| of.thread);
    all
}

/// Adds the threads of `later` to those of `known`. A number that both have was looked at last in `later`.
pub fn merge(known: &mut Vec<ThreadName>, later: Vec<ThreadName>) {
    let all = known.drain(..).chain(later).map(|of| (of.thread, of));
    *known = all.collect::<BTreeMap<_, _>>().into_values().collect();
}

fn is_initial_namespace() -> bool {
    fs::metadata("/proc/self/ns/pid").is_ok_and(|of| of.ino() == INITIAL_NAMESPACE)
}

fn of_process(process: u32) -> impl Iterator<Item = ThreadName> {
    let tasks = Path::new("/proc").join(process.to_string()).join("task");
    numbers(&tasks).filter_map(move |thread| {
        let name = fs::read(tasks.join(thread.to_string()).join("comm")).ok()?;
        let name = String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned();
        Some(ThreadName { thread, process, name })
    })
}

/// The entries of a directory whose names are numbers.
fn numbers(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What a trace says of somebody may be anything, and must not steer a terminal.
pub fn without_controls(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_7_this_thread_is_among_those_that_live_under_its_name() {
        if !is_initial_namespace() {
            assert_eq!(living(), []);
            println!("SKIPPED: this is a namespace of processes; their numbers are not the kernel's");
            return;
        }
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let name = fs::read_to_string("/proc/thread-self/comm").expect("it is there");
        let expected = ThreadName { thread: own, process: std::process::id(), name: name.trim().into() };
        assert!(living().contains(&expected), "{expected:?}");
    }

    #[test]
    fn klog_7_the_name_seen_last_counts() {
        let of = |thread, name: &str| ThreadName { thread, process: 1, name: name.into() };
        let mut known = vec![of(1, "init"), of(7, "before")];
        merge(&mut known, vec![of(3, "new"), of(7, "after")]);
        assert_eq!(known, [of(1, "init"), of(3, "new"), of(7, "after")]);
    }
}
