//! The page and the plot of the study `quanta`.

use std::fmt::Write as _;

use super::cdf;
use super::page;
use super::quanta::Quanta;
use super::workloads::{COMPUTATION, MAKE};
use crate::study::figure::Figure;
use crate::study::{StudyResults, missing};
use mete_measure::report::Report;
use mete_plot::{self as plot, Axis, Series, short};

/// The limit of a short quantum: a thousandth of the maximum quantum in the paper (§9.1).
pub(super) const SHORT_US: f64 = 100.0;
/// The paper's maximum quantum.
const PAPERS_QUANTUM_US: f64 = 100_000.0;
const FIGURE: &str = "KLogger fig. 5";

pub(super) fn study(report: Report, all: &[Quanta]) -> StudyResults {
    let figures = figures(all, report.is_complete);
    let text = format!("{MEASURED}{}", compared(all));
    let page = page::of("Effective quanta", &report, &figures, &text, &["quanta.svg"]);
    let files = [vec![("README.md".to_owned(), page + &table(all))], files(all)].concat();
    StudyResults { folder: "quanta", report, figures, files }
}

/// The page of a recorded trace. It has no figure of the paper, because the trace can be of any program.
pub(super) fn of_trace(report: Report, all: &[Quanta]) -> StudyResults {
    let files = files(all);
    StudyResults { folder: "quanta", report, figures: Vec::new(), files }
}

fn files(all: &[Quanta]) -> Vec<(String, String)> {
    let series: Vec<Series> = all.iter().map(|quanta| quanta.us.series(&quanta.name)).collect();
    let across = Axis { label: "effective quantum, us".into(), is_logarithmic: true };
    let up = Axis { label: "percent of quanta that are not longer".into(), is_logarithmic: false };
    let plot = plot::lines("How long programs keep the processor", &across, &up, &series);
    vec![("quanta.svg".to_owned(), plot), ("distribution.csv".to_owned(), cdf::csv(&series, "us"))]
}

/// The figures have no verdict on a program that shared the processors with others, because the others ended its
/// quanta.
fn figures(all: &[Quanta], is_complete: bool) -> Vec<Figure> {
    let of = |name: &str| all.iter().find(|quanta| quanta.name == name);
    let busy = |name: &str| of(name).map_or(0.0, |quanta| quanta.others);
    let others = all.iter().filter(|quanta| quanta.name != MAKE && quanta.name != COMPUTATION);
    let others = others.map(|quanta| quanta.others).fold(0.0, f64::max);
    vec![
        page::unless_busy(interactive(all, is_complete), others),
        page::unless_busy(make(of(MAKE), is_complete), busy(MAKE)),
        page::unless_busy(computation(of(COMPUTATION), is_complete), busy(COMPUTATION)),
    ]
}

/// The statement on all programs except make and the computation.
fn interactive(all: &[Quanta], is_complete: bool) -> Figure {
    let paper = "some 90 % of the quanta of players, networking and disk utilities are shorter than 100 us";
    let others = all.iter().filter(|quanta| quanta.name != MAKE && quanta.name != COMPUTATION);
    let parts: Vec<_> = others.filter_map(|of| Some((&of.name, of.us.part_below(SHORT_US)?))).collect();
    if parts.is_empty() {
        return Figure::missing(FIGURE, paper, missing(is_complete));
    }
    let ours = parts.iter().map(|(name, part)| format!("{name} {} %", short(100.0 * part)));
    let holds = parts.iter().all(|(_, part)| *part >= 0.85);
    Figure::new(FIGURE, paper, ours.collect::<Vec<_>>().join(", "), holds)
}

fn make(make: Option<&Quanta>, is_complete: bool) -> Figure {
    let paper = "the 90th percentile of a compilation's quanta is 1 ms, a hundredth of the maximum";
    match make.and_then(|quanta| quanta.us.quantile(0.9)) {
        Some(us) => Figure::new(FIGURE, paper, format!("{} us", short(us)), (500.0..=2_000.0).contains(&us)),
        None => Figure::missing(FIGURE, paper, missing(is_complete)),
    }
}

fn computation(computation: Option<&Quanta>, is_complete: bool) -> Figure {
    let paper =
        "even pure computation keeps the processor for the maximum of 100 ms in 40 % of its quanta only";
    match computation.and_then(|quanta| Some((&quanta.us, quanta.us.part_below(PAPERS_QUANTUM_US)?))) {
        Some((us, part)) => {
            let median = us.quantile(0.5).unwrap_or_default() / 1e3;
            let ours = format!(
                "{} % last 100 ms or longer; median {} ms",
                short(100.0 * (1.0 - part)),
                short(median)
            );
            Figure::new(FIGURE, paper, ours, part >= 0.5)
        }
        None => Figure::missing(FIGURE, paper, missing(is_complete)),
    }
}

const MEASURED: &str = "\
Each program runs by itself, in a session of its own, and the scheduler's SCHEDOUT and SCHEDIN are recorded meanwhile on \
all processors. An effective quantum is the time from SCHEDIN to the next SCHEDOUT on that processor, of the program \
and of all that it starts, its threads among them; quanta that began before or ended behind the recording are left out, and one that nobody but the recorder's own threads \
interrupts counts as one. \
The paper's programs were Xine and MPlayer, wget, cp and find, the build of a kernel, and a loop of additions; here they \
are those in the table, beside whatever else this machine does at the time.\n\n";

fn compared(all: &[Quanta]) -> String {
    let said = |name: &str, part: f64| {
        let quanta = all.iter().find(|quanta| quanta.name == name);
        let us = quanta.and_then(|quanta| quanta.us.quantile(part));
        us.map_or_else(|| "(not measured)".to_owned(), |us| format!("{} us", short(us)))
    };
    format!(
        "The kernel of the paper, 2.6.9, had a maximum quantum of 100 ms, after which it looked whether somebody else was \
         to run. Today's kernels have no such number: whoever is alone on a processor keeps it, and only where several \
         compete a slice of some milliseconds counts. What the figure says of programs that wait for something most of \
         the time does not depend on that: they leave the processor by themselves long before anybody would take it \
         away. The median quantum of a compilation is {make_half}, nine in ten are shorter than {make}; of the \
         computation it is {computation_half}, where what ends a quantum is somebody else's wake-up, as in the paper: its \
         rate, and so this number, is that of the machine's other work.\n\n",
        make_half = said(MAKE, 0.5),
        make = said(MAKE, 0.9),
        computation_half = said(COMPUTATION, 0.5),
    )
}

fn table(all: &[Quanta]) -> String {
    let mut text = String::from(
        "\n| program | quanta | median, us | 90 %, us | 99 %, us | longest, us | below 100 us | preempted | others had, % |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for Quanta { name, us, preempted, others, .. } in all {
        let below =
            us.part_below(SHORT_US).map(|part| format!("{} %", short(100.0 * part))).unwrap_or_default();
        let count = us.values().len();
        let [half, nine, rare, most] =
            [0.5, 0.9, 0.99, 1.0].map(|part| us.quantile(part).map(short).unwrap_or_default());
        let others = short(*others);
        let _ = writeln!(
            text,
            "| {name} | {count} | {half} | {nine} | {rare} | {most} | {below} | {preempted} | {others} |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::cdf::Distribution;
    use super::*;
    use crate::study::figure::Verdict;

    fn quanta(name: &str, us: &[f64]) -> Quanta {
        Quanta {
            name: name.to_owned(),
            us: Distribution::of(us.to_vec()),
            preempted: 0,
            others: 0.0,
            lost: 0,
        }
    }

    #[test]
    fn klog_9_quanta_as_in_the_paper_agree_and_others_differ() {
        let papers = [
            quanta("find", &[10.0, 20.0, 90.0]),
            quanta(MAKE, &[1_000.0, 1_000.0]),
            quanta(COMPUTATION, &[50_000.0, 60_000.0, 100_000.0]),
        ];
        let verdicts = |all: &[Quanta]| figures(all, true).iter().map(|f| f.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts(&papers), [Verdict::Agrees; 3]);
        let others =
            [quanta("find", &[200.0]), quanta(MAKE, &[9.0]), quanta(COMPUTATION, &[100_000.0, 200_000.0])];
        assert_eq!(verdicts(&others), [Verdict::Differs; 3]);
        assert_eq!(verdicts(&[]), [Verdict::NotMeasured; 3]);
    }
}
