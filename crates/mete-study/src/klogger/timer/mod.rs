//! What the timer interrupt costs (KLogger paper, §10.2, figure 11).

mod ticks;

use std::path::Path;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row, Verdict};
use mete_plot::{self as plot, Axis, Series};
use serde_json::{Value, json};

use self::ticks::{EVENTS, TickCosts};
use super::cdf;
use super::of_trace::{self, loss};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, StudyResults, about};

/// How long the timer is watched, then the same for a quick run.
const WATCHED: [Duration; 2] = [Duration::from_secs(8), Duration::from_secs(1)];

pub(crate) struct Timer;

impl Study for Timer {
    about!("timer", "what the timer interrupt costs, and takes from a program (KLogger figure 11)");
    type Found = Option<TickCosts>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        progress.begin("timer interrupts", 1);
        let costs = TickCosts::measure(WATCHED[usize::from(options.is_quick)], progress);
        report.rows = rows(&costs);
        costs.ok()
    }

    fn findings(costs: &Self::Found) -> Findings {
        vec![("generations", costs.as_ref().and_then(generations))]
    }

    fn facts(costs: &Self::Found) -> Value {
        let costs = costs.as_ref();
        json!({
            "handler_ns": costs.and_then(|costs| costs.handler.half()),
            "soft_ns": costs.and_then(|costs| costs.soft.half()),
            "away_ns": costs.and_then(|costs| costs.away.half()),
            "interrupts_a_second": costs.map(|costs| costs.rate),
            "processor_percent": costs.and_then(TickCosts::processor_percent),
        })
    }

    fn pictures(costs: &Self::Found) -> Vec<StudyFile> {
        costs.iter().map(|costs| drawn(&series(costs))).collect()
    }

    fn data(costs: &Self::Found, _: &Report) -> Vec<StudyFile> {
        costs.iter().map(|costs| cdf::file(&series(costs), "ns")).collect()
    }
}

/// The study of a recorded trace. It has the handler alone, because a trace does not say when the programs
/// ran.
pub(crate) fn of_trace(directory: &Path) -> Result<StudyResults, Reason> {
    let recorded = of_trace::open(directory, "interrupt", &EVENTS)?;
    let costs = TickCosts::of_handlers(&recorded);
    let values = Ok(costs.handler.values().to_vec());
    let row = Row::new("timer: handler", "ns", values).note(loss(recorded.lost()));
    let files = vec![drawn(&series(&costs)), cdf::file(&series(&costs), "ns")];
    Ok(of_trace::results::<Timer>(directory, vec![row], files))
}

/// The cost over generations of processors. This machine has one of them, so its value allows no verdict.
fn generations(costs: &TickCosts) -> Option<Finding> {
    let values = json!({ "handler_ns": costs.handler.half()?, "clock_source": costs.clock_source });
    Some(Finding { verdict: Verdict::NotMeasured, ..Finding::new(values, false) })
}

fn rows(costs: &Result<TickCosts, Reason>) -> Vec<Row> {
    let row = |what: &str, unit, samples: fn(&TickCosts) -> Vec<f64>| {
        Row::new(format!("timer: {what}"), unit, costs.as_ref().map(samples).map_err(Clone::clone))
    };
    let lost = costs.as_ref().map_or(0, |costs| costs.lost);
    vec![
        row("handler", "ns", |costs| costs.handler.values().to_vec())
            .note("from its beginning to its end, on processors that are busy")
            .note(loss(lost)),
        row("soft interrupts behind it", "ns", |costs| costs.soft.values().to_vec())
            .note("where there are any"),
        row("program away", "ns", |costs| costs.away.values().to_vec())
            .note("between two readings of the clock, with one timer interrupt and no switch in between"),
        row("interrupts a second", "1/s", |costs| vec![costs.rate]),
        row("processor time", "percent", |costs| costs.processor_percent().into_iter().collect()),
    ]
}

fn drawn(series: &[Series]) -> StudyFile {
    let (across, up) = (Axis::logarithmic("ns"), Axis::linear("percent that take no longer"));
    ("timer.svg".to_owned(), plot::lines("What a timer interrupt takes", &across, &up, series))
}

fn series(costs: &TickCosts) -> [Series; 3] {
    [
        costs.handler.series("handler"),
        costs.soft.series("soft interrupts behind it"),
        costs.away.series("program away"),
    ]
}
