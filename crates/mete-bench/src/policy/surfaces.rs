//! How fast service-time errors are simulated over the number of clients and the sum of shares.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use mete_measure::reason::Reason;
use mete_policy::{Vtrr, WeightedRoundRobin, Wfq};
use mete_sim::quanta::{Experiment, Point, QuantaError, Tally};
use mete_sim::{all_processors, in_parallel};

/// The numbers of clients at the points of the surfaces. Numbers and sums are ours, because the numbers
/// behind the paper's figures were not available.
pub const CLIENTS: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
/// The sums of shares at the points of the surfaces.
pub const TOTALS: [u32; 8] = [2048, 4096, 6144, 8192, 10_240, 12_288, 14_336, 16_384];
/// Random share assignments of a point.
const ASSIGNMENTS: u32 = 5;
const SEED: u64 = 2001;

type Run = fn(&Experiment, Range<u32>) -> Result<Tally, QuantaError>;

/// The three policies of the paper's figures. Each is compiled into the loop that drives it.
const RUNS: [Run; 3] = [
    |at, which| at.run(which, Vtrr::new),
    |at, which| at.run(which, WeightedRoundRobin::new),
    |at, which| at.run(which, Wfq::new),
];

/// The points of the surfaces.
pub fn points() -> impl Iterator<Item = Point> {
    CLIENTS.into_iter().flat_map(|clients| TOTALS.map(|total| Point { clients, total }))
}

/// Simulates a few assignments of every point under every policy, on all processors.
pub(super) fn decisions_a_second() -> Result<f64, Reason> {
    let jobs: Vec<(Run, Point)> =
        RUNS.iter().flat_map(|&run| points().map(move |point| (run, point))).collect();
    let begin = Instant::now();
    let tallies = in_parallel(
        jobs.len(),
        all_processors(),
        |nth| {
            let (run, point) = jobs[nth];
            run(&Experiment { point, cycles: 1, seed: SEED }, 0..ASSIGNMENTS)
        },
        || ControlFlow::Continue(()),
    );
    let mut decisions = 0;
    for tally in tallies.unwrap_or_default() {
        decisions += tally.map_err(Reason::from_error)?.decisions;
    }
    Ok(decisions as f64 / begin.elapsed().as_secs_f64())
}
