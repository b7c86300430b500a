//! The case studies of the KLogger paper (KLOG-9): each records the kernel with a shipped schema while a
//! program runs, or reads a recorded trace, and compares the result with the paper's figure.

mod cdf;
pub(crate) mod locks;
pub(crate) mod loggers;
pub(crate) mod migrations;
pub(crate) mod noise;
mod of_trace;
pub(crate) mod quanta;
pub(crate) mod switch_cost;
pub(crate) mod timer;
mod workloads;

use std::time::{Duration, Instant};

use mete_base::progress::Progress;
use mete_bench::crew::now_ns;

/// The nanoseconds that work takes, by the fastest of some tries, which was not disturbed. Never 0, so that
/// it can be a divisor.
fn fastest_ns(work: impl Fn()) -> u64 {
    let tries = (0..50).map(|_| {
        let from_ns = now_ns();
        work();
        now_ns() - from_ns
    });
    tries.min().unwrap_or(1).max(1)
}

/// Waits, unless the run is stopped. Returns how long it has waited.
fn pause(time: Duration, progress: &dyn Progress) -> Duration {
    const PIECE: Duration = Duration::from_millis(20);
    let begin = Instant::now();
    while begin.elapsed() < time && !progress.is_cancelled() {
        std::thread::sleep(PIECE.min(time.saturating_sub(begin.elapsed())));
    }
    begin.elapsed()
}
