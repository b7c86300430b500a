//! Random assignments of shares under each policy, on all processors.

use std::ops::Range;

use mete_base::progress::{Progress, step_on};
use mete_bench::policy::surfaces;
use mete_measure::Reason;
use mete_policy::{CATALOG, Setup, Vtrr, WeightedRoundRobin, Wfq};
use mete_sim::metrics::Estimate;
use mete_sim::quanta::{Experiment, Point, QuantaError, Tally};
use mete_sim::{all_processors, in_parallel};

use crate::study::StudyOptions;

/// Random share assignments of a point: the paper's "hundreds of thousands" over all of its points.
const ASSIGNMENTS: u32 = 2_000;
const QUICK_ASSIGNMENTS: u32 = 8;
/// The points at which every policy is tried. They have fewer assignments, because some policies are slow.
pub(super) const CHOSEN: [Point; 2] = [Point { clients: 10, total: 512 }, Point { clients: 50, total: 4096 }];
const CHOSEN_ASSIGNMENTS: u32 = 200;
/// Assignments of one job: few enough to balance the load of the processors.
const BLOCK: u32 = 20;
const SEED: u64 = 2001;

/// A policy that is tried.
#[derive(Clone, Copy)]
pub(super) struct Subject {
    pub name: &'static str,
    run: fn(&Experiment, Range<u32>) -> Result<Tally, QuantaError>,
}

/// The three policies of the paper's figures. Each is compiled into the loop that drives it.
pub(super) const PAPERS: [Subject; 3] = [
    Subject { name: "vtrr", run: |at, which| at.run(which, Vtrr::new) },
    Subject { name: "wrr", run: |at, which| at.run(which, WeightedRoundRobin::new) },
    Subject { name: "wfq", run: |at, which| at.run(which, Wfq::new) },
];

/// The results of one policy at one point.
#[derive(Clone, Debug)]
pub(crate) struct ErrorCell {
    pub policy: &'static str,
    pub point: Point,
    /// The lowest error of each assignment, over the assignments.
    pub lowest: Estimate,
    pub highest: Estimate,
    /// The lowest error of all assignments.
    pub lowest_of_all: f64,
    pub highest_of_all: f64,
    /// The number of assignments whose schedule did not repeat after a scheduling cycle.
    pub uneven: u64,
}

/// The results of several policies at several points.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorCells {
    pub cells: Vec<ErrorCell>,
    /// The number of decisions that were simulated.
    pub decisions: u64,
}

impl ErrorCells {
    /// The results of one policy.
    pub(super) fn of(&self, policy: &str) -> impl Iterator<Item = &ErrorCell> {
        self.cells.iter().filter(move |cell| cell.policy == policy)
    }

    pub(super) fn find(&self, policy: &str, point: Point) -> Option<&ErrorCell> {
        self.of(policy).find(|cell| cell.point == point)
    }

    /// The means of the lowest and the highest error of a policy at a point.
    pub(super) fn range_at(&self, policy: &str, point: Point) -> [Option<f64>; 2] {
        let cell = self.find(policy, point);
        [cell.map(|cell| cell.lowest.mean), cell.map(|cell| cell.highest.mean)]
    }

    /// The names of the policies, in the order of the cells.
    pub(super) fn policies(&self) -> impl Iterator<Item = &'static str> {
        self.cells.chunk_by(|one, next| one.policy == next.policy).map(|cells| cells[0].policy)
    }
}

/// Tries the policies of the paper's figures at all points of the surfaces.
pub(super) fn surfaces(options: StudyOptions, progress: &mut dyn Progress) -> Result<ErrorCells, Reason> {
    let assignments = assignments(ASSIGNMENTS, options);
    let jobs = PAPERS.iter().flat_map(|subject| {
        surfaces::points().map(move |point| Job {
            policy: subject.name,
            run: Box::new(subject.run),
            point,
            assignments,
        })
    });
    tried(&jobs.collect::<Vec<_>>(), progress)
}

/// Tries every policy at the chosen points.
pub(super) fn all_policies(options: StudyOptions, progress: &mut dyn Progress) -> Result<ErrorCells, Reason> {
    let assignments = assignments(CHOSEN_ASSIGNMENTS, options);
    let jobs = CATALOG.iter().flat_map(|entry| {
        CHOSEN.map(|point| Job {
            policy: entry.name,
            run: Box::new(move |at, which| at.run(which, |setup: &Setup| (entry.make)(setup))),
            point,
            assignments,
        })
    });
    tried(&jobs.collect::<Vec<_>>(), progress)
}

fn assignments(full: u32, options: StudyOptions) -> u32 {
    if options.is_quick { QUICK_ASSIGNMENTS } else { full }
}

/// Runs some assignments under one policy.
type Run = dyn Fn(&Experiment, Range<u32>) -> Result<Tally, QuantaError> + Sync;

/// A policy to try at a point.
struct Job {
    policy: &'static str,
    run: Box<Run>,
    point: Point,
    assignments: u32,
}

impl Job {
    /// Tries this range of the point's assignments.
    fn run(&self, which: Range<u32>) -> Result<Tally, QuantaError> {
        (self.run)(&Experiment { point: self.point, cycles: 1, seed: SEED }, which)
    }

    /// The ranges of assignments that are tried at once.
    fn blocks(&self) -> impl Iterator<Item = Range<u32>> {
        let end = self.assignments;
        (0..end).step_by(BLOCK as usize).map(move |from| from..(from + BLOCK).min(end))
    }

    /// What came out. A tally without any assignment has no estimate.
    fn cell(&self, tally: &Tally) -> Option<ErrorCell> {
        Some(ErrorCell {
            policy: self.policy,
            point: self.point,
            lowest: Estimate::of(&tally.lowest_tu)?,
            highest: Estimate::of(&tally.highest_tu)?,
            lowest_of_all: tally.lowest_tu.iter().copied().fold(0.0, f64::min),
            highest_of_all: tally.highest_tu.iter().copied().fold(0.0, f64::max),
            uneven: tally.uneven,
        })
    }
}

/// Runs all jobs on all processors, in blocks of assignments.
fn tried(jobs: &[Job], progress: &mut dyn Progress) -> Result<ErrorCells, Reason> {
    let blocks: Vec<_> =
        jobs.iter().enumerate().flat_map(|(nth, job)| job.blocks().map(move |which| (nth, which))).collect();
    progress.begin("service-time errors", blocks.len() as u64);
    let tallies = in_parallel(
        blocks.len(),
        all_processors(),
        |nth| {
            let (job, which) = &blocks[nth];
            jobs[*job].run(which.clone())
        },
        || step_on(progress),
    );
    let stopped = || Reason::new("stopped before it was simulated");
    let mut sums: Vec<Tally> = jobs.iter().map(|_| Tally::default()).collect();
    for ((job, _), tally) in blocks.iter().zip(tallies.ok_or_else(stopped)?) {
        sums[*job].append(tally.map_err(Reason::from_error)?);
    }
    let decisions = sums.iter().map(|tally| tally.decisions).sum();
    let cells: Option<_> = jobs.iter().zip(&sums).map(|(job, tally)| job.cell(tally)).collect();
    Ok(ErrorCells { cells: cells.ok_or_else(stopped)?, decisions })
}
