//! `mete log`: what schedulers need to know, logged for a while and printed for each domain.

pub mod command;
mod events;
pub mod user;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use mete_probe::directory::Users;
use mete_sched::busiest::FirstLook;
use mete_sched::domains::selector::user_id;
use mete_sched::domains::{DomainError, plain_name};
use mete_sched::other_programs::OtherPrograms;
use mete_sched::{DivideBy, DomainSpec, Report, Scheduler, SchedulerError, Selector, Settings};

use crate::notice::Told;
use crate::output::Output;
use crate::parse::{domain, duration};
use crate::progress::Progress;
use crate::report::{Interval, Logged, Queues, tables};
use crate::{failure, interrupt, notice};
use command::{Paused, Running};
use events::Wanted;
use user::UserOption;

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
    /// An accounting domain and what belongs to it; repeat it for more. Selectors: pid:NUMBER, comm:NAME,
    /// exe:PATH, cgroup:PATH, user:NAME, children:NUMBER; several with commas; in names and paths * ? [a-z]
    /// and ** are patterns. Children of what belongs to a domain belong to it, too, and so does what starts
    /// later and is selected. Without any, the busiest programs become domains
    #[arg(long = "domain", value_name = "NAME=SELECTOR", value_parser = domain())]
    domains: Vec<DomainSpec>,
    /// A domain for each control group, program or user, up to 253 of them, also for those that appear later
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "cgroup|program|user",
        conflicts_with = "domains"
    )]
    by: Option<By>,
    /// What of the kernel to log: service, ipc, memory, run-queue[=HERTZ], counters=NAME,NAME… with
    /// the names that perf list shows
    #[arg(long, value_name = "LIST", default_value = events::DEFAULT)]
    event: Wanted,
    /// Log programs with probes only, not the kernel
    #[arg(long, conflicts_with = "event")]
    components: bool,
    /// Log the probes of these users' programs, too (names, numbers, or all), though they have no process in a domain.
    /// For root; with --components, it is all
    #[arg(long, value_name = "USER,…", value_delimiter = ',', value_parser = user)]
    components_of: Vec<User>,
    /// Print one JSON object a line; what COMMAND prints goes to stderr then
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    user: UserOption,
    /// A command to run and to log, as a domain of its own
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Whose programs are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    All,
    One(u32),
}

fn user(text: &str) -> Result<User, DomainError> {
    if text == "all" { Ok(User::All) } else { user_id(text.as_ref()).map(User::One) }
}

/// What has a domain of its own.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum By {
    Cgroup,
    Program,
    User,
}

impl By {
    fn divide(self) -> DivideBy {
        match self {
            By::Cgroup => DivideBy::Cgroup,
            By::Program => DivideBy::Program,
            By::User => DivideBy::User,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  sudo mete log --for 5s           the busiest programs
  sudo mete log --by program -- make -j4   each program that it runs
  sudo mete log -- make -j4        a command and all that it starts
  sudo mete log --domain web=comm:nginx --domain db=user:postgres --every 1s
  sudo mete log --domain box=cgroup:/system.slice/docker.service
  sudo mete log --domain 'db=exe:/usr/lib/postgresql/*/bin/postgres'
  sudo mete log --event service,counters=cycles,cache-misses -- ./program
  mete log --components --for 5s   programs with probes, without root
  sudo mete log --for 1s --json | jq 'select(.kind == \"domain\")'

What starts later and matches a selector belongs to its domain from the first moment on, as soon as it has
that name or runs that program: what it did before, between fork and exec, belongs to its parent's domain.
So a domain may be empty at first, as long as another one is not.

Percentages are of one processor. Wake-ups by interrupts are not counted, nor those by packets from
other network namespaces, whose sender is not known. A ? is what is not known. The domain `other` has
every process that belongs to no domain. The exit status is COMMAND's, 127 if there is no such
program, 126 if it cannot be run, or 1 if the kernel, or a characteristic that --event names, could
not be logged: the last line says so. Without COMMAND it is 3 if something of what happened is
missing in the results, which the last line says.

Under sudo, COMMAND runs as the user who called sudo, and stderr says so; --user root runs it as root.

Ctrl-C ends the run with the results so far. It reaches COMMAND, too, which gets two seconds to
end by itself before it is ended. The exit status is then 130, or what COMMAND makes of it.

The time of --for begins once everything is logged, a quarter of a second after the start; at the end,
switching off takes a tenth.

Numbers behind a ≥ are lower bounds, because rows were lost. The objects of --json are described
in docs/json.md.";

/// The exit status where rows were lost and the results are there all the same.
const INCOMPLETE: u8 = 3;
/// Without a command, as long as it takes to see something.
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// For components, and for processes where the kernel component does not bind them itself: a command may be over before
/// a second has passed.
const LOOK_DURING_COMMAND: Duration = Duration::from_millis(40);
/// Without the kernel component, what a process does that starts meanwhile counts as other's until it is found.
const LOOK_OTHERWISE: Duration = Duration::from_millis(200);

/// Logs, and answers with the command's status.
pub fn run(options: &Options, output: &mut Output) -> anyhow::Result<ExitCode> {
    let user = options.user.told(&options.command, "")?;
    let paused = Paused::start(&options.command, options.json, None, user.as_ref())?;
    let mut scheduler = start(options, paused.as_ref())?;
    // Until now a signal has ended the process at once, and with it all that was started: the kernel takes half a second
    // and more for its programs, and cannot be told to stop.
    interrupt::listen()?;
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
    if scheduler.domains().is_full() {
        failure::say("there were no more domains to give out: what came later is in \"other\"");
    }
    if logged.report.completeness.files.is_empty() && !notice::logs_anything(&scheduler) {
        bail!("nothing was logged: not the kernel, and no program with probes ran");
    }
    let is_complete = tables::tell_loss(&logged);
    let is_less_than_asked = tell_not_logged(&logged);
    let status = match running {
        Some(running) => running.status()?,
        None if is_done && !is_complete => ExitCode::from(INCOMPLETE),
        None => interrupt::ended(is_done),
    };
    Ok(if is_less_than_asked && status == ExitCode::SUCCESS { ExitCode::FAILURE } else { status })
}

/// Says last of all what was asked for and is not in the results, if anything is not.
fn tell_not_logged(logged: &Logged) -> bool {
    let what = logged.not_logged.join("; ");
    if !what.is_empty() {
        failure::say(&format!("these results are without what was asked for: {what}"));
    }
    !what.is_empty()
}

impl Options {
    fn settings(&self) -> Settings {
        let kernel = if self.components { Vec::new() } else { self.event.0.clone() };
        let housekeeping = if self.command.is_empty() { LOOK_OTHERWISE } else { LOOK_DURING_COMMAND };
        // A program that was busy a moment ago may have ended.
        let may_be_empty = self.domains.is_empty();
        let component_users = self.component_users();
        let divide = self.by.map(By::divide);
        Settings {
            divide,
            poll: self.interval,
            kernel,
            housekeeping,
            may_be_empty,
            component_users,
            ..Settings::default()
        }
    }

    /// Who wants programs with probes only wants all of them.
    fn component_users(&self) -> Users {
        if self.components || self.components_of.contains(&User::All) {
            return Users::All;
        }
        let one = |user: &User| if let User::One(user) = user { Some(*user) } else { None };
        Users::These(self.components_of.iter().filter_map(one).collect())
    }

    /// Whether each characteristic was asked for by its name, and not with all that cost next to nothing.
    fn is_choice(&self) -> bool {
        events::DEFAULT.parse().is_ok_and(|default: Wanted| default != self.event)
    }

    fn limit(&self) -> Option<Duration> {
        self.time.or(self.command.is_empty().then_some(DEFAULT_TIME))
    }

    fn progress(&self) -> Progress {
        // A command has the terminal for itself.
        if self.command.is_empty() { Progress::of_time("logging", self.limit()) } else { Progress::none() }
    }
}

/// Logs the domains that were asked for, the command's, or the busiest programs'.
fn start(options: &Options, paused: Option<&Paused>) -> Result<Scheduler, SchedulerError> {
    let mut specs = options.domains.clone();
    specs.extend(paused.map(|paused| command_domain(paused, &specs)));
    if specs.is_empty() && options.by.is_none() {
        // Who is busy shows while the kernel's programs are loaded.
        let first = FirstLook::now();
        return Scheduler::start_for(options.settings(), || first.busiest());
    }
    Scheduler::start(options.settings(), specs)
}

/// Named for the program, unless somebody has the name.
fn command_domain(paused: &Paused, others: &[DomainSpec]) -> DomainSpec {
    let is_free = |name: &String| !name.is_empty() && others.iter().all(|other| other.name != *name);
    let name = Some(plain_name(paused.name())).filter(is_free).unwrap_or_else(|| "command".into());
    DomainSpec { name, selectors: vec![Selector::Pid(paused.pid())], role: None }
}

/// The kernel charges a task when it leaves its processor, and at ticks. A command can be waited for a moment before it has
/// left its processor for the last time, and what computes has not been charged since the last tick: after another one,
/// all that was done until now is in the log.
fn wait_for_last_tick() {
    /// A period of [`mete_sched::sources::kernel`]'s tick, and of the default of `--event run-queue`.
    const PERIOD: Duration = Duration::from_millis(10);
    std::thread::sleep(PERIOD);
}

/// Logs until the time is up, the command has ended or somebody pressed Ctrl-C.
struct Recorder<'a> {
    options: &'a Options,
    output: &'a mut Output,
    begin: Instant,
    progress: Progress,
    told: Told,
    queues: Queues,
    others: OtherPrograms,
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
            others: OtherPrograms::new(scheduler.domains()),
            whole,
            part,
        }
    }

    fn record(mut self, scheduler: &mut Scheduler, running: Option<&mut Running>) -> anyhow::Result<Logged> {
        let (stop, mut outcome) = (AtomicBool::new(false), Ok(()));
        let mut running = running;
        let end = self.options.limit().map(|limit| self.begin + limit);
        scheduler.run_with_end(end, &stop, |scheduler| {
            outcome = self.look(scheduler, running.as_deref_mut(), &stop);
        });
        outcome?;
        if let Some(running) = running {
            running.end(|| scheduler.tick())?;
        }
        wait_for_last_tick();
        scheduler.tick_before_results();
        self.told.tell_all(scheduler);
        self.queues.note(scheduler);
        self.others.look(scheduler.domains());
        // The last part and the whole end at one moment.
        let now = Report::of(scheduler);
        self.print_part(now.clone())?;
        let logged = self.whole.end(now, &self.queues);
        let not_logged = self.told.not_logged(self.options.is_choice());
        Ok(Logged { within_other: self.others.largest(), not_logged, ..logged })
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
        self.others.look_in_time(scheduler.domains());
        self.progress.aside(|| self.told.tell_all(scheduler));
        let has_ended = running.map_or(Ok(false), Running::has_ended)?;
        let passed = self.begin.elapsed();
        let is_over = self.options.limit().is_some_and(|limit| passed >= limit);
        let is_last = has_ended || is_over || interrupt::asked();
        // The last part goes on to the end.
        if !is_last && self.is_part_over(scheduler) {
            self.print_part(Report::of(scheduler))?;
        }
        self.progress.show(passed, format!("{:.0} s, Ctrl-C shows the results so far", passed.as_secs_f64()));
        stop.store(is_last, Ordering::Relaxed);
        Ok(())
    }

    fn is_part_over(&self, scheduler: &Scheduler) -> bool {
        let part = self.part.as_ref().zip(self.options.every);
        part.is_some_and(|(part, every)| part.elapsed(scheduler) >= every)
    }

    /// What `--every` asks for: what was logged since the part before.
    fn print_part(&mut self, now: Report) -> anyhow::Result<()> {
        let Some(part) = &mut self.part else { return Ok(()) };
        let logged = part.end(now, &self.queues);
        self.progress.aside(|| tables::part(&logged, self.output))
    }
}
