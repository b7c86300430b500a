//! Independent runs on all processors, with results in the order of the runs.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Runs jobs 0 to `jobs` on this number of threads, and returns their results in the order of the jobs. The
/// calling thread runs no job: it calls `done` after each that has ended. If `done` says
/// [`ControlFlow::Break`], no further job is begun, and the result is `None`.
///
/// ```
/// use std::{num::NonZeroUsize, ops::ControlFlow};
///
/// let threads = NonZeroUsize::new(2).unwrap();
/// let squares = mete_sim::in_parallel(4, threads, |job| job * job, || ControlFlow::Continue(()));
/// assert_eq!(squares, Some(vec![0, 1, 4, 9]));
/// ```
pub fn in_parallel<T: Send>(
    jobs: usize,
    threads: NonZeroUsize,
    run: impl Fn(usize) -> T + Sync,
    mut done: impl FnMut() -> ControlFlow<()>,
) -> Option<Vec<T>> {
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    // It grows with the results, because it is not known whether all jobs will be done.
    let mut found: Vec<Option<T>> = Vec::new();
    thread::scope(|scope| {
        for _ in 0..threads.get().min(jobs) {
            let (sender, next, run) = (sender.clone(), &next, &run);
            scope.spawn(move || work(next, jobs, run, &sender));
        }
        // Only the workers hold senders now, so the loop ends when the last of them returns.
        drop(sender);
        for (job, result) in results {
            found.resize_with(found.len().max(job + 1), || None);
            found[job] = Some(result);
            if done().is_break() {
                next.store(jobs, Ordering::Relaxed);
                break;
            }
        }
    });
    // After a break, results may be missing at the end and in between.
    if found.len() == jobs { found.into_iter().collect() } else { None }
}

/// Takes one job after another until none is left, or until the results have no receiver.
fn work<T>(next: &AtomicUsize, jobs: usize, run: impl Fn(usize) -> T, results: &mpsc::Sender<(usize, T)>) {
    loop {
        // Relaxed: the number is the only thing that the threads share by it.
        let job = next.fetch_add(1, Ordering::Relaxed);
        if job >= jobs || results.send((job, run(job))).is_err() {
            return;
        }
    }
}

/// How many threads the machine has processors for.
pub fn all_processors() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
