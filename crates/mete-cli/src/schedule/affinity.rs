//! `mete schedule --policy affinity`: clients are moved to the processors of their drivers. Prints decisions
//! as they are made, and a summary.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::error::ErrorKind;
use mete_command::command_line::Mistake;
use mete_command::interrupt;
use mete_command::output::Output;
use mete_command::progress::Progress;
use mete_command::table::{Head, Table, milliseconds, number, percent, seconds, shorten};
use mete_policy::{Move, Permille, ProcessorId, Role};
use mete_sched::domains::of_policy;
use mete_sched::{DomainReport, DomainSpec, Ended, Notice, Report, Scheduler, Settings};
use serde::Serialize;

use super::{AffinityOptions, ScheduleOptions, print_restored};
use crate::notice;
use crate::notice::ToldNotices;
use crate::parse::check_domains;
use crate::report::{self, Interval, Logged, Queues, service_ns, tables};

/// Printed if no transactions were seen.
const NO_TRANSACTIONS: &str = "\
no transactions between any client and driver were seen, so nothing could be decided; wake-ups by packets from \
other containers or network namespaces are not counted: there, put probes into the driver";

/// Schedules until the time is up or Ctrl-C is pressed; then puts everything back.
pub(super) fn run(options: &ScheduleOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        bail!("there is only one processor, so there is nothing to choose between: mete log works here");
    }
    let mut scheduler = Scheduler::start(options.affinity.settings(), options.specs())?;
    // Only now: until here, a signal ends the process at once. Nothing is moved yet, and its keepers end with
    // it.
    interrupt::listen()?;
    notice::check(&mut scheduler)?;
    let logged = Shown::new(options, output, &scheduler).watch(&mut scheduler)?;
    // Without --for, Ctrl-C is the intended end.
    let is_done = options.time.is_none() || !interrupt::asked();
    let ended = scheduler.finish();
    print_summary(&logged, options.affinity.interval, output)?;
    if !has_transactions(&logged) {
        output.text(format!("\n{NO_TRANSACTIONS}\n"))?;
    }
    print_ended(&ended, output)?;
    Ok(interrupt::ended(is_done))
}

impl ScheduleOptions {
    /// Whether these domains and times make affinity possible.
    ///
    /// # Errors
    ///
    /// Which options do not go together, and what to do.
    pub(super) fn check_affinity(&self) -> Result<(), Mistake> {
        if let Some(shared) =
            self.domains.iter().find(|domain| domain.weight.is_some() || domain.limit.is_some())
        {
            let mistake = format!(
                "shares and limits are dealt out by --policy vtrr, which has to be written: affinity moves {}, and does \
                 not hold it to a share",
                shared.spec.name
            );
            return Err((ErrorKind::ArgumentConflict, mistake));
        }
        // A domain of an open role may turn out to be either.
        let (drivers, clients, open) = (self.drivers.len(), self.clients.len(), self.domains.len());
        if drivers + open == 0 || clients + open == 0 || drivers + clients + open < 2 {
            let missing = "scheduling needs a domain that serves and a domain that is served: give a --driver and a \
                           --client, or more than one --domain";
            return Err((ErrorKind::MissingRequiredArgument, missing.into()));
        }
        if self.affinity.period < self.affinity.interval {
            let mistake = format!(
                "each decision needs a new reading of the logs: --period {:?} is shorter than --interval {:?}",
                self.affinity.period, self.affinity.interval
            );
            return Err((ErrorKind::ValueValidation, mistake));
        }
        check_domains(&self.specs())
    }

    fn specs(&self) -> Vec<DomainSpec> {
        let with = |specs: &[DomainSpec], role| {
            specs.iter().cloned().map(move |spec| spec.with_role(role)).collect()
        };
        let (drivers, clients): (Vec<_>, Vec<_>) =
            (with(&self.drivers, Role::Driver), with(&self.clients, Role::Client));
        let open = self.domains.iter().map(|domain| domain.spec.clone()).collect();
        [drivers, clients, open].concat()
    }
}

impl AffinityOptions {
    fn settings(&self) -> Settings {
        let polls = (self.period.as_secs_f64() / self.interval.as_secs_f64()).round();
        Settings {
            poll: self.interval,
            polls_in_period: polls.max(1.0) as u32,
            policy: Some(self.policy()),
            acts: !self.dry_run,
            ..Settings::default()
        }
    }

    fn policy(&self) -> mete_policy::affinity::Settings {
        mete_policy::affinity::Settings {
            margin_percent: self.margin,
            confirm_periods: self.confirm,
            dwell_periods: self.dwell,
            min_transactions: self.min_requests,
            cap: Permille::new(self.cap),
            max_imbalance: Permille::new(self.max_imbalance),
        }
    }
}

/// What is shown while the scheduler works.
struct Shown<'a> {
    options: &'a ScheduleOptions,
    output: &'a mut Output,
    progress: Progress,
    told: ToldNotices,
    begin: Instant,
    queues: Queues,
    whole: Interval,
    moves: u64,
}

impl Shown<'_> {
    fn new<'a>(options: &'a ScheduleOptions, output: &'a mut Output, scheduler: &Scheduler) -> Shown<'a> {
        Shown {
            options,
            output,
            progress: Progress::of_time("scheduling", options.time),
            told: ToldNotices::default(),
            begin: Instant::now(),
            queues: Queues::default(),
            whole: Interval::new(Report::of(scheduler)),
            moves: 0,
        }
    }

    fn watch(mut self, scheduler: &mut Scheduler) -> anyhow::Result<Logged> {
        let (stop, mut outcome) = (AtomicBool::new(false), Ok(()));
        scheduler.run(&stop, |scheduler| {
            outcome = self.look(scheduler);
            let is_over = self.options.time.is_some_and(|time| self.begin.elapsed() >= time);
            // Relaxed: `run` reads it in this same thread, after this call.
            stop.store(outcome.is_err() || is_over || interrupt::asked(), Ordering::Relaxed);
        });
        outcome?;
        Ok(self.whole.end(Report::of(scheduler), &self.queues))
    }

    /// Called after each poll.
    fn look(&mut self, scheduler: &mut Scheduler) -> anyhow::Result<()> {
        self.queues.note(scheduler);
        self.tell(scheduler)?;
        let passed = self.begin.elapsed();
        self.progress.show(
            passed,
            format!("{:.0} s, {}, Ctrl-C ends", passed.as_secs_f64(), number(self.moves, "decision")),
        );
        Ok(())
    }

    /// Prints what has happened since the last poll.
    fn tell(&mut self, scheduler: &mut Scheduler) -> anyhow::Result<()> {
        let notices: Vec<_> = scheduler.notices().collect();
        notices.iter().try_for_each(|notice| {
            let (decision, [moves, keeps], note) = match notice {
                Notice::Moved(decision, threads) => {
                    (decision, ["moved", "kept"], number(*threads as u64, "thread"))
                }
                Notice::WouldMove(decision) => (decision, ["would move", "would keep"], String::new()),
                Notice::NotMoved(decision, why) => (decision, ["not moved", "not kept"], why.to_string()),
                other => {
                    self.progress.aside(|| self.told.tell(other));
                    return Ok(());
                }
            };
            // A client that is on the right processor already is only bound to it.
            let what = if decision.from == Some(decision.to) { keeps } else { moves };
            self.print(scheduler, decision, what, note)
        })
    }

    fn print(
        &mut self,
        scheduler: &Scheduler,
        decision: &Move,
        what: &str,
        note: String,
    ) -> anyhow::Result<()> {
        self.moves += 1;
        let domains = scheduler.domains();
        let line = Decision {
            at_s: self.begin.elapsed().as_secs_f64(),
            what,
            client: domains.name(of_policy(decision.domain)),
            driver: domains.name(of_policy(decision.driver)),
            from: decision.from.map(ProcessorId::get),
            to: decision.to.get(),
            note,
        };
        self.progress.aside(|| {
            self.output.object(&line)?;
            self.output.text(line.text())
        })
    }
}

/// One decision, which is printed as a line.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "decision")]
struct Decision<'a> {
    at_s: f64,
    what: &'a str,
    client: &'a str,
    driver: &'a str,
    from: Option<u16>,
    to: u16,
    note: String,
}

impl Decision<'_> {
    fn text(&self) -> String {
        let Decision { at_s, what, client, driver, to, note, .. } = self;
        let way = match self.from {
            Some(from) if from == *to => format!("on processor {to}"),
            Some(from) => format!("from processor {from} to processor {to}"),
            None => format!("to processor {to}"),
        };
        let note = if note.is_empty() { String::new() } else { format!(": {note}") };
        format!("{at_s:8.2} s  {what} {client} {way}, where {driver} is{note}")
    }
}

fn print_summary(logged: &Logged, interval: Duration, output: &mut Output) -> anyhow::Result<()> {
    if output.is_json() {
        return report::whole(logged, interval, output);
    }
    output.text(format!("\nscheduled for {}", seconds(logged.to - logged.from)))?;
    tables::print("", placement(logged), output)?;
    tables::print(tables::TRANSACTIONS, tables::transactions(logged), output)?;
    output.text(tables::completeness(logged, interval))
}

/// Whether a client had any transactions to decide by. Processes in no domain do not count, because they
/// cannot be moved.
fn has_transactions(logged: &Logged) -> bool {
    logged.report.transactions.iter().any(|dealing| {
        let mut domains = logged.report.domains.iter();
        domains.any(|domain| domain.name == dealing.domain && domain.role == Role::Client)
    })
}

/// Where each domain was in the end.
fn placement(logged: &Logged) -> Table {
    let mut heads = vec![Head::Name("domain"), Head::Name("role")];
    heads.extend([tables::PROCESSES, "ran (ms)", "%", "mostly on", "placed on"].map(Head::Number));
    let mut table = Table::new(heads);
    let named = report::ordered(logged).into_iter().filter(|domain| domain.role != Role::Bystander);
    named.for_each(|domain| table.row(placement_row(logged, domain)));
    table
}

fn placement_row(logged: &Logged, domain: &DomainReport) -> [String; 7] {
    let processor = |number: Option<usize>| number.map_or("·".into(), |number| number.to_string());
    [
        shorten(&domain.name, tables::NAME),
        domain.role.to_string(),
        domain.processes.to_string(),
        tables::ran(logged, domain, milliseconds(service_ns(domain))),
        tables::ran(logged, domain, percent(logged.share(domain))),
        processor(domain.processor),
        processor(domain.placed),
    ]
}

fn print_ended(ended: &Ended, output: &mut Output) -> anyhow::Result<()> {
    let Some(restored) = ended.restored else {
        return output.text("nothing was moved: this was a dry run");
    };
    print_restored("processor masks", restored, "taskset -p PID", output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_where_it_should_be_is_kept() {
        let text = |from, what| {
            let line =
                Decision { at_s: 1.0, what, client: "web", driver: "db", from, to: 0, note: String::new() };
            line.text()
        };
        assert!(text(Some(0), "kept").contains("kept web on processor 0, where db is"));
        assert!(text(Some(1), "moved").contains("moved web from processor 1 to processor 0"));
        assert!(text(None, "moved").contains("moved web to processor 0"));
    }
}
