//! The pairs of programs, and what is believed of the tasks of each: with the scenario's IOthreshold (figure
//! 17(b)) and with one that is raised after 20 s (figure 18). Beliefs are those of seed 1.

use std::ops::Range;

use mete_measure::Reason;
use mete_policy::{CreditSettings, DomainIndex, Nanoseconds, TaskId};
use mete_sim::scenario::Shipped;

use crate::simulated::{Case, scenario};

/// A program beside one that computes, with the names of its cases.
pub(super) struct Pair {
    pub scenario: Shipped,
    pub io: &'static str,
    pub cpu: &'static str,
    pub baseline: &'static str,
    pub tavs: &'static str,
    pub alone: &'static str,
    pub inherits: &'static str,
}

macro_rules! pair {
    ($io:literal, $cpu:literal) => {
        Pair {
            scenario: scenario!("tavs-belief", $io),
            io: $io,
            cpu: $cpu,
            baseline: concat!($io, " + ", $cpu, ", baseline"),
            tavs: concat!($io, " + ", $cpu, ", TAVS"),
            alone: concat!($io, ", baseline"),
            inherits: concat!($io, ", priority inheritance"),
        }
    };
}

pub(super) const PAIRS: [Pair; 6] = [
    pair!("grep", "cc1"),
    pair!("find", "bzip2"),
    pair!("wget", "bzip2"),
    pair!("smb", "cc1"),
    pair!("acrobat", "mencoder"),
    pair!("svn", "mencoder"),
];

impl Pair {
    /// Beside the program that computes, without TAVS and with it; beside computing domains only, without
    /// inheritance and with it.
    pub(super) fn cases(&self) -> [Case; 4] {
        // The program that computes does only one round, which ends within about a second.
        let alone = format!("guest.mixed.task.{}.times=1", self.cpu);
        let inherits = |on| [alone.clone(), format!("policy.credit.priority_inheritance={on}")];
        [
            self.case(self.baseline, "credit"),
            self.tavs_case(),
            self.case(self.alone, "credit").with(inherits(false)),
            self.case(self.inherits, "credit").with(inherits(true)),
        ]
    }

    /// The case in which TAVS tells the pair's tasks apart.
    pub(super) fn tavs_case(&self) -> Case {
        self.case(self.tavs, "credit-tavs")
    }

    fn case(&self, line: &'static str, policy: &'static str) -> Case {
        Case::new(line, self.scenario, policy, ("mixed", self.io))
    }
}

/// The degree of belief above which a task counts as I/O-bound (§5).
pub(super) const THRESHOLD: f64 = 20.0;
/// The time after which beliefs have settled.
pub(super) const SETTLED_S: f64 = 20.0;

/// The degrees of belief, by the name of a pair's I/O-bound program or by the id of a [`Change`].
#[derive(Default)]
pub(crate) struct Believed(Vec<(&'static str, Vec<Curve>)>);

/// A case in which IOthreshold is raised after 20 s.
pub(super) struct Change {
    /// The id of the claim.
    pub id: &'static str,
    pub pair: Pair,
    pub from_ms: &'static str,
    pub to_ms: f64,
    /// Another program of the I/O-bound task, if there is one.
    pub program: Option<&'static str>,
}

/// After the paper's two changes, wget with other times that a packet takes it. The paper does not give that
/// time; these range from only copying a packet to writing it to a file.
pub(super) const CHANGES: [Change; 6] = [
    wget("told-wget", None),
    Change { id: "told-svn", pair: pair!("svn", "mencoder"), from_ms: "0.5", to_ms: 2.0, program: None },
    wget("told-wget-20", Some("program=[{ receive = { port = 7 } }, { compute_us = 20 }, \"done\"]")),
    wget("told-wget-30", Some("program=[{ receive = { port = 7 } }, { compute_us = 30 }, \"done\"]")),
    wget("told-wget-40", Some("program=[{ receive = { port = 7 } }, { compute_us = 40 }, \"done\"]")),
    wget("told-wget-80", Some("program=[{ receive = { port = 7 } }, { compute_us = 80 }, \"done\"]")),
];

const fn wget(id: &'static str, program: Option<&'static str>) -> Change {
    Change { id, pair: pair!("wget", "bzip2"), from_ms: "0.1", to_ms: 0.5, program }
}

impl Believed {
    pub(super) fn simulated() -> Believed {
        let pairs = PAIRS.iter().map(|pair| (pair.io, beliefs(&pair.tavs_case(), &[])));
        let all = pairs.chain(CHANGES.iter().map(|change| (change.id, change.beliefs())));
        Believed(all.filter_map(|(id, curves)| Some((id, curves.ok()?))).collect())
    }

    pub(super) fn find(&self, id: &str) -> Option<&[Curve]> {
        self.0.iter().find(|(of, _)| *of == id).map(|(_, curves)| &curves[..])
    }
}

impl Change {
    fn beliefs(&self) -> Result<Vec<Curve>, Reason> {
        let program = self.program.map(|program| format!("guest.mixed.task.{}.{program}", self.pair.io));
        let threshold = format!("guest.mixed.io_threshold_ms={}", self.from_ms);
        let case = self.pair.tavs_case().with([threshold]).with(program);
        beliefs(&case, &[(SETTLED_S, self.to_ms)])
    }
}

/// The time between two readings of the beliefs.
const EVERY_NS: Nanoseconds = Nanoseconds::new(200_000_000);

/// The degree of belief in one task.
pub(crate) struct Curve {
    pub task: String,
    /// Seconds and degree of belief.
    pub points: Vec<(f64, f64)>,
}

impl Curve {
    /// The part (0 to 1) of a span of time during which the belief is above a threshold.
    pub(super) fn part_above(&self, threshold: f64, during_s: Range<f64>) -> f64 {
        let within = || self.points.iter().filter(|(at_s, _)| during_s.contains(at_s));
        // Readings are at equal distances, so their number stands for time.
        within().filter(|(_, belief)| *belief > threshold).count() as f64 / within().count().max(1) as f64
    }

    /// When the belief is first above a threshold, not before `from_s`.
    pub(super) fn above_from(&self, threshold: f64, from_s: f64) -> Option<f64> {
        let above = |&&(at_s, belief): &&(f64, f64)| at_s >= from_s && belief > threshold;
        self.points.iter().find(above).map(|&(at_s, _)| at_s)
    }
}

/// Runs a case with seed 1 and reads the beliefs in the tasks of its watched domain, whose IOthreshold is
/// changed at the given seconds to the given milliseconds.
fn beliefs(case: &Case, changes: &[(f64, f64)]) -> Result<Vec<Curve>, Reason> {
    let scenario = case.scenario()?;
    let (client, _) = case.watched(&scenario)?;
    let domain = scenario.clients.get(client.index()).map_or(DomainIndex::ROOT, |client| client.domain);
    let policy = scenario.credit(&scenario.setup(1), CreditSettings::TAVS);
    let mut host = scenario.host(policy, (), 1);
    let tasks = scenario.guest_tasks(client);
    let mut curves: Vec<Curve> =
        tasks.map(|task| Curve { task: task.to_owned(), points: Vec::new() }).collect();
    let mut changes = changes.iter().peekable();
    for now_ns in (0..=scenario.duration_ns.get()).step_by(EVERY_NS.get() as usize) {
        host.run_until(Nanoseconds::new(now_ns)).map_err(Reason::from_error)?;
        let now_s = now_ns as f64 / 1e9;
        // Changes are in order of time, and at most one falls between two readings.
        if let Some((_, to_ms)) = changes.next_if(|(at_s, _)| *at_s <= now_s) {
            host.policy_mut().set_io_threshold(domain, Nanoseconds::new((to_ms * 1e6) as u64));
        }
        for (task, curve) in (0..).zip(&mut curves) {
            curve.points.extend(
                host.policy().belief(client, TaskId::new(task)).map(|belief| (now_s, f64::from(belief))),
            );
        }
    }
    Ok(curves)
}
