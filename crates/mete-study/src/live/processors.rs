//! What a decision inside the kernel takes on all processors, and on one.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_shares::By;
use serde_json::{Value, json};

use super::programs::{PerOperation, decision, sums};
use super::stage::member::Role;
use super::stage::{Means, Part, Setting, available, median};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about};

/// How many times as much a decision may take on all as on one.
const MOST_TIMES: f64 = 1.3;
/// How many processes compute on each processor, in one group.
const HOGS: usize = 20;
const ROUNDS: u64 = 3;
/// How long an instruction takes where time goes by them: `-icount shift=2` in scripts/vm/run.sh.
const NS_EACH: f64 = 4.0;
const INSIDE: Means = Means::Dealt(By::SchedExt, "vtrr");

/// What a decision took in each run, in nanoseconds.
pub(crate) struct OnProcessors {
    processors: usize,
    on_one: Vec<f64>,
    on_all: Vec<f64>,
}

pub(crate) struct LiveProcessors;

impl Study for LiveProcessors {
    about!("live-processors", "what a decision inside the kernel takes on all processors, and on one");
    type Found = Option<OnProcessors>;

    fn measure(_options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let processors = available_parallelism().map_or(1, usize::from);
        let names =
            ["one processor, the others absent".to_owned(), format!("each of {processors} processors")];
        let names = names.map(|on| format!("a decision inside the kernel with {HOGS} hogs on {on}"));
        if available(&[INSIDE], report).is_empty() {
            return None;
        }
        match measured(processors, progress) {
            Ok(found) => {
                let rows = names.into_iter().zip([&found.on_one, &found.on_all]);
                report.rows.extend(rows.map(|(name, costs)| Row::new(name, "ns", Ok(costs.clone()))));
                Some(found)
            }
            Err(reason) => {
                let [name, _] = names;
                report.rows.push(Row::new(name, "ns", Err(reason)));
                None
            }
        }
    }

    fn findings(found: &Self::Found) -> Findings {
        vec![("decision", found.as_ref().and_then(OnProcessors::finding))]
    }

    fn facts(found: &Self::Found) -> Value {
        let lines = found.iter().flat_map(OnProcessors::lines).collect::<Vec<_>>();
        json!({ "lines": lines, "hogs": HOGS })
    }

    fn pictures(_found: &Self::Found) -> Vec<StudyFile> {
        Vec::new()
    }
}

fn measured(processors: usize, progress: &mut dyn Progress) -> Result<OnProcessors, Reason> {
    check_counted()?;
    if processors == 1 {
        return Err(Reason::new("there is one processor only"));
    }
    progress.begin("runs", 2 * ROUNDS);
    let absent = AbsentProcessors::all_but_one()?;
    let on_one = costs(1, processors, progress)?;
    drop(absent);
    Ok(OnProcessors { processors, on_one, on_all: costs(processors, processors, progress)? })
}

/// Real time differs with all that a machine does beside; and who measures takes no processors away from its owner.
fn check_counted() -> Result<(), Reason> {
    let is_counted = env::var_os("METE_VM_COUNTED").is_some_and(|value| value == "1");
    let why = "time does not go by instructions here (scripts/vm/run.sh --counted)";
    is_counted.then_some(()).ok_or_else(|| Reason::new(why))
}

/// On so many present processors of those that there are.
fn costs(present: usize, processors: usize, progress: &mut dyn Progress) -> Result<Vec<f64>, Reason> {
    let parts = vec![Part { role: Role::Hog, domain: 0 }; HOGS * present];
    // Emulated processors take turns of a tick each, so that none of them can end a slice sooner.
    let quantum = Some(Duration::from_millis(processors as u64));
    let setting = Setting { is_wide: true, quantum, ..Setting::of(&parts, &[1]) };
    let time = Duration::from_millis(500 * processors as u64);
    let mut costs: Vec<PerOperation> = Vec::new();
    for _ in 0..ROUNDS {
        costs.push(decision(INSIDE, &setting, time, progress)?);
        progress.step();
    }
    Ok(sums(&costs))
}

impl OnProcessors {
    fn lines(&self) -> [Value; 2] {
        let line = |(processors, costs): (usize, &[f64])| json!({ "processors": processors, "ns": median(costs), "instructions": median(costs).map(|ns| ns / NS_EACH) });
        [(1, &self.on_one[..]), (self.processors, &self.on_all)].map(line)
    }

    fn finding(&self) -> Option<Finding> {
        let (on_one, on_all) = (median(&self.on_one)?, median(&self.on_all)?);
        let times = on_all / on_one;
        let found = json!({ "times": times, "processors": self.processors, "one": on_one / NS_EACH, "all": on_all / NS_EACH });
        Some(Finding::new(found, times <= MOST_TIMES))
    }
}

/// All processors but the first, which are absent as long as this lives.
struct AbsentProcessors(Vec<PathBuf>);

impl AbsentProcessors {
    fn all_but_one() -> Result<AbsentProcessors, Reason> {
        let switch = |nth| PathBuf::from(format!("/sys/devices/system/cpu/cpu{nth}/online"));
        let mut absent = AbsentProcessors(Vec::new());
        for path in (1..).map(switch).take_while(|path| path.exists()) {
            fs::write(&path, "0").map_err(Reason::while_trying("take a processor away"))?;
            absent.0.push(path);
        }
        Ok(absent)
    }
}

impl Drop for AbsentProcessors {
    fn drop(&mut self) {
        // One that does not come back is missing in what is measured next, and that says so.
        self.0.iter().for_each(|path| drop(fs::write(path, "1")));
    }
}
