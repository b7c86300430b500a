//! Waits for locks, summarised.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use mete_bench::recording::Recorded;
use mete_trace::Symbols;

use crate::trace::{Wait, WaitKind, Waits};

/// The number of parts of the time that is watched. With nine samples or more, the interval of a median does
/// not end with the least and the greatest sample.
const PARTS: u32 = 10;
/// The number of locks that rows name.
const SHOWN: usize = 8;

/// One load over the degrees of parallelism.
pub(crate) struct Curve {
    pub load: &'static str,
    pub points: Vec<(usize, Waited)>,
}

impl Curve {
    /// The waits with one degree of parallelism. `None` if the run was stopped before.
    pub(super) fn at(&self, parallel: usize) -> Option<&Waited> {
        let (_, waited) = self.points.iter().find(|(at_once, _)| *at_once == parallel)?;
        Some(waited)
    }
}

/// The waits for locks while a load ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Waited {
    /// Percent of all processors' time that was spent spinning.
    pub spinning: f64,
    /// The same for each part of the time, which shows how sure the value is. Empty for a recorded trace.
    pub parts: Vec<f64>,
    /// Waits a second, spinning or not.
    pub waits: f64,
    /// Percent of all processors' time that was spent spinning, by lock.
    pub by_lock: BTreeMap<String, f64>,
    /// The nanoseconds of each wait that spun.
    pub spun_ns: Vec<f64>,
    /// Percent of all processors' time that other programs used just before the load started.
    pub others: f64,
    /// Events that the trace has lost.
    pub lost: u64,
}

/// The time that is watched, on this number of processors.
pub(super) struct Watched {
    /// The times of the waits' ends that count.
    pub when: RangeInclusive<u64>,
    pub passed: Duration,
    pub processors: usize,
}

impl Watched {
    /// The time of all processors in nanoseconds. It is a divisor, so it is not 0.
    fn all_ns(&self) -> f64 {
        (self.passed.as_nanos() as f64 * self.processors as f64).max(1.0)
    }
}

impl Waited {
    /// Summarises the waits that ended while they were watched.
    pub(super) fn of(recorded: &Recorded, watched: &Watched, symbols: &Symbols) -> Waited {
        let (mut waits, mut all) = (Waits::default(), Vec::new());
        recorded.each(|next| all.extend(waits.next(&next).filter(|wait| watched.when.contains(&wait.to_ns))));
        Waited { lost: recorded.lost(), parts: parts(&all, watched), ..sums(&all, watched, symbols) }
    }

    /// The locks on which tasks spun longest. The lock with the longest time comes first.
    pub(super) fn most(&self) -> Vec<(String, f64)> {
        let mut all: Vec<_> = self.by_lock.iter().map(|(name, percent)| (name.clone(), *percent)).collect();
        all.sort_by(|one, other| other.1.total_cmp(&one.1));
        all.truncate(SHOWN);
        all
    }
}

/// Percent of all processors' time that was spent spinning, for each part of the time.
fn parts(all: &[Wait], watched: &Watched) -> Vec<f64> {
    let from_ns = *watched.when.start();
    let part_ns = watched.passed.as_nanos() as f64 / f64::from(PARTS);
    let mut spun_ns = [0; PARTS as usize];
    for wait in all.iter().filter(|wait| wait.how == WaitKind::Spinning) {
        // A wait belongs to the part in which it ends; one that ends after the last part belongs to none.
        let nth = (wait.to_ns.saturating_sub(from_ns) as f64 / part_ns) as usize;
        if let Some(ns) = spun_ns.get_mut(nth) {
            *ns += wait.ns;
        }
    }
    spun_ns.map(|ns| 100.0 * ns as f64 / (part_ns * watched.processors as f64).max(1.0)).into()
}

fn sums(all: &[Wait], watched: &Watched, symbols: &Symbols) -> Waited {
    let time_ns = watched.all_ns();
    let mut by_lock = BTreeMap::<String, f64>::new();
    let spun: Vec<_> = all.iter().filter(|wait| wait.how == WaitKind::Spinning).collect();
    for wait in &spun {
        *by_lock.entry(name(wait, symbols)).or_default() += 100.0 * wait.ns as f64 / time_ns;
    }
    Waited {
        spinning: spun.iter().map(|wait| 100.0 * wait.ns as f64 / time_ns).sum(),
        waits: all.len() as f64 / watched.passed.as_secs_f64().max(1e-9),
        by_lock,
        spun_ns: spun.iter().map(|wait| wait.ns as f64).collect(),
        ..Waited::default()
    }
}

/// The kernel's name for a lock. For a lock in memory that the kernel has allocated, it is the kind of the
/// lock.
fn name(wait: &Wait, symbols: &Symbols) -> String {
    const PER_PROCESSOR: u32 = 16;
    const MUTEX: u32 = 32;
    const READ: u32 = 2;
    const WRITE: u32 = 4;
    match symbols.of(wait.lock) {
        Some(name) => name.to_owned(),
        None if wait.flags & MUTEX != 0 => "mutexes".to_owned(),
        None if wait.flags & PER_PROCESSOR != 0 => "locks of each processor".to_owned(),
        None if wait.flags & (READ | WRITE) != 0 => "reader-writer locks".to_owned(),
        None => "spinlocks".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched() -> Watched {
        Watched { when: 0..=u64::MAX, passed: Duration::from_micros(100), processors: 2 }
    }

    #[test]
    fn klog_9_spinning_is_told_as_part_of_all_processors_time_and_by_lock() {
        let wait = |lock, how, flags, ns| Wait { lock, how, flags, ns, to_ns: ns };
        let all = [
            wait(0xa, WaitKind::Spinning, 1, 2_000),
            wait(0xa, WaitKind::Spinning, 1, 3_000),
            wait(0xb, WaitKind::Spinning, 33, 5_000),
            wait(0xb, WaitKind::Sleeping, 32, 90_000),
        ];
        let found = sums(&all, &watched(), &Symbols::default());
        assert_eq!((found.spinning, found.waits), (5.0, 40_000.0));
        assert_eq!(found.most(), [("mutexes".to_owned(), 2.5), ("spinlocks".to_owned(), 2.5)]);
        assert_eq!(found.spun_ns, [2_000.0, 3_000.0, 5_000.0]);
    }

    #[test]
    fn klog_9_spinning_is_told_part_by_part_of_the_time() {
        let wait = |how, to_ns| Wait { lock: 0xa, how, flags: 1, ns: 2_000, to_ns };
        let all = [
            wait(WaitKind::Spinning, 1_000),
            wait(WaitKind::Spinning, 99_000),
            wait(WaitKind::Sleeping, 50_000),
        ];
        let found = parts(&all, &watched());
        assert_eq!((found.len(), found[0], found[9]), (10, 10.0, 10.0));
        assert!(found[1..9].iter().all(|&part| part == 0.0), "a task that sleeps uses no processor");
    }
}
