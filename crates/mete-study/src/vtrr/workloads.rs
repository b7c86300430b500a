//! Programs on the simulated machine: audio encoders and virtual machines (VTRR paper, §5.4).

use mete_base::progress::Progress;
use mete_measure::statistics::Summary;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Series};
use mete_policy::Nanoseconds;
use mete_sim::{Note, Recorder, Scenario};
use serde_json::{Value, json};

use super::PAPERS;
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about, head, measure_each, text};

/// The time that the pictures show, from the beginning.
const SHOWN_MS: f64 = 1500.0;

pub(crate) struct Workloads;

impl Study for Workloads {
    about!("vtrr-workloads", "what audio encoders and virtual machines get done under the same three");
    const IS_SIMULATED: bool = true;
    type Found = Vec<RanWorkload>;

    fn measure(_: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let all: Vec<_> = WORKLOADS.iter().flat_map(|of| PAPERS.map(|policy| (of, policy))).collect();
        measure_each("workloads", all.into_iter(), report, progress, |(workload, policy), _| {
            match RanWorkload::of(workload, policy) {
                Ok(ran) => (rows(&ran), Some(ran)),
                Err(reason) => {
                    (vec![Row::new(format!("{}, {policy}", workload.name), "ms", Err(reason))], None)
                }
            }
        })
    }

    fn findings(found: &Self::Found) -> Findings {
        let findings = WORKLOADS.iter().flat_map(|workload| {
            let ran = PAPERS.map(|policy| workload.under(policy, found));
            let [coarse_id, evenness_id] = workload.claims;
            [(coarse_id, coarse(ran)), (evenness_id, evenness(ran))]
        });
        findings.collect()
    }

    fn facts(found: &Self::Found) -> Value {
        // The greatest distance of an encoder from its share of all frames.
        let off = |policy| WORKLOADS[0].under(policy, found).map(RanWorkload::off_units);
        let clients = each_client(found).filter_map(|(ran, client)| line(ran, client));
        json!({
            "wfq_off_frames": off("wfq"),
            "vtrr_off_frames": off("vtrr"),
            "clients": clients.collect::<Vec<_>>(),
        })
    }

    fn pictures(found: &Self::Found) -> Vec<StudyFile> {
        found.iter().map(done).collect()
    }

    fn data(found: &Self::Found, report: &Report) -> Vec<StudyFile> {
        vec![("done.csv".to_owned(), csv(found, report))]
    }
}

/// A client's work in the page's table: how many units, and the times from one to the next. `None` for a
/// client that has not done two units.
fn line(ran: &RanWorkload, client: &Client) -> Option<Value> {
    let Summary { median, min, max, .. } = Summary::of(&client.intervals_ms())?;
    Some(json!({
        "workload": ran.workload.name,
        "policy": ran.policy,
        "share": client.share,
        "done": client.done_ns.len(),
        "median_ms": median,
        "shortest_ms": min,
        "longest_ms": max,
    }))
}

fn rows(ran: &RanWorkload) -> Vec<Row> {
    let rows = ran.clients.iter().map(|client| {
        let name = format!("{}, {}: from one to the next, {}", ran.workload.name, ran.policy, client.name);
        Row::new(name, "ms", Ok(client.intervals_ms())).note(format!("{} in all", client.done_ns.len()))
    });
    rows.collect()
}

fn csv(found: &[RanWorkload], report: &Report) -> String {
    let lines = each_client(found).flat_map(|(ran, client)| {
        let (name, policy, share) = (ran.workload.name, ran.policy, client.share);
        client.done_ms().map(move |done_ms| format!("{name},{policy},{share},{done_ms:.3}\n"))
    });
    head(report) + "workload,policy,share,done_ms\n" + &lines.collect::<String>()
}

fn each_client(found: &[RanWorkload]) -> impl Iterator<Item = (&RanWorkload, &Client)> {
    found.iter().flat_map(|ran| ran.clients.iter().map(move |client| (ran, client)))
}

/// All work that was done, against shares.
fn coarse([_, wfq, vtrr]: [Option<&RanWorkload>; 3]) -> Option<Finding> {
    let [wfq, vtrr] = [wfq?, vtrr?].map(RanWorkload::off_percent);
    Some(Finding::new(json!({ "wfq_percent": wfq, "vtrr_percent": vtrr }), wfq.max(vtrr) <= 2.0))
}

/// The paper's statements on bursts and on jitter.
fn evenness([linux, wfq, vtrr]: [Option<&RanWorkload>; 3]) -> Option<Finding> {
    let [linux, wfq, vtrr] = [linux?, wfq?, vtrr?].map(RanWorkload::jitter_ms);
    let holds = linux > wfq.max(vtrr) && (wfq - vtrr).abs() < linux - wfq.max(vtrr);
    Some(Finding::new(json!({ "linux_ms": linux, "wfq_ms": wfq, "vtrr_ms": vtrr }), holds))
}

/// The picture of one workload under one policy.
fn done(ran: &RanWorkload) -> StudyFile {
    let series: Vec<_> = ran.clients.iter().map(done_by).collect();
    let [x, y] = ["time, ms", ran.workload.unit].map(Axis::linear);
    let title = format!("{} under {}", ran.workload.name, ran.policy);
    (format!("{}-{}.svg", ran.workload.name, ran.policy), plot::lines(&title, &x, &y, &series))
}

/// The work that a client has done, over time.
fn done_by(client: &Client) -> Series {
    let ends = client.done_ms().take_while(|ms| *ms <= SHOWN_MS);
    let points = std::iter::once(0.0).chain(ends).zip(0u32..).map(|(ms, units)| (ms, f64::from(units)));
    Series::new(&client.name, points)
}

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

const WORKLOADS: [Workload; 2] = [
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
    fn under<'a>(&self, policy: &str, found: &'a [RanWorkload]) -> Option<&'a RanWorkload> {
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
    fn done_ms(&self) -> impl Iterator<Item = f64> {
        self.done_ns.iter().map(|time| time.as_millis_f64())
    }

    /// The times from one unit to the next, in milliseconds.
    fn intervals_ms(&self) -> Vec<f64> {
        self.done_ns.windows(2).map(|pair| (pair[1] - pair[0]).as_millis_f64()).collect()
    }

    /// The jitter of the work: the standard deviation of the time from one unit to the next. It is meaningful
    /// here, because simulated times have no outliers by disturbed measurements.
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
    fn of(workload: &'static Workload, policy: &'static str) -> Result<RanWorkload, Reason> {
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
    fn jitter_ms(&self) -> f64 {
        self.clients.iter().map(Client::jitter_ms).sum::<f64>() / self.clients.len().max(1) as f64
    }

    /// The greatest distance of a client from its share of all work, in percent of it.
    fn off_percent(&self) -> f64 {
        self.dues().map(|(done, due)| 100.0 * (done / due - 1.0).abs()).fold(0.0, f64::max)
    }

    /// The greatest distance of a client from its share of all work, in units of work.
    fn off_units(&self) -> f64 {
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
