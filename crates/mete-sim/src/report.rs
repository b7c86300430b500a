//! What a run of a scenario showed, client by client.

use std::convert::Infallible;
use std::ops::ControlFlow;

use mete_policy::{ClientId, DomainIndex, Entry, Nanoseconds, Policy, by_name};

pub use crate::client_report::{ClientReport, ServiceError};
use crate::host::{Host, Stalled, Times};
use crate::metrics::{Fluid, jain};
use crate::model::Model;
use crate::recorder::Recorder;
use crate::scenario::Scenario;
use crate::scene::{Scene, Troubles};
use crate::waiting::{Waiting, waiting};
use crate::watch::Watch;

/// What a run showed, without the warm-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The policy's name: the name that it was asked for by, or its own.
    pub policy: String,
    /// The seed.
    pub seed: u64,
    /// How long was measured.
    pub measured_ns: Nanoseconds,
    /// What all processors did, together. The sum of the three is `measured_ns` times their number.
    pub times: Times,
    /// How often the policy chose a client.
    pub decisions: u64,
    /// How fair the service was, 0 to 1: Jain's index over what clients had for each unit of share.
    pub fairness: Option<f64>,
    /// The clients, by number.
    pub clients: Vec<ClientReport>,
    /// The tasks that have waited for others from the first half of the measured time to the end.
    pub waiting: Vec<Waiting>,
    /// The policy's own counters, including the warm-up.
    pub counters: Vec<(&'static str, u64)>,
    /// What was lost on the network, and what senders of streams did about it, including the warm-up.
    pub network: NetworkReport,
}

/// What was lost on the network, and what senders of streams did about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkReport {
    /// Packets that the driver's network card had no room for.
    pub lost: u64,
    /// What the senders of streams had to do in addition to sending.
    pub senders: Troubles,
}

impl Report {
    /// The part of partial boosts that hit, 0 to 1. A boost hits if a task that waits for events runs during
    /// it (TAVS paper, §5.2). `None` if the policy counts no partial boosts.
    pub fn boost_hit_ratio(&self) -> Option<f64> {
        let counter =
            |wanted| self.counters.iter().find(|(name, _)| *name == wanted).map(|(_, count)| *count);
        let (hits, boosts) = (counter("partial_boost_hits")?, counter("partial_boosts")?);
        (boosts > 0).then(|| hits as f64 / boosts as f64)
    }

    /// The longest time that any client was ready without running.
    pub fn longest_wait_ns(&self) -> Nanoseconds {
        self.clients.iter().map(|client| client.longest_wait_ns).max().unwrap_or_default()
    }
}

/// Runs a scenario under one policy and reports. `None`: there is no policy of that name.
///
/// # Errors
///
/// [`Stalled`] if a program does not let time go on.
pub fn run<R: Recorder>(
    scenario: &Scenario,
    policy: &str,
    seed: u64,
    also: R,
) -> Option<Result<(Report, R), Stalled>> {
    let go_on = || ControlFlow::<Infallible>::Continue(());
    let outcome = run_while(scenario, by_name(policy)?, seed, also, go_on);
    Some(outcome.map(|ControlFlow::Continue(whole)| whole))
}

/// The end of a run: its report and what also recorded it, or the reason why it was stopped.
type Outcome<B, R> = ControlFlow<B, (Report, R)>;

/// As [`run`] with a policy of the catalog, unless `go_on` says [`ControlFlow::Break`]: then there is no
/// report. `go_on` is asked every few thousand events.
///
/// # Errors
///
/// [`Stalled`] if a program does not let time go on.
pub fn run_while<R: Recorder, B>(
    scenario: &Scenario,
    policy: &Entry,
    seed: u64,
    also: R,
    go_on: impl FnMut() -> ControlFlow<B>,
) -> Result<Outcome<B, R>, Stalled> {
    let outcome = under(scenario, scenario.make(policy, seed), seed, also, go_on)?;
    // With a scenario's settings a policy may have another name of its own than it was asked for by.
    let named = |report| Report { policy: policy.name.to_owned(), ..report };
    Ok(outcome.map_continue(|(report, also)| (named(report), also)))
}

/// Runs a scenario under any policy that was made for [`Scenario::setup`], and reports.
///
/// # Errors
///
/// [`Stalled`] if a program does not let time go on.
pub fn run_under<P: Policy, R: Recorder>(
    scenario: &Scenario,
    policy: P,
    seed: u64,
    also: R,
) -> Result<(Report, R), Stalled> {
    let outcome = under(scenario, policy, seed, also, || ControlFlow::<Infallible>::Continue(()));
    outcome.map(|ControlFlow::Continue(whole)| whole)
}

fn under<P: Policy, R: Recorder, B>(
    scenario: &Scenario,
    policy: P,
    seed: u64,
    also: R,
    go_on: impl FnMut() -> ControlFlow<B>,
) -> Result<Outcome<B, R>, Stalled> {
    let (clients, limit_ns) = (scenario.clients.len(), scenario.starvation_ns);
    let watch = Watch::new(clients, scenario.hardware, fluid(scenario), limit_ns);
    measure(scenario, seed, scenario.host(policy, (watch, also), seed), go_on)
}

fn measure<P: Policy, R: Recorder, B>(
    scenario: &Scenario,
    seed: u64,
    mut host: Host<P, Scene, (Watch, R)>,
    mut go_on: impl FnMut() -> ControlFlow<B>,
) -> Result<Outcome<B, R>, Stalled> {
    if let ControlFlow::Break(stopped) = host.run_while(scenario.warm_up_ns, &mut go_on)? {
        return Ok(ControlFlow::Break(stopped));
    }
    // The warm-up is simulated, and what it adds to the counts is subtracted.
    let before = times_of_clients(scenario, &host);
    let (times_before, decisions_before) = (sum(&host), host.decisions());
    host.recorder_mut().0.begin(scenario.warm_up_ns);
    if let ControlFlow::Break(stopped) = host.run_while(scenario.duration_ns, &mut go_on)? {
        return Ok(ControlFlow::Break(stopped));
    }
    host.recorder_mut().0.end(scenario.duration_ns);

    let times = sum(&host).since(times_before);
    let decisions = host.decisions() - decisions_before;
    let after = times_of_clients(scenario, &host).into_iter().zip(before);
    let had = after.map(|(now, before)| (now.0 - before.0, now.1 - before.1)).collect::<Vec<_>>();
    let mut counters = Vec::new();
    host.policy().counters(&mut |name, count| counters.push((name, count)));
    let policy = host.policy().name().to_owned();
    let waiting = waiting(scenario, &host);
    let (senders, lost) = host.model().troubles();
    let network = NetworkReport { lost, senders };
    // Only now, because it takes the host apart.
    let (watch, also) = host.into_recorder();
    let measured_ns = scenario.duration_ns - scenario.warm_up_ns;
    let clients = clients(watch, scenario, &had, times.total_ns());
    let fairness = jain(clients.iter().map(|client| (client.ran_ns.get(), client.share)));
    let report =
        Report { policy, seed, measured_ns, times, decisions, fairness, clients, waiting, counters, network };
    Ok(ControlFlow::Continue((report, also)))
}

/// What each client has run, and how much of that it has spun.
fn times_of_clients<P: Policy, R: Recorder>(
    scenario: &Scenario,
    host: &Host<P, Scene, R>,
) -> Vec<(Nanoseconds, Nanoseconds)> {
    let clients = (0..scenario.clients.len()).map(ClientId::at);
    clients.map(|client| (host.ran_ns(client), host.model().spun_ns(client))).collect()
}

/// The ideal server for a scenario.
fn fluid(scenario: &Scenario) -> Fluid {
    let mut fluid = Fluid::new(scenario.hardware.processors);
    scenario.domains.iter().for_each(|domain| fluid.add_domain(domain.parent, domain.share));
    scenario.clients.iter().for_each(|client| fluid.add(client.domain, client.share));
    fluid
}

fn sum<P: Policy, M: Model, R: Recorder>(host: &Host<P, M, R>) -> Times {
    host.times().fold(Times::default(), Times::and)
}

/// The clients by number, with their names and what they were promised.
fn clients(
    watch: Watch,
    scenario: &Scenario,
    had: &[(Nanoseconds, Nanoseconds)],
    total_ns: Nanoseconds,
) -> Vec<ClientReport> {
    let wanted = wanted(scenario);
    let watched = watch.into_reports().zip(&scenario.clients);
    let with_figures =
        watched.zip(had).zip(wanted).map(|(((report, client), &(ran_ns, spun_ns)), wanted)| {
            let domain = client.domain.index().checked_sub(1);
            let domain = domain.and_then(|domain| scenario.domains.get(domain));
            ClientReport {
                name: client.name.clone(),
                domain: domain.map(|domain| domain.name.clone()).unwrap_or_default(),
                share: client.share.get(),
                wanted,
                got: ran_ns.part_of(total_ns),
                ran_ns,
                spun_ns,
                ..report
            }
        });
    with_figures.collect()
}

/// The part of all processors that each client is promised: its share of its domain's part. A domain's part
/// is its share of its parent's part. Only clients, and domains that have a client, compete.
fn wanted(scenario: &Scenario) -> Vec<f64> {
    let domains = scenario.domains.len() + 1;
    let mut is_used = vec![false; domains];
    scenario.clients.iter().for_each(|client| is_used[client.domain.index()] = true);
    // From the last to the first, because parents stand before their children.
    for (index, domain) in scenario.domains.iter().enumerate().rev() {
        if is_used[index + 1] {
            is_used[domain.parent.index()] = true;
        }
    }
    let mut competing = vec![0u64; domains];
    let mut compete = |domain: DomainIndex, share: u32| competing[domain.index()] += u64::from(share);
    scenario.clients.iter().for_each(|client| compete(client.domain, client.share.get()));
    let used = scenario.domains.iter().enumerate().filter(|(index, _)| is_used[index + 1]);
    used.for_each(|(_, domain)| compete(domain.parent, domain.share.get()));

    let part_of = |parts: &[f64], domain: DomainIndex, share: u32| {
        let domain = domain.index();
        parts[domain] * f64::from(share) / competing[domain].max(1) as f64
    };
    // Here from the first to the last: the part of a parent is needed for its children's.
    let mut parts = vec![1.0; domains];
    for (index, domain) in scenario.domains.iter().enumerate() {
        parts[index + 1] = part_of(&parts, domain.parent, domain.share.get());
    }
    scenario.clients.iter().map(|client| part_of(&parts, client.domain, client.share.get())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_is_promised_goes_down_the_tree_of_domains() {
        let text = r#"
            about = ""
            duration_ms = 1
            domain = [{ name = "a", share = 2 }, { name = "b", share = 2, parent = "a" }, { name = "empty" }]
            task = [
                { name = "in b", domain = "b", count = 2, program = [{ compute_ms = 1 }] },
                { name = "in a", domain = "a", share = 2, program = [{ compute_ms = 1 }] },
                { name = "in none", share = 2, program = [{ compute_ms = 1 }] },
            ]
        "#;
        let scenario = Scenario::parse("test", text, &[]).expect("it is right");
        assert_eq!(wanted(&scenario), [0.125, 0.125, 0.25, 0.5]);
    }
}
