//! Five hogs with shares of 1 to 5 on one processor: how far each is from its share in any second.

use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use mete_shares::By;
use serde_json::{Value, json};

use super::stage::member::Role;
use super::stage::{Means, OfMeans, Part, Run, Setting, available, median};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about};

/// Shares of the domains, with one hog each.
pub(super) const SHARES: [u32; 5] = [1, 2, 3, 4, 5];
/// The nice values that come next to these shares.
pub(super) const NICE: [i32; 5] = [7, 4, 2, 1, 0];
/// What nice values weigh, by the kernel's table (`sched_prio_to_weight`).
pub(super) const WEIGHTS: [f64; 5] = [215.0, 423.0, 655.0, 820.0, 1024.0];
const WINDOW: Duration = Duration::from_secs(1);
const DISPATCHER: Means = Means::Dispatcher("distributed-vtrr");
const INSIDE: Means = Means::Dealt(By::SchedExt, "vtrr");
const OUTSIDE: Means = Means::Dealt(By::SchedExt, "distributed-vtrr-kernel");
const PAUSES: Means = Means::Pauses("distributed-vtrr");
const MEANS: [Means; 6] =
    [Means::Kernel, DISPATCHER, Means::Dispatcher("group-vtrr"), PAUSES, INSIDE, OUTSIDE];
/// The least throughput, in percent of that under the kernel's own scheduler: by the dispatcher, and by sched_ext.
const LEAST_PERCENT: [f64; 2] = [98.0, 99.0];
/// What ALPS reached: an error, in percent of a share, and its own time, in percent of a processor.
const MOST_OF_ALPS: [f64; 2] = [5.0, 1.0];

pub(crate) struct LiveShares;

impl Study for LiveShares {
    about!("live-shares", "five processes with shares of 1 to 5: under nice values, and under VTRR");
    type Found = Vec<OfMeans>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let (rounds, time) = if options.is_quick { (2, 2) } else { (7, 8) };
        let time = Duration::from_secs(time);
        let all = available(&MEANS, report);
        let found =
            OfMeans::in_turns(&all, rounds, report, progress, |means, progress| run(means, time, progress));
        report.rows.extend(found.iter().flat_map(rows));
        found
    }

    fn findings(found: &Self::Found) -> Findings {
        let kernel = OfMeans::find(found, Means::Kernel);
        let of = |means| OfMeans::find(found, means);
        let beside = |means, compare: fn(&OfMeans, &OfMeans) -> Option<Finding>| {
            kernel.zip(of(means)).and_then(|(kernel, dealt)| compare(kernel, dealt))
        };
        vec![
            ("window", of(DISPATCHER).and_then(window)),
            ("kernel", beside(DISPATCHER, against)),
            ("throughput", beside(DISPATCHER, throughput)),
            ("window-pauses", of(PAUSES).and_then(window)),
            ("pauses", of(PAUSES).and_then(like_alps)),
            ("throughput-pauses", beside(PAUSES, throughput)),
            ("window-inside", of(INSIDE).and_then(window)),
            ("kernel-inside", beside(INSIDE, against)),
            ("throughput-inside", beside(INSIDE, throughput)),
            ("window-outside", of(OUTSIDE).and_then(window)),
            ("kernel-outside", beside(OUTSIDE, against)),
            ("throughput-outside", beside(OUTSIDE, throughput)),
        ]
    }

    fn facts(found: &Self::Found) -> Value {
        let lines = found.iter().map(line);
        json!({ "lines": lines.collect::<Vec<_>>(), "shares": SHARES, "nice": NICE })
    }

    fn pictures(found: &Self::Found) -> Vec<StudyFile> {
        let pictures = found
            .iter()
            .filter_map(|of_means| Some((file_of(of_means.means).to_owned(), picture(of_means)?)));
        pictures.collect()
    }
}

fn run(means: Means, time: Duration, progress: &dyn Progress) -> Result<Run, Reason> {
    let parts = [0, 1, 2, 3, 4].map(|domain| Part { role: Role::Hog, domain });
    let setting = Setting { nice: &NICE, ..Setting::of(&parts, &SHARES) };
    Run::of(means, &setting, time, progress)
}

/// The parts that the domains are to have: under nice values those that the kernel gives to them.
pub(super) fn wanted(means: Means) -> Vec<f64> {
    let weights = match means {
        Means::Kernel => WEIGHTS,
        Means::Dispatcher(_) | Means::Pauses(_) | Means::Dealt(..) | Means::Empty => SHARES.map(f64::from),
    };
    let all: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / all).collect()
}

fn errors_ms(of_means: &OfMeans) -> Vec<f64> {
    let wanted = wanted(of_means.means);
    of_means.each(|run| run.worst_error_ms(&wanted, WINDOW))
}

fn points(of_means: &OfMeans) -> Vec<f64> {
    of_means.points(&wanted(of_means.means))
}

/// The part of the time in which the hogs had the processor, in percent.
fn throughputs(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| run.whole().map(|(used, time)| 100.0 * used.iter().sum::<f64>() / time))
}

/// What the scheduler has used itself, in percent of a processor.
fn owns(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| Some(100.0 * run.work?.own_ns as f64 / run.whole()?.1))
}

fn rows(of_means: &OfMeans) -> Vec<Row> {
    let name = of_means.means.name();
    let mut rows = vec![
        Row::new(format!("{name}: worst error in a second"), "ms", Ok(errors_ms(of_means))),
        Row::new(format!("{name}: worst error of a share"), "points", Ok(points(of_means))),
        Row::new(format!("{name}: the hogs had the processor"), "%", Ok(throughputs(of_means))),
    ];
    let own = owns(of_means);
    if !own.is_empty() {
        rows.push(Row::new(format!("{name}: its own time"), "%", Ok(own)));
    }
    rows
}

fn line(of_means: &OfMeans) -> Value {
    json!({
        "means": of_means.means.name(), "error_ms": median(&errors_ms(of_means)),
        "points": median(&points(of_means)), "throughput": median(&throughputs(of_means)),
        "own": median(&owns(of_means)).filter(|own| *own > 0.0),
    })
}

/// What each hog had in each tenth of a second of the first run.
fn picture(of_means: &OfMeans) -> Option<String> {
    let run = of_means.runs.first()?;
    let begin = run.looks.first()?.0;
    let tenths: Vec<_> = run.looks.iter().step_by(5).collect();
    let series = SHARES.iter().enumerate().map(|(domain, share)| {
        let points = tenths.windows(2).map(|pair| {
            let [before, after] = [pair[0], pair[1]];
            let used = after.1[domain].saturating_sub(before.1[domain]) as f64;
            ((after.0 - begin) as f64 / 1e9, 100.0 * used / (after.0 - before.0) as f64)
        });
        Series::new(format!("share {share}"), points.collect::<Vec<_>>())
    });
    let title = format!("Five hogs, {}", of_means.means.name());
    let [x, y] = ["s", "% of the processor, in each tenth of a second"].map(Axis::linear);
    Some(plot::lines(&title, &x, &y, &series.collect::<Vec<_>>()))
}

fn file_of(means: Means) -> &'static str {
    match means {
        Means::Kernel => "kernel.svg",
        Means::Dispatcher("group-vtrr") => "group-vtrr.svg",
        Means::Dispatcher(_) => "distributed-vtrr.svg",
        Means::Pauses(_) => "pauses.svg",
        Means::Dealt(_, "vtrr") => "inside.svg",
        Means::Dealt(..) | Means::Empty => "outside.svg",
    }
}

fn window(dealt: &OfMeans) -> Option<Finding> {
    let errors = errors_ms(dealt);
    let worst = errors.iter().copied().max_by(f64::total_cmp)?;
    let quantum_ms = dealt.runs.first()?.quantum?.get() as f64 / 1e6;
    let values = json!({ "worst_ms": worst, "median_ms": median(&errors)?, "quantum_ms": quantum_ms });
    Some(Finding::new(values, worst < 2.0 * quantum_ms))
}

/// The error is the greatest of any share, in percent of that share, in the middle of the runs.
fn like_alps(dealt: &OfMeans) -> Option<Finding> {
    let wanted = wanted(dealt.means);
    let errors = dealt.each(|run| {
        let parts = run.parts()?;
        let errors = parts.iter().zip(&wanted).map(|(part, wanted)| 100.0 * (part / wanted - 1.0).abs());
        errors.max_by(f64::total_cmp)
    });
    let (error, own) = (median(&errors)?, median(&owns(dealt))?);
    let holds = error <= MOST_OF_ALPS[0] && own <= MOST_OF_ALPS[1];
    Some(Finding::new(json!({ "error": error, "own": own }), holds))
}

/// The bar is a number; what the kernel reaches is told beside it.
fn against(kernel: &OfMeans, dealt: &OfMeans) -> Option<Finding> {
    let (kernels, ours) = (median(&points(kernel))?, median(&points(dealt))?);
    Some(Finding::new(json!({ "kernel": kernels, "ours": ours }), ours <= 0.2))
}

fn throughput(kernel: &OfMeans, dealt: &OfMeans) -> Option<Finding> {
    let least = LEAST_PERCENT[usize::from(matches!(dealt.means, Means::Dealt(..)))];
    let percent = 100.0 * median(&throughputs(dealt))? / median(&throughputs(kernel))?;
    Some(Finding::new(json!({ "percent": percent }), percent >= least))
}
