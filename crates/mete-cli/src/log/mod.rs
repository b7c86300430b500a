//! `mete log`: what schedulers need to know, logged for a while and printed for each domain.

pub mod command;
mod events;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use mete_command::output::Output;
use mete_command::progress::Progress;
use mete_command::status::{FAILED, INCOMPLETE};
use mete_command::user::UserOption;
use mete_command::value::duration;
use mete_command::{failure, interrupt};
use mete_kernel::Characteristic;
use mete_probe::directory::Users;
use mete_sched::busiest::FirstLook;
use mete_sched::domains::selector::user_id;
use mete_sched::domains::{DomainError, plain_name};
use mete_sched::other_programs::OtherPrograms;
use mete_sched::{DivideBy, DomainSpec, Report, Scheduler, SchedulerError, Selector, Settings};

use crate::notice;
use crate::notice::ToldNotices;
use crate::parse::domain;
use crate::report::{self, Interval, Logged, Queues, tables};
use command::{Paused, Running};

/// Options of `mete log`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct LogOptions {
    /// How long to log; COMMAND is ended if it runs longer. If not given, 10 s, or as long as COMMAND runs
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// Also print results at this interval
    #[arg(long, value_name = "TIME", value_parser = duration)]
    every: Option<Duration>,
    /// How often to read the logs
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20ms")]
    interval: Duration,
    /// An accounting domain and the processes that belong to it; repeat it for more domains. Selectors:
    /// pid:NUMBER, comm:NAME, exe:PATH, cgroup:PATH, user:NAME, children:NUMBER; several with commas; * ?
    /// [a-z] and ** are patterns in names and paths. Children of these processes belong to the domain, too,
    /// and so do selected processes that start later. Without this option, the busiest programs become
    /// domains
    #[arg(long = "domain", value_name = "NAME=SELECTOR", value_parser = domain())]
    pub domains: Vec<DomainSpec>,
    /// Make a domain for each control group, program or user, up to 253; also for those that appear later
    #[arg(long, value_name = "cgroup|program|user", conflicts_with = "domains",
        value_parser = divide_by(), hide_possible_values = true)]
    by: Option<DivideBy>,
    /// What to log of the kernel: service, ipc, memory, run-queue[=HERTZ], counters=NAME,NAME… with the names
    /// that perf list shows [default: service,ipc,memory,run-queue,counters=page-faults,cpu-migrations]
    #[arg(long = "event", alias = "events", value_name = "LIST", value_delimiter = ',',
        value_parser = events::characteristic)]
    events: Vec<Characteristic>,
    /// Log only programs with probes, not the kernel
    #[arg(long, conflicts_with = "events")]
    components: bool,
    /// Also log the probes of these users' programs (names, numbers, or all), even if they belong to no
    /// domain. Only for root; with --components, the default is all
    #[arg(long, value_name = "USER,…", value_delimiter = ',', value_parser = user)]
    components_of: Vec<User>,
    /// Print one JSON object a line; COMMAND's output goes to stderr
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    user: UserOption,
    /// A command to run, which is logged as a domain of its own
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The users whose programs are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    All,
    One(u32),
}

fn user(text: &str) -> Result<User, DomainError> {
    if text == "all" { Ok(User::All) } else { user_id(text.as_ref()).map(User::One) }
}

/// What gets a domain of its own.
fn divide_by() -> impl TypedValueParser<Value = DivideBy> {
    PossibleValuesParser::new(["cgroup", "program", "user"]).map(|name| match name.as_str() {
        "cgroup" => DivideBy::Cgroup,
        "program" => DivideBy::Program,
        _ => DivideBy::User,
    })
}

const EXAMPLES: &str = "\
Examples:
  sudo mete log --for 5s           the busiest programs
  sudo mete log --by program -- make -j4   each program that make runs
  sudo mete log -- make -j4        a command and everything that it starts
  sudo mete log --domain web=comm:nginx --domain db=user:postgres --every 1s
  sudo mete log --domain box=cgroup:/system.slice/docker.service
  sudo mete log --domain 'db=exe:/usr/lib/postgresql/*/bin/postgres'
  sudo mete log --event service,counters=cycles,cache-misses -- ./program
  mete log --components --for 5s   programs with probes, without root
  sudo mete log --for 1s --json | jq 'select(.kind == \"domain\")'

A process that starts later and matches a selector belongs to its domain as soon as it has that name or
runs that program. What it did before, between fork and exec, belongs to its parent's domain. So a domain
may be empty at first, as long as another domain is not.

Percentages are of one processor. Two kinds of wake-ups are not counted: those by interrupts, and those
by packets from other network namespaces, because their senders are not known. A ? stands for an unknown
number. The domain `other` has every process that belongs to no domain.

The exit status is COMMAND's, 127 if there is no such program, or 126 if it cannot be run. It is 1 if the
kernel, or a characteristic that --event names, could not be logged. Without COMMAND, it is 3 if the
results are incomplete. In both cases, the last line says what is missing.

Under sudo, COMMAND runs as the user who called sudo, and stderr says so; --user root runs it as root.

Ctrl-C ends the run with the results so far. It reaches COMMAND, too, which gets two seconds to end by
itself before it is ended. The exit status is then COMMAND's, or 130 without COMMAND.

The time of --for begins when everything is being logged, a quarter of a second after the start. At the
end, switching off takes a tenth of a second.

Numbers after a ≥ are lower bounds, because rows were lost. The objects of --json are described in
docs/json.md.";

/// How long to log without a command: long enough to see something.
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// How often to look for components, and for processes that the kernel component does not bind by itself,
/// while a command runs: the command may end before a second has passed.
const LOOK_DURING_COMMAND: Duration = Duration::from_millis(40);
/// The same without a command. Without the kernel component, a new process belongs to the domain `other`
/// until it is found.
const LOOK_OTHERWISE: Duration = Duration::from_millis(200);

/// Logs, prints the results, and returns the command's exit status.
pub fn run(options: &LogOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    let user = options.user.told(&options.command, "")?;
    let paused = Paused::start(&options.command, options.json, None, user.as_ref())?;
    let mut scheduler = start(options, paused.as_ref())?;
    // Only now: until here, a signal ends the process at once, and everything that it has started ends with
    // it. The kernel takes half a second and more to load the programs, and cannot be interrupted.
    interrupt::listen()?;
    if paused.is_none() {
        notice::check(&mut scheduler)?;
    }
    // Reads and drops what was logged while logging was being switched on: it is no part of the results.
    scheduler.tick();
    let recorder = Recorder::new(options, output, &scheduler);
    let mut running = paused.map(Paused::resume).transpose()?;
    let logged = recorder.record(&mut scheduler, running.as_mut())?;
    let is_done = !interrupt::asked();
    report::whole(&logged, options.interval, output)?;
    if scheduler.domains().is_full() {
        failure::say("all domains were in use: processes that came later are in \"other\"");
    }
    if logged.report.completeness.files.is_empty() && !scheduler.logs_anything() {
        bail!("nothing was logged: not the kernel, and no program with probes ran");
    }
    let is_complete = tables::tell_loss(&logged);
    let is_less_than_asked = tell_not_logged(&logged);
    let status = match running {
        Some(running) => running.status()?,
        None if is_done && !is_complete => ExitCode::from(INCOMPLETE),
        None => interrupt::ended(is_done),
    };
    Ok(if is_less_than_asked && status == ExitCode::SUCCESS { ExitCode::from(FAILED) } else { status })
}

/// Says on the last line what was asked for and is not in the results; returns whether there is any such
/// thing.
fn tell_not_logged(logged: &Logged) -> bool {
    let what = logged.not_logged.join("; ");
    if !what.is_empty() {
        failure::say(&format!("these results lack something that was asked for: {what}"));
    }
    !what.is_empty()
}

impl LogOptions {
    fn settings(&self) -> Settings {
        Settings {
            divide: self.by,
            poll: self.interval,
            kernel: if self.components { Vec::new() } else { self.characteristics() },
            housekeeping: if self.command.is_empty() { LOOK_OTHERWISE } else { LOOK_DURING_COMMAND },
            // Without named domains, the busiest programs are chosen, and a program that was just busy may
            // have ended.
            may_be_empty: self.domains.is_empty(),
            component_users: self.component_users(),
            ..Settings::default()
        }
    }

    /// The users whose programs with probes are logged; with `--components`, all users.
    fn component_users(&self) -> Users {
        if self.components || self.components_of.contains(&User::All) {
            return Users::All;
        }
        let users = self.components_of.iter().filter_map(|user| match user {
            User::One(user) => Some(*user),
            User::All => None,
        });
        Users::These(users.collect())
    }

    /// Whether the user chose the characteristics: if not, those that this kernel lacks are not missed.
    fn is_choice(&self) -> bool {
        !self.events.is_empty()
    }

    /// What to log of the kernel, each characteristic once.
    fn characteristics(&self) -> Vec<Characteristic> {
        let mut wanted: Vec<Characteristic> = Vec::new();
        for what in if self.is_choice() { self.events.clone() } else { events::usual() } {
            if !wanted.contains(&what) {
                wanted.push(what);
            }
        }
        wanted
    }

    fn limit(&self) -> Option<Duration> {
        self.time.or(self.command.is_empty().then_some(DEFAULT_TIME))
    }

    fn progress(&self) -> Progress {
        // A command writes on the terminal, and nothing may be drawn over it.
        if self.command.is_empty() { Progress::of_time("logging", self.limit()) } else { Progress::none() }
    }
}

/// Logs the domains that were asked for, the command's, or the busiest programs'.
fn start(options: &LogOptions, paused: Option<&Paused>) -> Result<Scheduler, SchedulerError> {
    let mut specs = options.domains.clone();
    specs.extend(paused.map(|paused| command_domain(paused, &specs)));
    if specs.is_empty() && options.by.is_none() {
        // While the kernel's programs are loaded, it shows which programs are busy.
        let first = FirstLook::now();
        return Scheduler::start_for(options.settings(), || first.busiest());
    }
    Scheduler::start(options.settings(), specs)
}

/// The command's domain. It has the program's name, unless another domain has this name.
fn command_domain(paused: &Paused, others: &[DomainSpec]) -> DomainSpec {
    let name = plain_name(paused.name());
    let is_free = !name.is_empty() && others.iter().all(|other| other.name != name);
    let name = if is_free { name } else { "command".into() };
    DomainSpec { name, selectors: vec![Selector::Pid(paused.pid())], role: None }
}

/// Logs until the time is up, the command has ended, or Ctrl-C is pressed.
struct Recorder<'a> {
    options: &'a LogOptions,
    output: &'a mut Output,
    begin: Instant,
    progress: Progress,
    told: ToldNotices,
    queues: Queues,
    others: OtherPrograms,
    whole: Interval,
    part: Option<Interval>,
}

impl Recorder<'_> {
    fn new<'a>(options: &'a LogOptions, output: &'a mut Output, scheduler: &Scheduler) -> Recorder<'a> {
        let whole = Interval::new(Report::of(scheduler));
        let part = options.every.map(|_| whole.clone());
        Recorder {
            options,
            output,
            begin: Instant::now(),
            progress: options.progress(),
            told: ToldNotices::default(),
            queues: Queues::default(),
            others: OtherPrograms::new(scheduler.domains()),
            whole,
            part,
        }
    }

    fn record(
        mut self,
        scheduler: &mut Scheduler,
        mut running: Option<&mut Running>,
    ) -> anyhow::Result<Logged> {
        let (stop, mut outcome) = (AtomicBool::new(false), Ok(()));
        let end = self.options.limit().map(|limit| self.begin + limit);
        scheduler.run_with_end(end, &stop, |scheduler| {
            outcome = self.look(scheduler, running.as_deref_mut(), &stop);
        });
        outcome?;
        if let Some(running) = running {
            running.end(|| scheduler.tick())?;
        }
        scheduler.read_to_end();
        self.told.tell_all(scheduler);
        self.queues.note(scheduler);
        self.others.look(scheduler.domains());
        // One report for both, so that the last part and the whole end at the same moment.
        let now = Report::of(scheduler);
        self.print_part(now.clone())?;
        let logged = self.whole.end(now, &self.queues);
        let not_logged = self.told.not_logged(self.options.is_choice());
        Ok(Logged { within_other: self.others.largest(), not_logged, ..logged })
    }

    /// Called after each poll. After an error, there is no next poll.
    fn look(
        &mut self,
        scheduler: &mut Scheduler,
        running: Option<&mut Running>,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        // Stays set if an error leaves this function early; otherwise the last line sets it anew.
        stop.store(true, Ordering::Relaxed);
        self.queues.note(scheduler);
        self.others.look_in_time(scheduler.domains());
        self.progress.aside(|| self.told.tell_all(scheduler));
        let has_ended = running.map_or(Ok(false), Running::has_ended)?;
        let passed = self.begin.elapsed();
        let is_over = self.options.limit().is_some_and(|limit| passed >= limit);
        let is_last = has_ended || is_over || interrupt::asked();
        // The last part is printed at the end, with the whole.
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

    /// Prints what `--every` asks for: what was logged since the part before.
    fn print_part(&mut self, now: Report) -> anyhow::Result<()> {
        let Some(part) = &mut self.part else { return Ok(()) };
        let logged = part.end(now, &self.queues);
        self.progress.aside(|| report::part(&logged, self.output))
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: LogOptions,
    }

    fn options(words: &[&str]) -> LogOptions {
        Line::try_parse_from([&["log"], words].concat()).unwrap().options
    }

    #[test]
    fn log_13_the_default_list_is_a_choice_where_it_was_written() {
        let (usual, chosen) = (options(&[]), options(&["--event", events::DEFAULT]));
        assert_eq!((usual.is_choice(), chosen.is_choice()), (false, true));
        assert!(!usual.characteristics().is_empty());
        assert_eq!(usual.characteristics(), chosen.characteristics());
    }

    #[test]
    fn log_13_the_help_names_the_default_list() {
        let help = Line::command().term_width(1000).render_long_help().to_string();
        assert!(help.contains(&format!("[default: {}]", events::DEFAULT)), "{help}");
    }
    #[test]
    fn log_13_characteristics_and_counters_are_read_from_one_list() {
        let list = "service,run-queue=100,counters=page-faults,cs,ipc,ipc";
        let counter = |name: &str| Characteristic::Counter(name.parse().unwrap());
        let expected = [
            Characteristic::ServiceTime,
            Characteristic::RunQueue { hertz: 100 },
            counter("page-faults"),
            counter("cs"),
            Characteristic::Ipc,
        ];
        for option in ["--event", "--events"] {
            assert_eq!(options(&[option, list]).characteristics(), expected, "{option}");
        }
    }

    #[test]
    fn log_13_what_is_not_known_is_refused_by_its_name() {
        for text in [
            "",
            "servise",
            "service=1",
            "run-queue=often",
            "run-queue=0",
            "run-queue=10001",
            "run-queue=-1",
            "counters=",
            "nothing=1",
        ] {
            assert!(Line::try_parse_from(["log", &format!("--event={text}")]).is_err(), "{text}");
        }
    }
}
