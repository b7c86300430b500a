//! What `/proc` says about processes and threads. Everything here may be gone the next moment, so
//! absence is an answer and no error.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Flag of kernel threads in `/proc/PID/stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One process or thread, as its `stat` file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, 15 bytes at most.
    pub comm: String,
    /// Its parent.
    pub parent: u32,
    /// Whether it belongs to the kernel.
    pub is_kernel: bool,
    /// When it began, in ticks since boot: together with the pid, its identity.
    pub start: u64,
}

impl Process {
    /// A process.
    pub fn read(pid: u32) -> Option<Process> {
        Process::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// A thread of a process.
    pub fn read_thread(pid: u32, thread: u32) -> Option<Process> {
        Process::parse(&fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?)
    }

    /// A line of a `stat` file. The name is in parentheses and may hold some itself.
    fn parse(text: &str) -> Option<Process> {
        let (pid, rest) = text.split_once(" (")?;
        let (comm, rest) = rest.rsplit_once(") ")?;
        let field = |number: usize| rest.split(' ').nth(number - 3)?.parse::<u64>().ok();
        Some(Process {
            pid: pid.parse().ok()?,
            comm: comm.to_owned(),
            parent: field(4)? as u32,
            is_kernel: field(9)? & KERNEL_THREAD != 0,
            start: field(22)?,
        })
    }
}

/// All processes.
pub fn processes() -> Vec<u32> {
    numbers("/proc")
}

/// All threads of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The program that a process runs; `None` also without the right to know.
pub fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The user of a process.
pub fn user(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|found| found.uid())
}

/// The number that was given to a process or thread most recently. As long as it stays the same,
/// nothing new has begun.
pub fn newest() -> Option<u32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().nth(4)?.parse().ok()
}

fn numbers(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_is_read_whole() {
        let text = "42 (a) b (c) S 7 42 42 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 9001 0 0";
        let process = Process::parse(text).unwrap();
        assert_eq!(
            process,
            Process { pid: 42, comm: "a) b (c".into(), parent: 7, is_kernel: false, start: 9001 }
        );
    }

    #[test]
    fn garbage_is_no_process() {
        for text in ["", "42", "42 (", "42 (x) S", "x (y) S 1"] {
            assert_eq!(Process::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn this_process_and_its_threads_are_found() {
        let own = std::process::id();
        let process = Process::read(own).unwrap();
        assert_eq!((process.pid, process.is_kernel), (own, false));
        assert!(processes().contains(&own) && threads(own).contains(&own));
        assert_eq!(Process::read_thread(own, own).unwrap().start, process.start);
        assert_eq!(program(own), std::env::current_exe().ok());
    }
}
