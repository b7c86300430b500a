//! `mete sim --seeds`, `--vary`, `--plot`: runs a scenario many times, and shows its figures with confidence
//! intervals, as tables, data and plots.

use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use mete_base::Progress;
use mete_base::draft;
use mete_base::draft::Draft;
use mete_command::output::Output;
use mete_command::progress::Steps;
use mete_command::table::{Head, NOTHING, Table, shorten};
use mete_command::{failure, interrupt};
use mete_plot::{self as plot, Axis, Series};
use mete_sim::figure::{FIGURES, Figure, csv};
use mete_sim::metrics::Estimate;
use mete_sim::sweep::Cell;
use mete_sim::{Setting, Sweep, all_processors};
use serde::Serialize;

/// The figures of each table, by their places in [`FIGURES`]. It fits into 100 columns.
const TABLES: [Range<usize>; 4] = [0..4, 4..7, 7..9, 9..FIGURES.len()];

const READ_IT: &str = "\
Mean over the seeds, ± half of its 95 % confidence interval (Student's t). woken: from waking to \
running; answer: from asking to being answered; each the median, then 99 %. wait: the longest time \
ready without running. lowest, highest: the service-time error at its extremes. starved: how often \
ready without running beyond the scenario's limit. spun: time spinning for spin locks.";

/// Where results go in addition to stdout.
pub struct Files<'a> {
    /// Each run's figures.
    pub csv: Option<&'a Path>,
    /// A folder for a plot of each figure.
    pub plots: Option<&'a Path>,
}

/// Runs a sweep on all processors, prints its estimates, and writes what was asked for.
pub fn run(
    scenario: &str,
    sweep: &Sweep,
    wanted: &Files<'_>,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    // Checked before the work, so that the work is not lost.
    let _made = wanted.plots.map(draft::check_folder).transpose()?;
    let draft = wanted.csv.map(|path| Draft::begin(path).with_context(|| cannot_write(path))).transpose()?;
    let mut steps = Steps::default();
    steps.begin(scenario, sweep.runs() as u64);
    let cells = sweep.run(all_processors(), interrupt::go_on, || steps.step());
    drop(steps);
    let Some(cells) = cells.transpose()? else {
        return Ok(interrupt::ended_without_results("not all runs are over, so nothing is shown or written"));
    };
    if let (Some(draft), Some(path)) = (draft, wanted.csv) {
        draft.finish(&csv(&cells)).with_context(|| cannot_write(path))?;
    }
    if let Some(folder) = wanted.plots {
        plots(scenario, &cells, folder)?;
    }
    for cell in &cells {
        objects(scenario, cell, output)?;
    }
    let tables = TABLES.into_iter().filter_map(|figures| table(&cells, figures));
    for text in tables.collect::<Vec<_>>() {
        output.text(text + "\n")?;
    }
    output.text(READ_IT)?;
    Ok(ExitCode::SUCCESS)
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// A plot for each figure that any client has.
fn plots(scenario: &str, cells: &[Cell], folder: &Path) -> anyhow::Result<()> {
    let mut plots = Vec::new();
    for figure in (0..FIGURES.len()).filter(|&figure| is_known(cells, figure)) {
        let title = title(scenario, cells, figure);
        let text = over_values(&title, cells, figure).unwrap_or_else(|| by_client(&title, cells, figure));
        plots.push((format!("{}.svg", FIGURES[figure].name), text));
    }
    draft::write_all(folder, plots.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
    failure::say(&format!("plots are in {}", folder.display()));
    Ok(())
}

/// The scenario, the figure without its unit, and the seeds.
fn title(scenario: &str, cells: &[Cell], figure: usize) -> String {
    let words = FIGURES[figure].words;
    let figure = words.split(" (").next().unwrap_or(words);
    let seeds = match cells.first().map_or(&[][..], |cell| cell.reports.as_slice()) {
        [only] => format!("seed {}", only.seed),
        several => format!("means of {} seeds with 95 % confidence intervals", several.len()),
    };
    format!("{scenario}: {figure}, {seeds}")
}

/// A linear axis.
fn axis(label: impl Into<String>) -> Axis {
    Axis { label: label.into(), is_logarithmic: false }
}

fn figure_axis(figure: usize) -> Axis {
    axis(FIGURES[figure].words)
}

/// Lines over the values of the only varied key, one line for each policy and client; `None` if several keys
/// are varied or the values are no numbers.
fn over_values(title: &str, cells: &[Cell], figure: usize) -> Option<String> {
    let values: Vec<f64> = cells.iter().map(only_value).collect::<Option<_>>()?;
    let (mut series, mut intervals): (Vec<Series>, Vec<Vec<_>>) = (Vec::new(), Vec::new());
    for (cell, x) in cells.iter().zip(values) {
        for (client, figures) in cell.figures() {
            let Some(estimate) = Estimate::of(&figures[figure]) else { continue };
            let name = format!("{}, {client}", cell.policy);
            let nth = series.iter().position(|series| series.name == name).unwrap_or(series.len());
            if nth == series.len() {
                series.push(Series { name, points: Vec::new() });
                intervals.push(Vec::new());
            }
            series[nth].points.push((x, estimate.mean));
            intervals[nth].push(interval(&estimate));
        }
    }
    // Each cell has exactly one value: `only_value` has found it.
    let key = cells.first().map_or("", |cell| cell.values[0].key());
    Some(plot::lines_with_intervals(title, &axis(key), &figure_axis(figure), &series, &intervals))
}

/// The value of the only varied key, if it is a number.
fn only_value(cell: &Cell) -> Option<f64> {
    match cell.values.as_slice() {
        [only] => only.number(),
        _ => None,
    }
}

/// The confidence interval of the mean; `None` with a single seed.
fn interval(estimate: &Estimate) -> Option<(f64, f64)> {
    estimate.half_width.map(|half| (estimate.mean - half, estimate.mean + half))
}

/// Bars by client, one for each policy and each combination of values.
fn by_client(title: &str, cells: &[Cell], figure: usize) -> String {
    let names =
        cells.first().map_or_else(Vec::new, |cell| cell.figures().map(|(name, _)| name.into()).collect());
    let (mut series, mut intervals) = (Vec::new(), Vec::new());
    for cell in cells {
        let estimates = cell.figures().map(|(_, figures)| Estimate::of(&figures[figure]));
        let estimates: Vec<_> = estimates.collect();
        let name: Vec<String> =
            [cell.policy.clone()].into_iter().chain(cell.values.iter().map(Setting::to_string)).collect();
        // A figure that is not known has no interval, and a bar of no length.
        let means = estimates.iter().map(|known| known.as_ref().map_or(0.0, |estimate| estimate.mean));
        series.push((name.join(" "), means.collect()));
        intervals.push(estimates.iter().map(|known| interval(known.as_ref()?)).collect());
    }
    plot::bars_with_intervals(title, &figure_axis(figure), &names, &series, &intervals)
}

/// A table of these figures; `None` if no client has any of them.
fn table(cells: &[Cell], figures: Range<usize>) -> Option<String> {
    // Every cell has the same keys.
    let keys = cells.first().map_or(&[][..], |cell| cell.values.as_slice()).iter().map(Setting::key);
    let shown: Vec<usize> = figures.filter(|&figure| is_known(cells, figure)).collect();
    let heads = keys.chain(["policy", "client"]).map(Head::Name);
    let mut table = Table::new(heads.chain(shown.iter().map(|&figure| Head::Number(FIGURES[figure].head))));
    for cell in cells {
        let values = cell.values.iter().map(|value| value.written().to_owned());
        let left: Vec<String> = values.chain([cell.policy.clone()]).collect();
        for (name, figures) in cell.figures() {
            let figures = shown.iter().map(|&figure| estimate(&figures[figure]));
            table.row(left.iter().cloned().chain([shorten(name, 20)]).chain(figures));
        }
    }
    (!shown.is_empty()).then(|| table.text())
}

/// Whether any client has that figure.
fn is_known(cells: &[Cell], figure: usize) -> bool {
    cells.iter().flat_map(Cell::figures).any(|(_, figures)| !figures[figure].is_empty())
}

fn estimate(samples: &[f64]) -> String {
    match Estimate::of(samples) {
        None => NOTHING.into(),
        Some(Estimate { mean, half_width: None, .. }) => format!("{mean:.2}"),
        Some(Estimate { mean, half_width: Some(half), .. }) => format!("{mean:.2} ±{half:.2}"),
    }
}

/// What `--json` prints for each client of each cell.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "estimate")]
struct EstimateObject<'a> {
    scenario: &'a str,
    /// Each as `KEY=VALUE`.
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
    let values: Vec<String> = cell.values.iter().map(Setting::to_string).collect();
    for (client, figures) in cell.figures() {
        let estimates = FIGURES.iter().zip(&figures).filter_map(|(Figure { name, .. }, samples)| {
            let Estimate { mean, half_width, median, .. } = Estimate::of(samples)?;
            Some((*name, FigureObject { mean, half_width, median }))
        });
        output.object(&EstimateObject {
            scenario,
            values: &values,
            policy: &cell.policy,
            client,
            seeds: cell.reports.len(),
            figures: estimates.collect(),
        })?;
    }
    Ok(())
}
