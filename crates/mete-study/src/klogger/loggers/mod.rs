//! What an event costs with several loggers, side by side (KLogger paper, §7.1, table 1).

mod cost;
mod findings;
mod picture;
mod stage;

use std::collections::BTreeMap;
use std::path::Path;

use mete_base::progress::Progress;
use mete_measure::interleave::interleave;
use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use serde::Serialize;
use serde_json::{Value, json};

use self::cost::{Cost, event_name};
use self::stage::{ALL, Stage};
use crate::study::{Findings, KeptRows, Study, StudyFile, StudyOptions, StudyTexts, texts};

/// The number of rounds, then the same for a quick run.
const ROUNDS: [usize; 2] = [11, 3];

pub(crate) struct Loggers;

impl Study for Loggers {
    const NAME: &'static str = "loggers";
    const SHOWS: &'static str = "what an event costs with several loggers, side by side (KLogger table 1)";
    const TEXTS: StudyTexts = texts!("loggers");
    const IS_SIMULATED: bool = false;
    type Found = Vec<Cost>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let rounds = ROUNDS[usize::from(options.is_quick)];
        let mut stage = Stage::set_up();
        let samples = interleave("loggers", rounds, &ALL, progress, |logger| match &mut stage {
            Ok(stage) => stage.measure(logger),
            Err(reason) => Err(reason.clone()),
        });
        let costs = cost::of(&samples);
        let rows = costs.iter().flat_map(|cost| [Some(&cost.event), cost.times.as_ref()]);
        report.rows.extend(rows.flatten().cloned());
        report.rows.push(Row::new(event_name("LTTng, kernel"), "ns", Err(Reason::new(lttng_modules()))));
        costs
    }

    fn findings(costs: &Self::Found) -> Findings {
        findings::of(costs)
    }

    fn facts(costs: &Self::Found) -> impl Serialize {
        let ns: BTreeMap<_, _> = costs.iter().map(|cost| (cost.name, cost.event.median)).collect();
        json!({ "ns": ns, "loggers": costs.iter().map(line).collect::<Vec<_>>() })
    }

    fn pictures(costs: &Self::Found) -> Vec<StudyFile> {
        picture::of(costs.iter().filter_map(|cost| Some((cost.name, cost.quartiles()?))))
    }

    fn data(_: &Self::Found, _: &Report) -> Vec<StudyFile> {
        Vec::new()
    }

    fn redrawn(kept: &KeptRows) -> Vec<StudyFile> {
        if kept.is_empty() {
            return Vec::new();
        }
        picture::of(cost::names().filter_map(|name| Some((name, kept.find(&event_name(name))?))))
    }
}

/// A line of the table of loggers.
fn line(cost: &Cost) -> Value {
    let Row { median, q1, q3, .. } = cost.event;
    let times = cost.times.as_ref().and_then(|times| times.median);
    json!({ "name": cost.name, "ns": median, "q1": q1, "q3": q3, "times": times })
}

/// The reason why LTTng's modules are missing. The paper's LTT was a part of the kernel; its successor consists of
/// modules.
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

#[cfg(test)]
mod tests {
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
}
