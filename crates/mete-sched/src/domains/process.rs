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
    /// The processor time of all its threads so far, in ticks.
    pub ran: u64,
}

impl Process {
    /// A process. One that has ended is absent even while nobody takes note of its end: whoever
    /// inherits orphans, as the first process of a container, may leave them as zombies for ever.
    pub fn read(pid: u32) -> Option<Process> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Stat::parse(&text).filter(Stat::is_process_there)?.process()
    }

    /// A thread of a process; absent as a process is.
    pub fn read_thread(pid: u32, thread: u32) -> Option<Process> {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
        Stat::parse(&text).filter(|stat| !stat.has_ended())?.process()
    }
}

/// A line of a `stat` file.
struct Stat<'a> {
    pid: &'a str,
    comm: &'a str,
    /// From the state on, which is field 3.
    rest: &'a str,
}

impl<'a> Stat<'a> {
    /// The name is in parentheses and may hold some itself.
    fn parse(text: &'a str) -> Option<Stat<'a>> {
        let (pid, rest) = text.split_once(" (")?;
        let (comm, rest) = rest.rsplit_once(") ")?;
        Some(Stat { pid, comm, rest })
    }

    fn field(&self, number: usize) -> Option<u64> {
        self.rest.split(' ').nth(number - 3)?.parse().ok()
    }

    fn has_ended(&self) -> bool {
        self.rest.starts_with(['Z', 'X'])
    }

    /// A program may go on when its first thread has ended.
    fn is_process_there(&self) -> bool {
        !self.has_ended() || self.field(20).is_some_and(|threads| threads > 1)
    }

    fn process(&self) -> Option<Process> {
        Some(Process {
            pid: self.pid.parse().ok()?,
            comm: self.comm.to_owned(),
            parent: self.field(4)? as u32,
            is_kernel: self.field(9)? & KERNEL_THREAD != 0,
            start: self.field(22)?,
            // In user mode and in the kernel.
            ran: self.field(14)?.saturating_add(self.field(15)?),
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
        let text = "42 (a) b (c) S 7 42 42 0 -1 4194304 0 0 0 0 30 12 0 0 20 0 1 0 9001 0 0";
        let process = Stat::parse(text).unwrap().process().unwrap();
        assert_eq!(
            process,
            Process { pid: 42, comm: "a) b (c".into(), parent: 7, is_kernel: false, start: 9001, ran: 42 }
        );
    }

    #[test]
    fn garbage_is_no_process() {
        for text in ["", "42", "42 (", "42 (x) S", "x (y) S 1"] {
            assert_eq!(Stat::parse(text).and_then(|stat| stat.process()), None, "{text:?}");
        }
    }

    #[test]
    fn a_process_that_has_ended_is_gone_though_nobody_has_waited_for_it() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        assert!(Process::read(pid).is_some());
        drop(child.stdin.take());
        let id = rustix::process::Pid::from_child(&child);
        let end = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(id), end).unwrap();
        assert!(processes().contains(&pid), "a zombie is still listed");
        assert_eq!((Process::read(pid), Process::read_thread(pid, pid)), (None, None));
        child.wait().unwrap();
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_there_as_long_as_others_go_on() {
        let is_there = |threads| {
            let text = format!("42 (x) Z 7 42 42 0 -1 64 0 0 0 0 0 0 0 0 20 0 {threads} 0 9 0 0");
            Stat::parse(&text).unwrap().is_process_there()
        };
        assert!(is_there(2) && !is_there(1));
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
