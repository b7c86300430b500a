//! `mete schedule --policy vtrr`: control groups have their shares, by the scheduler inside the kernel.

use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use mete_command::command_line::Mistake;
use mete_command::interrupt;
use mete_command::output::Output;
use mete_command::progress::Progress;
use mete_command::table::{Head, NOTHING, Table, grouped, milliseconds, seconds, shorten};
use mete_ext::{Ended, GroupScheduler, RuledCgroup, Share, Status};
use mete_sched::domains::{Selector, SharedDomain};
use serde::Serialize;

use super::ScheduleOptions;
use crate::parse::check_domains;
use crate::report::tables;

/// What a group has if nothing is said about it, in the unit of `cpu.weight`.
const ORDINARY: Share = Share::new(SharedDomain::ORDINARY).unwrap();
/// How often to look whether the scheduler still rules.
const LOOK: Duration = Duration::from_millis(50);

impl ScheduleOptions {
    /// Whether shares can be dealt out to these domains.
    ///
    /// # Errors
    ///
    /// Which option does not go with them, and what to do.
    pub(super) fn check_shares(&self) -> Result<(), Mistake> {
        if let Some(other) = self.drivers.iter().chain(&self.clients).next() {
            let mistake = format!(
                "--policy vtrr knows no drivers and clients: write --domain {}=cgroup:/PATH,share=NUMBER",
                other.name
            );
            return Err((ErrorKind::ArgumentConflict, mistake));
        }
        if let Some(other) = self.domains.iter().find(|domain| control_group(domain).is_none()) {
            let mistake = format!(
                "--policy vtrr gives shares to control groups: {} has to be one of them, {0}=cgroup:/PATH,share=NUMBER",
                other.spec.name
            );
            return Err((ErrorKind::ValueValidation, mistake));
        }
        let specs: Vec<_> = self.domains.iter().map(|domain| domain.spec.clone()).collect();
        check_domains(&specs)
    }
}

/// The directory of the one control group that a domain is.
fn control_group(domain: &SharedDomain) -> Option<&Path> {
    match domain.spec.selectors.as_slice() {
        [Selector::Cgroup(path)] => Some(path),
        _ => None,
    }
}

/// Schedules until the time is up, Ctrl-C is pressed or the kernel ends the scheduler.
pub(super) fn run(options: &ScheduleOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    let scheduler = GroupScheduler::start()?;
    // From here on a signal has the shares printed. Without it, the kernel would end the scheduler with this process.
    interrupt::listen()?;
    let ruled = rule(&scheduler, &options.domains)?;
    output.text(
        "vtrr schedules all ordinary tasks, by sched_ext: shares hold across all processors, in quanta of 1 ms",
    )?;
    let begin = Instant::now();
    watch(&scheduler, options.time, begin);
    let (passed, status) = (begin.elapsed(), scheduler.status());
    print(&options.domains, &ruled, output)?;
    print_status(passed, &status, output)?;
    if let Some(Ended { reason, message, .. }) = status.ended {
        bail!(
            "the kernel has ended the scheduler after {}, and rules again itself: {reason}: {message}",
            seconds(passed)
        );
    }
    let is_done = options.time.is_none_or(|time| passed >= time);
    Ok(interrupt::ended(is_done))
}

/// Gives each domain its share.
fn rule(scheduler: &GroupScheduler, domains: &[SharedDomain]) -> anyhow::Result<Vec<RuledCgroup>> {
    let one = |domain: &SharedDomain| {
        let path = control_group(domain).context("a domain is a control group")?;
        let share = domain.weight.and_then(Share::new).unwrap_or(ORDINARY);
        Ok(RuledCgroup::new(scheduler, path, share)?)
    };
    domains.iter().map(one).collect()
}

fn watch(scheduler: &GroupScheduler, time: Option<Duration>, begin: Instant) {
    let progress = Progress::of_time("scheduling", time);
    loop {
        let passed = begin.elapsed();
        let left = time.map_or(LOOK, |time| time.saturating_sub(passed));
        let status = scheduler.status();
        if left.is_zero() || interrupt::asked() || status.ended.is_some() {
            return;
        }
        let decisions = grouped(status.decisions);
        progress.show(passed, format!("{:.0} s, {decisions} decisions, Ctrl-C ends", passed.as_secs_f64()));
        sleep(left.min(LOOK));
    }
}

/// What a domain was to have beside the others that are named, and what it has got.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "share")]
struct Given<'a> {
    domain: &'a str,
    share: f64,
    wanted_percent: f64,
    given_percent: Option<f64>,
    ran_ns: u64,
}

fn print(domains: &[SharedDomain], ruled: &[RuledCgroup], output: &mut Output) -> anyhow::Result<()> {
    if domains.is_empty() {
        return output.text("every control group has its cpu.weight");
    }
    let given = ruled.iter().map(RuledCgroup::used).collect::<Result<Vec<_>, _>>()?;
    let shares: u32 = ruled.iter().map(|ruled| ruled.share().get()).sum();
    let all: Duration = given.iter().sum();
    let heads = ["share", "wanted (%)", "given (%)", "ran (ms)"].map(Head::Number);
    let mut table = Table::new([Head::Name("domain")].into_iter().chain(heads));
    for ((domain, ruled), ran) in domains.iter().zip(ruled).zip(given) {
        let share = f64::from(ruled.share().get());
        let row = Given {
            domain: &domain.spec.name,
            share: share / f64::from(ORDINARY.get()),
            wanted_percent: 100.0 * share / f64::from(shares),
            given_percent: (!all.is_zero()).then(|| 100.0 * ran.as_secs_f64() / all.as_secs_f64()),
            ran_ns: u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX),
        };
        output.object(&row)?;
        let given = row.given_percent.map_or(NOTHING.into(), |given| format!("{given:.2}"));
        let wanted = format!("{:.2}", row.wanted_percent);
        let name = shorten(row.domain, tables::NAME);
        table.row([name, row.share.to_string(), wanted, given, milliseconds(row.ran_ns)]);
    }
    tables::print("", table, output)
}

/// What the scheduler did.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "scheduler")]
struct Did<'a> {
    policy: &'static str,
    by: &'static str,
    time_s: f64,
    decisions: u64,
    stolen: u64,
    missed: u64,
    /// Why the kernel has ended it.
    ended: Option<&'a str>,
}

fn print_status(passed: Duration, status: &Status, output: &mut Output) -> anyhow::Result<()> {
    let Status { decisions, stolen, missed, ref ended } = *status;
    output.object(&Did {
        policy: "vtrr",
        by: "sched_ext",
        time_s: passed.as_secs_f64(),
        decisions,
        stolen,
        missed,
        ended: ended.as_ref().map(|ended| ended.reason.as_str()),
    })?;
    output.text(format!(
        "scheduled for {}: {} decisions, {} tasks taken from other processors, {} choices of tasks that had just left",
        seconds(passed),
        grouped(decisions),
        grouped(stolen),
        grouped(missed)
    ))
}
