//! `mete schedule --policy vtrr`: control groups have their shares, by the scheduler inside the kernel.

use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::bail;
use clap::error::ErrorKind;
use mete_command::command_line::Mistake;
use mete_command::interrupt;
use mete_command::output::Output;
use mete_command::progress::Progress;
use mete_command::table::{Head, NOTHING, Table, grouped, milliseconds, seconds, shorten};
use mete_sched::domains::{Selector, SharedDomain};
use mete_shares::{By, Dealer, Did, Ended, Given, Group, Share};

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
        if self.domains.is_empty() && By::from(self.by) == By::Cgroup {
            let mistake =
                "--by cgroup gives weights to control groups: write --domain NAME=cgroup:/PATH,share=NUMBER";
            return Err((ErrorKind::MissingRequiredArgument, mistake.into()));
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

/// The control groups and their shares.
fn groups(domains: &[SharedDomain]) -> Vec<Group> {
    let group = |domain: &SharedDomain| {
        let share = domain.weight.and_then(Share::new).unwrap_or(ORDINARY);
        Some(Group { name: domain.spec.name.clone(), path: control_group(domain)?.into(), share })
    };
    domains.iter().filter_map(group).collect()
}

/// Deals until the time is up, Ctrl-C is pressed or the kernel ends the scheduler.
pub(super) fn run(options: &ScheduleOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    let dealer = Dealer::start(options.by.into(), groups(&options.domains))?;
    // From here on a signal has the shares printed. Without it, this process would end at once, and the shares with it.
    interrupt::listen()?;
    output.text(dealer.to_string())?;
    watch(&dealer, options.time);
    let (passed, did) = (dealer.passed(), dealer.did());
    print(&dealer.given(), output)?;
    print_did(&did, passed, output)?;
    if let Some(Ended { reason, message, .. }) = dealer.ended() {
        bail!(
            "the kernel has ended the scheduler after {}, and rules again itself: {reason}: {message}",
            seconds(passed)
        );
    }
    if let Some(restored) = dealer.finish() {
        output.text(format!("weights of control groups: {restored}"))?;
    }
    let is_done = options.time.is_none_or(|time| passed >= time);
    Ok(interrupt::ended(is_done))
}

fn watch(dealer: &Dealer, time: Option<Duration>) {
    let progress = Progress::of_time("scheduling", time);
    loop {
        let passed = dealer.passed();
        let left = time.map_or(LOOK, |time| time.saturating_sub(passed));
        let did = dealer.did();
        if left.is_zero() || interrupt::asked() || did.ended.is_some() {
            return;
        }
        let decisions =
            did.decisions.map_or_else(String::new, |number| format!("{} decisions, ", grouped(number)));
        progress.show(passed, format!("{:.0} s, {decisions}Ctrl-C ends", passed.as_secs_f64()));
        sleep(left.min(LOOK));
    }
}

fn print(given: &[Given], output: &mut Output) -> anyhow::Result<()> {
    if given.is_empty() {
        return output.text("every control group has its cpu.weight");
    }
    let heads = ["share", "wanted (%)", "given (%)", "ran (ms)"].map(Head::Number);
    let mut table = Table::new([Head::Name("domain")].into_iter().chain(heads));
    for row in given {
        output.object(row)?;
        let given = row.given_percent.map_or(NOTHING.into(), |given| format!("{given:.2}"));
        let ran = row.ran_ns.map_or(NOTHING.into(), milliseconds);
        let name = shorten(&row.domain, tables::NAME);
        table.row([name, row.share.to_string(), format!("{:.2}", row.wanted_percent), given, ran]);
    }
    tables::print("", table, output)
}

fn print_did(did: &Did, passed: Duration, output: &mut Output) -> anyhow::Result<()> {
    output.object(did)?;
    let (Some(decisions), Some(stolen), Some(missed)) = (did.decisions, did.stolen, did.missed) else {
        return output.text(format!("scheduled for {}", seconds(passed)));
    };
    output.text(format!(
        "scheduled for {}: {} decisions, {} tasks taken from other processors, {} choices of tasks that had just left",
        seconds(passed),
        grouped(decisions),
        grouped(stolen),
        grouped(missed)
    ))
}
