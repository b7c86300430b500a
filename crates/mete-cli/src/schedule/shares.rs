//! `mete schedule --policy vtrr`: domains have their shares, by the means that this kernel offers.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Parser;
use clap::error::ErrorKind;
use mete_command::command_line::Mistake;
use mete_command::output::Output;
use mete_command::progress::Progress;
use mete_command::table::{Head, NOTHING, Table, grouped, milliseconds, number, seconds, shorten};
use mete_command::{failure, interrupt, service};
use mete_parameters::{Desk, desk};
use mete_shares::parameters::{self, ShareParameters};
use mete_shares::{DealError, Dealer, Did, Given, PutBack, SharePolicy, check};

use super::{AffinityOptions, ScheduleOptions, print_restored};
use crate::parse::check_domains;
use crate::report::tables;

/// How often to look whether the scheduler still rules.
const LOOK: Duration = Duration::from_millis(50);

impl ScheduleOptions {
    /// Whether shares can be dealt out to these domains.
    ///
    /// # Errors
    ///
    /// Which option does not go with them, and what to do.
    pub(super) fn check_shares(&self, policy: SharePolicy) -> Result<(), Mistake> {
        if let Some(other) = self.drivers.iter().chain(&self.clients).next() {
            let mistake = format!(
                "only --policy affinity knows drivers and clients: write --domain {}=SELECTOR,share=NUMBER",
                other.name
            );
            return Err((ErrorKind::ArgumentConflict, mistake));
        }
        if self.affinity != AffinityOptions::parse_from([""]) {
            let mistake = "--dry-run and the settings from --interval to --max-imbalance are the affinity policy's: \
                           other policies act as soon as they start, and have none of them";
            return Err((ErrorKind::ArgumentConflict, mistake.into()));
        }
        let domains = self.domains();
        check(self.by(), policy, &domains).map_err(|error| {
            let kind = match error {
                DealError::NoGroup { .. } => ErrorKind::ValueValidation,
                DealError::NoDomains => ErrorKind::MissingRequiredArgument,
                _ => ErrorKind::ArgumentConflict,
            };
            (kind, error.to_string())
        })?;
        let specs: Vec<_> = domains.into_iter().map(|domain| domain.spec).collect();
        check_domains(&specs)
    }
}

/// Deals until the time is up, Ctrl-C is pressed or the kernel ends the scheduler.
pub(super) fn run(
    options: &ScheduleOptions,
    policy: SharePolicy,
    output: &mut Output,
) -> anyhow::Result<ExitCode> {
    let mut dealer = Dealer::start(options.by(), policy, options.domains())?;
    // From here on a signal has the shares printed. Without it, this process would end at once, and the
    // shares with it.
    interrupt::listen()?;
    let (asker, desk) = desk();
    let tree = options.parameters().map(|at| parameters::mount(at, &dealer, asker)).transpose()?;
    output.text(dealer.to_string())?;
    service::ready(&dealer.to_string());
    dealer.warnings().iter().for_each(|warning| failure::say(warning));
    let watched = watch(&mut dealer, &desk, options.time);
    // In this order: first requests are refused, then the files disappear.
    drop(desk);
    drop(tree);
    let (passed, did, given, ended) = (dealer.passed(), dealer.did(), dealer.given(), dealer.ended());
    let counts_since = dealer.counts_since();
    // Before anything is printed: where the output goes may be full, and wait for its reader.
    let put_back = dealer.finish();
    counts_since.map_or(Ok(()), |since| output.text(since))?;
    print(&given, output)?;
    print_did(&did, passed, output)?;
    if let Some(ended) = ended {
        bail!(
            "the kernel has ended the scheduler after {}, and rules again itself: {ended}",
            seconds(passed)
        );
    }
    let is_back = put_back
        .map_or(Ok(()), |PutBack { what, see, restored }| print_restored(what, restored, see, output));
    if let (Err(_), Err(failed)) = (&watched, &is_back) {
        failure::say(&format!("{failed:#}"));
    }
    watched?;
    is_back?;
    let is_done = options.time.is_none_or(|time| passed >= time);
    Ok(interrupt::ended(is_done))
}

fn watch(dealer: &mut Dealer, desk: &Desk, time: Option<Duration>) -> Result<(), DealError> {
    let mut parameters = ShareParameters::default();
    let progress = Progress::of_time("scheduling", time);
    loop {
        dealer.look()?;
        for news in dealer.news() {
            failure::say(&news);
            service::status(&news);
        }
        let passed = dealer.passed();
        let left = time.map_or(LOOK, |time| time.saturating_sub(passed));
        let did = dealer.did();
        if left.is_zero() || interrupt::asked() || dealer.ended().is_some() {
            return Ok(());
        }
        let decisions =
            did.decisions.map_or_else(String::new, |number| format!("{} decisions, ", grouped(number)));
        progress.show(passed, format!("{:.0} s, {decisions}Ctrl-C ends", passed.as_secs_f64()));
        desk.serve(left.min(LOOK), |request| parameters.answer(dealer, request));
    }
}

fn print(given: &[Given], output: &mut Output) -> anyhow::Result<()> {
    if given.is_empty() {
        return output.text("every control group counts by its cpu.weight");
    }
    let is_limited = given.iter().any(|row| row.limit.is_some());
    let limit = if is_limited { Some("at most\n(processors)") } else { None };
    let heads = ["share"].into_iter().chain(limit).chain(["wanted (%)", "given (%)", "ran (ms)"]);
    let mut table = Table::new([Head::Name("domain")].into_iter().chain(heads.map(Head::Number)));
    for row in given {
        output.object(row)?;
        let given = row.given_percent.map_or(NOTHING.into(), |given| format!("{given:.2}"));
        let ran = row.ran_ns.map_or(NOTHING.into(), milliseconds);
        let limit = row.limit.map_or(NOTHING.into(), |limit| limit.to_string());
        let limit = is_limited.then_some(limit);
        let named = [shorten(&row.domain, tables::NAME), row.share.to_string()];
        table.row(named.into_iter().chain(limit).chain([format!("{:.2}", row.wanted_percent), given, ran]));
    }
    tables::print("", table, output)
}

fn print_did(did: &Did, passed: Duration, output: &mut Output) -> anyhow::Result<()> {
    output.object(did)?;
    let counted = [
        (did.decisions, "decisions"),
        (did.stolen, "tasks taken from other processors"),
        (did.missed, "choices of tasks that had just left"),
        (did.preempted, "tasks that gave way at once"),
        (did.pauses, "pauses"),
        (
            did.continued.filter(|&number| number > 0),
            "times another program had a paused process go on, which then has more than its share",
        ),
        (did.late, "decisions that came too late"),
        (did.undecided, "tasks that ran by turn, because nothing was decided in time"),
        (did.left_out.filter(|&number| number > 0), "left out (docs/limits.md says which)"),
    ];
    let counted = counted.iter().filter_map(|(number, what)| Some(format!("{} {what}", grouped((*number)?))));
    let own = did.own_ns.map(|own| format!("deciding itself took {} ms", milliseconds(own)));
    let parts: Vec<_> = counted.chain(own).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    output.text(format!("scheduled for {}{parts}", seconds(passed)))?;
    match &did.failed {
        Some(failed) if did.ended.is_none() => {
            let again = match did.restarts {
                None | Some(0) => String::new(),
                Some(again) => format!("; it was started again {}", number(again, "time")),
            };
            output.text(format!("what failed last: {failed}{again}"))
        }
        _ => Ok(()),
    }
}
