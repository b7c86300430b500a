//! The common parts of these studies' pages.

use std::fmt::Write as _;

use crate::study::figure::{self, Figure, Verdict};
use mete_measure::report::Report;
use mete_plot::short;

/// A page: its title, the paper's statements beside our results, the text, and the plots.
pub fn of(title: &str, report: &Report, figures: &[Figure], text: &str, plots: &[&str]) -> String {
    let mut page = format!("# {title}\n\nTaken with `{}` on: {}.\n\n", report.title, report.machine.line());
    if !report.is_complete {
        page.push_str("The run was stopped before its end; what is missing here was not measured.\n\n");
    }
    page.push_str(&figure::markdown(figures));
    page.push_str(text);
    page.push_str(&absent(report));
    let plots: Vec<_> = plots.iter().map(|plot| format!("![]({plot})\n")).collect();
    page.push_str(&plots.join("\n"));
    page
}

/// The greatest percentage of all processors that other programs may use meanwhile: a tenth, as for repetitions.
const BUSY: f64 = 10.0;

/// The figure, without a verdict if its programs had to share the machine with others.
pub fn unless_busy(figure: Figure, others_percent: f64) -> Figure {
    if others_percent <= BUSY || figure.verdict == Verdict::NotMeasured {
        return figure;
    }
    let ours = format!("{}; others used up to {} % of the processors", figure.ours, short(others_percent));
    Figure { ours, ..figure }.unless_noisy(true)
}

/// The note of a row whose trace is not complete.
pub fn loss(events: u64) -> String {
    if events == 0 { String::new() } else { format!("{events} events were lost") }
}

/// A list of what could not be measured, with each reason once.
fn absent(report: &Report) -> String {
    let missing = report.rows.iter().filter(|row| row.median.is_none() && !row.note.is_empty());
    let mut said: Vec<(&str, &str)> = Vec::new();
    for row in missing {
        // A row's name is `group: what`, and a group that cannot be measured has one reason.
        let what = row.name.split(": ").next().unwrap_or(&row.name);
        if !said.contains(&(what, &row.note)) {
            said.push((what, &row.note));
        }
    }
    let lines = said.iter().fold(String::new(), |mut text, (what, note)| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {what}: {note}");
        text
    });
    if lines.is_empty() { lines } else { format!("Not measured:\n\n{lines}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_on_a_machine_that_others_use_there_is_no_verdict_and_the_page_says_how_much_they_do() {
        let figure = || Figure::new("figure", "paper", "ours", true);
        assert_eq!(unless_busy(figure(), 10.0), figure());
        let busy = unless_busy(figure(), 45.0);
        assert_eq!((busy.verdict, busy.ours.contains("45.0 % of the processors")), (Verdict::TooNoisy, true));
        let missing = Figure::missing("figure", "paper", "why");
        assert_eq!(unless_busy(missing.clone(), 45.0), missing);
    }
}
