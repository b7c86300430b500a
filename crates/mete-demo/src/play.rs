//! `mete demo`: logs real processes and schedules them. Drivers, clients and hogs run without logging, with
//! logging, and with the scheduler acting, in turn. The results show what logging costs and what acting on
//! the logs gains. Then comes the second act.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mete_base::draft::Draft;
use mete_command::interrupt;
use mete_command::lab::DemoOptions;
use mete_command::output::Output;

use crate::alternate::{Alternated, alternate};
use crate::cast::{CastProcess, DemoStage, Tally, own_processors, usual_hogs};
use crate::crowds::SecondAct;
use crate::observe::{Observed, Observer};
use crate::report::{self, Story};
use crate::second_act;
use crate::share_show;
use crate::show::{
    Show, announce, completeness, in_short, machine, matrix_table, print_stretch, sources, summary_table,
};
use crate::summary::{Stretch, StretchKind};

/// The time between the start of the clients and the measurement. In it, the kernel spreads the processes,
/// and the scheduler sees three periods and acts.
const SETTLE: Duration = Duration::from_millis(1500);
/// How long the processes run before the first stretch that is measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// How long the first act takes about.
fn first_act_time(options: &DemoOptions) -> Duration {
    (SETTLE * 2 + options.stretch * 3) * options.rounds
}

/// Plays the demo.
///
/// # Errors
///
/// If the processes cannot be started, the report cannot be written, or there is one processor only.
pub fn run(options: &DemoOptions, out: &mut Output) -> Result<ExitCode> {
    let processors = own_processors()?;
    // Begun now, so that a place that cannot be written is found before two minutes of work.
    let report = Draft::begin(&options.report).with_context(|| cannot_write(&options.report))?;
    interrupt::listen()?;
    let hogs = options.hogs.unwrap_or_else(|| usual_hogs(&processors));
    let stage = DemoStage::open(&processors, hogs)?;
    announce(options, &stage, out)?;
    let mut show = Show::new(options, first_act_time(options) + second_act::time(options));
    play(&stage, StretchKind::Off, &DemoOptions { stretch: WARM_UP, ..options.clone() }, &mut show)?;
    for round in 0..options.rounds {
        // The order changes from round to round, because the first of two may have an advantage.
        for is_acting in [round % 2 == 1, round % 2 == 0] {
            let played = if is_acting {
                play(&stage, StretchKind::Act, options, &mut show)?.into_iter().collect()
            } else {
                play_alternating(&stage, options, &mut show)?
            };
            for (stretch, observed) in played {
                print_stretch(round, &stretch, &observed, &show, out)?;
                show.keep(stretch, observed);
            }
        }
    }
    if show.stretches.is_empty() {
        return Ok(interrupt::ended_without_results("no stretch is over, so there is nothing to show"));
    }
    let machine = machine(&stage);
    // Its processes would compete with those of the second act.
    drop(stage);
    let second_act = second_act::play(options, &show, out)?;
    conclude(options, &machine, &show, &second_act, report, out)?;
    let first_is_over = show.stretches.len() == options.rounds as usize * StretchKind::ALL.len();
    Ok(interrupt::ended(first_is_over && second_act.is_over(options)))
}

fn cannot_write(report: &Path) -> String {
    format!("cannot write the report {}: choose another place with --report FILE", report.display())
}

/// Plays a stretch without logging and one with logging, in pieces that alternate, with the same fresh
/// clients. Returns nothing if the end was asked for before both were over.
fn play_alternating(
    stage: &DemoStage,
    options: &DemoOptions,
    show: &mut Show,
) -> Result<Vec<(Stretch, Observed)>> {
    if interrupt::asked() {
        return Ok(Vec::new());
    }
    let clients = stage.start_clients(options.clients)?;
    wait(&mut None, SETTLE, StretchKind::Off, show);
    let alternated = alternate(stage, &clients, !options.no_kernel, options.stretch, |kind, matrix| {
        show.tick(kind, &in_short(matrix, show));
    })?;
    let Some(Alternated { off, on, quotients, observed }) = alternated else {
        return Ok(Vec::new());
    };
    check_alive(off.tally + on.tally, &clients)?;
    show.quotients.extend(quotients);
    let without = measured(StretchKind::Off, off.tally, off.took, &Observed::default());
    let with = measured(StretchKind::Log, on.tally, on.took, &observed);
    Ok(vec![(without, Observed::default()), (with, observed)])
}

/// Plays one stretch with fresh clients; `None` if the end was asked for before it was over.
fn play(
    stage: &DemoStage,
    kind: StretchKind,
    options: &DemoOptions,
    show: &mut Show,
) -> Result<Option<(Stretch, Observed)>> {
    if interrupt::asked() {
        return Ok(None);
    }
    let clients = stage.start_clients(options.clients)?;
    let mut observer = match kind {
        StretchKind::Off => None,
        StretchKind::Log | StretchKind::Act => {
            Some(Observer::start(kind, stage, &clients, !options.no_kernel)?)
        }
    };
    wait(&mut observer, SETTLE, kind, show);
    // A difference, because the counters on the board go on from stretch to stretch.
    let (before, begin) = (stage.tally(clients.len()), Instant::now());
    wait(&mut observer, options.stretch, kind, show);
    let (done, took) = (stage.tally(clients.len()) - before, begin.elapsed());
    let observed = observer.map(Observer::finish).unwrap_or_default();
    if interrupt::asked() {
        return Ok(None);
    }
    check_alive(done, &clients)?;
    Ok(Some((measured(kind, done, took, &observed), observed)))
}

fn measured(kind: StretchKind, done: Tally, took: Duration, observed: &Observed) -> Stretch {
    Stretch {
        kind,
        throughput: done.requests as f64 / took.as_secs_f64(),
        crossings: done.crossings as f64 / done.requests.max(1) as f64,
        // Always known: `check_alive` has refused a stretch without requests.
        latency_us: [0.5, 0.99].map(|part| done.latencies.quantile_ns(part).unwrap_or(f64::NAN) / 1e3),
        moves: observed.moves.len(),
        rows: observed.rows,
        lost: observed.lost,
    }
}

fn check_alive(done: Tally, clients: &[CastProcess]) -> Result<()> {
    if done.requests == 0 {
        bail!(
            "none of the {} clients got an answer in a whole stretch: the demo's processes are not running",
            clients.len()
        );
    }
    Ok(())
}

/// Lets the processes run for a while, and logs them if there is an observer.
fn wait(observer: &mut Option<Observer>, length: Duration, kind: StretchKind, show: &Show) {
    let end = Instant::now() + length;
    match observer {
        Some(observer) => observer.run_until(end, |matrix| show.tick(kind, &in_short(matrix, show))),
        None => {
            while Instant::now() < end && !interrupt::asked() {
                std::thread::sleep(
                    Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())),
                );
                show.tick(kind, "");
            }
        }
    }
}

fn conclude(
    options: &DemoOptions,
    machine: &str,
    show: &Show,
    second_act: &SecondAct,
    report: Draft,
    out: &mut Output,
) -> Result<()> {
    let story = Story {
        command: &std::env::args().collect::<Vec<_>>().join(" "),
        machine,
        sources: &sources(show, options),
        stretch_s: options.stretch.as_secs_f64(),
        clients: &show.clients,
        drivers: &show.drivers,
        matrix: &show.logged.matrix,
        moves: &show.moves,
        date: &mete_measure::machine::Machine::here().date,
        quotients: &show.quotients,
        second_act,
    };
    // If the report cannot be written, the tables are printed all the same, and the error comes last.
    let written = report.finish(&report::html(&story, &show.stretches));
    if !show.logged.matrix.is_empty() {
        out.text(format!("\n{}", matrix_table(show)))?;
    }
    out.text(format!("\n{}\n", summary_table(&show.stretches)))?;
    if let Some(sentence) = report::verdict(&show.stretches, &show.quotients) {
        out.text(sentence)?;
    }
    if !show.logged.matrix.is_empty() {
        out.text(completeness(&show.stretches))?;
    }
    match second_act {
        SecondAct::Impossible(why) => out.text(format!("\nThere was no second act: {why}."))?,
        SecondAct::Played(stretches) if stretches.is_empty() => {}
        SecondAct::Played(stretches) => {
            out.text(format!("\n{}\n", share_show::table(stretches)))?;
            share_show::verdict(stretches).map_or(Ok(()), |sentence| out.text(sentence))?;
        }
    }
    written.with_context(|| cannot_write(&options.report))?;
    out.text(format!("The report, with plots: {}", options.report.display()))
}
