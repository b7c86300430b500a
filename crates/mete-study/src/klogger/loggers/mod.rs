//! What an event costs with several loggers, side by side (KLogger paper, §7.1, table 1).

mod cost;
mod setup;

use std::collections::BTreeMap;
use std::path::Path;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row, interleave};
use mete_plot::{self as plot, Axis};
use serde_json::{Value, json};

use self::cost::{LoggerCost, OURS, event_name};
use self::setup::{ALL, LoggerSetup};
use crate::study::{Finding, Findings, KeptRows, Study, StudyFile, StudyOptions, about};

/// The number of rounds, then the same for a quick run.
const ROUNDS: [usize; 2] = [11, 3];

pub(crate) struct Loggers;

impl Study for Loggers {
    about!("loggers", "what an event costs with several loggers, side by side (KLogger table 1)");
    type Found = Vec<LoggerCost>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let rounds = ROUNDS[usize::from(options.is_quick)];
        let mut setup = LoggerSetup::new();
        let samples = interleave("loggers", rounds, &ALL, progress, |logger| match &mut setup {
            Ok(setup) => setup.measure(logger),
            Err(reason) => Err(reason.clone()),
        });
        let costs = cost::of(&samples);
        let rows = costs.iter().flat_map(|cost| [Some(&cost.event), cost.times.as_ref()]);
        report.rows.extend(rows.flatten().cloned());
        report.rows.push(Row::new(event_name("LTTng, kernel"), "ns", Err(Reason::new(lttng_modules()))));
        costs
    }

    fn findings(costs: &Self::Found) -> Findings {
        [("printk", 10.0), ("ftrace", 5.0), ("perf", 5.0)]
            .map(|(name, times)| (name, costs_more(costs, name, times)))
            .into()
    }

    fn facts(costs: &Self::Found) -> Value {
        let ns: BTreeMap<_, _> = costs.iter().map(|cost| (cost.name, cost.event.median)).collect();
        json!({ "ns": ns, "loggers": costs.iter().map(line).collect::<Vec<_>>() })
    }

    fn pictures(costs: &Self::Found) -> Vec<StudyFile> {
        let shown = costs.iter().filter_map(|cost| Some((cost.name, cost.quartiles()?)));
        vec![picture(&shown.collect::<Vec<_>>())]
    }

    fn redrawn(kept: &KeptRows) -> Vec<StudyFile> {
        let shown = cost::names().filter_map(|name| Some((name, kept.find(&event_name(name))?)));
        vec![picture(&shown.collect::<Vec<_>>())]
    }
}

/// A line of the table of loggers.
fn line(cost: &LoggerCost) -> Value {
    let Row { median, q1, q3, .. } = cost.event;
    let times = cost.times.as_ref().and_then(|times| times.median);
    json!({ "name": cost.name, "ns": median, "q1": q1, "q3": q3, "times": times })
}

/// The reason why LTTng's modules are missing. The paper's LTT was a part of the kernel; its successor
/// consists of modules.
fn lttng_modules() -> String {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let place = format!("/lib/modules/{release}");
    let is_there = ["extra", "updates", "updates/dkms"]
        .iter()
        .any(|part| Path::new(&place).join(part).join("lttng-tracer.ko").exists());
    match is_there {
        true => format!("its modules are in {place}, and no study loads modules into a kernel"),
        false => format!("its kernel modules are not installed in {place}"),
    }
}

/// A logger costs more than `least` times as much as ours.
fn costs_more(costs: &[LoggerCost], name: &str, least: f64) -> Option<Finding> {
    let times = costs.iter().find(|cost| cost.name == name)?.times.as_ref()?.median?;
    let is_noisy = costs.iter().any(|cost| cost.is_noisy && [name, OURS].contains(&cost.name));
    Some(Finding::new(json!({ "times": times }), times > least).unless_noisy(is_noisy))
}

/// The median and the quartiles of each logger's cost in nanoseconds.
fn picture(costs: &[(&str, [f64; 3])]) -> StudyFile {
    let names: Vec<String> = costs.iter().map(|(name, _)| (*name).to_owned()).collect();
    let values = costs.iter().map(|(_, [median, ..])| *median).collect();
    // The axis is logarithmic, so an interval must begin above zero.
    let quartiles = costs.iter().map(|(_, [_, q1, q3])| (*q1 > 0.0).then_some((*q1, *q3))).collect();
    let y = Axis::logarithmic("ns an event, median and quartiles");
    let series = [("an event".to_owned(), values)];
    let bars = plot::bars_with_intervals("What an event costs", &y, &names, &series, &[quartiles]);
    ("loggers.svg".to_owned(), bars)
}

#[cfg(test)]
mod tests {
    use mete_measure::Verdict::{self, Fails, Holds, TooNoisy};

    use super::setup::Logger;
    use super::*;
    use crate::study::StudyEntry;

    #[test]
    fn klog_9_pictures_are_drawn_again_from_the_rows_that_are_kept() {
        let rows = "# mete study loggers\n# machine\nname,unit,median,min,q1,q3,max,samples,bar,holds,note\n\
                    \"mete, kernel: an event\",ns,114.06,69.9,98.0,119.8,160.5,11,,,\"a, \"\"b\"\"\"\n\
                    ftrace: an event,ns,,,,,,0,,,not here\n";
        let study = StudyEntry::of::<Loggers>();
        let pictures = study.redraw(&|name| (name == "loggers.csv").then(|| rows.to_owned()));
        assert_eq!(pictures.len(), 1);
        assert!(pictures[0].1.contains(">114<") && !pictures[0].1.contains(">ftrace<"), "{}", pictures[0].1);
        assert_eq!(study.redraw(&|_| None), []);
    }

    /// Our event costs 10 ns, printk's 132 ns, and ftrace's 20 ns.
    fn measure(logger: Logger) -> Result<f64, Reason> {
        match logger {
            Logger::Kernel => Ok(110.0),
            Logger::Printk => Ok(232.0),
            Logger::Ftrace => Ok(120.0),
            Logger::Perf => Err(Reason::new("perf is not here")),
            _ => Ok(100.0),
        }
    }

    fn verdicts(costs: &Vec<LoggerCost>) -> Vec<Option<Verdict>> {
        let findings = Loggers::findings(costs).into_iter();
        findings.map(|(_, finding)| Some(finding?.verdict)).collect()
    }

    #[test]
    fn klog_9_loggers_as_in_the_paper_agree_and_what_is_absent_is_named() {
        let mut costs = cost::of(&interleave("test", 3, &ALL, &mut (), measure));
        assert_eq!(verdicts(&costs), [Some(Holds), Some(Fails), None]);
        assert_eq!((costs[2].name, costs[2].event.note.as_str()), ("perf", "perf is not here"));
        costs[4].is_noisy = true;
        assert_eq!((costs[4].name, verdicts(&costs)), ("printk", vec![Some(TooNoisy), Some(Fails), None]));
        costs[0].is_noisy = true;
        assert_eq!((costs[0].name, verdicts(&costs)), (OURS, vec![Some(TooNoisy), Some(TooNoisy), None]));
    }
}
