//! The loop whose iterations are timed.

use std::hint::black_box;
use std::time::Duration;

use mete_bench::crew::now_ns;
use mete_bench::realtime::Realtime;
use mete_measure::Reason;

use crate::klogger::fastest_ns;

/// The time that an undisturbed iteration takes.
pub(super) const AIM_NS: u64 = 1_000_000;
/// Iterations without a pause. They take a fifth of a second; then other tasks may run.
pub(super) const STRETCH: usize = 200;
/// The limit of the watchdog: five times the time of an undisturbed stretch.
const LIMIT: Duration = Duration::from_secs(1);

/// One iteration, in times of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Iteration {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// Runs one stretch of iterations at a real-time priority. Stops early if they take too long in total.
pub(super) fn stretch(turns: u64, iterations: &mut Vec<Iteration>) -> Result<(), Reason> {
    // Each stretch has a guard of its own: between stretches this thread is an ordinary one.
    let _realtime = Realtime::begin(LIMIT)?;
    let end = now_ns() + LIMIT.as_nanos() as u64;
    for _ in 0..STRETCH {
        let from_ns = now_ns();
        count(turns);
        let to_ns = now_ns();
        // The vector has room for all iterations, so this does not allocate.
        iterations.push(Iteration { from_ns, to_ns });
        if to_ns > end {
            break;
        }
    }
    Ok(())
}

/// The paper's loop. Each turn reads a number from the stack, adds one, and writes it back.
#[inline(never)]
fn count(turns: u64) {
    let mut index = 0u64;
    while index < turns {
        index = black_box(index).wrapping_add(1);
        black_box(&mut index);
    }
}

/// The number of turns of the loop that take [`AIM_NS`] without disturbance.
pub(super) fn calibrate() -> u64 {
    const TURNS: u64 = 100_000;
    (TURNS * AIM_NS / fastest_ns(|| count(TURNS))).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_a_stretch_of_the_loop_has_its_end() {
        let mut iterations = Vec::new();
        match stretch(1, &mut iterations) {
            Ok(()) => assert_eq!(iterations.len(), STRETCH),
            Err(reason) => println!("SKIPPED: {reason}"),
        }
    }
}
