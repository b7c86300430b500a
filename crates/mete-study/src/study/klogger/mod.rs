//! The case studies of the KLogger paper (KLOG-9): each records the kernel with a shipped schema while a program
//! runs, or reads a recorded trace, and compares the result with the paper's figure.

mod cdf;
mod locks;
mod locks_page;
mod loggers;
mod loggers_page;
mod migrations;
mod migrations_page;
mod network;
mod noise;
mod noise_page;
mod page;
mod player;
mod quanta;
mod quanta_page;
mod switch_cost;
mod switch_cost_page;
mod timer;
mod timer_page;
mod web;
mod workloads;

use std::time::{Duration, Instant};

pub(super) use locks::{of_trace as locks_of_trace, study as locks};
pub(super) use loggers::study as loggers;
pub(super) use loggers_page::drawn as loggers_plot;
pub(super) use migrations::{of_trace as migrations_of_trace, study as migrations};
pub(super) use noise::{of_trace as noise_of_trace, study as noise};
pub(super) use noise_page::drawn as noise_plots;
pub(super) use quanta::{of_trace as quanta_of_trace, study as quanta};
pub(super) use switch_cost::{of_trace as switch_cost_of_trace, study as switch_cost};
pub(super) use timer::{of_trace as timer_of_trace, study as timer};

use crate::progress::Progress;

/// Waits, unless the run is stopped. Returns how long it has waited.
fn pause(time: Duration, progress: &dyn Progress) -> Duration {
    const PIECE: Duration = Duration::from_millis(20);
    let begin = Instant::now();
    while begin.elapsed() < time && !progress.is_cancelled() {
        std::thread::sleep(PIECE.min(time.saturating_sub(begin.elapsed())));
    }
    begin.elapsed()
}
