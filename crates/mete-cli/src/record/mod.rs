//! `mete record`: the events of a schema, from the kernel and from programs into a trace.
//!
//! ```text
//!   Options ──▶ Plan ──▶ Session ──▶ summary
//!                        ▲    │
//!        command, files ─┘    └──▶ live
//! ```
//!
//! The recorder itself is the crate `mete-record`.

mod live;
mod summary;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::bail;
use mete_base::size;
use mete_parameters::Mounted;
use mete_record::{
    Asker, Desk, FlightPlan, Notice, Parameters, Plan, RecordedSchema, RecordingError, Session, desk,
    parse_low_water,
};
use mete_sched::DomainSpec;
use mete_trace::{FormerTrace, RecordError};

use crate::log::command::{Paused, Running};
use crate::log::user::{User, UserOption};
use crate::output::Output;
use crate::parse::{domain, duration, one_or_more};
use crate::{failure, interrupt, schema};
use live::Live;

/// Options of `mete record`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// What to record: the name of a shipped schema (scheduler, locking, interrupt, stopwatch), or the files of one
    #[arg(long, required = true, num_args = 1.., value_name = "NAME|FILE")]
    schema: Vec<PathBuf>,
    /// The trace's directory. It is made, or must be empty
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Replace the trace that is in the directory already; one that has anything else in it is left alone
    #[arg(long)]
    force: bool,
    /// How long to record; until Ctrl-C, or as long as COMMAND runs. COMMAND is ended if it runs longer
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Only these events of the schema; what the others would cost is saved
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    events: Vec<String>,
    /// An accounting domain and who belongs to it, for what the schema calls `domain`: the first one is domain 2,
    /// domain 1 the idle time, domain 0 everybody else. Selectors as in mete log; repeat it for more
    #[arg(long = "domain", value_name = "NAME=SELECTOR", value_parser = domain())]
    domains: Vec<DomainSpec>,
    /// Memory for what is not written yet, for each processor: a power of two from 64K to 256M
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "4M")]
    buffer: u64,
    /// Flush when less than so many percent of a buffer are free; what is left is for events meanwhile
    #[arg(long, value_name = "PERCENT", value_parser = parse_low_water, default_value = "10")]
    low_water: u8,
    /// Mount the parameters as files on this directory: enable, one file for each event, and others. It is
    /// made, or must be empty
    #[arg(long, value_name = "DIR")]
    parameters: Option<PathBuf>,
    /// Begin with recording switched off, until somebody writes 1 into the parameter enable
    #[arg(long, requires = "parameters")]
    off: bool,
    /// Keep the newest so many bytes in memory, and write them on SIGUSR1 and at the end: a flight recorder. At least
    /// 64K for each processor are kept
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    keep: Option<u64>,
    /// Write what is kept when one of these events occurs, and end
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "keep")]
    dump_on: Vec<String>,
    /// End at the Nth such event; what is kept at the others is written, too
    #[arg(long, value_name = "N", value_parser = one_or_more::<u32>, default_value = "1", requires = "dump_on")]
    dumps: u32,
    /// Print the summary as a JSON object; what COMMAND prints goes to stderr then
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

Events without a point, as those of stopwatch, are COMMAND's own: see mete schema generate. Probe points (probe:) are
those of whatever program has them, now or later. Without points of the kernel there is no need to be root. The kernel's programs of your own schemata are compiled by clang, and kept in /var/cache/mete (~/.cache/mete of another user than root) for the next time; shipped
ones need no compiler. mete schema check says whether a schema fits this kernel.

On a terminal, a line tells how it goes when that takes longer than a second; with COMMAND, which writes there, too,
a line of its own every 5 s. What is still in the buffers, for half a second at most, is not in it.

Under sudo, COMMAND runs as the user who called sudo, and stderr says so; --user root runs it as root.

Ctrl-C ends the recording with a complete trace; without --for and COMMAND that is its end, and the exit
status is 0, otherwise 130. With COMMAND, the status is COMMAND's. A trace whose recorder is killed can be
read up to the last blocks that it wrote: about a second before, unless the disk is slower.";

/// The command's end is known when its parent is told of it. Its last context switch comes some microseconds later, or
/// more where the processor is taken from it just then.
const LAST_SWITCH: Duration = Duration::from_millis(30);

/// How often the command is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Records, and answers with the command's status.
pub fn run(options: &Options, output: &mut Output) -> anyhow::Result<ExitCode> {
    interrupt::listen()?;
    interrupt::listen_to_dumps()?;
    let besides = if options.parameters.is_some() { ", and cannot use the parameters" } else { "" };
    let user = options.user.told(&options.command, besides)?;
    let mut session = options.begin(options.plan(output)?)?;
    if options.command.is_empty() {
        session.missing_probes().iter().for_each(say);
    }
    let (asker, desk) = desk();
    // The command may write into the files at once.
    let started = options
        .mount(&session, asker)
        .and_then(|tree| Ok((tree, options.start(&mut session, user.as_ref())?)));
    let (tree, mut running) = match started {
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
    session.remove_former();
    let is_done = options.wait(&mut session, &desk, running.as_mut())?;
    // From now on requests are refused, and then no file is left to ask.
    drop(desk);
    drop(tree);
    summary::tell(session.end(&mut |notice| say(&notice))?, output)?;
    running.map_or_else(|| Ok(interrupt::ended(is_done)), Running::status)
}

fn say(notice: &Notice) {
    failure::say(&notice.to_string());
}

impl Options {
    /// What is to be recorded. Problems of the schema are shown with their places.
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
            buffer_bytes: self.buffer,
            low_water_percent: self.low_water,
            flight: self.keep.map(|keep_bytes| FlightPlan { keep_bytes, dump_on, dumps: self.dumps }),
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

    /// Starts the command, if there is one and Ctrl-C has not been pressed so far.
    fn start(&self, session: &mut Session, user: Option<&User>) -> anyhow::Result<Option<Running>> {
        let paused = Paused::start(&self.command, self.json, session.environment()?, user)?;
        // It is in its domain before it does anything.
        session.bind_newcomers();
        paused.filter(|_| !interrupt::asked()).map(Paused::resume).transpose()
    }

    /// Waits until the time is up, the command has ended, the awaited event has occurred or Ctrl-C was pressed; returns
    /// whether all that was asked for is done.
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
            session.look(is_dump_asked).iter().for_each(|notice| live.say(&notice.to_string()));
            let left = self.time.map_or(LOOK_EVERY, |time| time.saturating_sub(begun.elapsed()));
            desk.serve(left.min(LOOK_EVERY), |request| parameters.answer(session, request));
        }
        let has_end = self.time.is_some() || !self.dump_on.is_empty();
        let is_done = !interrupt::asked() || !has_end;
        if let Some(running) = running {
            // The command may ask for something at its end.
            running.end(|| desk.serve(Duration::ZERO, |request| parameters.answer(session, request)))?;
            thread::sleep(LAST_SWITCH);
        }
        Ok(is_done)
    }

    fn is_timely(&self, session: &Session) -> bool {
        self.time.is_none_or(|time| session.begun().elapsed() < time)
    }
}
