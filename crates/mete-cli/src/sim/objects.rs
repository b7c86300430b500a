//! What `mete sim --json` prints.

use mete_command::output::Output;
use mete_policy::Nanoseconds;
use mete_sim::cost::DecisionCost;
use mete_sim::metrics::Latencies;
use mete_sim::{ClientReport, Report};
use serde::Serialize;

/// What `--json` prints for each policy.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "run")]
struct RunObject<'a> {
    scenario: &'a str,
    policy: &'a str,
    seed: u64,
    measured_ns: u64,
    run_ns: u64,
    switch_ns: u64,
    idle_ns: u64,
    decisions: u64,
    fairness: Option<f64>,
    boost_hit_ratio: Option<f64>,
    cost: Option<DecisionCost>,
    counters: std::collections::BTreeMap<&'static str, u64>,
    network: NetworkObject,
}

/// Losses and repetitions of streams on the network.
#[derive(Serialize)]
struct NetworkObject {
    lost: u64,
    sent_again: u64,
    timers_ran_out: u64,
    timers_in_vain: u64,
}

/// What `--json` prints for each client under a policy.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "client")]
struct ClientObject<'a> {
    scenario: &'a str,
    policy: &'a str,
    client: &'a str,
    domain: &'a str,
    share: u32,
    wanted: f64,
    got: f64,
    ran_ns: u64,
    switches: u64,
    wakes: u64,
    done: u64,
    longest_wait_ns: u64,
    starved: u64,
    starved_ns: u64,
    spun_ns: u64,
    error_ns: i64,
    error_lowest_ns: i64,
    error_highest_ns: i64,
    wake_to_run: Option<Times>,
    wake_to_block: Option<Times>,
    response: Option<Times>,
}

#[derive(Serialize)]
struct Times {
    count: u64,
    mean_ns: Option<f64>,
    median_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

impl Times {
    fn of(times: &Latencies) -> Times {
        Times {
            count: times.count(),
            mean_ns: times.mean_ns(),
            median_ns: times.quantile_ns(0.5).map(Nanoseconds::get),
            p99_ns: times.quantile_ns(0.99).map(Nanoseconds::get),
            max_ns: times.longest_ns().map(Nanoseconds::get),
        }
    }
}

/// Prints the object of a policy, and one for each client.
pub fn objects(
    scenario: &str,
    report: &Report,
    cost: Option<DecisionCost>,
    output: &mut Output,
) -> anyhow::Result<()> {
    output.object(&RunObject {
        scenario,
        policy: &report.policy,
        seed: report.seed,
        measured_ns: report.measured_ns.get(),
        run_ns: report.times.run_ns.get(),
        switch_ns: report.times.switch_ns.get(),
        idle_ns: report.times.idle_ns.get(),
        decisions: report.decisions,
        fairness: report.fairness,
        boost_hit_ratio: report.boost_hit_ratio(),
        cost,
        counters: report.counters.iter().copied().collect(),
        network: NetworkObject {
            lost: report.network.lost,
            sent_again: report.network.senders.sent_again,
            timers_ran_out: report.network.senders.ran_out,
            timers_in_vain: report.network.senders.in_vain,
        },
    })?;
    for client in &report.clients {
        output.object(&object(scenario, &report.policy, client))?;
    }
    Ok(())
}

fn object<'a>(scenario: &'a str, policy: &'a str, client: &'a ClientReport) -> ClientObject<'a> {
    ClientObject {
        scenario,
        policy,
        client: &client.name,
        domain: &client.domain,
        share: client.share,
        wanted: client.wanted,
        got: client.got,
        ran_ns: client.ran_ns.get(),
        switches: client.switches,
        wakes: client.wakes,
        done: client.done,
        longest_wait_ns: client.longest_wait_ns.get(),
        starved: client.starved,
        starved_ns: client.starved_ns.get(),
        spun_ns: client.spun_ns.get(),
        error_ns: client.error.last_ns,
        error_lowest_ns: client.error.lowest_ns,
        error_highest_ns: client.error.highest_ns,
        wake_to_run: client.wake_to_run.as_ref().map(Times::of),
        wake_to_block: client.wake_to_block.as_ref().map(Times::of),
        response: client.response.as_ref().map(Times::of),
    }
}
