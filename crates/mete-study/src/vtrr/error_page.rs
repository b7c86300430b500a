//! The page, the plots and the data of the study `vtrr-error`.

use std::fmt::Write as _;

use mete_sim::metrics::Estimate;
use mete_sim::quanta::Point;

use super::error::{CHOSEN, CLIENTS, ErrorCell, TOTALS};
use crate::study::figure::{self, Figure};
use mete_measure::report::Report;
use mete_plot::{self as plot, Grid, Surface, short};

pub(super) fn files(
    report: &Report,
    figures: &[Figure],
    surfaces: &[ErrorCell],
    others: &[ErrorCell],
) -> Vec<(String, String)> {
    let file = |name: &str, text| (name.to_owned(), text);
    vec![
        file("README.md", page(report, figures, surfaces, others)),
        file("surfaces.csv", csv(report, surfaces)),
        file("policies.csv", csv(report, others)),
        file("vtrr-against-wrr.svg", pair(surfaces, ["wrr", "vtrr"])),
        file("vtrr-against-wfq.svg", pair(surfaces, ["wfq", "vtrr"])),
    ]
}

fn csv(report: &Report, cells: &[ErrorCell]) -> String {
    let mut text = format!("# {}\n# {}\n", report.title, report.machine.line());
    text.push_str("policy,clients,sum_of_shares,assignments,lowest_tu,lowest_ci95,lowest_of_all,");
    text.push_str("highest_tu,highest_ci95,highest_of_all,not_repeating\n");
    for cell in cells {
        let ErrorCell { policy, point, lowest, highest, worst, uneven } = cell;
        let interval =
            |estimate: &Estimate| estimate.half_width.map_or(String::new(), |half| format!("{half:.4}"));
        let _ = writeln!(
            text,
            "{policy},{},{},{},{:.4},{},{:.4},{:.4},{},{:.4},{uneven}",
            point.clients,
            point.total,
            lowest.samples,
            lowest.mean,
            interval(lowest),
            worst.0,
            highest.mean,
            interval(highest),
            worst.1,
        );
    }
    text
}

/// Two policies' surfaces beside each other, as in the paper: the highest error above, the lowest below.
fn pair(cells: &[ErrorCell], policies: [&str; 2]) -> String {
    let values = |values: &[u32]| values.iter().map(|&value| f64::from(value)).collect();
    let grid = Grid {
        x: ("number of clients".into(), values(&CLIENTS)),
        y: ("sum of shares".into(), values(&TOTALS)),
        z: "error, time units".into(),
    };
    let title =
        format!("{} and {}: service-time error", policies[0].to_uppercase(), policies[1].to_uppercase());
    plot::surfaces(
        &title,
        &grid,
        &policies.map(|policy| {
            let surface = |name: &str, value: fn(&ErrorCell) -> f64| Surface {
                name: name.into(),
                heights: heights(cells, policy, value),
            };
            let surfaces = vec![
                surface("lowest, mean", |cell| cell.lowest.mean),
                surface("highest, mean", |cell| cell.highest.mean),
            ];
            (format!("{} error range", policy.to_uppercase()), surfaces)
        }),
    )
}

fn heights(cells: &[ErrorCell], policy: &str, value: fn(&ErrorCell) -> f64) -> Vec<Vec<f64>> {
    CLIENTS
        .map(|clients| {
            let row = TOTALS.iter().filter_map(|&total| find(cells, policy, Point { clients, total }));
            row.map(value).collect()
        })
        .into()
}

fn find<'a>(cells: &'a [ErrorCell], policy: &str, point: Point) -> Option<&'a ErrorCell> {
    cells.iter().find(|cell| cell.policy == policy && cell.point == point)
}

/// The least number of orders of magnitude that counts as several: it is nearer to two than to one.
const ORDERS: f64 = 1.5;

/// The extremes of a policy's mean errors over all points, as the paper gives them.
fn range(cells: &[ErrorCell], policy: &str) -> Option<(f64, f64)> {
    let own = || cells.iter().filter(|cell| cell.policy == policy);
    own().next()?;
    let lowest = own().map(|cell| cell.lowest.mean).fold(f64::INFINITY, f64::min);
    let highest = own().map(|cell| cell.highest.mean).fold(f64::NEG_INFINITY, f64::max);
    Some((lowest, highest))
}

fn said((lowest, highest): (f64, f64)) -> String {
    format!("{} to {} TU", short(lowest), short(highest))
}

pub(super) fn figures(surfaces: &[ErrorCell], others: &[ErrorCell]) -> Vec<Figure> {
    const WRR: &str = "VTRR §5.1, VTRR and WRR, service-time error";
    const WFQ: &str = "VTRR §5.1, VTRR and WFQ, service-time error";
    const MUCH: &str = "VTRR's range of errors is orders of magnitude smaller than WRR's";
    const LITTLE: &str = "WFQ's range is smaller than VTRR's, by much less than VTRR's than WRR's";
    let ranges = (range(surfaces, "vtrr"), range(surfaces, "wrr"), range(surfaces, "wfq"));
    let (Some(vtrr), Some(wrr), Some(wfq)) = ranges else {
        let why = "stopped before it was simulated";
        return vec![Figure::missing(WRR, MUCH, why), Figure::missing(WFQ, LITTLE, why)];
    };
    let width = |(lowest, highest): (f64, f64)| highest - lowest;
    let times = width(wrr) / width(vtrr);
    let ours = |name: &str, other| format!("VTRR {}, {name} {}", said(vtrr), said(other));
    let mut figures = vec![
        Figure::new(
            WRR,
            MUCH,
            format!("{}: {} times", ours("WRR", wrr), short(times)),
            times.log10() >= ORDERS,
        ),
        Figure::new(
            WFQ,
            LITTLE,
            ours("WFQ", wfq),
            width(wfq) < width(vtrr) && width(vtrr) - width(wfq) < width(wrr) - width(vtrr),
        ),
    ];
    figures.push(never_behind(surfaces));
    figures.extend(bounded(others));
    figures
}

/// The bound of WFQ for a client that falls behind.
fn never_behind(surfaces: &[ErrorCell]) -> Figure {
    let own = surfaces.iter().filter(|cell| cell.policy == "wfq");
    let lowest = own.map(|cell| cell.worst.0).fold(0.0, f64::min);
    let paper = "WFQ never lets a client fall behind by more than one quantum";
    Figure::new("VTRR §2.3, WFQ's bound", paper, format!("{} TU at worst", short(lowest)), lowest >= -1.0)
}

/// The statement on WF²Q, which the paper simulated without a figure.
fn bounded(others: &[ErrorCell]) -> Option<Figure> {
    let of = |policy| find(others, policy, CHOSEN[1]);
    let (wf2q, wfq) = (of("wf2q+")?, of("wfq")?);
    let holds = wf2q.worst.0 >= -1.0 && wf2q.worst.1 <= 1.0;
    let ours = format!(
        "{} at worst; means {} beside WFQ's {}",
        said(wf2q.worst),
        said((wf2q.lowest.mean, wf2q.highest.mean)),
        said((wfq.lowest.mean, wfq.highest.mean))
    );
    let paper = "WF2Q's error stays within one quantum either way and is like WFQ's in practice";
    Some(Figure::new("VTRR §5.1, WF2Q", paper, ours, holds))
}

fn page(report: &Report, figures: &[Figure], surfaces: &[ErrorCell], others: &[ErrorCell]) -> String {
    let mut page = String::from("# How far proportional-share policies are from perfect fairness\n\n");
    let _ = writeln!(page, "Taken with `mete study vtrr-error`, {}.\n", report.machine.date);
    if !report.is_complete {
        page.push_str("The run was stopped before its end; what is missing here was not simulated.\n\n");
    }
    page.push_str(&figure::markdown(figures));
    page.push_str(&simulated(surfaces));
    page.push_str(&compared(surfaces));
    page.push_str("![](vtrr-against-wrr.svg)\n\n![](vtrr-against-wfq.svg)\n\n");
    page.push_str("## The other policies\n\n");
    page.push_str(&table(others));
    page.push_str(
        "Means over the assignments, in time units. A policy that ignores shares, rounds them or draws \
         lots does not come back to perfect fairness after a scheduling cycle: its errors are those of one cycle and \
         would grow in a longer one.\n\n\
         Every point of the surfaces: `surfaces.csv`; of this table: `policies.csv`.\n",
    );
    page
}

fn simulated(surfaces: &[ErrorCell]) -> String {
    let assignments = surfaces.first().map_or(0, |cell| cell.lowest.samples);
    format!(
        "Clients that are always ready share one processor in quanta of one time unit (TU). A client's error is \
         the time that it had, less its share of all time until then; for each random assignment of shares the \
         largest and the smallest error of any client at any moment of one scheduling cycle (as many quanta as there \
         are shares) is taken, exactly, in integers. A point of the surfaces is the mean over {assignments} \
         assignments. Shares are uniform random numbers scaled to the wanted sum, none below one; all policies meet \
         the same ones. The ranges of clients and of shares are ours, because the numbers in the \
         paper's figures were not at hand: what it says in words is compared.\n\n"
    )
}

fn compared(surfaces: &[ErrorCell]) -> String {
    let at = |policy, clients, total| {
        find(surfaces, policy, Point { clients, total })
            .map_or_else(|| "(not simulated)".into(), |cell| said((cell.lowest.mean, cell.highest.mean)))
    };
    let [few, many] = [CLIENTS[0], CLIENTS[CLIENTS.len() - 1]];
    let [low, high] = [TOTALS[0], TOTALS[TOTALS.len() - 1]];
    format!(
        "WRR's error is in proportion to the shares, because a client has all of its quanta in one go: with {few} \
         clients from {wrr_low} at {low} shares to {wrr_high} at {high}. VTRR's grows with them, too, but far less: \
         {vtrr_few_low} and {vtrr_few_high} there, {vtrr_low} and {vtrr_high} with {many} clients. Whenever VTRR turns \
         back it serves the head of its queue, whether that is behind or not; what holds the head back is the \
         time-counter invariant alone, which lets it run ahead as long as its counter is not below its \
         neighbour's. So the largest shares are ahead in the first part of a cycle, the more quanta the longer the \
         cycle is. WFQ with the same {many} clients and {high} shares has {wfq_high}, and pays for it with a sorted \
         queue that is touched at every decision. What that costs is in `../vtrr-cost`.\n\n",
        wrr_low = at("wrr", few, low),
        wrr_high = at("wrr", few, high),
        vtrr_few_low = at("vtrr", few, low),
        vtrr_few_high = at("vtrr", few, high),
        vtrr_low = at("vtrr", many, low),
        vtrr_high = at("vtrr", many, high),
        wfq_high = at("wfq", many, high),
    )
}

fn table(others: &[ErrorCell]) -> String {
    let mut text = String::from("| policy |");
    for Point { clients, total } in CHOSEN {
        let _ = write!(text, " {clients} clients, {total} shares: lowest | highest | repeats |");
    }
    text.push_str("\n|---|");
    CHOSEN.iter().for_each(|_| text.push_str("---:|---:|---|"));
    text.push('\n');
    let mut policies: Vec<&str> = others.iter().map(|cell| cell.policy).collect();
    policies.dedup();
    for policy in policies {
        let _ = write!(text, "| {policy} |");
        for cell in CHOSEN.iter().filter_map(|&point| find(others, policy, point)) {
            let repeats = if cell.uneven == 0 { "yes" } else { "no" };
            let _ = write!(text, " {} | {} | {repeats} |", short(cell.lowest.mean), short(cell.highest.mean));
        }
        text.push('\n');
    }
    text + "\n"
}
