//! `mete demo`: logs real processes and schedules them. Drivers, clients and hogs run without logging, with logging,
//! and with the scheduler acting, in turn. The results show what logging costs and what acting on the logs gains.

mod alternate;
#[path = "../demo_part/board.rs"]
mod board;
mod cast;
#[path = "../demo_part/latencies.rs"]
mod latencies;
mod observe;
mod report;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mete_base::draft::Draft;
use mete_command::output::Output;
use mete_command::progress::Progress;
use mete_command::table::{Head, Table, grouped};
use mete_command::value::duration;
use mete_command::{failure, interrupt};

use cast::{CastProcess, DRIVERS, MOST_CLIENTS, Stage, Tally};
use observe::{Moved, Observed, Observer};
use report::Story;
use summary::{Stretch, StretchKind, spread};

pub use alternate::Placement;

/// Options of `mete demo`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// How often the three stretches are run in turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How long each stretch is measured
    #[arg(long, default_value = "3s", value_parser = duration)]
    stretch: Duration,
    /// How many clients talk to the drivers
    #[arg(long, default_value_t = 4, value_parser = some_clients)]
    clients: usize,
    /// How many processes only compute; if not given, one fewer than there are processors
    #[arg(long, value_parser = some_hogs)]
    hogs: Option<usize>,
    /// Log only the drivers, not the kernel
    #[arg(long)]
    no_kernel: bool,
    /// Where to write the report
    #[arg(long, default_value = "mete-demo.html", value_name = "FILE")]
    report: PathBuf,
    /// Print one JSON object a stretch instead of tables
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  sudo mete demo                          ninety seconds; open mete-demo.html
  sudo mete demo --rounds 2 --stretch 1s  a quick look
  mete demo --no-kernel                   without root: only the drivers' logs
  sudo mete demo --json | jq .throughput  for scripts

Ctrl-C ends the demo with the results so far and exit status 130. A report is written if at least one
stretch is over.";

/// The time between the start of the clients and the measurement. In it, the kernel spreads the processes, and the
/// scheduler sees three periods and acts.
const SETTLE: Duration = Duration::from_millis(1500);

/// How long the processes run before the first stretch that is measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// The most hogs if no number is given.
const MOST_HOGS: usize = 16;
/// The most hogs for each processor: with many more, nothing else on the machine would run.
const HOGS_ON_A_PROCESSOR: usize = 8;

/// The demo's processes, for `mete bench` to measure what logging costs their requests.
pub fn requests(placement: Placement) -> Result<Box<dyn mete_bench::Requests>, mete_measure::Reason> {
    let started = alternate::Requests::start(placement);
    let boxed = started.map(|requests| Box::new(requests) as Box<dyn mete_bench::Requests>);
    boxed.map_err(|error| mete_measure::Reason::new(failure::sentence(&error)))
}

/// Plays the demo.
///
/// # Errors
///
/// If the processes cannot be started, the report cannot be written, or there is one processor only.
pub fn run(options: &Options, out: &mut Output) -> Result<ExitCode> {
    let processors = own_processors()?;
    check_processors(&processors)?;
    // Begun now, so that a place that cannot be written is found before two minutes of work.
    let report = Draft::begin(&options.report).with_context(|| cannot_write(&options.report))?;
    interrupt::listen()?;
    let hogs = options.hogs.unwrap_or((processors.len() - 1).min(MOST_HOGS));
    let stage = Stage::open(&processors, hogs)?;
    announce(options, &stage, out)?;
    let mut show = Show::new(options);
    play(&stage, StretchKind::Off, &Options { stretch: WARM_UP, ..options.clone() }, &mut show)?;
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
    conclude(options, &stage, &show, report, out)?;
    Ok(interrupt::ended(show.stretches.len() == options.rounds as usize * StretchKind::ALL.len()))
}

/// What is kept from stretch to stretch.
struct Show {
    progress: Progress,
    began: Instant,
    stretches: Vec<Stretch>,
    /// Requests with logging divided by requests without, pair by pair.
    quotients: Vec<f64>,
    logged: Observed,
    moves: Vec<Moved>,
    notes: Vec<String>,
    clients: Vec<String>,
    drivers: Vec<String>,
}

impl Show {
    fn new(options: &Options) -> Show {
        let total = (SETTLE * 2 + options.stretch * 3) * options.rounds;
        Show {
            progress: if options.json { Progress::none() } else { Progress::of_time("demo", Some(total)) },
            began: Instant::now(),
            stretches: Vec::new(),
            quotients: Vec::new(),
            logged: Observed::default(),
            moves: Vec::new(),
            notes: Vec::new(),
            clients: (0..options.clients).map(|number| format!("client{number}")).collect(),
            drivers: (0..DRIVERS).map(|number| format!("driver{number}")).collect(),
        }
    }

    fn keep(&mut self, stretch: Stretch, observed: Observed) {
        for note in &observed.notes {
            if !self.notes.contains(note) {
                self.progress.aside(|| failure::say(note));
                self.notes.push(note.clone());
            }
        }
        if !observed.moves.is_empty() {
            self.moves = observed.moves.clone();
        }
        if stretch.kind != StretchKind::Off {
            self.logged = observed;
        }
        self.stretches.push(stretch);
    }

    fn tick(&self, kind: StretchKind, message: &str) {
        self.progress.show(self.began.elapsed(), format!("{}  {message}", kind.name()));
    }
}

/// The processors that this program may use.
fn own_processors() -> Result<Vec<usize>> {
    let set =
        rustix::thread::sched_getaffinity(None).context("cannot find out which processors may be used")?;
    Ok((0..rustix::thread::CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect())
}

fn check_processors(processors: &[usize]) -> Result<()> {
    if processors.len() < DRIVERS {
        bail!(
            "the demo needs {DRIVERS} processors, one for each driver, and may use {}: with one processor, clients \
             cannot be moved",
            processors.len()
        );
    }
    Ok(())
}

fn some_clients(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST_CLIENTS).contains(number));
    number.ok_or_else(|| format!("the demo takes 1 to {MOST_CLIENTS} clients"))
}

/// A number of hogs. Each hog is in a session of its own, so it gets as much processor time as everything together that
/// runs in one terminal.
fn some_hogs(text: &str) -> Result<usize, String> {
    let most = HOGS_ON_A_PROCESSOR * std::thread::available_parallelism().map_or(1, usize::from);
    let number = text.parse().ok().filter(|number| (0..=most).contains(number));
    number.ok_or_else(|| format!("the demo takes 0 to {most} hogs, {HOGS_ON_A_PROCESSOR} for each processor"))
}

fn cannot_write(report: &Path) -> String {
    format!("cannot write the report {}: choose another place with --report FILE", report.display())
}

fn announce(options: &Options, stage: &Stage, out: &mut Output) -> Result<()> {
    out.text(format!(
        "{}, nine requests in ten to a favourite of two drivers, beside {}.\n\
         {} of three stretches of {:.1} s each: logging off and on, in turn piece by piece, and scheduler acting.{}\n",
        counted(options.clients, "client", "clients"),
        counted(stage.hogs().len(), "process that only computes", "processes that only compute"),
        counted(options.rounds as usize, "round", "rounds"),
        options.stretch.as_secs_f64(),
        if options.no_kernel { "\nThe kernel is not logged, as asked for." } else { "" }
    ))
}

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Plays a stretch without logging and one with logging, in pieces that alternate, with the same fresh clients. Returns
/// nothing if the end was asked for before both were over.
fn play_alternating(stage: &Stage, options: &Options, show: &mut Show) -> Result<Vec<(Stretch, Observed)>> {
    if interrupt::asked() {
        return Ok(Vec::new());
    }
    let clients = stage.start_clients(options.clients)?;
    wait(&mut None, SETTLE, StretchKind::Off, show);
    let alternated =
        alternate::alternate(stage, &clients, !options.no_kernel, options.stretch, |kind, matrix| {
            show.tick(kind, &in_short(matrix, show));
        })?;
    let Some(alternate::Alternated { off, on, quotients, observed }) = alternated else {
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
    stage: &Stage,
    kind: StretchKind,
    options: &Options,
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

/// The matrix in one line, as it fills.
fn in_short(matrix: &[Vec<u64>], show: &Show) -> String {
    let clients = matrix.iter().zip(&show.clients).map(|(row, client)| {
        let counts: Vec<_> = row.iter().map(u64::to_string).collect();
        format!("{client} {}", counts.join(":"))
    });
    clients.collect::<Vec<_>>().join("  ")
}

fn print_stretch(
    round: u32,
    stretch: &Stretch,
    observed: &Observed,
    show: &Show,
    out: &mut Output,
) -> Result<()> {
    let line = format!(
        "round {}  {:<17} {:>9} requests/s  {:>5.1} % crossed  {}",
        round + 1,
        stretch.kind.name(),
        grouped(stretch.throughput.round() as u64),
        100.0 * stretch.crossings,
        in_words(stretch, observed)
    );
    show.progress.aside(|| out.text(line.trim_end()))?;
    out.object(&serde_json::json!({
        "kind": "stretch",
        "round": round + 1,
        "stretch": stretch.kind.name(),
        "throughput": stretch.throughput,
        "crossings": stretch.crossings,
        "latency_median_us": stretch.latency_us[0],
        "latency_p99_us": stretch.latency_us[1],
        "moves": stretch.moves,
        "rows": stretch.rows,
        "lost": stretch.lost,
        "scheduler_share": observed.own_share,
    }))
}

fn in_words(stretch: &Stretch, observed: &Observed) -> String {
    match stretch.kind {
        StretchKind::Off => String::new(),
        StretchKind::Log => format!("{} rows", grouped(stretch.rows)),
        StretchKind::Act => {
            format!("{} rows, {}", grouped(stretch.rows), counted(observed.moves.len(), "move", "moves"))
        }
    }
}

fn conclude(options: &Options, stage: &Stage, show: &Show, report: Draft, out: &mut Output) -> Result<()> {
    let story = Story {
        command: &std::env::args().collect::<Vec<_>>().join(" "),
        machine: &machine(stage),
        sources: &sources(show, options),
        stretch_s: options.stretch.as_secs_f64(),
        clients: &show.clients,
        drivers: &show.drivers,
        matrix: &show.logged.matrix,
        moves: &show.moves,
        date: &mete_measure::machine::Machine::here().date,
        quotients: &show.quotients,
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
    written.with_context(|| cannot_write(&options.report))?;
    out.text(format!("The report, with plots: {}", options.report.display()))
}

fn matrix_table(show: &Show) -> String {
    let heads = show.drivers.iter().map(|driver| Head::Number(driver));
    let mut table = Table::new(std::iter::once(Head::Name("transactions")).chain(heads));
    for (client, row) in show.clients.iter().zip(&show.logged.matrix) {
        table.row(std::iter::once(client.clone()).chain(row.iter().copied().map(grouped)));
    }
    table.text()
}

fn summary_table(stretches: &[Stretch]) -> String {
    let mut table = Table::new([
        Head::Name("stretch"),
        Head::Number("requests/s"),
        Head::Number("least to most"),
        Head::Number("crossed %"),
        Head::Number("least to most"),
    ]);
    for kind in StretchKind::ALL {
        let throughput = spread(stretches, kind, |stretch| stretch.throughput);
        let crossings = spread(stretches, kind, |stretch| 100.0 * stretch.crossings);
        let (Some(throughput), Some(crossings)) = (throughput, crossings) else { continue };
        table.row([
            kind.name().to_owned(),
            grouped(throughput.median.round() as u64),
            format!(
                "{} to {}",
                grouped(throughput.least.round() as u64),
                grouped(throughput.most.round() as u64)
            ),
            format!("{:.1}", crossings.median),
            format!("{:.1} to {:.1}", crossings.least, crossings.most),
        ]);
    }
    table.text()
}

fn completeness(stretches: &[Stretch]) -> String {
    let sum = |of: fn(&Stretch) -> u64| stretches.iter().map(of).sum::<u64>();
    let (rows, lost) = (sum(|stretch| stretch.rows), sum(|stretch| stretch.lost));
    match lost {
        0 => format!("Every one of {} log rows was read.", grouped(rows)),
        lost => format!("{} log rows were read, {} were lost.", grouped(rows), grouped(lost)),
    }
}

fn sources(show: &Show, options: &Options) -> String {
    if options.no_kernel {
        return "Only the drivers' own probes were logged, as asked for.".into();
    }
    match show.notes.first() {
        None => "The kernel was logged by eBPF, and the drivers by their own probes.".into(),
        Some(note) => format!("Note: {note}."),
    }
}

fn machine(stage: &Stage) -> String {
    let name = rustix::system::uname();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{} {}, {processors} processors, {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy(),
        counted(stage.hogs().len(), "process that only computes", "processes that only compute")
    )
}
