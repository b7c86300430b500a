//! The names of threads: events have numbers, people think in names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mete_base::letters;
use serde::{Deserialize, Serialize};

/// A thread that lived while it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadName {
    /// The kernel's number of the thread.
    pub thread: u32,
    /// The number of the process that it belongs to.
    pub process: u32,
    /// Its name when the recorder looked last, as [`written`].
    pub name: String,
}

/// A thread's name, which may be any bytes, as text from which the bytes can be recovered. A byte that is not
/// part of a UTF-8 letter becomes `\xff`, and a backslash `\\`. The kernel cuts names after 15 bytes, even in
/// the middle of a letter.
pub fn written(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(name) if !name.contains('\\') => Cow::Borrowed(name),
        _ => Cow::Owned(name.utf8_chunks().map(chunk_written).collect()),
    }
}

fn chunk_written(chunk: std::str::Utf8Chunk<'_>) -> String {
    let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
    chunk.valid().replace('\\', "\\\\") + &invalid.collect::<String>()
}

/// The number of the namespace in which processes have the numbers that the kernel's events carry.
const INITIAL_NAMESPACE: u64 = 0xefff_fffc;

/// All living threads, in the order of their numbers. Threads of other users are among them if `/proc` shows
/// them. Threads that end during the call are left out. In another process namespace than the first the list
/// is empty: the numbers there would be taken for those of other threads.
pub fn living() -> Vec<ThreadName> {
    if !is_initial_namespace() {
        return Vec::new();
    }
    let mut all: Vec<_> = numbers(Path::new("/proc")).flat_map(of_process).collect();
    all.sort_by_key(|of| of.thread);
    all
}

/// Adds the threads of `later` to `known`. If both have a number, the entry in `later` is the newer one and
/// replaces the other. Returns the replaced entries that differ from the new ones.
pub fn merge(known: &mut Vec<ThreadName>, later: Vec<ThreadName>) -> Vec<ThreadName> {
    let mut all: BTreeMap<_, _> = known.drain(..).map(|of| (of.thread, of)).collect();
    let mut before = Vec::new();
    for of in later {
        before.extend(all.get(&of.thread).filter(|was| **was != of).cloned());
        all.insert(of.thread, of);
    }
    *known = all.into_values().collect();
    before
}

fn is_initial_namespace() -> bool {
    fs::metadata("/proc/self/ns/pid").is_ok_and(|of| of.ino() == INITIAL_NAMESPACE)
}

fn of_process(process: u32) -> impl Iterator<Item = ThreadName> {
    let tasks = Path::new("/proc").join(process.to_string()).join("task");
    numbers(&tasks).filter_map(move |thread| {
        // `None` if the thread has ended since its directory was listed.
        let name = fs::read(tasks.join(thread.to_string()).join("comm")).ok()?;
        let name = written(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned();
        Some(ThreadName { thread, process, name })
    })
}

/// The entries of a directory whose names are numbers.
fn numbers(directory: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A text from a trace without control characters: a trace may hold anything, and must not steer a terminal.
pub fn without_controls(text: &str) -> String {
    text.chars().map(letters::shown).collect()
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
        let before = merge(&mut known, vec![of(1, "init"), of(3, "new"), of(7, "after")]);
        assert_eq!(known, [of(1, "init"), of(3, "new"), of(7, "after")]);
        assert_eq!(before, [of(7, "before")], "and the one before is not forgotten");
    }

    #[test]
    fn klog_7_a_written_name_says_exactly_which_bytes_it_has() {
        let cases: [(&[u8], &str); 5] = [
            (b"make", "make"),
            ("Привет, \u{7}".as_bytes(), "Привет, \u{7}"),
            ("Привет, м".as_bytes().split_at(15).0, "Привет, \\xd0"),
            (b"\\xd0", "\\\\xd0"),
            (b"\xff\xc3\x28\\", "\\xff\\xc3(\\\\"),
        ];
        for (name, text) in cases {
            assert_eq!(written(name), text);
        }
    }
}
