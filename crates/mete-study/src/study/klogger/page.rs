//! What the pages of these studies have in common.

use std::fmt::Write as _;

use crate::figure::{self, Figure};
use crate::report::Report;

/// A page: what it is, the paper beside ours, what was done and how it compares, plots.
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

/// What a row says where its trace is not complete.
pub fn loss(events: u64) -> String {
    if events == 0 { String::new() } else { format!("{events} events were lost") }
}

/// What could not be measured, each reason once.
fn absent(report: &Report) -> String {
    let missing = report.rows.iter().filter(|row| row.median.is_none() && !row.note.is_empty());
    let mut said: Vec<(&str, &str)> = Vec::new();
    for row in missing {
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
