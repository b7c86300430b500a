//! `mete log`: what schedulers need to know, logged for a while and printed for each domain.

mod automatic;
pub mod command;
mod events;
mod rest;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use mete_sched::{DomainSpec, Report, Scheduler, Selector, Settings};

use crate::arguments::duration;
use crate::notice::Told;
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Interval, Logged, Queues, tables};
use crate::{interrupt, notice};
use command::{Paused, Running};
use events::Wanted;
use rest::Rest;

/// Options of `mete log`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// How long to log; 10 s, or as long as COMMAND runs. COMMAND is ended if it runs longer
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Print what was logged this often, too
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Duration>,
    /// How often to read the logs
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20ms")]
    interval: Duration,
    /// An accounting domain and who belongs to it; repeat it for more. Selectors: pid:NUMBER, comm:NAME,
    /// exe:PATH, cgroup:PATH, user:NAME, children:NUMBER; several with commas. Children of whoever
    /// belongs to a domain belong to it, too, and so does whoever starts later and is selected. Without
    /// any, the busiest programs become domains
    #[arg(long = "domain", value_name = "NAME=SELECTOR")]
    domains: Vec<DomainSpec>,
    /// What of the kernel to log: service, ipc, memory, run-queue[=HERTZ], counters=NAME,NAME… with
    /// the names that perf list shows
    #[arg(long, value_name = "LIST", default_value = events::DEFAULT)]
    event: Wanted,
    /// Log programs with probes only, not the kernel
    #[arg(long, conflicts_with = "event")]
    components: bool,
    /// Print one JSON object a line; what COMMAND prints goes to stderr then
    #[arg(long)]
    pub json: bool,
    /// A command to run and to log, as a domain of its own
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  sudo mete log --for 5s           the busiest programs
  sudo mete log -- make -j4        a command and all that it starts
  sudo mete log --domain web=comm:nginx --domain db=user:postgres --every 1s
  sudo mete log --domain box=cgroup:/system.slice/docker.service
  sudo mete log --event service,counters=cycles,cache-misses -- ./program
  mete log --components --for 5s   programs with probes, without root
  sudo mete log --for 1s --json | jq 'select(.kind == \"domain\")'

Whoever starts later and matches a selector belongs to its domain. So a domain may be empty at first,
as long as another one has somebody in it.

Percentages are of one processor. Wake-ups by interrupts are not counted. The domain `other` is
whoever belongs to no domain. The exit status is COMMAND's, or 1 if nothing could be logged.

Ctrl-C ends the run with the results so far. It reaches COMMAND, too, which gets two seconds to
end by itself before it is ended. The exit status is then 130, or what COMMAND makes of it.

Numbers behind a ≥ are lower bounds, because rows were lost. The objects of --json are described
in docs/json.md.";

/// Without a command, as long as it takes to see something.
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// Programs with probes, and processes that belong to a domain: a command may be over before a second has
/// passed.
const LOOK_DURING_COMMAND: Duration = Duration::from_millis(40);
/// Until it is found, what a process that starts meanwhile does counts as other's.
const LOOK_OTHERWISE: Duration = Duration::from_millis(200);

/// Logs, and answers with the command's status.
pub fn run(options: &Options, output: &mut Output) -> anyhow::Result<ExitCode> {
    interrupt::listen()?;
    let paused = Paused::start(&options.command, options.json, None)?;
    let mut scheduler = Scheduler::start(options.settings(), domains(options, paused.as_ref()))?;
    if paused.is_none() {
        notice::check(&mut scheduler)?;
    }
    // What happened while logging was being switched on is no part of the results.
    scheduler.tick();
    let recorder = Recorder::new(options, output, &scheduler);
    let mut running = paused.map(Paused::resume).transpose()?;
    let logged = recorder.record(&mut scheduler, running.as_mut())?;
    let is_done = !interrupt::asked();
    tables::whole(&logged, options.interval, output)?;
    if logged.report.completeness.files.is_empty() && !notice::logs_anything(&scheduler) {
        bail!("nothing was logged: not the kernel, and no program with probes ran");
    }
    running.map_or_else(|| Ok(interrupt::ended(is_done)), Running::status)
}

impl Options {
    fn settings(&self) -> Settings {
        let kernel = if self.components { Vec::new() } else { self.event.0.clone() };
        let housekeeping = if self.command.is_empty() { LOOK_OTHERWISE } else { LOOK_DURING_COMMAND };
        // A program that was busy a moment ago may have ended.
        let may_be_empty = self.domains.is_empty();
        Settings { poll: self.interval, kernel, housekeeping, may_be_empty, ..Settings::default() }
    }

    fn limit(&self) -> Option<Duration> {
        self.time.or(self.command.is_empty().then_some(DEFAULT_TIME))
    }

    fn progress(&self) -> Progress {
        // A command has the terminal for itself.
        if self.command.is_empty() { Progress::of_time("logging", self.limit()) } else { Progress::none() }
    }
}

/// The domains that were asked for, the command's, or the busiest programs'.
fn domains(options: &Options, paused: Option<&Paused>) -> Vec<DomainSpec> {
    let mut specs = options.domains.clone();
    match paused {
        Some(paused) => specs.push(command_domain(paused, &specs)),
        None if specs.is_empty() => specs = automatic::busiest(),
        None => {}
    }
    specs
}

/// Named for the program, unless somebody has the name.
fn command_domain(paused: &Paused, others: &[DomainSpec]) -> DomainSpec {
    let is_free = |name: &String| !name.is_empty() && others.iter().all(|other| other.name != *name);
    let name = Some(automatic::plain(&paused.name())).filter(is_free).unwrap_or_else(|| "command".into());
    DomainSpec { name, selectors: vec![Selector::Pid(paused.pid())], role: None }
}

/// Logs until the time is up, the command has ended or somebody pressed Ctrl-C.
struct Recorder<'a> {
    options: &'a Options,
    output: &'a mut Output,
    begin: Instant,
    progress: Progress,
    told: Told,
    queues: Queues,
    rest: Rest,
    whole: Interval,
    part: Option<Interval>,
}

impl Recorder<'_> {
    fn new<'a>(options: &'a Options, output: &'a mut Output, scheduler: &Scheduler) -> Recorder<'a> {
        let whole = Interval::new(Report::of(scheduler));
        let part = options.every.map(|_| whole.clone());
        let (queues, progress) = (Queues::default(), options.progress());
        Recorder {
            options,
            output,
            begin: Instant::now(),
            progress,
            told: Told::default(),
            queues,
            rest: Rest::new(scheduler.domains()),
            whole,
            part,
        }
    }

    fn record(mut self, scheduler: &mut Scheduler, running: Option<&mut Running>) -> anyhow::Result<Logged> {
        let (stop, mut outcome) = (AtomicBool::new(false), Ok(()));
        let mut running = running;
        scheduler.run(&stop, |scheduler| {
            outcome = self.look(scheduler, running.as_deref_mut(), &stop);
        });
        outcome?;
        if let Some(running) = running {
            running.end(|| scheduler.tick())?;
        }
        scheduler.tick();
        self.told.tell_all(scheduler);
        self.queues.note(scheduler);
        self.rest.look(scheduler.domains());
        let logged = self.whole.end(Report::of(scheduler), &self.queues);
        Ok(Logged { within_other: self.rest.largest(), ..logged })
    }

    /// After each poll. On an error, there is no next one.
    fn look(
        &mut self,
        scheduler: &mut Scheduler,
        running: Option<&mut Running>,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        stop.store(true, Ordering::Relaxed);
        self.queues.note(scheduler);
        self.rest.look_in_time(scheduler.domains());
        self.progress.aside(|| self.told.tell_all(scheduler));
        let has_ended = running.map_or(Ok(false), Running::has_ended)?;
        self.print_part(scheduler)?;
        let passed = self.begin.elapsed();
        let is_over = self.options.limit().is_some_and(|limit| passed >= limit);
        self.progress.show(passed, format!("{:.0} s, Ctrl-C shows the results so far", passed.as_secs_f64()));
        stop.store(has_ended || is_over || interrupt::asked(), Ordering::Relaxed);
        Ok(())
    }

    /// What `--every` asks for.
    fn print_part(&mut self, scheduler: &Scheduler) -> anyhow::Result<()> {
        let (Some(part), Some(every)) = (&mut self.part, self.options.every) else { return Ok(()) };
        if part.elapsed(scheduler) < every {
            return Ok(());
        }
        let logged = part.end(Report::of(scheduler), &self.queues);
        self.progress.aside(|| tables::part(&logged, self.output))
    }
}
