//! Which programs make up the domain "other", by processor time as `/proc` tells it.
//!
//! The log says how long processes in no domain have run, and not which processes these were. So they are
//! looked at from time to time. A process that starts and ends between two looks is missed, and times are
//! whole ticks of a hundredth of a second. The result is a hint at what should be a domain.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use crate::domains::process::{Process, shown};
use crate::domains::{Domains, OTHER};

/// Often enough to see what runs for a second.
const EVERY: Duration = Duration::from_millis(400);
/// At most this part of a processor goes into looking, however many processes there are.
const COSTS_AT_MOST: u32 = 500;
/// An idle process is looked at again after at most this many looks without it.
const MOST_LOOKS_SKIPPED: u8 = 15;

/// A program that is in no domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its processor time, in nanoseconds.
    pub ran_ns: u64,
}

/// The programs in "other". See the [module](self).
pub struct OtherPrograms {
    /// When counting began, in ticks since boot.
    began: u64,
    next: Instant,
    /// By process.
    seen: BTreeMap<u32, SeenProcess>,
    /// In ticks, by name.
    ran: BTreeMap<String, u64>,
}

/// A process at the last look at it.
#[derive(Clone, Copy)]
struct SeenProcess {
    /// When it began, in ticks since boot.
    start: u64,
    /// How long it had run, in ticks.
    ran: u64,
    /// How many of the next looks leave it out. Most processes do nothing for long, and what they run
    /// meanwhile shows at the next look.
    looks_to_skip: u8,
    /// How many looks were to leave it out after the last one that did not.
    looks_skipped: u8,
}

impl SeenProcess {
    /// Counts a look. Returns whether the process is read at it.
    fn count_look(&mut self) -> bool {
        let is_read = self.looks_to_skip == 0;
        self.looks_to_skip = self.looks_to_skip.saturating_sub(1);
        is_read
    }
}

impl OtherPrograms {
    /// Begins to count.
    pub fn new(domains: &Domains) -> OtherPrograms {
        let mut rest = OtherPrograms {
            began: ticks_since_boot(),
            next: Instant::now(),
            seen: BTreeMap::new(),
            ran: BTreeMap::new(),
        };
        rest.look(domains);
        rest
    }

    /// Looks, if a look is due.
    pub fn look_in_time(&mut self, domains: &Domains) {
        if Instant::now() >= self.next {
            self.look_at(domains, SeenProcess::count_look);
        }
    }

    /// Looks at all processes that were in no domain at the last scan.
    pub fn look(&mut self, domains: &Domains) {
        self.look_at(domains, |_| true);
    }

    fn look_at(&mut self, domains: &Domains, is_read: fn(&mut SeenProcess) -> bool) {
        let begin = Instant::now();
        for pid in domains.members(OTHER) {
            if self.seen.get_mut(&pid).is_none_or(is_read)
                && let Some(process) = Process::read(pid)
            {
                self.note(process);
            }
        }
        self.next = begin + EVERY.max(begin.elapsed() * COSTS_AT_MOST);
    }

    fn note(&mut self, process: Process) {
        let known = self.seen.get(&process.pid).filter(|seen| seen.start == process.start);
        let before = match known {
            Some(seen) => seen.ran,
            None if process.start >= self.began => 0,
            // It ran before, in another domain or unreadable.
            None => process.ran,
        };
        let used = process.ran.saturating_sub(before);
        let is_idle = known.is_some() && used == 0;
        let skipped = known.filter(|_| is_idle).map_or(0, |seen| seen.looks_skipped * 2 + 1);
        let looks = skipped.min(MOST_LOOKS_SKIPPED);
        let (start, ran) = (process.start, process.ran);
        let seen = SeenProcess { start, ran, looks_to_skip: looks, looks_skipped: looks };
        self.seen.insert(process.pid, seen);
        if used > 0 {
            *self.ran.entry(program(process)).or_default() += used;
        }
    }

    /// All programs that used a tick or more, the largest first.
    pub fn largest(&self) -> Vec<Program> {
        let tick_ns = 1_000_000_000 / clock_ticks_per_second().max(1);
        let program =
            |(name, ticks): (&String, &u64)| Program { name: name.clone(), ran_ns: ticks * tick_ns };
        let mut programs: Vec<_> = self.ran.iter().map(program).collect();
        programs.sort_by_key(|program| std::cmp::Reverse(program.ran_ns));
        programs
    }
}

/// The kernel's threads of one kind count as one program: `kworker/0:1` is `kworker`.
fn program(process: Process) -> String {
    let mut name = shown(&process.comm);
    let end = name.find('/').filter(|_| process.is_kernel).unwrap_or(name.len());
    name.truncate(end);
    name
}

fn ticks_since_boot() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let per_second = clock_ticks_per_second();
    now.tv_sec as u64 * per_second + now.tv_nsec as u64 * per_second / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn log_13_a_process_that_does_nothing_is_looked_at_less_often_and_nothing_it_does_is_missed() {
        let mut rest =
            OtherPrograms { began: 1000, next: Instant::now(), seen: BTreeMap::new(), ran: BTreeMap::new() };
        let process =
            |ran| Process { pid: 1, comm: "x".into(), parent: 1, group: 1, is_kernel: false, start: 10, ran };
        let looks = |rest: &mut OtherPrograms, ran: u64, times: usize| {
            (0..times)
                .filter(|_| {
                    let is_read = rest.seen.get_mut(&1).is_none_or(SeenProcess::count_look);
                    is_read.then(|| rest.note(process(ran))).is_some()
                })
                .count()
        };
        assert_eq!(looks(&mut rest, 500, 100), 5 + 5, "at 1, 2, 4, 8, 16, and each 16th from there");
        assert!((0..16).any(|_| looks(&mut rest, 507, 1) == 1), "it is looked at in the end");
        assert_eq!(looks(&mut rest, 509, 1), 1, "whatever did something is looked at next time");
        assert_eq!(rest.ran, BTreeMap::from([("x".into(), 9)]));
    }

    #[test]
    fn log_13_only_what_ran_while_it_was_counted_counts() {
        let mut rest =
            OtherPrograms { began: 1000, next: Instant::now(), seen: BTreeMap::new(), ran: BTreeMap::new() };
        let process = |pid, comm: &str, start, ran| Process {
            pid,
            comm: comm.into(),
            parent: 1,
            group: 1,
            is_kernel: comm.contains('/'),
            start,
            ran,
        };
        // A process that ran before, two that began meanwhile with the same number, and two threads of the
        // kernel.
        rest.note(process(1, "old", 10, 500));
        rest.note(process(1, "old", 10, 530));
        rest.note(process(2, "new", 1200, 70));
        rest.note(process(2, "new", 1300, 5));
        rest.note(process(3, "kworker/0:1", 1400, 1));
        rest.note(process(4, "kworker/1:0", 1400, 2));
        let expected = BTreeMap::from([("old".into(), 30), ("new".into(), 75), ("kworker".into(), 3)]);
        assert_eq!(rest.ran, expected);
        // The kernel has cut this name within a letter.
        let cut = OsString::from_vec("сериализ".as_bytes()[..15].to_vec());
        rest.note(Process { comm: cut, ..process(5, "", 1500, 100) });
        assert_eq!(rest.largest()[0].name, "сериали\\xd0");
        rest.ran.retain(|name, _| name.is_ascii());
        let names: Vec<_> = rest.largest().into_iter().map(|program| program.name).collect();
        assert_eq!(names, ["new", "old", "kworker"]);
    }
}
