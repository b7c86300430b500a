//! `mete sim --seeds`, `--vary`: one scenario many times, its figures with their confidence intervals.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context, anyhow};
use mete_sim::metrics::{Estimate, Latencies};
use mete_sim::sweep::Cell;
use mete_sim::{ClientReport, Sweep, all_processors};
use mete_study::Progress;
use serde::Serialize;

use crate::interrupt;
use crate::output::Output;
use crate::progress::Steps;
use crate::table::{Head, Table, shorten};

/// A figure of a client: its column's head, its name for scripts, and its value in one run.
type Figure = (&'static str, &'static str, fn(&ClientReport) -> Option<f64>);

const FIGURES: [Figure; 7] = [
    ("got %", "got_percent", |client| Some(100.0 * client.got)),
    ("woken ms", "wake_to_run_median_ms", |client| quantile(client.wake_to_run.as_ref(), 0.5)),
    ("99 % ms", "wake_to_run_99_ms", |client| quantile(client.wake_to_run.as_ref(), 0.99)),
    ("answer ms", "response_median_ms", |client| quantile(client.response.as_ref(), 0.5)),
    ("99 % ms", "response_99_ms", |client| quantile(client.response.as_ref(), 0.99)),
    ("wait ms", "longest_wait_ms", |client| Some(client.longest_wait_ns as f64 / 1e6)),
    ("done", "done", |client| (client.done > 0).then_some(client.done as f64)),
];

fn quantile(times: Option<&Latencies>, part: f64) -> Option<f64> {
    times.and_then(|times| times.quantile_ns(part)).map(|ns| ns as f64 / 1e6)
}

const READ_IT: &str = "
Mean over the seeds, ± half of its 95 % confidence interval (Student's t). woken: from waking to
running; answer: from asking to being answered; each the median, then 99 %. wait: the longest time
ready without running.";

/// Runs a sweep on all processors, prints its estimates, and writes each run into `csv`.
pub fn run(scenario: &str, sweep: &Sweep, csv: Option<&Path>, output: &mut Output) -> anyhow::Result<()> {
    interrupt::listen()?;
    let mut steps = Steps::new();
    steps.begin(scenario, sweep.runs() as u64);
    let done = || {
        steps.step();
        if steps.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let cells = sweep.run(all_processors(), done).ok_or_else(|| anyhow!("stopped before the end"))??;
    drop(steps);
    if let Some(path) = csv {
        std::fs::write(path, text_of(&cells)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    for cell in &cells {
        objects(scenario, cell, output)?;
    }
    output.text(table(&cells))?;
    output.text(READ_IT)
}

/// The clients of a cell, each with its figures by run.
fn clients(cell: &Cell) -> impl Iterator<Item = (&str, Vec<Vec<f64>>)> {
    let names = cell.reports.first().map_or(&[][..], |report| report.clients.as_slice());
    names.iter().enumerate().map(|(nth, client)| {
        let runs = || cell.reports.iter().filter_map(move |report| report.clients.get(nth));
        let values = FIGURES.iter().map(|(_, _, value)| runs().filter_map(value).collect());
        (client.name.as_str(), values.collect())
    })
}

const NOTHING: &str = "·";

fn table(cells: &[Cell]) -> String {
    let values: Vec<&str> = cells.iter().flat_map(|cell| &cell.values).map(|value| key(value)).collect();
    let keys = &values[..cells.first().map_or(0, |cell| cell.values.len())];
    let shown: Vec<usize> = (0..FIGURES.len()).filter(|&figure| is_known(cells, figure)).collect();
    let heads = keys.iter().copied().chain(["policy", "client"]).map(Head::Name);
    let mut table = Table::new(heads.chain(shown.iter().map(|&figure| Head::Number(FIGURES[figure].0))));
    for cell in cells {
        let values = cell.values.iter().map(|value| value[key(value).len() + 1..].to_owned());
        let left: Vec<String> = values.chain([cell.policy.clone()]).collect();
        for (name, figures) in clients(cell) {
            let figures = shown.iter().map(|&figure| estimate(&figures[figure]));
            table.row(left.iter().cloned().chain([shorten(name, 20)]).chain(figures));
        }
    }
    table.text()
}

fn key(value: &str) -> &str {
    value.split('=').next().unwrap_or(value)
}

/// Whether any client has that figure.
fn is_known(cells: &[Cell], figure: usize) -> bool {
    cells.iter().flat_map(clients).any(|(_, figures)| !figures[figure].is_empty())
}

fn estimate(samples: &[f64]) -> String {
    match Estimate::of(samples) {
        None => NOTHING.into(),
        Some(Estimate { mean, half_width: None, .. }) => format!("{mean:.2}"),
        Some(Estimate { mean, half_width: Some(half), .. }) => format!("{mean:.2} ±{half:.2}"),
    }
}

/// One client of one cell.
#[derive(Serialize)]
struct Object<'a> {
    kind: &'static str,
    scenario: &'a str,
    values: &'a [String],
    policy: &'a str,
    client: &'a str,
    seeds: usize,
    figures: std::collections::BTreeMap<&'static str, FigureObject>,
}

#[derive(Serialize)]
struct FigureObject {
    mean: f64,
    half_width: Option<f64>,
    median: f64,
}

fn objects(scenario: &str, cell: &Cell, output: &mut Output) -> anyhow::Result<()> {
    for (client, figures) in clients(cell) {
        let estimates = FIGURES.iter().zip(&figures).filter_map(|((_, name, _), samples)| {
            let Estimate { mean, half_width, median, .. } = Estimate::of(samples)?;
            Some((*name, FigureObject { mean, half_width, median }))
        });
        output.object(&Object {
            kind: "estimate",
            scenario,
            values: &cell.values,
            policy: &cell.policy,
            client,
            seeds: cell.reports.len(),
            figures: estimates.collect(),
        })?;
    }
    Ok(())
}

/// Comma-separated values: a line for each client in each run.
fn text_of(cells: &[Cell]) -> String {
    let mut text = String::from("values,policy,seed,client");
    FIGURES.iter().for_each(|(_, name, _)| text.push_str(&format!(",{name}")));
    text.push('\n');
    for cell in cells {
        for report in &cell.reports {
            for client in &report.clients {
                let (values, name) = (cell.values.join(" "), client.name.replace('"', "\"\""));
                // Writing to a string cannot fail.
                let _ = write!(text, "\"{values}\",{},{},\"{name}\"", cell.policy, report.seed);
                for (_, _, value) in FIGURES {
                    let _ =
                        write!(text, ",{}", value(client).map(|it| format!("{it:.6}")).unwrap_or_default());
                }
                text.push('\n');
            }
        }
    }
    text
}
