//! The page, the plots and the distribution of the study `log-readers`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::readers::{Load, ReaderResult, Scheme};
use crate::study::figure::Figure;
use crate::study::missing;
use mete_measure::report::Report;
use mete_plot::{self as plot, Axis, Series, short};

/// The size that the text is about: the largest one at which the thesis measured its second scheme.
const SPOKEN_OF: u64 = 2048;

pub(super) fn files(report: &Report, points: &[ReaderResult]) -> Vec<(String, String)> {
    let file = |name: &str, text| (name.to_owned(), text);
    vec![
        file("README.md", page(report, points)),
        file("distribution.csv", distribution(report, points)),
        file("figure-5.4-5.5-thesis-pace.svg", trials(points, Load::ThesisPace)),
        file("figure-5.4-5.5-full-speed.svg", trials(points, Load::FullSpeed)),
        file("figure-5.6-thesis-pace.svg", times(points, Load::ThesisPace)),
        file("figure-5.6-full-speed.svg", times(points, Load::FullSpeed)),
    ]
}

/// The statements of figures 5.4 and 5.5, for a writer at the thesis' pace.
pub(super) fn compared_figures(points: &[ReaderResult], is_complete: bool) -> Vec<Figure> {
    const CLEARING: (&str, &str) = ("LOG thesis, figure 5.4", "clearing the flags, two trials at most");
    const RESTART: (&str, &str) =
        ("LOG thesis, figure 5.5", "without clearing, the reader starves above 2048 bytes");
    let of =
        |scheme| points.iter().filter(move |point| point.scheme == scheme && point.load == Load::ThesisPace);
    // Without all sizes, neither reader's results show where the limit is.
    if points.is_empty() || !is_complete {
        let why = missing(is_complete);
        return [CLEARING, RESTART].map(|(figure, paper)| Figure::missing(figure, paper, why)).into();
    }
    // The worst size decides: the statement is about all of them.
    let trials = of(Scheme::RestartClearing).map(ReaderResult::mean_trials).fold(0.0, f64::max);
    let starving = of(Scheme::Restart).filter(|point| point.starved > 0).map(|point| point.bytes).min();
    let ours =
        starving.map_or("it never starves".to_owned(), |bytes| format!("it first starves at {bytes} bytes"));
    vec![
        Figure::new(CLEARING.0, CLEARING.1, format!("{} on average at most", short(trials)), trials <= 2.0),
        Figure::new(RESTART.0, RESTART.1, ours, starving.is_some_and(|bytes| bytes > SPOKEN_OF)),
    ]
}

/// The number of analyses for each number of trials: the thesis' distributions as data.
fn distribution(report: &Report, points: &[ReaderResult]) -> String {
    let mut text = format!("# {}\n# {}\n", report.title, report.machine.line());
    text.push_str("reader,load,bytes,trials,analyses\n");
    for point in points {
        let mut counts = BTreeMap::new();
        point.trials.iter().for_each(|trials| *counts.entry(*trials as u64).or_insert(0u64) += 1);
        for (trials, analyses) in counts {
            let name = mete_measure::report::quoted(point.scheme.name());
            let _ = writeln!(text, "{name},{},{},{trials},{analyses}", point.load.name(), point.bytes);
        }
    }
    text
}

fn series(
    points: &[ReaderResult],
    name: String,
    scheme: Scheme,
    load: Load,
    value: impl Fn(&ReaderResult) -> f64,
) -> Series {
    let of = points.iter().filter(|point| point.scheme == scheme && point.load == load);
    Series { name, points: of.map(|point| (point.bytes as f64, value(point))).collect() }
}

fn size() -> Axis {
    Axis { label: "log file, bytes".into(), is_logarithmic: true }
}

fn trials(points: &[ReaderResult], load: Load) -> String {
    let all: Vec<_> = Scheme::ALL
        .into_iter()
        .map(|scheme| series(points, scheme.name().into(), scheme, load, ReaderResult::mean_trials))
        .collect();
    let axis = Axis { label: "trials an analysis, mean".into(), is_logarithmic: true };
    let title = format!("Trials of a reader, {} (thesis, figures 5.4 and 5.5)", load.name());
    plot::lines(&title, &size(), &axis, &all)
}

fn times(points: &[ReaderResult], load: Load) -> String {
    let mut all: Vec<_> = Scheme::ALL
        .into_iter()
        .map(|scheme| series(points, scheme.name().into(), scheme, load, ReaderResult::median_ns))
        .collect();
    all.push(series(
        points,
        "one pass, no writer".into(),
        Scheme::Ours,
        Load::NoWriter,
        ReaderResult::median_ns,
    ));
    all.push(series(
        points,
        "restart, no writer".into(),
        Scheme::Restart,
        Load::NoWriter,
        ReaderResult::median_ns,
    ));
    let axis = Axis { label: "an analysis, ns, median".into(), is_logarithmic: true };
    plot::lines(&format!("Time of an analysis, {} (thesis, figure 5.6)", load.name()), &size(), &axis, &all)
}

fn page(report: &Report, points: &[ReaderResult]) -> String {
    let mut page = String::from("# Reading a log while it is written\n\n");
    let _ = writeln!(page, "Taken with `mete study log-readers` on: {}.\n", report.machine.line());
    if !report.is_complete {
        page.push_str("The run was stopped before its end; what is missing here was not measured.\n\n");
    }
    page.push_str(&table(points));
    page.push_str(&ours(points));
    page.push_str(&compared(points));
    for figure in ["5.4-5.5-thesis-pace", "5.4-5.5-full-speed", "5.6-thesis-pace", "5.6-full-speed"] {
        let _ = writeln!(page, "![](figure-{figure}.svg)\n");
    }
    page.push_str("Medians and quartiles: `log-readers.csv`; how many analyses needed how many trials: `distribution.csv`.\n");
    page
}

fn table(points: &[ReaderResult]) -> String {
    let sizes = [128, 512, 2048, 8192, 65_536, 1 << 20];
    let names = sizes.map(|bytes| format!("{bytes} B")).join(" | ");
    let mut text = format!("| mean trials (starved) | {names} |\n|---|");
    text.push_str(&"---:|".repeat(sizes.len()));
    text.push('\n');
    for load in [Load::ThesisPace, Load::FullSpeed] {
        for scheme in Scheme::ALL {
            let _ = write!(text, "| {}, {} |", scheme.name(), load.name());
            for bytes in sizes {
                let cell = find(points, scheme, load, bytes).map(cell).unwrap_or_default();
                let _ = write!(text, " {cell} |");
            }
            text.push('\n');
        }
    }
    text + "\nIn parentheses: analyses in a hundred that gave up after 200 trials.\n\n"
}

fn cell(point: &ReaderResult) -> String {
    // A run that was stopped can have no analysis; then the part is 0.
    let starved = 100.0 * point.starved as f64 / point.trials.len().max(1) as f64;
    let trials = short(point.mean_trials());
    if point.starved == 0 { trials } else { format!("{trials} ({})", short(starved)) }
}

fn find(points: &[ReaderResult], scheme: Scheme, load: Load, bytes: u64) -> Option<&ReaderResult> {
    points.iter().find(|point| point.scheme == scheme && point.load == load && point.bytes == bytes)
}

fn said(points: &[ReaderResult], scheme: Scheme, load: Load, value: impl Fn(&ReaderResult) -> f64) -> String {
    find(points, scheme, load, SPOKEN_OF).map_or_else(|| "(not measured)".into(), |point| short(value(point)))
}

fn ours(points: &[ReaderResult]) -> String {
    let full = |scheme| said(points, scheme, Load::FullSpeed, ReaderResult::mean_trials);
    let sum = |value: fn(&ReaderResult) -> u64| {
        let clearing = points.iter().filter(|point| point.scheme == Scheme::RestartClearing);
        clearing.map(value).sum::<u64>()
    };
    let cleared = 100.0 * sum(|point| point.unlogged) as f64
        / (sum(|point| point.unlogged) + sum(|point| point.written)).max(1) as f64;
    format!(
        "A probe on one processor logs rows of correspondent and time stamp; a reader on another one analyses the \
         file again and again. The papers' reader (thesis §4.5.2, figure 4.10) looks at the whole file and begins \
         again if the index has moved, with or without clearing the file's flags in between; ours copies what is \
         new, once, and drops and counts what was overwritten meanwhile. With {SPOKEN_OF} bytes and the writer at \
         full speed ours needs {one} trial, the restarting reader {clearing} if it clears the flags and \
         {restart} if it does not (95th percentile {late}; it gives up at 200). Clearing bounds the trials at the \
         price of the log: in the runs with clearing, {cleared} % of all occurrences became no row, and nothing \
         counts them but this study.\n\n",
        one = full(Scheme::Ours),
        clearing = full(Scheme::RestartClearing),
        restart = full(Scheme::Restart),
        late = said(points, Scheme::Restart, Load::FullSpeed, ReaderResult::trials_95),
        cleared = short(cleared),
    )
}

fn compared(points: &[ReaderResult]) -> String {
    let pace = |scheme| said(points, scheme, Load::ThesisPace, ReaderResult::mean_trials);
    let ns = |scheme, load| said(points, scheme, load, ReaderResult::median_ns);
    format!(
        "The thesis finds at most two trials with clearing, always two from 2048 bytes on (figure 5.4), and without \
         clearing a number that grows until the reader starves above 2048 bytes (figure 5.5). At its writer's pace, \
         one row in 218 ns, the same schemes need {clearing} and {restart} trials for {SPOKEN_OF} bytes here; a row \
         that was begun before the flags were cleared can cost one trial more than the thesis' non-preemptible \
         kernel does. One analysis of {SPOKEN_OF} bytes takes {ours} ns by one pass, {time_clearing} ns with \
         clearing and {time_restart} ns without; with nobody writing it is {quiet} ns and {quiet_restart} ns \
         (figure 5.6's lowermost curve). Each analysis begins when every row of the file \
         is new, at a random moment between two rows. Files of 16 bytes, one row, \
         do not exist here; the smallest has two.\n\n",
        clearing = pace(Scheme::RestartClearing),
        restart = pace(Scheme::Restart),
        ours = ns(Scheme::Ours, Load::ThesisPace),
        time_clearing = ns(Scheme::RestartClearing, Load::ThesisPace),
        time_restart = ns(Scheme::Restart, Load::ThesisPace),
        quiet = ns(Scheme::Ours, Load::NoWriter),
        quiet_restart = ns(Scheme::Restart, Load::NoWriter),
    )
}
