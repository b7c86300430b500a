//! The same policy in three worlds (NEW-1): it rules processes, does their recorded work once more, and schedules a
//! simulation of them.

mod replayed;
mod simulated;

use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_policy::Nanoseconds;
use mete_shares::By;
use mete_sim::ClientReport;
use mete_sim::metrics::Latencies;
use serde_json::{Value, json};

use super::latency;
use super::recorded::Recorder;
use super::stage::member::Role;
use super::stage::{self, Means, Part, Setting, available, median};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about, measure_until_failure};

/// What rules live.
const MEANS: [Means; 5] = [
    Means::Dispatcher("distributed-vtrr"),
    Means::Dispatcher("group-vtrr"),
    Means::Dealt(By::SchedExt, "vtrr"),
    Means::Dealt(By::SchedExt, "distributed-vtrr-kernel"),
    Means::Dealt(By::SchedExt, "group-vtrr"),
];
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

/// What a switch costs is measured apart, in a scene of its own.
const BESIDE: [Part; 2] = [Part { role: Role::Sleeper, domain: 0 }, Part { role: Role::Hog, domain: 1 }];
const BESIDE_FOR: Duration = Duration::from_secs(3);
/// Of the times from waking to running there, in thousandths: one that no policy makes longer, because a slice has just ended.
const LEAST: usize = 10;

/// What is compared.
#[derive(Clone, Debug, Default, PartialEq)]
struct Numbers {
    /// From waking to running, of the sleepers: the median and the 99th percentile, in microseconds.
    late_us: Option<[f64; 2]>,
    /// The part of all processor time that each domain had.
    parts: Vec<f64>,
}

/// Where a policy schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    Live,
    Replayed,
    Simulated,
}

impl World {
    const ALL: [World; 3] = [World::Live, World::Replayed, World::Simulated];

    fn name(self) -> &'static str {
        match self {
            World::Live => "live",
            World::Replayed => "replayed",
            World::Simulated => "simulated",
        }
    }
}

/// A run in all three worlds, in the order of [`World::ALL`].
struct Run([Numbers; 3]);

impl Run {
    fn of(&self, world: World) -> &Numbers {
        &self.0[world as usize]
    }
}

/// The runs of a scene under one of the means.
pub(crate) struct Compared {
    scene: &'static str,
    means: Means,
    runs: Vec<Run>,
}

pub(crate) struct LiveWorlds;

impl Study for LiveWorlds {
    about!("live-worlds", "one policy in three worlds: live, replayed from a recording, and simulated");
    type Found = Vec<Compared>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let (rounds, time) = if options.is_quick { (1, 6) } else { (5, 10) };
        let time = Duration::from_secs(time);
        let all = switches(&available(&MEANS, report), report, progress);
        let scenes = scenes();
        let cases = || scenes.iter().flat_map(|scene| all.iter().map(move |of_means| (scene, *of_means)));
        let mut found: Vec<_> = cases()
            .map(|(scene, (means, _))| Compared { scene: scene.name, means, runs: Vec::new() })
            .collect();
        progress.begin("runs", rounds * found.len() as u64);
        'rounds: for _ in 0..rounds {
            for ((scene, (means, switch)), found) in cases().zip(&mut found) {
                match in_all_worlds(scene, means, switch, time, progress) {
                    Ok(run) if !progress.is_cancelled() => found.runs.push(run),
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
        vec![
            ("replayed-late", late(found, World::Replayed)),
            ("replayed-shares", shares(found, World::Replayed)),
            ("simulated-late", late(found, World::Simulated)),
            ("simulated-shares", shares(found, World::Simulated)),
        ]
    }

    fn facts(found: &Self::Found) -> Value {
        json!({ "lines": found.iter().map(Compared::line).collect::<Vec<_>>() })
    }

    fn pictures(_found: &Self::Found) -> Vec<StudyFile> {
        Vec::new()
    }
}

/// What a switch costs by each of these means. Those that do not run here are left out, and the report says why.
fn switches(all: &[Means], report: &mut Report, progress: &mut dyn Progress) -> Vec<(Means, Nanoseconds)> {
    measure_until_failure("switches", all.iter().copied(), report, progress, |means, progress| {
        let name = format!("a switch, {}", means.name());
        match switch_us(means, progress) {
            Ok(switch_us) => {
                let switch = Nanoseconds::new((switch_us * 1e3) as u64);
                (vec![Row::new(name, "µs", Ok(vec![switch_us]))], Some((means, switch)))
            }
            Err(reason) => (vec![Row::new(name, "µs", Err(reason))], None),
        }
    })
}

/// From waking to running, of a sleeper beside a process that computes.
fn switch_us(means: Means, progress: &dyn Progress) -> Result<f64, Reason> {
    let mut recorder = Recorder::begin()?;
    stage::Run::seen_by(&mut recorder, means, &Setting::of(&BESIDE, &[1; 2]), BESIDE_FOR, progress)?;
    let waits = recorder.recorded()?.waits_us(0);
    waits
        .get(waits.len() * LEAST / 1000)
        .copied()
        .ok_or_else(|| Reason::new("the sleeper was never seen to wake"))
}

/// Has a scene run live, does its recorded work once more, and simulates it.
fn in_all_worlds(
    scene: &Scene,
    means: Means,
    switch: Nanoseconds,
    time: Duration,
    progress: &dyn Progress,
) -> Result<Run, Reason> {
    let mut recorder = Recorder::begin()?;
    let run = {
        let setting = Setting::of(&scene.parts, &scene.shares);
        stage::Run::seen_by(&mut recorder, means, &setting, time, progress)?
    };
    let ruled = run.quantum.zip(policy_of(means));
    let (quantum, policy) = ruled.ok_or_else(|| Reason::new("no policy of the catalogue has ruled"))?;
    let [live, replayed] = replayed::numbers(recorder.recorded()?, scene, &run, policy, quantum)?;
    let simulated = simulated::numbers(scene, policy, quantum, switch, time)?;
    Ok(Run([live, replayed, simulated]))
}

/// The catalogue's name of the policy that rules.
fn policy_of(means: Means) -> Option<&'static str> {
    match means {
        Means::Kernel | Means::Empty => None,
        Means::Dealt(By::SchedExt, "vtrr") => Some("distributed-vtrr-kernel"),
        Means::Dealt(_, policy) | Means::Dispatcher(policy) | Means::Pauses(policy) => Some(policy),
    }
}

/// The median and the 99th percentile of the sleepers' waits, in microseconds.
fn late_us<'a>(members: impl Iterator<Item = (&'a ClientReport, &'a Part)>) -> Option<[f64; 2]> {
    let mut all = Latencies::default();
    let sleepers = members.filter(|(_, part)| part.role == Role::Sleeper);
    sleepers.filter_map(|(member, _)| member.wake_to_run.as_ref()).for_each(|waits| all.add(waits));
    let [median, most] = [0.5, 0.99].map(|part| all.quantile_ns(part));
    Some([median?.get() as f64 / 1e3, most?.get() as f64 / 1e3])
}

/// The part of all domains' time that each had.
fn parts<'a>(members: impl Iterator<Item = (&'a ClientReport, &'a Part)>, domains: usize) -> Vec<f64> {
    let mut had = vec![0.0; domains];
    members.for_each(|(member, part)| had[part.domain] += member.ran_ns.get() as f64);
    let all: f64 = had.iter().sum();
    had.iter().map(|had| had / all.max(1.0)).collect()
}

impl Compared {
    fn name(&self) -> String {
        format!("{}, {}", self.scene, self.means.name())
    }

    /// The times from waking to running of all runs: the first of the two, or the second.
    fn late_us(&self, world: World, which: usize) -> Vec<f64> {
        self.runs.iter().filter_map(|run| Some(run.of(world).late_us?[which])).collect()
    }

    /// The greatest difference of a domain's part from the live one in each run, in points.
    fn points(&self, world: World) -> Vec<f64> {
        let of_run = |run: &Run| {
            let pairs = run.of(world).parts.iter().zip(&run.of(World::Live).parts);
            pairs.map(|(part, live)| 100.0 * (part - live).abs()).max_by(f64::total_cmp)
        };
        self.runs.iter().filter_map(of_run).collect()
    }

    fn rows(&self) -> Vec<Row> {
        let name = self.name();
        let mut rows = Vec::new();
        for world in World::ALL {
            for (which, what) in ["median", "99th percentile"].into_iter().enumerate() {
                let late = self.late_us(world, which);
                if !late.is_empty() {
                    rows.push(Row::new(format!("{name}: late, {what}, {}", world.name()), "µs", Ok(late)));
                }
            }
            if world != World::Live {
                let what = format!("{name}: worst difference of a share, {}", world.name());
                rows.push(Row::new(what, "points", Ok(self.points(world))));
            }
        }
        rows
    }

    fn line(&self) -> Value {
        let late = |world| [0, 1].map(|which| median(&self.late_us(world, which)));
        json!({
            "scene": self.scene, "means": self.means.name(),
            "live": late(World::Live), "replayed": late(World::Replayed), "simulated": late(World::Simulated),
            "replayed_points": median(&self.points(World::Replayed)),
            "simulated_points": median(&self.points(World::Simulated)),
        })
    }
}

/// How far the times from waking to running are from the live ones at worst, as a part of these.
fn late(found: &[Compared], world: World) -> Option<Finding> {
    let apart = |compared: &Compared, which| {
        let live = median(&compared.late_us(World::Live, which))?;
        let here = median(&compared.late_us(world, which))?;
        Some(((here - live).abs() / live, compared.means.name()))
    };
    let all = found.iter().flat_map(|compared| [apart(compared, 0), apart(compared, 1)]).flatten();
    let (worst, means) = all.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(Finding::new(json!({ "percent": 100.0 * worst, "means": means }), worst <= MOST_APART))
}

/// How far a share is from the live one at worst, in points.
fn shares(found: &[Compared], world: World) -> Option<Finding> {
    let of_means = |compared: &Compared| Some((median(&compared.points(world))?, compared.means.name()));
    let worst = found.iter().filter_map(of_means).max_by(|one, other| one.0.total_cmp(&other.0));
    let (points, means) = worst?;
    Some(Finding::new(json!({ "points": points, "means": means }), points <= MOST_POINTS))
}
