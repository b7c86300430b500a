//! `mete schedule`: a policy takes effect. What each policy needs, does and shows has a file of its own.

mod affinity;
mod shares;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use mete_command::command_line::Mistake;
use mete_command::output::Output;
use mete_command::value::{duration, none_or_more, one_or_more};
use mete_policy::affinity::Settings;
use mete_sched::DomainSpec;
use mete_sched::actuator::Restored;
use mete_sched::domains::SharedDomain;
use mete_shares::{By, Config};
use serde::Serialize;

use crate::parse::{LivePolicy, config, domain, live_policy, shared_domain};

/// Options of `mete schedule`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct ScheduleOptions {
    /// The policy that decides: affinity moves clients to the processor of the driver that they talk to most;
    /// vtrr, which mete sim knows as distributed-vtrr, gives domains their shares of processor time; any
    /// other one of mete sim --list does so from outside the kernel
    /// [default: affinity, or with --config vtrr]
    #[arg(long, value_name = "NAME", value_parser = live_policy)]
    policy: Option<LivePolicy>,
    /// The means by which shares are enforced: sched_ext (a scheduler in the kernel), cgroup (weights of control
    /// groups), dispatcher (scheduling classes of threads), pauses (signals, which need no rights), or auto, the first
    /// of these that can serve the domains [default: auto]
    #[arg(long, hide_possible_values = true,
        value_parser = PossibleValuesParser::new(By::ALL.map(possible)).map(|name| By::named(&name).unwrap_or_default()))]
    by: Option<By>,
    /// A file with domains, their shares, and what --policy, --by and --parameters say: see
    /// docs/recipes/shares.md. What is on the command line takes its place
    #[arg(long, value_name = "FILE", value_parser = config())]
    config: Option<Config>,
    /// Mount the shares as files on this directory, for mete set and mete status; it must be empty or not
    /// exist. Not with affinity
    #[arg(long, value_name = "DIR")]
    parameters: Option<PathBuf>,
    /// How long to schedule; until Ctrl-C if not given
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    time: Option<Duration>,
    /// A domain. With affinity it is a driver if its own probes report requests of others, and otherwise a
    /// client. With vtrr it has a share: 1, if none is given, is what other control groups have. By cgroup it may
    /// have a limit, too: the most processors, such as 0.5, also while they are idle. Repeat the
    /// option for more domains, as the two below
    #[arg(long = "domain", value_name = "NAME=SELECTOR[,share=NUMBER][,limit=NUMBER]", value_parser = shared_domain())]
    domains: Vec<SharedDomain>,
    /// A domain that serves others; selectors as for mete log. Mete neither moves it nor holds it: the kernel
    /// may move it, and its clients follow
    #[arg(long = "driver", value_name = "NAME=SELECTOR", value_parser = domain())]
    drivers: Vec<DomainSpec>,
    /// A domain that is served and may be moved
    #[arg(long = "client", value_name = "NAME=SELECTOR", value_parser = domain())]
    clients: Vec<DomainSpec>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    affinity: AffinityOptions,
}

/// How the affinity policy decides and acts.
#[derive(Debug, PartialEq, clap::Parser)]
#[command(next_help_heading = "Settings of the affinity policy")]
struct AffinityOptions {
    /// How often to read the logs
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20ms")]
    interval: Duration,
    /// How often to decide, rounded to whole intervals
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "100ms")]
    period: Duration,
    /// Print decisions, but move nothing
    #[arg(long)]
    dry_run: bool,
    /// By how much another driver must lead, in percent of the requests to the present processor's driver
    #[arg(long, value_name = "PERCENT", value_parser = none_or_more::<u32>,
        default_value_t = Settings::default().margin_percent)]
    margin: u32,
    /// For how many periods in a row that driver must lead
    #[arg(long, value_name = "PERIODS", value_parser = one_or_more::<u32>,
        default_value_t = Settings::default().confirm_periods)]
    confirm: u32,
    /// How many periods a client stays after a move
    #[arg(long, value_name = "PERIODS", value_parser = none_or_more::<u32>,
        default_value_t = Settings::default().dwell_periods)]
    dwell: u32,
    /// A client with fewer requests in a period is not moved
    #[arg(long, value_name = "COUNT", value_parser = none_or_more::<u64>,
        default_value_t = Settings::default().min_transactions)]
    min_requests: u64,
    /// How much of a processor the named domains may use together, in thousandths
    #[arg(long, value_name = "PERMILLE", value_parser = one_or_more::<u32>,
        default_value_t = Settings::default().cap.get())]
    cap: u32,
    /// By how much the run queue of the new processor may be longer, in thousandths of a task
    #[arg(long, value_name = "PERMILLE", value_parser = none_or_more::<u32>,
        default_value_t = Settings::default().max_imbalance.get())]
    max_imbalance: u32,
}

const USAGE: &str = "mete schedule [OPTIONS] --driver NAME=SELECTOR --client NAME=SELECTOR
       mete schedule [OPTIONS] --policy vtrr --domain NAME=SELECTOR,share=N";
const EXAMPLES: &str = "\
Examples:
  sudo mete schedule --driver db=comm:postgres --client web=comm:nginx
  sudo mete schedule --driver a=pid:12 --driver b=pid:13 --client c=user:worker
  sudo mete schedule --domain db=comm:postgres --domain web=comm:nginx --dry-run
  sudo mete schedule --driver db=pid:12 --client web=comm:nginx --margin 50
  sudo mete schedule --policy vtrr --domain web=cgroup:/web,share=3
  sudo mete schedule --config shares.toml --parameters /run/mete-shares
  sudo mete schedule --policy vtrr --domain a=pid:12,share=3 --domain b=pid:13
  mete schedule --policy vtrr --by pauses --domain a=pid:12 --domain b=pid:13

affinity: Clients are moved by processor affinity, within what their own masks allow; every mask is
put back at the end, also after Ctrl-C, a crash or kill -9. Nothing else is changed, nothing is reserved.

Which client talks to which driver is known from the driver's own probes. Without probes, it is known
from wake-ups: over pipes, Unix sockets, futexes, and TCP and UDP over the loopback device. Wake-ups by
interrupts and by packets from elsewhere are not counted, so a driver that is reached from another
container needs probes. The objects of --json are described in docs/json.md.

vtrr: A domain has the part of the processors that its share says beside the others, whatever the
number of its tasks. With --by sched_ext, group virtual-time round robin schedules all ordinary tasks of the
machine, inside the kernel, by sched_ext (Linux 6.12); domains are control groups, and a group without
--domain has its cpu.weight, of which 100 are a share of 1. With --by cgroup, the kernel's own scheduler
does, told by the groups' weights and limits. With --by dispatcher, the same policy outside the kernel puts threads
of any processes in front of all others. With --by pauses, which needs no rights, it has processes of this user
run in turn, and pauses the others. Everything is as before at the end, also after kill -9.

Other policies: With --by sched_ext, the policy schedules all ordinary tasks from outside the kernel, in quanta of
4 ms; what it does not decide within 20 ms, the kernel's side decides. With --by dispatcher and pauses, as vtrr.

Ctrl-C or SIGTERM ends the run, with exit status 0 if there is no --for, and 130 if its time has not passed.";

/// Schedules until the time is up or Ctrl-C is pressed; then everything is as before.
pub fn run(options: &ScheduleOptions, output: &mut Output) -> anyhow::Result<ExitCode> {
    match options.policy() {
        LivePolicy::Affinity => affinity::run(options, output),
        LivePolicy::Shares(policy) => shares::run(options, policy, output),
    }
}

/// What `--by` can be. Error messages and completions show no alias.
fn possible(by: By) -> PossibleValue {
    PossibleValue::new(by.name()).aliases(by.short())
}

impl ScheduleOptions {
    fn policy(&self) -> LivePolicy {
        let of_config = self.config.as_ref().map(|config| LivePolicy::Shares(config.policy));
        self.policy.or(of_config).unwrap_or(LivePolicy::Affinity)
    }

    fn by(&self) -> By {
        self.by.or(self.config.as_ref().and_then(|config| config.by)).unwrap_or_default()
    }

    fn parameters(&self) -> Option<&Path> {
        self.parameters.as_deref().or(self.config.as_ref().and_then(|config| config.parameters.as_deref()))
    }

    /// All domains, in the order in which they take precedence.
    fn domains(&self) -> Vec<SharedDomain> {
        let of_config = self.config.iter().flat_map(|config| &config.domains);
        let is_said = |name: &str| self.domains.iter().any(|domain| domain.spec.name == name);
        let of_config = of_config.filter(|domain| !is_said(&domain.spec.name));
        self.domains.iter().chain(of_config).cloned().collect()
    }

    /// Whether the options go together.
    ///
    /// # Errors
    ///
    /// Which options do not go together, and what to do.
    pub fn check(&self) -> Result<(), Mistake> {
        match self.policy() {
            LivePolicy::Affinity if self.by.is_some() || self.parameters.is_some() => {
                let mistake = "--by and --parameters are for shares: write --policy vtrr, too";
                Err((ErrorKind::ArgumentConflict, mistake.into()))
            }
            LivePolicy::Affinity => self.check_affinity(),
            LivePolicy::Shares(policy) => self.check_shares(policy),
        }
    }
}

/// Reports how putting back went. An error says where the user sees what could not be.
fn print_restored(
    what: &'static str,
    restored: Restored,
    see: &str,
    output: &mut Output,
) -> anyhow::Result<()> {
    output.object(&PrintedBack { what, restored })?;
    output.text(format!("{what}: {restored}"))?;
    check_restored(what, restored, see)
}

fn check_restored(what: &str, restored: Restored, see: &str) -> anyhow::Result<()> {
    ensure!(restored.failed == 0, "some {what} could not be put back: see {see}");
    Ok(())
}

#[derive(Serialize)]
#[serde(tag = "kind", rename = "restored")]
struct PrintedBack {
    what: &'static str,
    #[serde(flatten)]
    restored: Restored,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_what_could_not_be_put_back_is_a_failure_and_what_others_have_changed_is_none() {
        let restored = Restored { restored: 2, left_alone: 1, ended: 1, ..Restored::default() };
        assert!(check_restored("weights", restored, "cpu.weight").is_ok());
        let failed = check_restored("weights", Restored { failed: 1, ..restored }, "cpu.weight");
        assert_eq!(failed.unwrap_err().to_string(), "some weights could not be put back: see cpu.weight");
    }
}
