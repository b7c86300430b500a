//! What waiting for the kernel's locks costs, against parallelism (KLogger paper, §8, figures 2 to 4).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use super::network::Network;
use super::web::Server;
use super::workloads::{self, Started};
use super::{locks_page, page, pause};
use crate::study::{StudyOptions, StudyResults};
use crate::trace::{LOCKING, Wait, WaitKind, Waits};
use mete_base::progress::Progress;
use mete_bench::busy::Busy;
use mete_bench::crew::now_ns;
use mete_bench::load::Load;
use mete_bench::realtime::Realtime;
use mete_bench::recording::{Recorded, Session};
use mete_bench::scratch::Scratch;
use mete_measure::processor;
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_trace::Symbols;

/// The paper's degrees of parallelism.
const PARALLEL: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// How long each degree is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_millis(1_000), Duration::from_millis(300)];
/// How long the use by other programs is watched before a load starts.
const BEFORE: Duration = Duration::from_millis(200);
/// The number of parts of that time. With nine samples or more, the interval of a median does not end with the least
/// and the greatest sample.
const PARTS: u32 = 10;
/// How long a load runs before it is watched.
const WARM: Duration = Duration::from_millis(200);
/// The longest time for which this thread has a real-time priority.
const LIMIT: Duration = Duration::from_secs(10);
/// The number of locks that a table names.
const SHOWN: usize = 8;

/// The waits for locks while a load ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Waited {
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

/// One load over the degrees of parallelism.
pub(super) struct Curve {
    pub load: &'static str,
    pub points: Vec<(usize, Waited)>,
}

/// A load that runs until it is dropped.
enum Running {
    Make { _started: Started, _scratch: Scratch },
    Network { _pairs: Network },
    Web { _clients: Load, _server: Server },
}

type Start = fn(usize) -> Result<Running, Reason>;

/// The paper's three loads: make, Netperf, a web server.
const LOADS: [(&str, Start); 3] = [("make", make), ("network", network), ("web server", web)];

fn make(jobs: usize) -> Result<Running, Reason> {
    let scratch = Scratch::new()?;
    let started = workloads::compile(scratch.path(), jobs)?;
    Ok(Running::Make { _started: started, _scratch: scratch })
}

fn network(pairs: usize) -> Result<Running, Reason> {
    Ok(Running::Network { _pairs: Network::start(pairs)? })
}

fn web(clients: usize) -> Result<Running, Reason> {
    let server = Server::start(processor::allowed().len())?;
    Ok(Running::Web { _clients: server.clients(clients)?, _server: server })
}

pub(crate) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new("mete study locks");
    let (mut curves, symbols) = (Vec::new(), Symbols::of_kernel());
    let time = WATCHED[usize::from(options.is_quick)];
    for (load, start) in LOADS {
        let mut points = Vec::new();
        progress.begin(load, PARALLEL.len() as u64);
        for parallel in PARALLEL {
            if progress.is_cancelled() {
                break;
            }
            let waited = measure(start, parallel, time, &symbols, progress);
            let name = format!("{load}, {parallel} at once");
            report.rows.extend(rows(&name, load, &waited));
            // A load that fails with one degree would fail with the higher ones, too.
            let Ok(waited) = waited else { break };
            let others =
                Row::new(format!("{name}: others' share before"), "percent", Ok(vec![waited.others]));
            report.rows.push(others.note("of all processors"));
            points.push((parallel, waited));
            progress.step();
        }
        curves.push(Curve { load, points });
    }
    report.is_complete = !progress.is_cancelled();
    locks_page::study(report, &curves)
}

fn measure(
    start: Start,
    parallel: usize,
    time: Duration,
    symbols: &Symbols,
    progress: &dyn Progress,
) -> Result<Waited, Reason> {
    // A load whose processes wake each other tens of thousands of times a second can make other sessions of a fair
    // kernel wait. This thread needs the priority to end in time, and sleeps nearly always. Where it may not have the
    // priority, the measurement ends late.
    let _urgent = Realtime::begin(LIMIT).ok();
    // The recording is prepared before the load starts, because its threads have no such priority.
    let session = Session::begin("locking", &LOCKING)?;
    let others = busy(progress)?;
    let running = start(parallel)?;
    pause(WARM, progress);
    let from_ns = now_ns();
    let passed = pause(time, progress);
    let to_ns = now_ns();
    // The load runs until recording has ended, so that its end is not measured.
    let recorded = session.end()?;
    drop(running);
    let waited = waited(&recorded, (from_ns..=to_ns, passed), processor::allowed().len(), symbols);
    Ok(Waited { others, ..waited })
}

/// Percent of all processors' time that is used while no load of this study runs. The use beside a load is not
/// measured: for that, each switch would have to be recorded, which would change the result.
fn busy(progress: &dyn Progress) -> Result<f64, Reason> {
    let before = Busy::now()?;
    pause(BEFORE, progress);
    Ok(Busy::now()?.percent_since(before))
}

/// The study of a recorded trace.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs("locking", &LOCKING)?;
    let passed = Duration::from_nanos(recorded.duration_ns());
    let all = 0..=u64::MAX;
    let waited = waited(&recorded, (all, passed), recorded.processors(), &Symbols::of_kernel());
    let mut report = Report::new(format!("mete study locks --trace {}", directory.display()));
    report.rows.extend(rows("locks", "locks", &Ok(waited.clone())));
    for (lock, percent) in most(&waited) {
        report.rows.push(Row::new(format!("locks: spinning on {lock}"), "percent", Ok(vec![percent])));
    }
    Ok(locks_page::of_trace(report))
}

/// Summarises the waits that ended in a span of time.
fn waited(
    recorded: &Recorded,
    (when, passed): (RangeInclusive<u64>, Duration),
    processors: usize,
    symbols: &Symbols,
) -> Waited {
    let (mut waits, mut all) = (Waits::default(), Vec::new());
    recorded.each(|next| all.extend(waits.next(&next).filter(|wait| when.contains(&wait.to_ns))));
    let parts = parts(&all, *when.start(), passed, processors);
    Waited { lost: recorded.lost(), parts, ..sums(&all, passed, processors, symbols) }
}

/// Percent of all processors' time that was spent spinning, for each part of the time from `from_ns` on.
fn parts(all: &[Wait], from_ns: u64, passed: Duration, processors: usize) -> Vec<f64> {
    let part_ns = passed.as_nanos() as f64 / f64::from(PARTS);
    let mut spun_ns = [0; PARTS as usize];
    for wait in all.iter().filter(|wait| wait.how == WaitKind::Spinning) {
        // A wait belongs to the part in which it ends; one that ends after the last part belongs to none.
        let nth = (wait.to_ns.saturating_sub(from_ns) as f64 / part_ns) as usize;
        if let Some(ns) = spun_ns.get_mut(nth) {
            *ns += wait.ns;
        }
    }
    spun_ns.map(|ns| 100.0 * ns as f64 / (part_ns * processors as f64).max(1.0)).into()
}

fn sums(all: &[Wait], passed: Duration, processors: usize, symbols: &Symbols) -> Waited {
    let time_ns = (passed.as_nanos() as f64 * processors as f64).max(1.0);
    let mut by_lock = BTreeMap::<String, f64>::new();
    let spun: Vec<_> = all.iter().filter(|wait| wait.how == WaitKind::Spinning).collect();
    for wait in &spun {
        *by_lock.entry(name(wait, symbols)).or_default() += 100.0 * wait.ns as f64 / time_ns;
    }
    Waited {
        spinning: spun.iter().map(|wait| 100.0 * wait.ns as f64 / time_ns).sum(),
        waits: all.len() as f64 / passed.as_secs_f64().max(1e-9),
        parts: Vec::new(),
        by_lock,
        spun_ns: spun.iter().map(|wait| wait.ns as f64).collect(),
        others: 0.0,
        lost: 0,
    }
}

/// The kernel's name for a lock. For a lock in memory that the kernel has allocated, it is the kind of the lock.
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

/// The locks on which tasks spun longest.
pub(super) fn most(waited: &Waited) -> Vec<(String, f64)> {
    let mut all: Vec<_> = waited.by_lock.iter().map(|(name, percent)| (name.clone(), *percent)).collect();
    // The lock with the longest time comes first.
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    all.truncate(SHOWN);
    all
}

fn rows(name: &str, load: &str, waited: &Result<Waited, Reason>) -> Vec<Row> {
    let waited = match waited {
        Ok(waited) => waited,
        Err(reason) => return vec![Row::new(format!("{load}: all rows"), "percent", Err(reason.clone()))],
    };
    let one = |what: &str, unit, value| Row::new(format!("{name}: {what}"), unit, Ok(vec![value]));
    let mut rows = vec![
        one("spinning on locks", "percent", waited.spinning)
            .note("of all processors' time")
            .note(page::loss(waited.lost)),
        one("waits for locks", "1/s", waited.waits).note("spinning and sleeping"),
    ];
    if !waited.spun_ns.is_empty() {
        rows.push(Row::new(format!("{name}: a wait that spins"), "ns", Ok(waited.spun_ns.clone())));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_spinning_is_told_as_part_of_all_processors_time_and_by_lock() {
        let wait = |lock, how, flags, ns| Wait { lock, how, flags, ns, to_ns: ns };
        let all = [
            wait(0xa, WaitKind::Spinning, 1, 2_000),
            wait(0xa, WaitKind::Spinning, 1, 3_000),
            wait(0xb, WaitKind::Spinning, 33, 5_000),
            wait(0xb, WaitKind::Sleeping, 32, 90_000),
        ];
        let found = sums(&all, Duration::from_micros(100), 2, &Symbols::default());
        assert_eq!((found.spinning, found.waits), (5.0, 40_000.0));
        assert_eq!(most(&found), [("mutexes".to_owned(), 2.5), ("spinlocks".to_owned(), 2.5)]);
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
        let found = parts(&all, 0, Duration::from_micros(100), 2);
        assert_eq!((found.len(), found[0], found[9]), (10, 10.0, 10.0));
        assert!(found[1..9].iter().all(|&part| part == 0.0), "who sleeps uses no processor");
    }

    #[test]
    fn klog_9_a_load_that_is_missing_is_one_row_that_says_so() {
        let rows = rows("web server, 1 at once", "web server", &Err(Reason::new("nginx is not installed")));
        assert_eq!((rows.len(), rows[0].note.as_str()), (1, "nginx is not installed"));
    }
}
