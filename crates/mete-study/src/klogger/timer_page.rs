//! The page and the plot of the study `timer`.

use std::fs;

use super::timer::Costs;
use super::{cdf, page};
use crate::study::figure::Figure;
use crate::study::{StudyResults, missing};
use mete_measure::report::Report;
use mete_plot::{self as plot, Axis, Series, short};

const FIGURE: &str = "KLogger fig. 11";

pub(super) fn study(report: Report, costs: Option<&Costs>) -> StudyResults {
    let figures = vec![figure(costs, report.is_complete)];
    let text = format!("{MEASURED}{}", compared(costs));
    let page = page::of("The timer interrupt", &report, &figures, &text, &["timer.svg"]);
    let files = [vec![("README.md".to_owned(), page)], costs.map(files).unwrap_or_default()].concat();
    StudyResults { folder: "timer", report, figures, files }
}

pub(super) fn of_trace(report: Report, costs: &Costs) -> StudyResults {
    StudyResults { folder: "timer", report, figures: Vec::new(), files: files(costs) }
}

fn files(costs: &Costs) -> Vec<(String, String)> {
    let curves = [
        ("handler", &costs.handler),
        ("soft interrupts behind it", &costs.soft),
        ("program away", &costs.away),
    ];
    let series: Vec<Series> = curves.map(|(name, of)| of.series(name)).into();
    let across = Axis { label: "ns".into(), is_logarithmic: true };
    let up = Axis { label: "percent that take no longer".into(), is_logarithmic: false };
    let plot = plot::lines("What a timer interrupt takes", &across, &up, &series);
    vec![("timer.svg".to_owned(), plot), ("distribution.csv".to_owned(), cdf::csv(&series, "ns"))]
}

/// Percent of a busy processor's time that ticks take.
pub(super) fn share(costs: &Costs) -> Vec<f64> {
    let away = costs.away.quantile(0.5);
    away.map(|ns| 100.0 * ns * costs.rate / 1e9).into_iter().collect()
}

fn figure(costs: Option<&Costs>, is_complete: bool) -> Figure {
    let paper = "where the processor's counter tells the time, the handler reads the 8253 chip at every interrupt, and \
                 its microseconds stay the same over generations of processors";
    let Some(half) = costs.and_then(|costs| costs.handler.quantile(0.5)) else {
        return Figure::missing(FIGURE, paper, missing(is_complete));
    };
    let source = clock_source();
    Figure::missing(
        FIGURE,
        paper,
        format!(
            "{} ns, with the clock source {source}: one processor says nothing of generations",
            short(half)
        ),
    )
}

fn clock_source() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let text = fs::read_to_string(path).unwrap_or_default();
    if text.is_empty() { "unknown".to_owned() } else { text.trim().to_owned() }
}

const MEASURED: &str = "\
On every processor a program does nothing but read the clock, so that it knows when it was away, and the interrupt \
schema records the beginnings and ends of the timer's handler and of soft interrupts with the same clock. The table has \
the handler by itself, what follows it at once, and for how long the program was away where exactly one timer interrupt \
lies in between and nobody else ran; the difference is the way into the kernel and back, what the caches lost, and what the recording of two \
to some ten events costs, a tenth of a microsecond each.\n\n";

fn compared(costs: Option<&Costs>) -> String {
    let said = |of: fn(&Costs) -> &cdf::Distribution| {
        let ns = costs.and_then(|costs| of(costs).quantile(0.5));
        ns.map_or_else(|| "(not measured)".to_owned(), |ns| format!("{} ns", short(ns)))
    };
    let rate = costs.map_or_else(|| "(not measured)".to_owned(), |costs| short(costs.rate));
    let share = costs.and_then(|costs| share(costs).first().copied());
    let share = share.map_or_else(|| "(not measured)".to_owned(), |share| format!("{} %", short(share)));
    format!(
        "The paper's figure compares two ways of keeping time over several generations of processors, and its numbers \
         are in the picture alone. What can be held beside it is one point: the handler takes {handler} here, the \
         program misses {away} a tick with all that belongs to it, at {rate} interrupts a second \
         {share} of a busy processor. The reason for the paper's figure is gone: the timer is the processor's own, no \
         handler reads a chip of the PC any more, and in a virtual machine what costs most may be the hypervisor's part of \
         a timer that is set anew, which lies within these times and is not told apart. Cycles and cache misses cannot be \
         counted on machines without performance counters; the clock is used instead.\n\n",
        handler = said(|costs| &costs.handler),
        away = said(|costs| &costs.away),
    )
}
