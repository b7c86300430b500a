//! Kills of a program and its keepers in any order, for the tests of what keepers undo.
//!
//! `METE_KILLS` is the number of runs. `METE_KILLS_LONGEST_GAP_MS` is the longest time between two kills.
//! `METE_KILLS_AT_ONCE` is the number of runs that go on at the same time. `METE_KILLS_GRACE_MS` is the time
//! that a keeper that was just being started has for undoing, before what is there counts as left. What is
//! undone is the same on every machine; how long it takes is not tested. `scripts/vm/kills.sh` runs the long
//! version.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything takes on a busy, emulated machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A program that has changed something, with its keepers.
pub trait Victim: Sized {
    /// What is used by several runs: for example the processes that the program changes.
    type Place;

    /// How many runs may go on at the same time, unless something else is asked for.
    const AT_ONCE: u64 = 4;

    /// What the runs of one thread use.
    fn place() -> Self::Place;

    /// Starts the program. When this returns, something is changed.
    fn start(place: &mut Self::Place) -> Self;

    /// The program, a child of this process.
    fn main(&self) -> u32;

    /// The beginning or end of a word that only the keepers of this program have among their arguments.
    fn mark(&self) -> String;

    /// Whether nothing that the program changed is left.
    fn is_undone(&self, place: &Self::Place) -> bool;

    /// Undoes what is left, as the next start of the program does.
    fn recover(&self, place: &Self::Place);

    /// Removes what is documented to stay if all three are killed while one of them undoes, and nothing else.
    /// Returns whether there was anything.
    fn remove_traces(&self, place: &Self::Place) -> bool;

    /// Waits for the program's end.
    fn bury(self);
}

/// How the runs went.
#[derive(Debug, Default)]
pub struct Tally {
    pub runs: AtomicUsize,
    pub kills: AtomicUsize,
    /// Runs in which all were killed before any of them could undo anything, so that the next start did.
    pub by_next_start: AtomicUsize,
    /// Those of these runs in which something was left that no next start knows of.
    pub traces: AtomicUsize,
}

/// The target of a kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Main,
    /// The keeper with this number among those that are there, in the order in which they are found.
    Keeper(usize),
    Keepers,
}

/// Makes as many runs as asked for, and reports how they went.
pub fn kill_in_any_order<V: Victim>(name: &str) {
    let (runs, at_once) = (number("METE_KILLS", 30), number("METE_KILLS_AT_ONCE", V::AT_ONCE));
    let longest = Duration::from_millis(number("METE_KILLS_LONGEST_GAP_MS", 200));
    let seed =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let (tally, next) = (Tally::default(), AtomicUsize::new(0));
    thread::scope(|scope| {
        for worker in 0..at_once.max(1) {
            let (tally, next) = (&tally, &next);
            scope.spawn(move || {
                let mut random = Random(seed.wrapping_add(worker.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1);
                let mut place = V::place();
                while next.fetch_add(1, Ordering::Relaxed) < runs as usize {
                    run::<V>(&mut place, &mut random, longest, tally);
                }
            });
        }
    });
    println!("{name}: {tally:?}, gaps of 0 to {longest:?}");
    assert_eq!(tally.runs.into_inner() as u64, runs);
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn run<V: Victim>(place: &mut V::Place, random: &mut Random, longest: Duration, tally: &Tally) {
    let victim = V::start(place);
    let plan = random.plan(longest);
    for (target, gap) in &plan {
        thread::sleep(*gap);
        let pids = match target {
            Target::Main => vec![victim.main()],
            Target::Keepers => keepers(&victim.mark()),
            Target::Keeper(nth) => keepers(&victim.mark()).into_iter().skip(*nth).take(1).collect(),
        };
        tally.kills.fetch_add(pids.len(), Ordering::Relaxed);
        pids.into_iter().for_each(kill);
    }
    let begin = Instant::now();
    // The keepers first, because they undo before they end. Only those that were found are looked at until
    // they have ended: to look at all processes is expensive.
    let mark = victim.mark();
    let mut present = keepers(&mark);
    while !present.is_empty() {
        while present.iter().any(|pid| is_keeper(*pid, &mark)) {
            wait(begin, &plan, "its keepers end");
        }
        present = keepers(&mark);
    }
    // A keeper that was just being started does not look like one yet.
    let last = Instant::now() + Duration::from_millis(number("METE_KILLS_GRACE_MS", 5000));
    while !victim.is_undone(place) && Instant::now() < last {
        wait(begin, &plan, "a late keeper is done");
    }
    if !victim.is_undone(place) {
        // One keeper is enough to undo everything, so this can only happen if all were killed.
        let has_all = plan.iter().any(|(target, _)| *target == Target::Keepers) || plan.len() > 2;
        assert!(has_all, "left by {plan:?}");
        victim.recover(place);
        tally.by_next_start.fetch_add(1, Ordering::Relaxed);
    }
    let last = Instant::now() + Duration::from_millis(number("METE_KILLS_GRACE_MS", 5000));
    while !victim.is_undone(place) {
        if Instant::now() >= last && victim.remove_traces(place) {
            tally.traces.fetch_add(1, Ordering::Relaxed);
        }
        // The next start in another run may be undoing it.
        wait(begin, &plan, "the next start is done");
    }
    victim.bury();
    tally.runs.fetch_add(1, Ordering::Relaxed);
    progress(tally);
}

/// Prints a line now and then, for runs that take hours.
fn progress(tally: &Tally) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.get_or_insert_with(Instant::now).elapsed() > Duration::from_secs(20) {
        *last = Some(Instant::now());
        eprintln!("so far: {tally:?}");
    }
}

/// Waits, and looks less often the longer it takes: many runs that look would leave no processor to the
/// keepers.
fn wait(begin: Instant, plan: &[(Target, Duration)], what: &str) {
    let waited = begin.elapsed();
    assert!(waited < PATIENCE, "did not happen in time: {what}: {plan:?}");
    thread::sleep((waited / 8).clamp(Duration::from_millis(2), Duration::from_millis(250)));
}

/// The processes that have such a word among their arguments, and have not ended.
pub fn keepers(mark: &str) -> Vec<u32> {
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    pids.filter(|pid| is_keeper(*pid, mark)).collect()
}

/// Whether a process is such a keeper. A process that has ended has no arguments any more.
fn is_keeper(pid: u32, mark: &str) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = arguments.split(|byte| *byte == 0).skip(1);
    words.next().is_some_and(|word| word.starts_with(b"--")) && words.any(|word| is_marked(word, mark))
}

fn is_marked(word: &[u8], mark: &str) -> bool {
    word.windows(mark.len()).any(|part| part == mark.as_bytes())
}

fn kill(pid: u32) {
    // SAFETY: no memory is passed. The process is a child that was not waited for, or was found under its
    // number a moment ago.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// A pause: none at all for one of three. The other pauses are spread evenly over the orders of
    /// magnitude, from a tenth of a millisecond to the longest.
    fn gap(&mut self, longest: Duration) -> Duration {
        let shortest = Duration::from_micros(100);
        if self.below(3) == 0 || longest <= shortest {
            return Duration::ZERO;
        }
        let span = (longest.as_secs_f64() / shortest.as_secs_f64()).ln();
        shortest.mul_f64((span * self.below(1 << 20) as f64 / (1u64 << 20) as f64).exp())
    }

    /// A plan in which the program is killed, and some of its keepers before or after it.
    fn plan(&mut self, longest: Duration) -> Vec<(Target, Duration)> {
        let others: &[Target] = match self.below(6) {
            0 => &[],
            1 => &[Target::Keepers],
            2 => &[Target::Keepers, Target::Keepers],
            _ => &[Target::Keeper(self.below(3) as usize), Target::Keeper(self.below(3) as usize)]
                [..1 + self.below(2) as usize],
        };
        let mut targets = others.to_vec();
        targets.insert(self.below(targets.len() as u64 + 1) as usize, Target::Main);
        targets.into_iter().map(|target| (target, self.gap(longest))).collect()
    }
}
