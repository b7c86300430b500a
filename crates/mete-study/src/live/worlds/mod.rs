//! The same policy in three worlds (NEW-1): it rules processes, does their recorded work once more, and schedules a
//! simulation of them.

mod replayed;
mod simulated;

use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_policy::Nanoseconds;
use mete_shares::By;
use mete_sim::metrics::Latencies;
use serde_json::{Value, json};

use self::replayed::Recorder;
use super::latency;
use super::stage::{Means, Part, Role, Run, has_sched_ext, median};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about};

/// What rules live, and the name of its policy in the catalogue. The first ones need no sched_ext.
const MEANS: [(Means, &str); 5] = [
    (Means::Dispatcher("distributed-vtrr"), "distributed-vtrr"),
    (Means::Dispatcher("group-vtrr"), "group-vtrr"),
    (Means::Dealt(By::SchedExt, "vtrr"), "distributed-vtrr-kernel"),
    (Means::Dealt(By::SchedExt, "distributed-vtrr-kernel"), "distributed-vtrr-kernel"),
    (Means::Dealt(By::SchedExt, "group-vtrr"), "group-vtrr"),
];
const WITHOUT_EXT: usize = 2;
/// How far a time from waking to running may be from the live one, and a share, in points.
const MOST_APART: f64 = 0.1;
const MOST_POINTS: f64 = 1.0;

/// Members, and the shares of their domains.
struct Scene {
    name: &'static str,
    parts: Vec<Part>,
    shares: Vec<u32>,
}

fn scenes() -> [Scene; 2] {
    let hogs = (0..5).map(|domain| Part { role: Role::Hog, domain });
    [
        Scene { name: "a sleeper among hogs", parts: latency::parts(), shares: vec![1; latency::DOMAINS] },
        Scene { name: "shares of 1 to 5", parts: hogs.collect(), shares: vec![1, 2, 3, 4, 5] },
    ]
}

/// What is compared.
#[derive(Clone, Debug, Default, PartialEq)]
struct Numbers {
    /// From waking to running, of the sleepers: the median and the 99th percentile, in microseconds.
    late_us: Option<[f64; 2]>,
    /// The part of all processor time that each domain had.
    parts: Vec<f64>,
}

/// A run in all three worlds.
struct Worlds {
    live: Numbers,
    replayed: Numbers,
    simulated: Numbers,
}

/// The runs of a scene under one of the means.
pub(crate) struct Compared {
    scene: &'static str,
    means: Means,
    runs: Vec<Worlds>,
}

pub(crate) struct LiveWorlds;

impl Study for LiveWorlds {
    about!("live-worlds", "one policy in three worlds: live, replayed from a recording, and simulated");
    type Found = Vec<Compared>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let (rounds, time) = if options.is_quick { (1, 2) } else { (5, 8) };
        let time = Duration::from_secs(time);
        let all = if has_sched_ext() { &MEANS[..] } else { &MEANS[..WITHOUT_EXT] };
        for (means, _) in &MEANS[all.len()..] {
            report.rows.push(Row::new(means.name(), "", Err(Reason::new("this kernel has no sched_ext"))));
        }
        let scenes = scenes();
        let cases = || scenes.iter().flat_map(|scene| all.iter().map(move |case| (scene, case)));
        let mut found: Vec<_> = cases()
            .map(|(scene, (means, _))| Compared { scene: scene.name, means: *means, runs: Vec::new() })
            .collect();
        progress.begin("runs", rounds * found.len() as u64);
        'rounds: for _ in 0..rounds {
            for ((scene, (means, policy)), found) in cases().zip(&mut found) {
                match in_all_worlds(scene, *means, policy, time, progress) {
                    Ok(worlds) if !progress.is_cancelled() => found.runs.push(worlds),
                    Ok(_) => break 'rounds,
                    Err(reason) => {
                        report.rows.push(Row::new(found.name(), "", Err(reason)));
                        break 'rounds;
                    }
                }
                progress.step();
            }
        }
        found.retain(|compared| !compared.runs.is_empty());
        report.rows.extend(found.iter().flat_map(Compared::rows));
        found
    }

    fn findings(found: &Self::Found) -> Findings {
        let [replayed, simulated]: [fn(&Worlds) -> &Numbers; 2] =
            [|worlds| &worlds.replayed, |worlds| &worlds.simulated];
        vec![
            ("replayed-late", late(found, replayed)),
            ("replayed-shares", shares(found, replayed)),
            ("simulated-late", late(found, simulated)),
            ("simulated-shares", shares(found, simulated)),
        ]
    }

    fn facts(found: &Self::Found) -> Value {
        json!({ "lines": found.iter().map(Compared::line).collect::<Vec<_>>() })
    }

    fn pictures(_found: &Self::Found) -> Vec<StudyFile> {
        Vec::new()
    }
}

/// Has a scene run live, does its recorded work once more, and simulates it.
fn in_all_worlds(
    scene: &Scene,
    means: Means,
    policy: &'static str,
    time: Duration,
    progress: &dyn Progress,
) -> Result<Worlds, Reason> {
    let mut recorder = Recorder::begin()?;
    let shares = (scene.shares.as_slice(), &vec![0; scene.shares.len()][..]);
    let run = Run::seen_by(&mut recorder, means, &scene.parts, shares, time, progress)?;
    let quantum = run.quantum.ok_or_else(|| Reason::new("it has no quantum to simulate it with"))?;
    let [live, replayed] = recorder.numbers(scene, &run, policy, quantum)?;
    let simulated = simulated::numbers(scene, policy, quantum, switch(&run), time)?;
    Ok(Worlds { live, replayed, simulated })
}

fn quantiles_us(late: &Latencies) -> Option<[f64; 2]> {
    let [median, most] = [0.5, 0.99].map(|part| late.quantile_ns(part));
    Some([median?.get() as f64 / 1e3, most?.get() as f64 / 1e3])
}

/// What a decision has cost the scheduler itself, which is what a switch costs in the simulation; nothing inside the
/// kernel, where it is not measured.
fn switch(run: &Run) -> Nanoseconds {
    let work = run.work.filter(|work| work.decisions > 0);
    work.map_or(Nanoseconds::ZERO, |work| Nanoseconds::new(work.own_ns / work.decisions))
}

impl Compared {
    fn name(&self) -> String {
        format!("{}, {}", self.scene, self.means.name())
    }

    /// The values of all runs.
    fn each(&self, value: impl Fn(&Worlds) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(value).collect()
    }

    /// The median of all runs of a time from waking to running: the first of the two, or the second.
    fn late_us(&self, of: fn(&Worlds) -> &Numbers, which: usize) -> Option<f64> {
        median(&self.each(|worlds| Some(of(worlds).late_us?[which])))
    }

    /// The greatest difference of a domain's part from the live one, in points: the median of all runs.
    fn points(&self, of: fn(&Worlds) -> &Numbers) -> Vec<f64> {
        self.each(|worlds| {
            let pairs = of(worlds).parts.iter().zip(&worlds.live.parts);
            pairs.map(|(part, live)| 100.0 * (part - live).abs()).max_by(f64::total_cmp)
        })
    }

    fn rows(&self) -> Vec<Row> {
        let name = self.name();
        let worlds: [(&str, fn(&Worlds) -> &Numbers); 3] = [
            ("live", |worlds| &worlds.live),
            ("replayed", |worlds| &worlds.replayed),
            ("simulated", |worlds| &worlds.simulated),
        ];
        let mut rows = Vec::new();
        for (world, of) in worlds {
            for (which, what) in ["median", "99th percentile"].into_iter().enumerate() {
                let late = self.each(|worlds| Some(of(worlds).late_us?[which]));
                if !late.is_empty() {
                    rows.push(Row::new(format!("{name}: late, {what}, {world}"), "µs", Ok(late)));
                }
            }
            if world != "live" {
                let what = format!("{name}: worst difference of a share, {world}");
                rows.push(Row::new(what, "points", Ok(self.points(of))));
            }
        }
        rows
    }

    fn line(&self) -> Value {
        let [live, replayed, simulated]: [fn(&Worlds) -> &Numbers; 3] =
            [|worlds| &worlds.live, |worlds| &worlds.replayed, |worlds| &worlds.simulated];
        json!({
            "scene": self.scene, "means": self.means.name(),
            "live": [self.late_us(live, 0), self.late_us(live, 1)],
            "replayed": [self.late_us(replayed, 0), self.late_us(replayed, 1)],
            "simulated": [self.late_us(simulated, 0), self.late_us(simulated, 1)],
            "replayed_points": median(&self.points(replayed)),
            "simulated_points": median(&self.points(simulated)),
        })
    }
}

/// How far the times from waking to running are from the live ones at worst, as a part of these.
fn late(found: &[Compared], of: fn(&Worlds) -> &Numbers) -> Option<Finding> {
    let apart = |compared: &Compared, which| {
        let live = compared.late_us(|worlds| &worlds.live, which)?;
        Some(((compared.late_us(of, which)? - live).abs() / live, compared.means.name()))
    };
    let all = found.iter().flat_map(|compared| [apart(compared, 0), apart(compared, 1)]).flatten();
    let (worst, means) = all.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(Finding::new(json!({ "percent": 100.0 * worst, "means": means }), worst <= MOST_APART))
}

/// How far a share is from the live one at worst, in points.
fn shares(found: &[Compared], of: fn(&Worlds) -> &Numbers) -> Option<Finding> {
    let all =
        found.iter().filter_map(|compared| Some((median(&compared.points(of))?, compared.means.name())));
    let (points, means) = all.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(Finding::new(json!({ "points": points, "means": means }), points <= MOST_POINTS))
}
