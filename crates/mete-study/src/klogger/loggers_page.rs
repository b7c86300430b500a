//! The page and the plot of the study `loggers`.

use std::fmt::Write as _;

use super::loggers::SHOWN;
use super::page;
use crate::study::figure::Figure;
use crate::study::{StudyResults, missing};
use mete_measure::report::{Report, Row};
use mete_plot::{self as plot, Axis, short};

const TABLE: &str = "KLogger table 1";
/// The paper's results, in cycles at 2.8 GHz.
const PAPERS: [(&str, f64); 4] =
    [("KLogger", 321.0), ("LTT", 1844.0), ("printk", 4250.0), ("hardware trap", 392.0)];
const PAPERS_GHZ: f64 = 2.8;
/// The name of the logger that the kernel's loggers are compared with.
const OURS: &str = "mete, kernel";

pub(super) fn study(report: Report, noisy: &[&str]) -> StudyResults {
    let figures = figures(&report, noisy);
    let text = format!("{MEASURED}{}", compared(&report));
    let page = page::of("Loggers side by side", &report, &figures, &text, &["loggers.svg"]) + &table(&report);
    let files = vec![("README.md".to_owned(), page), ("loggers.svg".to_owned(), plot(&report))];
    StudyResults { folder: "loggers", report, figures, files }
}

fn row<'a>(report: &'a Report, name: &str) -> Option<&'a Row> {
    report.rows.iter().find(|row| row.name == name)
}

fn median(report: &Report, name: &str) -> Option<f64> {
    row(report, name)?.median
}

fn plot(report: &Report) -> String {
    drawn(|name| {
        let row = row(report, name)?;
        Some([row.median?, row.q1?, row.q3?])
    })
}

/// The plot from the median and the quartiles of each row.
pub(crate) fn drawn(of: impl Fn(&str) -> Option<[f64; 3]>) -> String {
    let all: Vec<_> = SHOWN
        .iter()
        .filter_map(|(_, _, name)| Some(((*name).to_owned(), of(&format!("{name}: an event"))?)))
        .collect();
    let names: Vec<_> = all.iter().map(|(name, _)| name.clone()).collect();
    let values = all.iter().map(|(_, [median, ..])| *median).collect();
    let quartiles = all.iter().map(|(_, [_, q1, q3])| (*q1 > 0.0).then_some((*q1, *q3))).collect();
    let y = Axis { label: "ns an event, median and quartiles".into(), is_logarithmic: true };
    let series = [("an event".to_owned(), values)];
    plot::bars_with_intervals("What an event costs", &y, &names, &series, &[quartiles])
}

fn figures(report: &Report, noisy: &[&str]) -> Vec<Figure> {
    let why = missing(report.is_complete);
    let of = |name: &str, paper: &str, holds: fn(f64) -> bool| match median(
        report,
        &format!("{name}: times ours"),
    ) {
        Some(times) => {
            Figure::new(TABLE, paper, format!("{name}: {} times ours", short(times)), holds(times))
                .unless_noisy(noisy.contains(&name) || noisy.contains(&OURS))
        }
        None => Figure::missing(
            TABLE,
            paper,
            row(report, &format!("{name}: an event")).map_or(why, |row| &row.note),
        ),
    };
    let tracers = "the kernel's tracer (LTT) costs more than five times as much";
    vec![
        of("printk", "printk costs more than ten times as much", |times| times > 10.0),
        of("ftrace", tracers, |times| times > 5.0),
        of("perf", tracers, |times| times > 5.0),
        Figure::missing(
            TABLE,
            "LTT itself",
            row(report, "LTTng, kernel: an event").map_or(why, |row| &row.note),
        ),
        Figure::missing(
            TABLE,
            "an event leaves 6.55 misses in the first cache, LTT's 69, printk's 227",
            "needs hardware performance counters",
        ),
    ]
}

const MEASURED: &str = "\
An event with two numbers, as in the paper's table, with every logger that is installed here, in turn, again and again, \
against the same without it. In the kernel the event is a system call that does next to nothing, at raw_syscalls:sys_enter; \
any use of this tracepoint switches all system calls to a slower entry, which is taken off by taking that entry without a \
logger, too. Of each repetition the median of fifteen pieces counts (the paper left out the worst thousandth). printk is \
reached from a program by /dev/kmsg, whose limit on what programs may write is lifted meanwhile and put back. Programs that \
log their own events, ours and LTTng-UST's, are measured in loops.\n\n";

fn compared(report: &Report) -> String {
    let said = |name: &str| {
        let ns = median(report, &format!("{name}: an event"));
        ns.map_or_else(|| "(not measured)".to_owned(), |ns| format!("{} ns", short(ns)))
    };
    let papers = PAPERS.map(|(name, cycles)| format!("{name} {cycles} ({} ns)", short(cycles / PAPERS_GHZ)));
    format!(
        "The paper's cycles, on a Pentium IV of 2.8 GHz: {papers}. Its KLogger and LTT were compiled into the kernel at the \
         place of the event; here everything is attached to a tracepoint at run time, and the dispatch to a program there, \
         which no logger can do without, is most of what ours costs: `mete bench --only kernel` has it by itself. Ours costs \
         {ours} an event in the kernel, ftrace {ftrace}, perf {perf}, bpftrace {bpftrace}, a line of the kernel's log {printk}; \
         in programs ours {own}, LTTng-UST {lttng}. The indirect costs, the paper's cache misses, cannot be counted where \
         there are no performance counters.\n\n",
        papers = papers.join(", "),
        ours = said("mete, kernel"),
        ftrace = said("ftrace"),
        perf = said("perf"),
        bpftrace = said("bpftrace"),
        printk = said("printk"),
        own = said("mete, program"),
        lttng = said("LTTng-UST"),
    )
}

fn table(report: &Report) -> String {
    let mut text =
        String::from("\n| logger | ns an event | quartiles | times ours | |\n|---|---:|---:|---:|---|\n");
    for (_, _, name) in SHOWN {
        let Some(row) = row(report, &format!("{name}: an event")) else { continue };
        let ns = row.median.map(short).unwrap_or_default();
        let quartiles = row.q1.zip(row.q3).map(|(q1, q3)| format!("{}–{}", short(q1), short(q3)));
        let times = median(report, &format!("{name}: times ours")).map(short).unwrap_or_default();
        let quartiles = quartiles.unwrap_or_default();
        let _ = writeln!(text, "| {name} | {ns} | {quartiles} | {times} | {} |", row.note);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::figure::Verdict;
    use mete_measure::reason::Reason;

    #[test]
    fn klog_9_loggers_as_in_the_paper_agree_and_what_is_absent_is_named() {
        let mut report = Report::new("mete study loggers");
        let mut add =
            |name: &str, value: Result<Vec<f64>, Reason>| report.rows.push(Row::new(name, "ratio", value));
        add("printk: times ours", Ok(vec![13.2]));
        add("ftrace: times ours", Ok(vec![2.0]));
        add("perf: an event", Err(Reason::new("perf is not here")));
        let found = figures(&report, &[]);
        let verdicts: Vec<_> = found.iter().map(|figure| figure.verdict).collect();
        use Verdict::{Agrees, Differs, NotMeasured};
        assert_eq!(verdicts, [Agrees, Differs, NotMeasured, NotMeasured, NotMeasured]);
        assert_eq!(found[2].ours, "perf is not here");
        let noisy = figures(&report, &["printk"]);
        assert_eq!((noisy[0].verdict, noisy[1].verdict), (Verdict::TooNoisy, Differs));
    }
}
