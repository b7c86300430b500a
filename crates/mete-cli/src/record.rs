//! `mete record`: the events of a schema, from the kernel into a trace.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use mete_kernel::record::{Areas, Cache, Recording, Settings};
use mete_schema::generate::bpf;
use mete_schema::kernel::Running as RunningKernel;
use mete_schema::known::Known;
use mete_schema::nearest;
use mete_schema::{Checked, Schema, Source, check};
use mete_trace::description::FILE_NAME;
use mete_trace::layout::DEFAULT_LOW_WATER_PERCENT;
use mete_trace::{Account, ClockSource, Description, Recorder};
use serde::Serialize;

use crate::arguments::{bytes, duration};
use crate::log::command::{Paused, Running};
use crate::output::Output;
use crate::progress::Progress;
use crate::schema::{refuse, sources};
use crate::{failure, interrupt, trace};

/// Options of `mete record`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// What to record: the name of a shipped schema (scheduler, locking, interrupt), or the files of one
    #[arg(long, required = true, num_args = 1.., value_name = "NAME|FILE")]
    schema: Vec<PathBuf>,
    /// The trace's directory. It is made, or must be empty
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// How long to record; until Ctrl-C, or as long as COMMAND runs. COMMAND is ended if it runs longer
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Only these events of the schema; what the others would cost is saved
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    events: Vec<String>,
    /// Memory for what is not written yet, for each processor: a power of two from 64K to 256M
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "4M")]
    buffer: u64,
    /// Print the summary as a JSON object; what COMMAND prints goes to stderr then
    #[arg(long)]
    pub json: bool,
    /// A command to run; the whole machine is recorded while it does
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  sudo mete record --schema scheduler -o trace --for 5s
  sudo mete record --schema scheduler -o trace -- make -j4
  sudo mete record --schema scheduler --events SCHEDIN -o trace --for 1s
  sudo mete record --schema my-events.mete my-points.mete -o trace
  mete show trace
  mete convert trace --to perl -o trace.pl

Programs of your own schemata are compiled by clang, and kept in ~/.cache/mete for the next time; shipped
ones need no compiler. mete schema check says whether a schema fits this kernel.

Ctrl-C ends the recording with a complete trace; without --for and COMMAND that is its end, and the exit
status is 0, otherwise 130. With COMMAND, the status is COMMAND's. A trace whose recorder is killed can be
read up to the last blocks that it wrote, about a second before.";

/// How often the command is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Records, and answers with the command's status.
pub fn run(options: &Options, output: &mut Output) -> anyhow::Result<ExitCode> {
    interrupt::listen()?;
    let wanted = Wanted::read(options, output)?;
    let mut recording = wanted.load(options)?;
    // Whatever is wrong with a place is told before there is a directory.
    recording.attach()?;
    let description = Description::of_schema(&wanted.schema, &wanted.sources);
    let recorder = Recorder::start(recording.buffers(), description, trace_options(options))?;
    let begin = Instant::now();
    let mut running = match options.start() {
        Ok(running) => running,
        Err(error) => {
            discard(recorder, &options.output);
            return Err(error);
        }
    };
    let is_done = options.wait(&recorder, running.as_mut(), begin)?;
    let passed = begin.elapsed();
    recording.detach();
    let missed_runs = recording.runs_missed()?;
    let summary = Summary::end(options, recorder, passed, missed_runs)?;
    summary.tell(output)?;
    running.map_or_else(|| Ok(interrupt::ended(is_done)), Running::status)
}

/// A schema that fits this kernel, and the programs that record it.
struct Wanted {
    sources: Vec<Source>,
    schema: Schema,
    checked: Checked,
    programs: String,
}

impl Wanted {
    fn read(options: &Options, output: &mut Output) -> anyhow::Result<Wanted> {
        let sources = sources(&options.schema)?;
        let schema = Schema::read(&sources).or_else(|problems| refuse(&problems, &sources, output))?;
        let kernel = RunningKernel::new()?;
        let checked =
            check(&schema, Some(&kernel)).or_else(|problems| refuse(&problems, &sources, output))?;
        let programs =
            bpf(&schema, &checked, &kernel).or_else(|problems| refuse(&problems, &sources, output))?;
        if checked.uses(Known::Domain) {
            failure::say("nobody is bound to a domain while recording: `domain` is 0 for all");
        }
        Ok(Wanted { sources, schema, checked, programs })
    }

    fn load(&self, options: &Options) -> anyhow::Result<Recording> {
        let settings = Settings {
            events: self.events(&options.events)?,
            buffer_bytes: options.buffer,
            low_water_percent: DEFAULT_LOW_WATER_PERCENT,
        };
        Ok(Recording::load(&self.schema, &self.checked, &self.programs, &settings, &Cache::of_user())?)
    }

    /// The places of these events in the schema; all without any.
    fn events(&self, names: &[String]) -> anyhow::Result<Vec<usize>> {
        if names.is_empty() {
            return Ok((0..self.schema.events.len()).collect());
        }
        names.iter().map(|name| self.event(name)).collect()
    }

    fn event(&self, name: &str) -> anyhow::Result<usize> {
        let mut known = self.schema.events.iter().map(|event| event.name.as_str());
        let help = || {
            nearest::help(name, known.clone(), "it has").unwrap_or_else(|| "see mete schema explain".into())
        };
        let unknown = anyhow!("the schema has no event {name:?}; {}", help());
        known.position(|known| known == name).ok_or(unknown)
    }
}

/// The trace of a command that never ran would only be in the way of the next one.
fn discard(recorder: Recorder<Areas>, directory: &Path) {
    // What cannot be removed stays: why the command does not run matters more.
    let Ok(trace) = recorder.stop() else { return };
    let names = trace.files.iter().map(|file| file.name.as_str()).chain([FILE_NAME]);
    for name in names {
        let _ = fs::remove_file(directory.join(name));
    }
}

fn trace_options(options: &Options) -> mete_trace::Options {
    // The kernel's programs can read no other clock.
    mete_trace::Options { clock: ClockSource::Monotonic, ..mete_trace::Options::directory(&options.output) }
}

impl Options {
    /// The command, if there is one.
    fn start(&self) -> anyhow::Result<Option<Running>> {
        Paused::start(&self.command, self.json)?.map(Paused::resume).transpose()
    }

    /// Until the time is up, the command has ended or somebody pressed Ctrl-C; says whether all was done.
    fn wait(
        &self,
        recorder: &Recorder<Areas>,
        mut running: Option<&mut Running>,
        begin: Instant,
    ) -> anyhow::Result<bool> {
        let mut live = Live::new(self, begin);
        let is_over = || self.time.is_some_and(|time| begin.elapsed() >= time);
        while !interrupt::asked() && !is_over() {
            if running.as_mut().map_or(Ok(false), |running| running.has_ended())? {
                break;
            }
            live.show(recorder);
            let left = self.time.map_or(LOOK_EVERY, |time| time.saturating_sub(begin.elapsed()));
            std::thread::sleep(left.min(LOOK_EVERY));
        }
        let is_done = !interrupt::asked() || self.time.is_none();
        running.map_or(Ok(()), |running| running.end(|| ()))?;
        Ok(is_done)
    }
}

/// What is said meanwhile.
struct Live {
    progress: Progress,
    begin: Instant,
    has_told: bool,
}

impl Live {
    /// A command has the terminal for itself.
    fn new(options: &Options, begin: Instant) -> Live {
        let progress = match options.command.is_empty() {
            true => Progress::of_time("recording", options.time),
            false => Progress::none(),
        };
        Live { progress, begin, has_told: false }
    }

    fn show(&mut self, recorder: &Recorder<Areas>) {
        let reports = recorder.reports();
        let sum = |of: fn(&mete_trace::Report) -> u64| reports.iter().map(of).sum::<u64>();
        let (records, lost) = (sum(|report| report.account.records), sum(|report| report.account.lost));
        let passed = self.begin.elapsed();
        let seconds = passed.as_secs_f64();
        let written = size(sum(|report| report.bytes));
        self.progress.show(passed, format!("{seconds:.0} s, {records} records, {lost} lost, {written}"));
        if let Some(why) =
            reports.iter().find_map(|report| report.write_error.as_ref()).filter(|_| !self.has_told)
        {
            self.has_told = true;
            self.progress
                .aside(|| failure::say(&format!("the trace cannot be written at the moment: {why}")));
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Summary {
    kind: &'static str,
    trace: String,
    passed_s: f64,
    records: u64,
    lost: u64,
    missed_runs: u64,
    bytes: u64,
    processors: Vec<Account>,
}

impl Summary {
    fn end(
        options: &Options,
        mut recorder: Recorder<Areas>,
        passed: Duration,
        missed_runs: u64,
    ) -> anyhow::Result<Summary> {
        recorder.note_missed_runs(missed_runs);
        let processors = recorder.stop()?.completeness;
        let trace = options.output.display().to_string();
        let unwritten: u64 = processors.iter().map(|account| account.unwritten).sum();
        if unwritten > 0 {
            bail!(
                "{unwritten} events could not be written to {trace}; is the disk full? The rest can be read"
            );
        }
        let sum = |of: fn(&Account) -> u64| processors.iter().map(of).sum();
        Ok(Summary {
            kind: "recorded",
            passed_s: passed.as_secs_f64(),
            records: sum(|account| account.records),
            lost: sum(|account| account.lost),
            missed_runs,
            bytes: written_bytes(&options.output),
            trace,
            processors,
        })
    }

    fn tell(&self, output: &mut Output) -> anyhow::Result<()> {
        let Summary { trace: directory, passed_s, records, lost, missed_runs, bytes, .. } = self;
        trace::tell_missed_runs(*missed_runs);
        let loss = if *lost == 0 { "none".to_owned() } else { format!("{lost} events") };
        output.object(self)?;
        output.text(format!(
            "{records} records in {passed_s:.1} s, {}, {loss} lost. See: mete show {directory}",
            size(*bytes)
        ))
    }
}

/// Bytes of the trace's files.
fn written_bytes(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// `12.3 MB`
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
