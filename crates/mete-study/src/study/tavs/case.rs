//! A case of a study, and its results.

use mete_policy::ClientId;
use mete_sim::scenario::Shipped;
use mete_sim::{ClientReport, Report, Scenario, report};

use super::probe::Probe;
use crate::reason::Reason;

/// A scenario under a policy, with other values for some keys.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The line of plots to which the case belongs.
    pub line: &'static str,
    /// The place of the case on the line, in a sweep.
    pub x: Option<f64>,
    pub scenario: Shipped,
    pub policy: &'static str,
    /// `key=value`, as `mete sim --set` takes them.
    pub settings: Vec<String>,
    /// The task that is watched: the name of its client, and its own name.
    pub watched: (&'static str, &'static str),
}

/// One run of a case.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// The line of the case.
    pub line: &'static str,
    pub report: Report,
    pub probe: Probe,
    /// The watched task's client.
    pub client: ClientId,
}

impl Case {
    /// The name of the case in tables.
    pub(super) fn label(&self) -> String {
        self.x.map_or(self.line.to_owned(), |x| format!("{}, {x}", self.line))
    }

    /// The command that shows the same case, with the scenario's seed.
    pub(super) fn command(&self) -> String {
        let settings = self.settings.iter().map(|setting| {
            // Without quotes, a shell would split a setting with a space.
            let quote = if setting.contains(' ') { "'" } else { "" };
            format!(" --set {quote}{setting}{quote}")
        });
        let settings: String = settings.collect();
        format!("mete sim {} --policy {}{settings}", self.scenario.name, self.policy)
    }

    pub(super) fn scenario(&self) -> Result<Scenario, Reason> {
        Scenario::parse(self.scenario.name, self.scenario.text, &self.settings).map_err(Reason::from_error)
    }

    /// The numbers of the watched client and of its task.
    pub(super) fn watched(&self, scenario: &Scenario) -> Result<(ClientId, u16), Reason> {
        let (client, task) = self.watched;
        let client = scenario.clients.iter().position(|known| known.name == client);
        let place = client.and_then(|client| {
            let client = ClientId::at(client);
            let task = scenario.guest_tasks(client).position(|known| known == task)?;
            Some((client, task as u16))
        });
        place.ok_or_else(|| Reason::new(format!("{}: there is no {:?}", self.scenario.name, self.watched)))
    }

    pub(super) fn run(&self, seed: u64) -> Result<Outcome, Reason> {
        let scenario = self.scenario()?;
        let (client, task) = self.watched(&scenario)?;
        let probe = Probe::new(client, task, scenario.warm_up_ns);
        let ran = report::run(&scenario, self.policy, seed, probe);
        let ran = ran.ok_or_else(|| Reason::new(format!("there is no policy {:?}", self.policy)))?;
        let (report, probe) = ran.map_err(Reason::from_error)?;
        Ok(Outcome { line: self.line, report, probe, client })
    }
}

impl Outcome {
    /// A client's part of all processor time, in percent. It includes the switches to the client, which Xen charges
    /// to it and counts as its own.
    pub(super) fn got_percent(&self, client: ClientId) -> Option<f64> {
        self.report.clients.get(client.index()).map(|client| self.had_percent(client))
    }

    /// The average of the same over the clients whose names begin with `prefix`.
    pub(super) fn got_by_each(&self, prefix: &str) -> Option<f64> {
        let got = self.report.clients.iter().filter(|client| client.name.starts_with(prefix));
        let got: Vec<f64> = got.map(|client| self.had_percent(client)).collect();
        (!got.is_empty()).then(|| got.iter().sum::<f64>() / got.len() as f64)
    }

    fn had_percent(&self, client: &ClientReport) -> f64 {
        let switches: u64 = self.report.clients.iter().map(|client| client.switches).sum();
        // Each switch costs the same, so a client's part of their time is its part of their number.
        let part = client.switches as f64 / switches.max(1) as f64;
        100.0
            * (client.got + part * self.report.times.switch_ns as f64 / self.report.measured_ns.max(1) as f64)
    }

    /// The value of one of the policy's counters.
    pub(super) fn counter(&self, name: &str) -> Option<f64> {
        self.report.counters.iter().find(|counter| counter.0 == name).map(|counter| counter.1 as f64)
    }

    /// The average number of units of work that the clients whose names begin with `prefix` did in a second.
    pub(super) fn done_by_each(&self, prefix: &str) -> Option<f64> {
        let done = self.report.clients.iter().filter(|client| client.name.starts_with(prefix));
        let done: Vec<f64> = done.map(|client| self.a_second(client.done)).collect();
        (!done.is_empty()).then(|| done.iter().sum::<f64>() / done.len() as f64)
    }

    /// The seconds for which the case was watched.
    pub(super) fn seconds(&self) -> f64 {
        self.report.measured_ns as f64 / 1e9
    }

    pub(super) fn a_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds()
    }
}
