//! The case studies of the KLogger paper (KLOG-9): each records the kernel with a shipped schema while a program
//! runs, or reads a recorded trace, and compares the result with the paper's figure.

mod cdf;
mod locks;
mod loggers;
mod migrations;
mod noise;
mod of_trace;
mod quanta;
mod switch_cost;
mod timer;
mod workloads;

use std::time::{Duration, Instant};

use mete_base::progress::Progress;

use crate::study::StudyEntry;

pub(crate) const STUDIES: &[StudyEntry] = &[
    StudyEntry::of::<loggers::Loggers>(),
    StudyEntry::of::<locks::Locks>().with_trace(locks::of_trace),
    StudyEntry::of::<quanta::Quanta>().with_trace(quanta::of_trace),
    StudyEntry::of::<migrations::Migrations>().with_trace(migrations::of_trace),
    StudyEntry::of::<switch_cost::SwitchCost>().with_trace(switch_cost::of_trace),
    StudyEntry::of::<noise::Noise>().with_trace(noise::of_trace),
    StudyEntry::of::<timer::Timer>().with_trace(timer::of_trace),
];

/// Waits, unless the run is stopped. Returns how long it has waited.
fn pause(time: Duration, progress: &dyn Progress) -> Duration {
    const PIECE: Duration = Duration::from_millis(20);
    let begin = Instant::now();
    while begin.elapsed() < time && !progress.is_cancelled() {
        std::thread::sleep(PIECE.min(time.saturating_sub(begin.elapsed())));
    }
    begin.elapsed()
}
