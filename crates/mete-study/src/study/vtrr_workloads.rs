//! Programs on the simulated machine: audio encoders and virtual machines (VTRR paper, §5.4).

use mete_policy::Nanoseconds;
use mete_sim::{Note, Recorder, Scenario};

use super::{Study, StudyOptions, vtrr_workloads_page};
use crate::progress::Progress;
use crate::reason::Reason;
use crate::report::{Report, Row};

/// The paper's three schedulers. The scheduler of Linux 2.2 has the name goodness here.
pub(super) const POLICIES: [&str; 3] = ["goodness", "wfq", "vtrr"];

/// A workload of the paper.
pub(super) struct Workload {
    /// The name of its scenario.
    pub name: &'static str,
    text: &'static str,
    /// The unit of a client's work.
    pub unit: &'static str,
    /// The paper's name for its figure.
    pub figure: &'static str,
}

pub(super) const WORKLOADS: [Workload; 2] = [
    Workload {
        name: "encoders",
        text: include_str!("../../../../studies/vtrr-workloads/encoders.toml"),
        unit: "frames",
        figure: "MPEG encoding",
    },
    Workload {
        name: "virtual-machines",
        text: include_str!("../../../../studies/vtrr-workloads/virtual-machines.toml"),
        unit: "rounds",
        figure: "virtual machines",
    },
];

/// The result of one workload under one policy.
pub(super) struct RanWorkload {
    pub workload: &'static Workload,
    pub policy: &'static str,
    pub clients: Vec<Client>,
}

/// The work of one client.
pub(super) struct Client {
    pub name: String,
    pub share: u32,
    /// When each unit of the client's work was done.
    pub done_ns: Vec<Nanoseconds>,
}

impl Client {
    /// The times from one unit to the next, in milliseconds.
    pub(super) fn intervals_ms(&self) -> Vec<f64> {
        self.done_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect()
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
    /// The average jitter of the clients.
    pub(super) fn jitter_ms(&self) -> f64 {
        self.clients.iter().map(Client::jitter_ms).sum::<f64>() / self.clients.len().max(1) as f64
    }
}

pub(super) fn study(_options: StudyOptions, progress: &mut dyn Progress) -> Study {
    let mut report = Report::new("mete study vtrr-workloads");
    let mut found = Vec::new();
    progress.begin("workloads", (WORKLOADS.len() * POLICIES.len()) as u64);
    for (workload, policy) in WORKLOADS.iter().flat_map(|workload| POLICIES.map(|policy| (workload, policy)))
    {
        if progress.is_cancelled() {
            break;
        }
        match run(workload, policy) {
            Ok(ran) => found.push(ran),
            Err(reason) => {
                report.rows.push(Row::new(format!("{}, {policy}", workload.name), "ms", Err(reason)))
            }
        }
        progress.step();
    }
    report.rows.extend(found.iter().flat_map(rows));
    report.is_complete = !progress.is_cancelled();
    let figures = vtrr_workloads_page::figures(&found);
    let files = vtrr_workloads_page::files(&report, &figures, &found);
    Study { folder: "vtrr-workloads", report, figures, files }
}

fn run(workload: &'static Workload, policy: &'static str) -> Result<RanWorkload, Reason> {
    let scenario = Scenario::parse(workload.name, workload.text, &[]).map_err(Reason::from_error)?;
    let seed = scenario.seed;
    let made = scenario.policy(policy, seed).ok_or_else(|| Reason::new("there is no such policy"))?;
    let mut host = scenario.host(made, Dones(vec![Vec::new(); scenario.clients.len()]), seed);
    host.run_until(scenario.duration_ns).map_err(Reason::from_error)?;
    let Dones(done) = host.into_recorder();
    Ok(RanWorkload {
        workload,
        policy,
        clients: scenario
            .clients
            .iter()
            .zip(done)
            .map(|(client, done_ns)| Client { name: client.name.clone(), share: client.share.get(), done_ns })
            .collect(),
    })
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

fn rows(ran: &RanWorkload) -> impl Iterator<Item = Row> {
    ran.clients.iter().map(|client| {
        let name = format!("{}, {}: from one to the next, {}", ran.workload.name, ran.policy, client.name);
        Row::new(name, "ms", Ok(client.intervals_ms())).note(format!("{} in all", client.done_ns.len()))
    })
}
