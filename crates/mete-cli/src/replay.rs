//! `mete replay`: does the work of a recorded schedule again under other policies.

mod distance;

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, stdin};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use mete_command::output::Output;
use mete_command::table::{Head, Table, grouped, number, shorten};
use mete_command::value::{duration, none_or_more, within};
use mete_convert::recorded_schedule;
use mete_policy::{CATALOG, Nanoseconds, by_name};
use mete_sim::metrics::Latencies;
use mete_sim::replay::{self, Fidelity, Kernel, Outcome, Recording, RecordingError, Settings, Under};
use mete_sim::{ClientReport, all_processors, in_parallel};
use serde::Serialize;

use self::distance::{KEYS, WITHIN};
use crate::latency::{NOTHING, milliseconds, quantile};
use crate::parse::known_policy;

/// Options of `mete replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReplayOptions {
    /// A directory that `mete record --schema scheduler` wrote; or a file with the text of
    /// `perf sched script`, `perf script` or an ftrace `trace` file, or one that `mete sim --trace` wrote; -
    /// is standard input
    recording: PathBuf,
    /// The policies under which the work is done again, side by side; eevdf is Linux's own scheduler, as on
    /// the recorded machine, and eevdf-1995 is the policy of the paper
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "eevdf,vtrr,rr", value_parser = policy)]
    policy: Vec<String>,
    /// The number of processors, instead of the recorded one
    #[arg(long, value_name = "N", value_parser = within::<u16>(1..=u16::MAX))]
    processors: Option<u16>,
    /// The policies' time quantum: 3ms, 10ms
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3ms")]
    quantum: Duration,
    /// Additional cost of a context switch; what it cost when recorded is already part of each thread's work
    #[arg(long, value_name = "TIME", value_parser = duration)]
    switch: Option<Duration>,
    /// How many threads to show: those that worked most
    #[arg(long, value_name = "N", value_parser = none_or_more::<usize>, default_value_t = 10)]
    threads: usize,
    /// The seed of randomised policies
    #[arg(long, value_name = "N", value_parser = none_or_more::<u64>, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object for each policy and each thread
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo mete record --schema scheduler -o trace --for 5s
  mete replay trace
  mete replay trace --policy eevdf,vtrr,stride --processors 4
  sudo perf sched record -a -- sleep 5
  sudo perf sched script --ns > schedule.txt
  mete replay schedule.txt
  mete replay mix.rows --policy vtrr,stride
  mete replay schedule.txt --json | jq -r 'select(.kind == \"run\") | .end_ns'

A trace of a simulated run has only the wake-ups that a driver or a guest's kernel made.

Three things are replayed of each thread: its computing, the threads that it woke and at which point of
its own progress, and how long it waited for things outside (timers, devices, the network). The costs of
wake-ups are drawn from the recording, too.

eevdf is Linux's own scheduler: a queue for each processor, slices that end at ticks, nice values and
real-time priorities as recorded. It is always run: the smaller its distance from the recording, the more
the other results can be trusted. Such a recording has no groups and no masks of processors. Under the
other policies, all threads have equal shares and may run on any processor.";

/// Reads, runs and prints.
pub fn run(options: &ReplayOptions, output: &mut Output) -> anyhow::Result<()> {
    let recording = read(&options.recording)?;
    let outcomes = outcomes(options, &recording)?;
    let recorded = replay::as_recorded(&recording);
    let fidelity = distance(options, &recording, &recorded, &outcomes);
    // Linux's scheduler also runs if it was not asked for, only for the comparison above.
    let outcomes: Vec<_> = outcomes
        .into_iter()
        .filter(|outcome| options.policy.iter().any(|name| name == outcome.policy))
        .collect();
    objects(&recording, &recorded, &outcomes, fidelity.as_ref(), output)?;
    output.text(heading(&recording))?;
    output.text(String::new())?;
    output.text(summary(&recording, &recorded, &outcomes))?;
    output.text(String::new())?;
    if let Some(fidelity) = &fidelity {
        output.text(distance::text(fidelity, &outcomes))?;
        output.text(String::new())?;
    }
    output.text(threads(options.threads, &recording, &recorded, &outcomes, fidelity.as_ref()))
}

/// The name of Linux's own scheduler in this subcommand.
const LINUX: &str = "eevdf";
/// The name of the catalog's `eevdf` in this subcommand: the policy of the paper, on which Linux's scheduler
/// is based.
const PAPER: &str = "eevdf-1995";

/// The name of a policy of the catalog, or of [`PAPER`].
fn policy(name: &str) -> Result<String, String> {
    known_policy(name, CATALOG.iter().map(|entry| entry.name).chain([PAPER]))
}

/// The policies to run, each once. The recorded machine's policy is always among them if it is known: it
/// shows how far the replay is from the recording.
fn policies(options: &ReplayOptions, recording: &Recording, kernel: Kernel) -> Vec<(&'static str, Under)> {
    let mut all: Vec<(&'static str, Under)> = Vec::new();
    let is_linux = !recording.machine.is_simulated;
    for name in options.policy.iter().map(String::as_str).chain(is_linux.then_some(LINUX)) {
        let under = match name {
            PAPER => by_name(LINUX).map(|entry| (PAPER, Under::Policy(entry))),
            LINUX if is_linux => Some((LINUX, Under::Linux(kernel))),
            name => by_name(name).map(|entry| (entry.name, Under::Policy(entry))),
        };
        all.extend(under.filter(|(name, _)| all.iter().all(|(other, _)| other != name)));
    }
    all
}

fn read(path: &Path) -> anyhow::Result<Recording> {
    let reader: Box<dyn BufRead> = if path == Path::new("-") {
        if stdin().is_terminal() {
            bail!(
                "standard input is a terminal: pipe the text of `perf sched script` into this, or name a file"
            );
        }
        Box::new(stdin().lock())
    } else {
        if path.is_dir() {
            return Ok(recorded_schedule(path)?);
        }
        let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
        Box::new(BufReader::new(file))
    };
    Recording::read(reader).map_err(|error| refused(path, error))
}

/// The error about an unreadable recording. For a file in perf's own format, it gives the command that prints
/// it.
fn refused(path: &Path, error: RecordingError) -> anyhow::Error {
    match error {
        RecordingError::PerfData if path != Path::new("-") => anyhow!(
            "{0} is in perf's own format, not text: print it with `perf sched script --ns -i {0} > schedule.txt` and \
             replay schedule.txt",
            path.display()
        ),
        error => anyhow!(error).context(format!("{} is no recorded schedule", path.display())),
    }
}

fn kernel(options: &ReplayOptions, recording: &Recording) -> Kernel {
    Kernel::of(recording, processors(options, recording))
}

fn processors(options: &ReplayOptions, recording: &Recording) -> u16 {
    options.processors.unwrap_or(u16::try_from(recording.processors).unwrap_or(u16::MAX))
}

fn outcomes(options: &ReplayOptions, recording: &Recording) -> anyhow::Result<Vec<Outcome>> {
    let policies = policies(options, recording, kernel(options, recording));
    let nanoseconds = |time: Duration| Nanoseconds::new(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let settings = Settings {
        processors: processors(options, recording),
        quantum_ns: nanoseconds(options.quantum).max(Nanoseconds::new(1)),
        switch_ns: options.switch.map_or(Nanoseconds::ZERO, nanoseconds),
        seed: options.seed,
        measured: None,
    };
    let outcomes = in_parallel(
        policies.len(),
        all_processors(),
        |number| {
            let (name, under) = policies[number];
            replay::run(recording, under, settings).map(|outcome| Outcome { policy: name, ..outcome })
        },
        // A replay that is stopped has nothing to show, so that Ctrl-C has its usual effect here.
        || ControlFlow::Continue(()),
    );
    outcomes.unwrap_or_default().into_iter().map(|outcome| Ok(outcome?)).collect()
}

/// `None` if the recorded policy is not known, no wait was recorded, or the replay has another number of
/// processors.
fn distance(
    options: &ReplayOptions,
    recording: &Recording,
    recorded: &[ClientReport],
    outcomes: &[Outcome],
) -> Option<Fidelity> {
    let is_same = !recording.machine.is_simulated
        && options.processors.is_none_or(|processors| usize::from(processors) == recording.processors);
    let linux = outcomes.iter().find(|outcome| outcome.policy == LINUX).filter(|_| is_same)?;
    Fidelity::of(recording, recorded, linux, kernel(options, recording))
}

fn heading(recording: &Recording) -> String {
    format!(
        "recorded: {} on {} in {} ms, {} ms of work.{}",
        number(recording.scripts.len() as u64, "thread"),
        number(recording.processors as u64, "processor"),
        milliseconds(recording.duration_ns.get()),
        milliseconds(recording.work_ns().get()),
        missing(recording),
    )
}

/// What is not known because events are missing; empty if none are.
fn missing(recording: &Recording) -> String {
    if recording.gaps == 0 && recording.uncertain_ns.is_zero() {
        return String::new();
    }
    let part = recording.uncertain_ns.part_of(recording.capacity_ns());
    format!(
        "\n{}: events are missing from the recording,\nso some threads' progress is not exact. {} ms, {:.2} % of the \
         processors' time,\ncannot be assigned to a thread and belong to none here.",
        number(recording.gaps, "contradiction"),
        milliseconds(recording.uncertain_ns.get()),
        100.0 * part,
    )
}

const AS_RECORDED: &str = "as recorded";

/// One line for each policy: the waits of all threads, and when the work was done.
fn summary(recording: &Recording, recorded: &[ClientReport], outcomes: &[Outcome]) -> String {
    let heads = ["wake-ups", "median ms", "mean ms", "99 % ms", "max ms", "done after", "switches"];
    let mut table = Table::of_numbers("policy", heads);
    let row = |name: &str, threads: &[ClientReport], end_ns, switches| {
        let waits = replay::all_waits(threads);
        let figures = [0.5, 0.99, 1.0].map(|part| quantile(Some(&waits), part));
        let mean = waits.mean_ns().map_or(NOTHING.to_owned(), |mean_ns| milliseconds(mean_ns as u64));
        let [median, most, max] = figures;
        [name.to_owned(), grouped(waits.count()), median, mean, most, max, milliseconds(end_ns), switches]
    };
    table.row(row(AS_RECORDED, recorded, recording.duration_ns.get(), NOTHING.to_owned()));
    for outcome in outcomes {
        let switches = outcome.threads.iter().map(|thread| thread.switches).sum();
        table.row(row(outcome.policy, &outcome.threads, outcome.end_ns.get(), grouped(switches)));
    }
    format!(
        "{}\n\nmedian, mean, 99 %, max: from waking to running, all threads. Done after: in ms.",
        table.text()
    )
}

/// The most letters of a thread's name in a table.
const NAME: usize = 20;

/// The threads that worked most, each with its waits under each policy.
fn threads(
    most: usize,
    recording: &Recording,
    recorded: &[ClientReport],
    outcomes: &[Outcome],
    fidelity: Option<&Fidelity>,
) -> String {
    let mut order: Vec<usize> = (0..recorded.len()).collect();
    order.sort_by_key(|&thread| std::cmp::Reverse(recorded[thread].ran_ns));
    let heads =
        [Head::Name("thread"), Head::Number("number"), Head::Number("work ms"), Head::Number(AS_RECORDED)];
    let policies = outcomes.iter().map(|outcome| Head::Number(outcome.policy));
    let mut table = Table::new(heads.into_iter().chain(policies));
    for &thread in order.iter().take(most) {
        let figure = |report: &ClientReport| quantile(report.wake_to_run.as_ref(), 0.99);
        let left = [
            shorten(&recorded[thread].name, NAME),
            recording.scripts[thread].pid.to_string(),
            milliseconds(recorded[thread].ran_ns.get()),
            figure(&recorded[thread]),
        ];
        let cells = outcomes.iter().map(|outcome| {
            let is_within =
                fidelity.is_some_and(|fidelity| fidelity.is_within_of_thread(thread, recorded, outcome));
            format!("{}{}", if is_within { WITHIN } else { "" }, figure(&outcome.threads[thread]))
        });
        table.row(left.into_iter().chain(cells));
    }
    let legend = if fidelity.is_some() {
        format!(
            "\n{WITHIN} within the replay's error: as close to the figure of {LINUX} as that figure is to the recorded \
             one, or closer"
        )
    } else {
        String::new()
    };
    format!("from waking to running, 99 %, ms\n{}{legend}", table.text())
}

/// What `--json` prints for the recording and for each policy.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "run")]
struct RunObject<'a> {
    policy: &'a str,
    processors: Option<usize>,
    gaps: Option<u64>,
    uncertain_ns: Option<u64>,
    end_ns: u64,
    wakes: u64,
    mean_ns: Option<u64>,
    median_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
    /// The figures whose distance from those of the recorded policy is within the replay's error.
    within_error: Vec<&'static str>,
}

/// What `--json` prints for each thread, as recorded and under each policy.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "thread")]
struct ThreadObject<'a> {
    policy: &'a str,
    thread: &'a str,
    pid: u32,
    ran_ns: u64,
    wakes: u64,
    median_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

fn objects(
    recording: &Recording,
    recorded: &[ClientReport],
    outcomes: &[Outcome],
    fidelity: Option<&Fidelity>,
    output: &mut Output,
) -> anyhow::Result<()> {
    if let Some(fidelity) = fidelity {
        output.object(fidelity)?;
    }
    let recorded = (AS_RECORDED, recorded, recording.duration_ns.get(), true);
    let policies = outcomes
        .iter()
        .map(|outcome| (outcome.policy, outcome.threads.as_slice(), outcome.end_ns.get(), false));
    for (policy, threads, end_ns, is_recording) in std::iter::once(recorded).chain(policies) {
        let waits = replay::all_waits(threads);
        output.object(&RunObject {
            policy,
            processors: is_recording.then_some(recording.processors),
            gaps: is_recording.then_some(recording.gaps),
            uncertain_ns: is_recording.then_some(recording.uncertain_ns.get()),
            end_ns,
            wakes: waits.count(),
            mean_ns: waits.mean_ns().map(|mean_ns| mean_ns as u64),
            median_ns: waits.quantile_ns(0.5).map(Nanoseconds::get),
            p99_ns: waits.quantile_ns(0.99).map(Nanoseconds::get),
            max_ns: waits.longest_ns().map(Nanoseconds::get),
            within_error: fidelity
                .filter(|_| !is_recording)
                .map_or(Vec::new(), |fidelity| fidelity.within(KEYS, policy, threads)),
        })?;
        for (thread, script) in threads.iter().zip(&recording.scripts) {
            output.object(&thread_object(policy, thread, script.pid))?;
        }
    }
    Ok(())
}

fn thread_object<'a>(policy: &'a str, thread: &'a ClientReport, pid: u32) -> ThreadObject<'a> {
    let quantile = |part| thread.wake_to_run.as_ref().and_then(|waits| waits.quantile_ns(part));
    ThreadObject {
        policy,
        thread: &thread.name,
        pid,
        ran_ns: thread.ran_ns.get(),
        wakes: thread.wake_to_run.as_ref().map_or(0, Latencies::count),
        median_ns: quantile(0.5).map(Nanoseconds::get),
        p99_ns: quantile(0.99).map(Nanoseconds::get),
        max_ns: quantile(1.0).map(Nanoseconds::get),
    }
}
