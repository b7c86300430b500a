//! `mete record`: records the events of a schema, from the kernel and from programs, into a trace.
//!
//! ```text
//!   RecordOptions ──▶ Plan ──▶ Session ──▶ summary
//!                              ▲    │
//!              command, files ─┘    └──▶ live
//! ```
//!
//! The recorder itself is the crate `mete-record`.

mod live;
mod summary;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use mete_base::size;
use mete_command::output::Output;
use mete_command::user::{User, UserOption};
use mete_command::value::{duration, one_or_more};
use mete_command::{failure, interrupt};
use mete_kernel::record::size_log2;
use mete_parameters::{Asker, Desk, Mounted, desk};
use mete_record::{
    FlightPlan, Notice, Parameters, Plan, RecordedSchema, RecordingError, Session, parse_low_water,
};
use mete_sched::DomainSpec;
use mete_trace::layout::{DEFAULT_BYTES, DEFAULT_LOW_WATER_PERCENT};
use mete_trace::{FormerTrace, RecordError};

use crate::log::command::{Paused, Running};
use crate::parse::domain;
use crate::schema;
use live::Live;

/// Options of `mete record`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RecordOptions {
    /// What to record: the name of a shipped schema (scheduler, locking, interrupt, stopwatch), or the files
    /// of one
    #[arg(long, required = true, num_args = 1.., value_name = "NAME|FILE")]
    schema: Vec<PathBuf>,
    /// The trace's directory; it must be empty or not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Replace the trace in the directory; a directory with anything else in it is refused
    #[arg(long)]
    force: bool,
    /// How long to record; COMMAND is ended if it runs longer. If not given, until Ctrl-C, or as long as
    /// COMMAND runs
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Record only these events of the schema; the others then cost nothing
    #[arg(long, alias = "event", value_name = "NAME", value_delimiter = ',')]
    events: Vec<String>,
    /// An accounting domain and the processes that belong to it, for fields that the schema calls `domain`:
    /// the first one given is domain 2; domain 1 is idle time, domain 0 all other processes. Selectors as for
    /// mete log; repeat it for more
    #[arg(long = "domain", value_name = "NAME=SELECTOR", value_parser = domain())]
    pub domains: Vec<DomainSpec>,
    /// Memory of each processor for events that are not written yet: a power of two from 64K to 256M
    #[arg(long, value_name = "SIZE", default_value_t = BufferSize(DEFAULT_BYTES))]
    buffer: BufferSize,
    /// Flush a buffer when less than this percentage is free; the free part is for events during the flush
    #[arg(long, value_name = "PERCENT", value_parser = parse_low_water, default_value_t = DEFAULT_LOW_WATER_PERCENT)]
    low_water: u8,
    /// Mount the parameters as files on this directory: enable, one file for each event, and others; it must
    /// be empty or not exist
    #[arg(long, value_name = "DIR")]
    parameters: Option<PathBuf>,
    /// Begin with recording switched off, until the parameter enable is set to 1
    #[arg(long, requires = "parameters")]
    off: bool,
    /// A flight recorder: keep the newest events in this much memory, and write them on SIGUSR1 and at the
    /// end. At least 64K for each processor are kept
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    keep: Option<u64>,
    /// Write the kept events when one of these events occurs, and end
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "keep")]
    dump_on: Vec<String>,
    /// End at the Nth such event; the kept events are written at each of them
    #[arg(long, value_name = "N", value_parser = one_or_more::<u32>, default_value = "1", requires = "dump_on")]
    dumps: u32,
    /// Print the summary as a JSON object; COMMAND's output goes to stderr
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    user: UserOption,
    /// A command to run; the whole machine is recorded while it does
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  sudo mete record --schema scheduler -o trace --for 5s
  sudo mete record --schema scheduler -o trace -- make -j4
  sudo mete record --schema scheduler -o trace --force -- make -j4   once more
  sudo mete record --schema scheduler --events SCHEDIN -o trace --for 1s
  sudo mete record --schema my-events.mete my-points.mete -o trace
  mete record --schema stopwatch -o trace -- ./my-program
  sudo mete record --schema by-domain.mete --domain web=comm:nginx -o trace
  sudo mete record --schema scheduler -o trace --parameters /run/recorder --off
  echo 1 > /run/recorder/enable
  sudo mete record --schema my-points.mete --keep 64M --dump-on SLOW -o trace
  mete show trace
  mete convert trace --to perl -o trace.pl

Events without a point, such as those of stopwatch, are recorded by COMMAND itself: see mete schema
generate. A probe point (probe:) is in every program that has this probe, now or later. A schema without
points of the kernel needs no root. For your own schemata, clang compiles the programs that run in the
kernel; they are kept in /var/cache/mete (for users other than root, ~/.cache/mete) for the next time.
Shipped schemata need no compiler. mete schema check says whether a schema fits this kernel.

On a terminal, a line shows the progress if recording takes longer than a second. COMMAND writes on the
same terminal, so with COMMAND there is a new line every 5 s instead. The numbers lag by half a second at
most, because events in the buffers are not counted yet.

Under sudo, COMMAND runs as the user who called sudo, and stderr says so; --user root runs it as root.

Ctrl-C ends the recording with a complete trace. With COMMAND, the exit status is COMMAND's. Without
COMMAND, it is 0 if Ctrl-C was the only end, and 130 if --for or --dump-on gave another one. If the
recorder is killed, the trace can be read up to the last blocks that it wrote: about a second before,
unless the disk is slower.";

/// How long to go on after the command's end. Its parent learns of the end first. The command's last context
/// switch comes some microseconds later, or still later if another task takes its processor at that moment.
const LAST_SWITCH: Duration = Duration::from_millis(30);

/// How often to look whether the command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The size of a buffer that the kernel can have, in bytes.
#[derive(Clone, Copy, Debug)]
struct BufferSize(u64);

impl FromStr for BufferSize {
    type Err = String;

    fn from_str(text: &str) -> Result<BufferSize, String> {
        let bytes = size::parse(text)?;
        size_log2(bytes).map(|_| BufferSize(bytes)).map_err(|error| error.to_string())
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A power of two from 64K on.
        if self.0.is_multiple_of(1 << 20) {
            write!(f, "{}M", self.0 >> 20)
        } else {
            write!(f, "{}K", self.0 >> 10)
        }
    }
}

/// Records, and returns the command's exit status.
pub fn run(options: &RecordOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    interrupt::listen()?;
    interrupt::listen_to_dumps()?;
    let consequence = if options.parameters.is_some() { ", and cannot use the parameters" } else { "" };
    let user = options.user.told(&options.command, consequence)?;
    let mut session = options.begin(options.plan(output)?)?;
    if options.command.is_empty() {
        session.missing_probes().iter().for_each(say);
    }
    let (asker, desk) = desk();
    // Mounted before the command starts, because the command may use the files at once.
    let started = options
        .mount(&session, asker)
        .and_then(|tree| Ok((tree, options.start(&mut session, user.as_ref())?)));
    let (tree, mut running) = match started {
        // Ctrl-C came before the command began, so that a trace would be of nothing.
        Ok((tree, None)) if !options.command.is_empty() => {
            drop((desk, tree));
            session.discard();
            return Ok(interrupt::ended_without_results("nothing was recorded"));
        }
        Ok(started) => started,
        Err(error) => {
            session.discard();
            return Err(error);
        }
    };
    // Only now: until here, a recording that cannot begin leaves the trace that it would replace.
    session.remove_former();
    let is_done = options.wait(&mut session, &desk, running.as_mut())?;
    // In this order: first requests are refused, then the files disappear.
    drop(desk);
    drop(tree);
    summary::tell(session.end(&mut |notice| say(&notice))?, output)?;
    running.map_or_else(|| Ok(interrupt::ended(is_done)), Running::status)
}

fn say(notice: &Notice) {
    failure::say(&notice.to_string());
}

impl RecordOptions {
    /// What is to be recorded. Problems of the schema are printed with their places.
    fn plan(&self, output: &mut Output) -> anyhow::Result<Plan> {
        let sources = schema::sources(&self.schema)?;
        let schema = match RecordedSchema::read(sources.clone()) {
            Err(RecordingError::Schema(problems)) => return schema::refuse(&problems, &sources, output),
            read => read?,
        };
        let events = match self.events.is_empty() {
            true => (0..schema.events().len()).collect(),
            false => schema.places(&self.events)?,
        };
        let dump_on = schema.places(&self.dump_on)?;
        Ok(Plan {
            events,
            is_on: !self.off,
            may_switch: self.parameters.is_some(),
            directory: self.output.clone(),
            former: if self.force { FormerTrace::GivesWay } else { FormerTrace::Stays },
            domains: self.domains.clone(),
            buffer_bytes: self.buffer.0,
            low_water_percent: self.low_water,
            flight: self.keep.map(|keep_bytes| FlightPlan {
                keep_bytes,
                dump_on,
                ends_at_occurrence: self.dumps,
            }),
            has_command: !self.command.is_empty(),
            schema,
        })
    }

    fn begin(&self, plan: Plan) -> anyhow::Result<Session> {
        match Session::begin(plan, &mut |notice| say(&notice)) {
            Err(RecordingError::Record(there @ RecordError::TraceThere(_))) => {
                bail!("{there}: name another directory, or replace it by --force")
            }
            begun => Ok(begun?),
        }
    }

    fn mount(&self, session: &Session, asker: Asker) -> anyhow::Result<Option<Mounted>> {
        Ok(self.parameters.as_ref().map(|at| mete_record::mount(at, session, asker)).transpose()?)
    }

    /// Starts the command, if there is one and Ctrl-C has not been pressed yet.
    fn start(&self, session: &mut Session, user: Option<&User>) -> anyhow::Result<Option<Running>> {
        let paused = Paused::start(&self.command, self.json, session.environment()?, user)?;
        // Before it resumes: it must be in its domain before it does anything.
        session.bind_newcomers();
        paused.filter(|_| !interrupt::asked()).map(Paused::resume).transpose()
    }

    /// Waits until the time is up, the command has ended, the awaited event has occurred or Ctrl-C was
    /// pressed. Returns whether everything that was asked for is done.
    fn wait(
        &self,
        session: &mut Session,
        desk: &Desk,
        mut running: Option<&mut Running>,
    ) -> anyhow::Result<bool> {
        let begun = session.begun();
        let (mut live, mut parameters) = (Live::new(self, begun), Parameters::default());
        while !interrupt::asked() && self.is_timely(session) && !session.is_over() {
            if running.as_mut().map_or(Ok(false), |running| running.has_ended())? {
                break;
            }
            live.show(session);
            let is_dump_asked = interrupt::take_dump_request();
            session.do_what_is_due(is_dump_asked).iter().for_each(|notice| live.say(&notice.to_string()));
            let left = self.time.map_or(LOOK_EVERY, |time| time.saturating_sub(begun.elapsed()));
            desk.serve(left.min(LOOK_EVERY), |request| parameters.answer(session, request));
        }
        let has_end = self.time.is_some() || !self.dump_on.is_empty();
        let is_done = !interrupt::asked() || !has_end;
        if let Some(running) = running {
            // The command may use the parameters until its end, so requests are answered while it ends.
            running.end(|| desk.serve(Duration::ZERO, |request| parameters.answer(session, request)))?;
            thread::sleep(LAST_SWITCH);
        }
        Ok(is_done)
    }

    fn is_timely(&self, session: &Session) -> bool {
        self.time.is_none_or(|time| session.begun().elapsed() < time)
    }
}
