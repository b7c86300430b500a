//! A case of a study, and its results.

use mete_measure::Reason;
use mete_policy::ClientId;
use mete_sim::scenario::Shipped;
use mete_sim::{ClientReport, Report, Scenario, report};

use super::probe::Probe;

/// A scenario under a policy, with other values for some keys.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The line of pictures to which the case belongs.
    pub line: &'static str,
    /// The place of the case on the line, in a sweep.
    pub x: Option<f64>,
    scenario: Shipped,
    policy: &'static str,
    /// `key=value`, as `mete sim --set` takes them.
    settings: Vec<String>,
    /// The task that is watched: the name of its client, and its own name.
    watched: (&'static str, &'static str),
}

/// One run of a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// The line of the case.
    pub line: &'static str,
    pub report: Report,
    pub probe: Probe,
    /// The watched task's client.
    pub client: ClientId,
}

impl Case {
    /// A case without settings. `watched` names the client and the task that are watched.
    pub(crate) fn new(
        line: &'static str,
        scenario: Shipped,
        policy: &'static str,
        watched: (&'static str, &'static str),
    ) -> Case {
        Case { line, x: None, scenario, policy, settings: Vec::new(), watched }
    }

    /// The same case at a place of its line.
    pub(crate) fn at(self, x: impl Into<f64>) -> Case {
        Case { x: Some(x.into()), ..self }
    }

    /// The same case with further settings.
    pub(crate) fn with<S: Into<String>>(mut self, settings: impl IntoIterator<Item = S>) -> Case {
        self.settings.extend(settings.into_iter().map(Into::into));
        self
    }

    /// The name of the case in rows.
    pub(super) fn label(&self) -> String {
        self.x.map_or(self.line.to_owned(), |x| format!("{}, {x}", self.line))
    }

    /// The command that shows the same case, with the scenario's seed.
    pub(super) fn command(&self) -> String {
        let settings: String = self.settings.iter().map(|setting| option(setting)).collect();
        format!("mete sim {} --policy {}{settings}", self.scenario.name, self.policy)
    }

    pub(crate) fn scenario(&self) -> Result<Scenario, Reason> {
        let settings: Result<Vec<_>, _> = self.settings.iter().map(|setting| setting.parse()).collect();
        let settings = settings.map_err(Reason::from_error)?;
        Scenario::parse(self.scenario.name, self.scenario.text, &settings).map_err(Reason::from_error)
    }

    /// The numbers of the watched client and of its task.
    pub(crate) fn watched(&self, scenario: &Scenario) -> Result<(ClientId, u16), Reason> {
        let (client, task) = self.watched;
        let client = scenario.clients.iter().position(|known| known.name == client);
        let place = client.map(ClientId::at).and_then(|client| {
            let task = scenario.guest_tasks(client).position(|known| known == task)?;
            Some((client, task as u16))
        });
        place.ok_or_else(|| Reason::new(format!("{}: there is no {:?}", self.scenario.name, self.watched)))
    }

    /// Runs the case once.
    pub(crate) fn run(&self, seed: u64) -> Result<Outcome, Reason> {
        let scenario = self.scenario()?;
        let (client, task) = self.watched(&scenario)?;
        let probe = Probe::new(client, task, scenario.warm_up_ns);
        let ran = report::run(&scenario, self.policy, seed, probe);
        let ran = ran.ok_or_else(|| Reason::new(format!("there is no policy {:?}", self.policy)))?;
        let (report, probe) = ran.map_err(Reason::from_error)?;
        Ok(Outcome { line: self.line, report, probe, client })
    }
}

/// A setting as an option of `mete sim`.
fn option(setting: &str) -> String {
    // Without quotes, a shell would split a setting with a space.
    let quote = if setting.contains(' ') { "'" } else { "" };
    format!(" --set {quote}{setting}{quote}")
}

impl Outcome {
    /// A client's part of all processor time, in percent. It includes the switches to the client, which Xen
    /// charges to it and counts as its own.
    pub(crate) fn got_percent(&self, client: ClientId) -> Option<f64> {
        self.report.clients.get(client.index()).map(|client| self.had_percent(client))
    }

    /// The average of the same over the clients whose names begin with `prefix`.
    pub(crate) fn got_by_each(&self, prefix: &str) -> Option<f64> {
        average(self.named(prefix).map(|client| self.had_percent(client)).collect())
    }

    /// The clients whose names begin with `prefix`.
    pub(crate) fn named<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a ClientReport> {
        self.report.clients.iter().filter(move |client| client.name.starts_with(prefix))
    }

    fn had_percent(&self, client: &ClientReport) -> f64 {
        let switches: u64 = self.report.clients.iter().map(|client| client.switches).sum();
        // Each switch costs the same, so a client's part of their time is its part of their number.
        let part = client.switches as f64 / switches.max(1) as f64;
        100.0
            * (client.got
                + part * self.report.times.switch_ns.get() as f64
                    / self.report.measured_ns.get().max(1) as f64)
    }

    /// The value of one of the policy's counters.
    pub(crate) fn counter(&self, name: &str) -> Option<f64> {
        self.report.counters.iter().find(|counter| counter.0 == name).map(|counter| counter.1 as f64)
    }

    /// The average number of units of work that the clients whose names begin with `prefix` did in a second.
    pub(crate) fn done_by_each(&self, prefix: &str) -> Option<f64> {
        average(self.named(prefix).map(|client| self.a_second(client.done)).collect())
    }

    /// The seconds for which the case was watched.
    pub(crate) fn seconds(&self) -> f64 {
        self.report.measured_ns.as_secs_f64()
    }

    /// A number of events in the time watched as one of events a second.
    pub(crate) fn a_second(&self, count: u64) -> f64 {
        count as f64 / self.seconds()
    }
}

/// The mean of these values, if there are any.
pub(crate) fn average(values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
