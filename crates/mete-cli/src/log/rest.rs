//! Who makes up the domain "other": its programs by processor time, as `/proc` tells.
//!
//! The log says how long whoever is in no domain has run, and not who that was. So its processes are
//! looked at from time to time. Who comes and goes between two looks is missed, and times are whole
//! ticks, of which there are a hundred a second: it is a hint at what should be a domain.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mete_sched::domains::process::Process;
use mete_sched::domains::{Domains, OTHER};
use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use crate::report::Program;

/// Often enough to see what runs for a second.
const EVERY: Duration = Duration::from_millis(400);
/// At most this part of a processor goes into looking, however many processes there are.
const COSTS_AT_MOST: u32 = 500;

/// The programs in "other". See the [module](self).
pub struct Rest {
    /// When it began, in ticks since boot.
    began: u64,
    next: Instant,
    /// By process: when it began and how long it had run, in ticks.
    seen: BTreeMap<u32, (u64, u64)>,
    /// In ticks, by name.
    ran: BTreeMap<String, u64>,
}

impl Rest {
    /// Begins to count.
    pub fn new(domains: &Domains) -> Rest {
        let mut rest = Rest {
            began: ticks_since_boot(),
            next: Instant::now(),
            seen: BTreeMap::new(),
            ran: BTreeMap::new(),
        };
        rest.look(domains);
        rest
    }

    /// Looks, if it is time to.
    pub fn look_in_time(&mut self, domains: &Domains) {
        if Instant::now() >= self.next {
            self.look(domains);
        }
    }

    /// Looks at all who were in no domain at the last scan.
    pub fn look(&mut self, domains: &Domains) {
        let begin = Instant::now();
        for process in domains.members(OTHER).filter_map(Process::read) {
            self.note(process);
        }
        self.next = begin + EVERY.max(begin.elapsed() * COSTS_AT_MOST);
    }

    fn note(&mut self, process: Process) {
        let before = self.seen.insert(process.pid, (process.start, process.ran));
        let before = match before.filter(|(start, _)| *start == process.start) {
            Some((_, ran)) => ran,
            None if process.start >= self.began => 0,
            // It was there before, in another domain or not to be read.
            None => process.ran,
        };
        let used = process.ran.saturating_sub(before);
        if used > 0 {
            *self.ran.entry(program(process)).or_default() += used;
        }
    }

    /// All that used a tick or more, the largest first.
    pub fn largest(&self) -> Vec<Program> {
        let tick_ns = 1_000_000_000 / clock_ticks_per_second().max(1);
        let program =
            |(name, ticks): (&String, &u64)| Program { name: name.clone(), ran_ns: ticks * tick_ns };
        let mut programs: Vec<_> = self.ran.iter().map(program).collect();
        programs.sort_by_key(|program| std::cmp::Reverse(program.ran_ns));
        programs
    }
}

/// The kernel's threads of one kind are one program: `kworker/0:1`.
fn program(process: Process) -> String {
    let end = process.comm.find('/').filter(|_| process.is_kernel).unwrap_or(process.comm.len());
    process.comm[..end].to_owned()
}

fn ticks_since_boot() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let per_second = clock_ticks_per_second();
    now.tv_sec as u64 * per_second + now.tv_nsec as u64 * per_second / 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_13_only_what_ran_while_it_was_counted_counts() {
        let mut rest =
            Rest { began: 1000, next: Instant::now(), seen: BTreeMap::new(), ran: BTreeMap::new() };
        let process = |pid, comm: &str, start, ran| Process {
            pid,
            comm: comm.into(),
            parent: 1,
            is_kernel: comm.contains('/'),
            start,
            ran,
        };
        // There before; begun meanwhile; the number given out again; threads of the kernel.
        rest.note(process(1, "old", 10, 500));
        rest.note(process(1, "old", 10, 530));
        rest.note(process(2, "new", 1200, 70));
        rest.note(process(2, "new", 1300, 5));
        rest.note(process(3, "kworker/0:1", 1400, 1));
        rest.note(process(4, "kworker/1:0", 1400, 2));
        let expected = BTreeMap::from([("old".into(), 30), ("new".into(), 75), ("kworker".into(), 3)]);
        assert_eq!(rest.ran, expected);
        let names: Vec<_> = rest.largest().into_iter().map(|program| program.name).collect();
        assert_eq!(names, ["new", "old", "kworker"]);
    }
}
