//! One workload of the paper under one policy.

use mete_measure::Reason;
use mete_policy::Nanoseconds;
use mete_sim::{Note, Recorder, Scenario};

use crate::study::text;

/// A workload of the paper.
pub(crate) struct Workload {
    /// The name of its scenario.
    pub name: &'static str,
    text: &'static str,
    /// The unit of a client's work.
    pub unit: &'static str,
    /// The ids of its claims: on all work that was done, and on how even it was.
    pub claims: [&'static str; 2],
}

pub(super) const WORKLOADS: [Workload; 2] = [
    Workload {
        name: "encoders",
        text: text!("vtrr-workloads", "encoders.toml"),
        unit: "frames",
        claims: ["encoders-coarse", "encoders-evenness"],
    },
    Workload {
        name: "virtual-machines",
        text: text!("vtrr-workloads", "virtual-machines.toml"),
        unit: "rounds",
        claims: ["machines-coarse", "machines-evenness"],
    },
];

impl Workload {
    /// Its result under this policy.
    pub(super) fn under<'a>(&self, policy: &str, found: &'a [RanWorkload]) -> Option<&'a RanWorkload> {
        found.iter().find(|ran| ran.workload.name == self.name && ran.policy == policy)
    }
}

/// The result of one workload under one policy.
pub(crate) struct RanWorkload {
    pub workload: &'static Workload,
    pub policy: &'static str,
    pub clients: Vec<Client>,
}

/// The work of one client.
pub(crate) struct Client {
    pub name: String,
    pub share: u32,
    /// When each unit of the client's work was done.
    pub done_ns: Vec<Nanoseconds>,
}

impl Client {
    /// When each unit of the client's work was done, in milliseconds.
    pub(super) fn done_ms(&self) -> impl Iterator<Item = f64> {
        self.done_ns.iter().map(|time| time.as_millis_f64())
    }

    /// The times from one unit to the next, in milliseconds.
    pub(super) fn intervals_ms(&self) -> Vec<f64> {
        self.done_ns.windows(2).map(|pair| (pair[1] - pair[0]).as_millis_f64()).collect()
    }

    /// The jitter of the work: the standard deviation of the time from one unit to the next. It is meaningful here,
    /// because simulated times have no outliers by disturbed measurements.
    fn jitter_ms(&self) -> f64 {
        let intervals = self.intervals_ms();
        // A client without two units of work has no interval; its jitter counts as 0.
        let count = intervals.len().max(1) as f64;
        let mean = intervals.iter().sum::<f64>() / count;
        (intervals.iter().map(|interval| (interval - mean).powi(2)).sum::<f64>() / count).sqrt()
    }
}

impl RanWorkload {
    /// Simulates this workload under this policy.
    pub(super) fn of(workload: &'static Workload, policy: &'static str) -> Result<RanWorkload, Reason> {
        let scenario = Scenario::parse(workload.name, workload.text, &[]).map_err(Reason::from_error)?;
        let seed = scenario.seed;
        let made = scenario.policy(policy, seed).ok_or_else(|| Reason::new("there is no such policy"))?;
        let mut host = scenario.host(made, Dones(vec![Vec::new(); scenario.clients.len()]), seed);
        host.run_until(scenario.duration_ns).map_err(Reason::from_error)?;
        let Dones(done) = host.into_recorder();
        let clients = scenario.clients.iter().zip(done).map(|(client, done_ns)| Client {
            name: client.name.clone(),
            share: client.share.get(),
            done_ns,
        });
        Ok(RanWorkload { workload, policy, clients: clients.collect() })
    }

    /// The average jitter of the clients.
    pub(super) fn jitter_ms(&self) -> f64 {
        self.clients.iter().map(Client::jitter_ms).sum::<f64>() / self.clients.len().max(1) as f64
    }

    /// The greatest distance of a client from its share of all work, in percent of it.
    pub(super) fn off_percent(&self) -> f64 {
        self.dues().map(|(done, due)| 100.0 * (done / due - 1.0).abs()).fold(0.0, f64::max)
    }

    /// The greatest distance of a client from its share of all work, in units of work.
    pub(super) fn off_units(&self) -> f64 {
        self.dues().map(|(done, due)| (done - due).abs()).fold(0.0, f64::max)
    }

    /// The work that each client has done, and the part of all work that its share entitles it to.
    fn dues(&self) -> impl Iterator<Item = (f64, f64)> {
        let all: usize = self.clients.iter().map(|client| client.done_ns.len()).sum();
        let shares: u32 = self.clients.iter().map(|client| client.share).sum();
        self.clients.iter().map(move |client| {
            (client.done_ns.len() as f64, all as f64 * f64::from(client.share) / f64::from(shares))
        })
    }
}

/// Keeps when each client has done a unit of work.
struct Dones(Vec<Vec<Nanoseconds>>);

impl Recorder for Dones {
    fn noted(&mut self, note: Note, now_ns: Nanoseconds) {
        if let Note::Done { client, .. } = note
            && let Some(done_ns) = self.0.get_mut(client.index())
        {
            done_ns.push(now_ns);
        }
    }
}
