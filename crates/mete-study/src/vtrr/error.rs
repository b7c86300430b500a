//! Service-time errors over the number of clients and the sum of shares (VTRR paper, §5.1).

use std::ops::Range;
use std::time::Instant;

use mete_policy::{CATALOG, Setup, Vtrr, WeightedRoundRobin, Wfq};
use mete_sim::metrics::Estimate;
use mete_sim::quanta::{Experiment, Point, QuantaError, Tally};
use mete_sim::{all_processors, in_parallel};

use super::error_page;
use crate::study::{StudyOptions, StudyResults};
use mete_base::progress::{Progress, step_on};
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};

/// The grid of the surfaces. It is ours, because the numbers behind the paper's figures were not available.
pub(super) const CLIENTS: [u32; 10] = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
pub(super) const TOTALS: [u32; 8] = [2048, 4096, 6144, 8192, 10_240, 12_288, 14_336, 16_384];
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
struct Subject {
    name: &'static str,
    run: fn(&Experiment, Range<u32>) -> Result<Tally, QuantaError>,
}

/// The three policies of the paper's figures. Each is compiled into the loop that drives it.
const PAPERS: [Subject; 3] = [
    Subject { name: "vtrr", run: |at, which| at.run(which, Vtrr::new) },
    Subject { name: "wrr", run: |at, which| at.run(which, WeightedRoundRobin::new) },
    Subject { name: "wfq", run: |at, which| at.run(which, Wfq::new) },
];

/// The results of one policy at one point.
#[derive(Clone, Debug)]
pub(super) struct ErrorCell {
    pub policy: &'static str,
    pub point: Point,
    /// The lowest error of each assignment, over the assignments.
    pub lowest: Estimate,
    pub highest: Estimate,
    /// The lowest and the highest error of all assignments.
    pub worst: (f64, f64),
    /// The number of assignments whose schedule did not repeat after a scheduling cycle.
    pub uneven: u64,
}

pub(super) fn study(options: StudyOptions, progress: &mut dyn Progress) -> StudyResults {
    let mut report = Report::new("mete study vtrr-error");
    let begin = Instant::now();
    let of = |full| if options.is_quick { QUICK_ASSIGNMENTS } else { full };
    let surfaces = tried(&surface_jobs(of(ASSIGNMENTS)), progress);
    let seconds = begin.elapsed().as_secs_f64();
    let others = tried(&chosen_jobs(of(CHOSEN_ASSIGNMENTS)), progress);
    report.is_complete = !progress.is_cancelled();
    match (&surfaces, &others) {
        (Ok(surfaces), Ok(others)) => {
            report.rows.extend(rows(&surfaces.cells));
            report.rows.push(pace(surfaces.decisions, seconds));
            let shown = others.cells.iter().filter(|cell| cell.point == CHOSEN[1]);
            report.rows.extend(shown.flat_map(chosen_rows));
        }
        (Err(reason), _) | (_, Err(reason)) => {
            report.rows.push(Row::new("all errors", "TU", Err(reason.clone())));
        }
    }
    let [surfaces, others] = [surfaces, others].map(|found| found.map_or(Vec::new(), |found| found.cells));
    let figures = error_page::figures(&surfaces, &others);
    let files = error_page::files(&report, &figures, &surfaces, &others);
    StudyResults { folder: "vtrr-error", report, figures, files }
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
}

fn surface_jobs(assignments: u32) -> Vec<Job> {
    let points = CLIENTS.into_iter().flat_map(|clients| TOTALS.map(|total| Point { clients, total }));
    let points: Vec<_> = points.collect();
    let jobs = PAPERS.iter().flat_map(|subject| {
        points.iter().map(move |&point| {
            let run = Box::new(subject.run);
            Job { policy: subject.name, run, point, assignments }
        })
    });
    jobs.collect()
}

fn chosen_jobs(assignments: u32) -> Vec<Job> {
    let jobs = CATALOG.iter().flat_map(|entry| {
        CHOSEN.map(|point| {
            let run =
                Box::new(move |at: &Experiment, which| at.run(which, |setup: &Setup| (entry.make)(setup)));
            Job { policy: entry.name, run, point, assignments }
        })
    });
    jobs.collect()
}

struct ErrorSurfaces {
    cells: Vec<ErrorCell>,
    decisions: u64,
}

/// Runs all jobs on all processors, in blocks of assignments.
fn tried(jobs: &[Job], progress: &mut dyn Progress) -> Result<ErrorSurfaces, Reason> {
    let blocks: Vec<_> = jobs
        .iter()
        .enumerate()
        .flat_map(|(nth, job)| blocks(job.assignments).map(move |which| (nth, which)))
        .collect();
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
    let tallies = tallies.ok_or_else(stopped)?;
    let mut sums: Vec<Tally> = jobs.iter().map(|_| Tally::default()).collect();
    for ((job, _), tally) in blocks.iter().zip(tallies) {
        sums[*job].append(tally.map_err(Reason::from_error)?);
    }
    let decisions = sums.iter().map(|tally| tally.decisions).sum();
    let cells = jobs.iter().zip(&sums).map(|(job, tally)| cell(job.policy, job.point, tally));
    // A tally without any assignment has no estimate.
    let cells = cells.collect::<Option<_>>().ok_or_else(stopped)?;
    Ok(ErrorSurfaces { cells, decisions })
}

fn blocks(assignments: u32) -> impl Iterator<Item = Range<u32>> {
    (0..assignments).step_by(BLOCK as usize).map(move |from| from..(from + BLOCK).min(assignments))
}

fn cell(policy: &'static str, point: Point, tally: &Tally) -> Option<ErrorCell> {
    let worst = |errors: &[f64], pick: fn(f64, f64) -> f64| errors.iter().copied().fold(0.0, pick);
    Some(ErrorCell {
        policy,
        point,
        lowest: Estimate::of(&tally.lowest_tu)?,
        highest: Estimate::of(&tally.highest_tu)?,
        worst: (worst(&tally.lowest_tu, f64::min), worst(&tally.highest_tu, f64::max)),
        uneven: tally.uneven,
    })
}

/// The surfaces of each policy as two rows, whose samples are the points.
fn rows(cells: &[ErrorCell]) -> Vec<Row> {
    PAPERS
        .iter()
        .flat_map(|subject| {
            let own = || cells.iter().filter(|cell| cell.policy == subject.name);
            let lowest = own().map(|cell| cell.lowest.mean).collect();
            let highest = own().map(|cell| cell.highest.mean).collect();
            [("lowest", lowest), ("highest", highest)].map(|(what, means)| {
                Row::new(format!("{}: {what} error, over all points", subject.name), "TU", Ok(means))
                    .note("each sample is the mean over a point's share assignments")
            })
        })
        .collect()
}

fn pace(decisions: u64, seconds: f64) -> Row {
    Row::new("surfaces: decisions", "M/s", Ok(vec![decisions as f64 / seconds / 1e6]))
        .note("error bookkeeping and random shares included")
        .note(format!("{decisions} decisions on {} processors", all_processors()))
}

fn chosen_rows(cell: &ErrorCell) -> [Row; 2] {
    let Point { clients, total } = cell.point;
    [("lowest", cell.lowest.mean), ("highest", cell.highest.mean)].map(|(what, mean)| {
        let name = format!("{}, {clients} clients, {total} shares: {what} error", cell.policy);
        Row::new(name, "TU", Ok(vec![mean])).note("the mean over the share assignments")
    })
}
