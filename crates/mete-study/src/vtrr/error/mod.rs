//! Service-time errors over the number of clients and the sum of shares (VTRR paper, §5.1).

mod experiment;

use std::time::Instant;

use mete_base::progress::Progress;
use mete_bench::policy::surfaces::{CLIENTS, TOTALS};
use mete_measure::{Report, Row};
use mete_plot::{self as plot, Grid, Surface};
use mete_sim::all_processors;
use mete_sim::metrics::Estimate;
use mete_sim::quanta::Point;
use serde_json::{Value, json};

use self::experiment::{CHOSEN, ErrorCell, ErrorCells, PAPERS};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about, head};

/// The least number of orders of magnitude that counts as several: it is nearer to two than to one.
const ORDERS: f64 = 1.5;

pub(crate) struct ServiceErrors;

/// What was simulated; what was stopped is empty.
pub(crate) struct Found {
    /// The three policies of the paper's figures, at all points.
    surfaces: ErrorCells,
    /// Every policy at the points of [`CHOSEN`].
    others: ErrorCells,
}

impl Study for ServiceErrors {
    about!("vtrr-error", "how far VTRR, WRR and WFQ are from perfect fairness, over clients and shares");
    const IS_SIMULATED: bool = true;
    type Found = Found;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Found {
        let begin = Instant::now();
        let surfaces = experiment::surfaces(options, progress);
        let seconds = begin.elapsed().as_secs_f64();
        let others = experiment::all_policies(options, progress);
        match (&surfaces, &others) {
            (Ok(surfaces), Ok(others)) => report.rows.extend(rows(surfaces, seconds, others)),
            (Err(reason), _) | (_, Err(reason)) => {
                report.rows.push(Row::new("all errors", "TU", Err(reason.clone())));
            }
        }
        Found { surfaces: surfaces.unwrap_or_default(), others: others.unwrap_or_default() }
    }

    fn findings(Found { surfaces, others }: &Found) -> Findings {
        let [vtrr, wrr, wfq] = ["vtrr", "wrr", "wfq"].map(|policy| range(surfaces, policy));
        vec![
            ("wrr", vtrr.zip(wrr).map(|(vtrr, wrr)| against_wrr(vtrr, wrr))),
            ("wfq", against_wfq(vtrr, wrr, wfq)),
            ("bound", never_behind(surfaces)),
            ("wf2q", bounded(others)),
        ]
    }

    fn facts(Found { surfaces, others }: &Found) -> Value {
        // The means of the lowest and the highest error, in time units.
        let at = |policy, clients, total| surfaces.range_at(policy, Point { clients, total });
        let [few, many] = [CLIENTS[0], CLIENTS[CLIENTS.len() - 1]];
        let [low, high] = [TOTALS[0], TOTALS[TOTALS.len() - 1]];
        json!({
            "assignments": surfaces.cells.first().map_or(0, |cell| cell.lowest.samples),
            "few": few,
            "many": many,
            "low": low,
            "high": high,
            "wrr_few_low": at("wrr", few, low),
            "wrr_few_high": at("wrr", few, high),
            "vtrr_few_low": at("vtrr", few, low),
            "vtrr_few_high": at("vtrr", few, high),
            "vtrr_many_low": at("vtrr", many, low),
            "vtrr_many_high": at("vtrr", many, high),
            "wfq_many_high": at("wfq", many, high),
            "chosen": CHOSEN.map(|Point { clients, total }| json!({ "clients": clients, "shares": total })),
            "policies": others.policies().map(|name| policy_line(name, others)).collect::<Vec<_>>(),
        })
    }

    fn pictures(found: &Found) -> Vec<StudyFile> {
        vec![
            ("vtrr-against-wrr.svg".to_owned(), pair(&found.surfaces, ["wrr", "vtrr"])),
            ("vtrr-against-wfq.svg".to_owned(), pair(&found.surfaces, ["wfq", "vtrr"])),
        ]
    }

    fn data(found: &Found, report: &Report) -> Vec<StudyFile> {
        vec![
            ("surfaces.csv".to_owned(), csv(&found.surfaces, report)),
            ("policies.csv".to_owned(), csv(&found.others, report)),
        ]
    }
}

/// A policy's errors at the points of [`CHOSEN`].
fn policy_line(name: &str, others: &ErrorCells) -> Value {
    let cells = CHOSEN.iter().filter_map(|&point| others.find(name, point));
    let errors = cells.map(|cell| {
        json!({ "lowest_tu": cell.lowest.mean, "highest_tu": cell.highest.mean, "repeats": cell.uneven == 0 })
    });
    json!({ "name": name, "errors": errors.collect::<Vec<_>>() })
}

fn rows(surfaces: &ErrorCells, seconds: f64, others: &ErrorCells) -> Vec<Row> {
    let mut rows: Vec<Row> = PAPERS.iter().flat_map(|subject| surface_rows(surfaces, subject.name)).collect();
    rows.push(pace(surfaces.decisions, seconds));
    rows.extend(others.cells.iter().filter(|cell| cell.point == CHOSEN[1]).flat_map(chosen_rows));
    rows
}

/// The surfaces of a policy as two rows, whose samples are the points.
fn surface_rows(surfaces: &ErrorCells, policy: &'static str) -> [Row; 2] {
    let means = |mean: fn(&ErrorCell) -> f64| surfaces.of(policy).map(mean).collect();
    let lowest = means(|cell| cell.lowest.mean);
    let highest = means(|cell| cell.highest.mean);
    [("lowest", lowest), ("highest", highest)].map(|(what, means)| {
        Row::new(format!("{policy}: {what} error, over all points"), "TU", Ok(means))
            .note("each sample is the mean over a point's share assignments")
    })
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

fn csv(found: &ErrorCells, report: &Report) -> String {
    let lines = found.cells.iter().map(|cell| {
        let ErrorCell { policy, point: Point { clients, total }, lowest, highest, uneven, .. } = cell;
        let [low, high] = [lowest, highest].map(|of| format!("{:.4},{}", of.mean, interval(of)));
        let (least, most) = (cell.lowest_of_all, cell.highest_of_all);
        format!("{policy},{clients},{total},{},{low},{least:.4},{high},{most:.4},{uneven}\n", lowest.samples)
    });
    let heads = "policy,clients,sum_of_shares,assignments,lowest_tu,lowest_ci95,lowest_of_all,\
                 highest_tu,highest_ci95,highest_of_all,not_repeating\n";
    head(report) + heads + &lines.collect::<String>()
}

/// Half of the width of the interval of 95 %. Empty where there is one sample.
fn interval(estimate: &Estimate) -> String {
    estimate.half_width.map_or(String::new(), |half| format!("{half:.4}"))
}

/// The extremes of a policy's mean errors over all points, as the paper gives them.
fn range(surfaces: &ErrorCells, policy: &str) -> Option<[f64; 2]> {
    surfaces.of(policy).next()?;
    let lowest = surfaces.of(policy).map(|cell| cell.lowest.mean).fold(f64::INFINITY, f64::min);
    let highest = surfaces.of(policy).map(|cell| cell.highest.mean).fold(f64::NEG_INFINITY, f64::max);
    Some([lowest, highest])
}

fn width([lowest, highest]: [f64; 2]) -> f64 {
    highest - lowest
}

fn against_wrr(vtrr: [f64; 2], wrr: [f64; 2]) -> Finding {
    let times = width(wrr) / width(vtrr);
    Finding::new(json!({ "vtrr": vtrr, "wrr": wrr, "times": times }), times.log10() >= ORDERS)
}

fn against_wfq(vtrr: Option<[f64; 2]>, wrr: Option<[f64; 2]>, wfq: Option<[f64; 2]>) -> Option<Finding> {
    let (vtrr, wfq) = (vtrr?, wfq?);
    let wider = width(vtrr) - width(wfq);
    let holds = width(wfq) < width(vtrr) && wider < width(wrr?) - width(vtrr);
    Some(Finding::new(json!({ "vtrr": vtrr, "wfq": wfq }), holds))
}

/// The bound of WFQ for a client that falls behind.
fn never_behind(surfaces: &ErrorCells) -> Option<Finding> {
    let lowest = surfaces.of("wfq").map(|cell| cell.lowest_of_all).reduce(f64::min)?;
    Some(Finding::new(json!({ "lowest": lowest }), lowest >= -1.0))
}

/// The statement on WF²Q, which the paper simulated without a figure.
fn bounded(others: &ErrorCells) -> Option<Finding> {
    let [wf2q, wfq] = ["wf2q+", "wfq"].map(|policy| others.find(policy, CHOSEN[1]));
    let (wf2q, wfq) = (wf2q?, wfq?);
    let (lowest, highest) = (wf2q.lowest_of_all, wf2q.highest_of_all);
    let values = json!({
        "worst": [lowest, highest],
        "means": [wf2q.lowest.mean, wf2q.highest.mean],
        "wfq_means": [wfq.lowest.mean, wfq.highest.mean],
    });
    Some(Finding::new(values, lowest >= -1.0 && highest <= 1.0))
}

/// Two policies' surfaces beside each other, as in the paper. The highest error is above, the lowest below.
fn pair(found: &ErrorCells, policies: [&str; 2]) -> String {
    let grid = Grid {
        x: ("number of clients".into(), CLIENTS.map(f64::from).into()),
        y: ("sum of shares".into(), TOTALS.map(f64::from).into()),
        z: "error, time units".into(),
    };
    let [left, right] = policies.map(str::to_uppercase);
    let title = format!("{left} and {right}: service-time error");
    plot::surfaces(&title, &grid, &policies.map(|policy| panel(found, policy)))
}

fn panel(found: &ErrorCells, policy: &str) -> (String, Vec<Surface>) {
    let lowest = heights(found, policy, |cell| cell.lowest.mean);
    let highest = heights(found, policy, |cell| cell.highest.mean);
    let surfaces = [("lowest, mean", lowest), ("highest, mean", highest)]
        .map(|(name, heights)| Surface { name: name.into(), heights });
    (format!("{} error range", policy.to_uppercase()), surfaces.into())
}

fn heights(found: &ErrorCells, policy: &str, value: fn(&ErrorCell) -> f64) -> Vec<Vec<f64>> {
    let rows = CLIENTS.map(|clients| {
        let cells = TOTALS.iter().filter_map(move |&total| found.find(policy, Point { clients, total }));
        cells.map(value).collect()
    });
    rows.into()
}
