//! What scheduling costs under sched_ext: a byte that goes to and fro, from waking to running, a decision outside the
//! kernel, and one inside it among ten to ten thousand processes.

use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_shares::By;
use serde_json::{Value, json};

use super::programs::{OPERATIONS, PerOperation, decision, sums};
use super::recorded::Recorder;
use super::stage::member::Role;
use super::stage::{Means, OfMeans, Part, Run, Setting, available, median};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about, measure_until_failure};

const WEIGHTS: Means = Means::Dealt(By::Cgroup, "vtrr");
const INSIDE: Means = Means::Dealt(By::SchedExt, "vtrr");
const OUTSIDE: Means = Means::Dealt(By::SchedExt, "distributed-vtrr-kernel");
const MEANS: [Means; 4] = [WEIGHTS, Means::Empty, INSIDE, OUTSIDE];
/// How many processes there are beside each other.
const CROWDS: [usize; 4] = [10, 100, 1000, 10_000];

/// How many times as long a byte may take to go to and fro as under the kernel's own scheduler.
const MOST_TIMES: f64 = 1.2;
/// From waking to running outside the kernel, in the middle and at the 99th percentile, in microseconds.
const MOST_US: [f64; 2] = [25.0, 60.0];
const LEAST_DECISIONS: f64 = 60_000.0;
/// How many times as much a decision may cost among many processes as among few.
const MOST_GROWTH: f64 = 1.3;

const fn part(role: Role, domain: usize) -> Part {
    Part { role, domain }
}

/// One pair plays beside nothing else: no one has to choose. Of four pairs, several wait at a time. A sleeper wakes on an idle processor, and beside a hog of another group.
const PLAYERS: [Part; 2] = [part(Role::Player, 0), part(Role::Player, 0)];
const PAIRS: [Part; 8] = [part(Role::Player, 0); 8];
const ALONE: [Part; 1] = [part(Role::Sleeper, 0)];
const BESIDE: [Part; 2] = [part(Role::Sleeper, 0), part(Role::Hog, 1)];

pub(crate) struct Found {
    play: Vec<OfMeans>,
    pairs: Vec<OfMeans>,
    alone: Vec<OfMeans>,
    beside: Vec<OfMeans>,
    /// What each operation of a decision inside the kernel took in each run, in nanoseconds, among this number of processes.
    crowds: Vec<(usize, Vec<PerOperation>)>,
}

pub(crate) struct LiveCost;

impl Study for LiveCost {
    about!(
        "live-cost",
        "what scheduling costs under sched_ext: a switch, a wake-up, a decision inside and outside"
    );
    type Found = Found;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let (rounds, time) = if options.is_quick { (1, 1) } else { (5, 3) };
        let time = Duration::from_secs(time);
        let all = available(&MEANS, report);
        let mut runs = |parts: &[Part], run: OneRun| {
            let run = |means, progress: &dyn Progress| run(means, parts, time, progress);
            OfMeans::in_turns(&all, rounds, report, progress, run)
        };
        let (play, pairs) = (runs(&PLAYERS, unseen), runs(&PAIRS, unseen));
        let (alone, beside) = (runs(&ALONE, recorded), runs(&BESIDE, recorded));
        report.rows.extend(play.iter().flat_map(rows_of_play));
        report.rows.extend(pairs.iter().flat_map(rows_of_pairs));
        for (woken, what) in [(&alone, "on an idle processor"), (&beside, "beside a hog")] {
            report.rows.extend(woken.iter().flat_map(|of_means| rows_of_woken(of_means, what)));
        }
        let crowds = if all.contains(&INSIDE) { crowds(rounds, time, report, progress) } else { Vec::new() };
        Found { play, pairs, alone, beside, crowds }
    }

    fn findings(found: &Self::Found) -> Findings {
        vec![
            ("switch", switch(&found.play)),
            ("wake", wake(&found.alone)),
            ("wake-beside", wake(&found.beside)),
            ("decisions", decisions(&found.pairs)),
            ("growth", growth(&found.crowds)),
        ]
    }

    fn facts(found: &Self::Found) -> Value {
        let line = |of_means: &OfMeans| {
            let woken = |found: &[OfMeans]| {
                let of_means = OfMeans::find(found, of_means.means);
                [500, 990].map(|permille| median(&waits(of_means?, permille)))
            };
            json!({
                "means": of_means.means.name(), "turn_us": median(&turns_us(of_means)),
                "pairs_us": OfMeans::find(&found.pairs, of_means.means).and_then(|pairs| median(&turns_us(pairs))),
                "own_us": OfMeans::find(&found.pairs, of_means.means).and_then(|pairs| median(&own_us(pairs))),
                "alone": woken(&found.alone), "beside": woken(&found.beside),
            })
        };
        let crowd = |(processes, costs): &(usize, Vec<PerOperation>)| {
            let each: [_; OPERATIONS.len()] = std::array::from_fn(|nth| median(&of_operation(costs, nth)));
            json!({ "processes": processes, "ns": median(&sums(costs)), "each": each })
        };
        json!({
            "lines": found.play.iter().map(line).collect::<Vec<_>>(),
            "crowds": found.crowds.iter().map(crowd).collect::<Vec<_>>(),
        })
    }

    fn pictures(_found: &Self::Found) -> Vec<StudyFile> {
        Vec::new()
    }
}

/// Of the domains, as many as there are.
const SHARES: [u32; 2] = [1; 2];
/// How often members are looked at: so seldom that it is in less than a hundredth of what is measured.
const LOOK: Duration = Duration::from_millis(200);

fn setting(parts: &[Part]) -> Setting<'_> {
    let domains = parts.iter().map(|part| part.domain + 1).max().unwrap_or(0);
    Setting { look: LOOK, ..Setting::of(parts, &SHARES[..domains]) }
}

type OneRun = fn(Means, &[Part], Duration, &dyn Progress) -> Result<Run, Reason>;

fn unseen(means: Means, parts: &[Part], time: Duration, progress: &dyn Progress) -> Result<Run, Reason> {
    Run::of(means, &setting(parts), time, progress)
}

/// A run of which the recorder sees how long its first member, a sleeper, waits from waking to running. What recording costs is
/// in it.
fn recorded(means: Means, parts: &[Part], time: Duration, progress: &dyn Progress) -> Result<Run, Reason> {
    let mut recorder = Recorder::begin()?;
    let run = Run::seen_by(&mut recorder, means, &setting(parts), time, progress)?;
    Ok(Run { waits_us: recorder.recorded()?.waits_us(0), ..run })
}

fn waits(of_means: &OfMeans, permille: usize) -> Vec<f64> {
    of_means.each(|run| run.waits_us(permille))
}

/// What a byte takes to go to and fro, in microseconds: two switches, two wake-ups. Where several pairs play, it is the time
/// between two bytes of any.
fn turns_us(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| {
        // Each byte that has come back was counted by both players.
        let done = run.done.iter().sum::<u64>() as f64 / 2.0;
        (done > 0.0).then(|| run.seconds() * 1e6 / done)
    })
}

/// What a decision took outside the kernel, in microseconds.
fn own_us(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| {
        let work = run.work.filter(|work| work.own_ns > 0 && work.decisions > 0)?;
        Some(work.own_ns as f64 / work.decisions as f64 / 1e3)
    })
}

/// Decisions a second.
fn rates(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| Some(run.work?.decisions as f64 / run.seconds()))
}

fn rows_of_play(of_means: &OfMeans) -> Vec<Row> {
    vec![Row::new(format!("{}: to and fro", of_means.means.name()), "µs", Ok(turns_us(of_means)))]
}

fn rows_of_pairs(of_means: &OfMeans) -> Vec<Row> {
    let name = format!("{}: four pairs", of_means.means.name());
    let all = [
        ("to and fro", "µs", turns_us(of_means)),
        ("decisions a second", "", rates(of_means)),
        ("own time for a decision", "µs", own_us(of_means)),
    ];
    let known = all.into_iter().filter(|(_, _, values)| !values.is_empty());
    known.map(|(what, unit, values)| Row::new(format!("{name}: {what}"), unit, Ok(values))).collect()
}

fn rows_of_woken(of_means: &OfMeans, what: &str) -> Vec<Row> {
    let row = |(permille, place)| {
        let name = format!("{}: from waking to running {what}, {place}", of_means.means.name());
        Row::new(name, "µs", Ok(waits(of_means, permille)))
    };
    [(500, "median"), (990, "99th percentile")].map(row).into()
}

/// What a decision inside the kernel takes, among more and more processes of one group.
fn crowds(
    rounds: u64,
    time: Duration,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Vec<(usize, Vec<PerOperation>)> {
    measure_until_failure("crowds", CROWDS.into_iter(), report, progress, |processes, progress| {
        let costs = (0..rounds).map(|_| in_crowd(processes, time, progress)).collect::<Result<Vec<_>, _>>();
        let name = format!("a decision inside the kernel among {processes} processes");
        match costs {
            Ok(costs) => (rows_of_crowd(&name, &costs), Some((processes, costs))),
            Err(reason) => (vec![Row::new(name, "ns", Err(reason))], None),
        }
    })
}

fn rows_of_crowd(name: &str, costs: &[PerOperation]) -> Vec<Row> {
    let each = OPERATIONS
        .iter()
        .enumerate()
        .map(|(nth, operation)| Row::new(format!("{name}: {operation}"), "ns", Ok(of_operation(costs, nth))));
    std::iter::once(Row::new(name, "ns", Ok(sums(costs)))).chain(each).collect()
}

fn of_operation(costs: &[PerOperation], nth: usize) -> Vec<f64> {
    costs.iter().map(|each| each[nth]).collect()
}

fn in_crowd(processes: usize, time: Duration, progress: &dyn Progress) -> Result<PerOperation, Reason> {
    let parts = vec![part(Role::Hog, 0); processes];
    decision(INSIDE, &setting(&parts), time, progress)
}

/// How many times as long a byte takes to go to and fro as under the kernel's own scheduler.
fn switch(play: &[OfMeans]) -> Option<Finding> {
    let of = |means| median(&turns_us(OfMeans::find(play, means)?));
    let (kernel, inside) = (of(WEIGHTS)?, of(INSIDE)?);
    let times = inside / kernel;
    let floor = of(Means::Empty)? / kernel;
    Some(Finding::new(
        json!({ "times": times, "floor": floor, "kernel_us": kernel, "inside_us": inside }),
        times <= MOST_TIMES,
    ))
}

fn wake(woken: &[OfMeans]) -> Option<Finding> {
    let of_means = OfMeans::find(woken, OUTSIDE)?;
    let (p50, p99) = (median(&waits(of_means, 500))?, median(&waits(of_means, 990))?);
    Some(Finding::new(json!({ "p50": p50, "p99": p99 }), p50 <= MOST_US[0] && p99 <= MOST_US[1]))
}

/// How many decisions a second a processor has room for that does nothing else.
fn decisions(play: &[OfMeans]) -> Option<Finding> {
    let own_us = median(&own_us(OfMeans::find(play, OUTSIDE)?))?;
    let a_second = 1e6 / own_us;
    Some(Finding::new(json!({ "a_second": a_second, "own_us": own_us }), a_second >= LEAST_DECISIONS))
}

/// How many times as much a decision costs at most as among the fewest processes.
fn growth(crowds: &[(usize, Vec<PerOperation>)]) -> Option<Finding> {
    let costs: Vec<_> = crowds.iter().filter_map(|(_, costs)| median(&sums(costs))).collect();
    let (few, more) = costs.split_first()?;
    let (few, most) = (*few, more.iter().copied().max_by(f64::total_cmp)?);
    let processes = crowds.last()?.0;
    let holds = processes == CROWDS[CROWDS.len() - 1] && most <= MOST_GROWTH * few;
    Some(Finding::new(
        json!({ "times": most / few, "processes": processes, "few_ns": few, "most_ns": most }),
        holds,
    ))
}
