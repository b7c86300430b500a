//! Shares of control groups: two with few and many hogs, flat and in other groups, ten with hogs against their
//! shares, and a thousand; under weights, under a policy inside the kernel, and under one outside it.

use std::thread::available_parallelism;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Report, Row};
use mete_shares::By;
use serde_json::{Value, json};

use super::stage::member::Role;
use super::stage::{Means, OfMeans, Part, Run, Setting, WARM_UP, available, median};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about};

const WEIGHTS: Means = Means::Dealt(By::Cgroup, "vtrr");
const INSIDE: Means = Means::Dealt(By::SchedExt, "vtrr");
const OUTSIDE: Means = Means::Dealt(By::SchedExt, "distributed-vtrr-kernel");
const MEANS: [Means; 3] = [WEIGHTS, INSIDE, OUTSIDE];

/// How far a group may be from its share of a whole run, in points: with one or two processors, and with more.
const MOST_POINTS: [f64; 2] = [0.2, 0.5];
/// How far one of very many groups may be from its share: in percent of the processors' time, and in quanta.
const MOST_PERCENT: f64 = 1.0;
const MOST_QUANTA: f64 = 2.0;
const CROWD: u32 = 1000;
/// For how much of all processors' time such a crowd pays for what some of it had while it was started, and for how long at
/// most: on one processor, one has less than a millisecond in a second.
const CROWD_PAYS: Duration = Duration::from_secs(40);
const LONGEST_WARM_UP: Duration = Duration::from_secs(15);

/// Groups with hogs: what they are, and how they are to share.
struct Case {
    /// What it is called in claims.
    id: &'static str,
    name: String,
    parts: Vec<Part>,
    shares: Vec<u32>,
    is_wide: bool,
    depth: usize,
    warm_up: Duration,
}

impl Case {
    fn of(id: &'static str, name: String, groups: &[(u32, usize)]) -> Case {
        let hogs = |(domain, (_, hogs)): (usize, &(u32, usize))| {
            std::iter::repeat_n(Part { role: Role::Hog, domain }, *hogs)
        };
        Case {
            id,
            name,
            parts: groups.iter().enumerate().flat_map(hogs).collect(),
            shares: groups.iter().map(|(share, _)| *share).collect(),
            is_wide: true,
            depth: 1,
            warm_up: WARM_UP,
        }
    }

    fn on_one(self) -> Case {
        Case { is_wide: false, ..self }
    }

    fn deep(self) -> Case {
        Case { depth: 3, ..self }
    }

    fn setting(&self) -> Setting<'_> {
        let Case { is_wide, depth, warm_up, .. } = *self;
        Setting { is_wide, depth, warm_up, ..Setting::of(&self.parts, &self.shares) }
    }

    /// What part each group is to have. Each has enough hogs to use it.
    fn wanted(&self) -> Vec<f64> {
        let all: f64 = self.shares.iter().copied().map(f64::from).sum();
        self.shares.iter().map(|share| f64::from(*share) / all).collect()
    }
}

/// All cases on a machine with that number of processors.
fn cases(processors: usize) -> Vec<Case> {
    let on = if processors == 1 { "one processor".to_owned() } else { format!("{processors} processors") };
    let of_two = |hogs: [usize; 2], how: &str, on: &str| {
        let name = format!("two groups, 2:1, with {} and {} hogs{how}, {on}", hogs[0], hogs[1]);
        Case::of("two", name, &[(2, hogs[0]), (1, hogs[1])])
    };
    let wide = [processors, 10 * processors];
    let deep = ", each in two others";
    // Whatever the number of processors, the heaviest group can use its part with the fewest hogs.
    let times = processors.div_ceil(2);
    let ten: Vec<_> = (1..=10).map(|nth| (nth, (11 - nth as usize) * times)).collect();
    let crowd: Vec<_> = (0..CROWD).map(|nth| (1 + nth % 10, 1)).collect();
    let mut cases = vec![
        of_two([1, 20], "", "one processor").on_one(),
        of_two([1, 20], deep, "one processor").on_one().deep(),
    ];
    if processors > 1 {
        cases.extend([of_two(wide, "", &on), of_two(wide, deep, &on).deep()]);
    }
    let hogs = [times, 10 * times];
    cases.push(Case::of(
        "ten",
        format!("ten groups, 1 to 10, with {} to {} hogs, {on}", hogs[1], hogs[0]),
        &ten,
    ));
    let crowd = Case::of("crowd", format!("{CROWD} groups, 1 to 10 in turn, with a hog each, {on}"), &crowd);
    let warm_up = (CROWD_PAYS / processors as u32).min(LONGEST_WARM_UP);
    cases.push(Case { warm_up, ..crowd });
    cases
}

/// What came out of a case.
pub(crate) struct OfCase {
    case: Case,
    found: Vec<OfMeans>,
}

pub(crate) struct LiveGroups;

impl Study for LiveGroups {
    about!(
        "live-groups",
        "shares of control groups with few and many tasks, flat and deep, two, ten and a thousand"
    );
    type Found = Vec<OfCase>;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let (rounds, time) = if options.is_quick { (1, 3) } else { (3, 10) };
        let time = Duration::from_secs(time);
        let all = available(&MEANS, report);
        let mut found = Vec::new();
        for case in cases(available_parallelism().map_or(1, usize::from)) {
            let run = |means, progress: &dyn Progress| Run::of(means, &case.setting(), time, progress);
            let of_case = OfMeans::in_turns(&all, rounds, report, progress, run);
            if of_case.is_empty() {
                break;
            }
            report.rows.extend(of_case.iter().flat_map(|of_means| rows(&case, of_means)));
            found.push(OfCase { case, found: of_case });
        }
        found
    }

    fn findings(found: &Self::Found) -> Findings {
        vec![
            ("two-inside", shares(found, "two", INSIDE)),
            ("ten-inside", shares(found, "ten", INSIDE)),
            ("crowd-inside", crowd(found, INSIDE)),
            ("two-outside", shares(found, "two", OUTSIDE)),
            ("ten-outside", shares(found, "ten", OUTSIDE)),
            ("crowd-outside", crowd(found, OUTSIDE)),
        ]
    }

    fn facts(found: &Self::Found) -> Value {
        json!({ "lines": found.iter().flat_map(OfCase::lines).collect::<Vec<_>>() })
    }

    fn pictures(_found: &Self::Found) -> Vec<StudyFile> {
        Vec::new()
    }
}

/// The greatest difference of what a group had in a whole run and what its part of that is: in percent of the processors'
/// time, and in milliseconds.
fn worst(case: &Case, of_means: &OfMeans) -> Vec<[f64; 2]> {
    let of_run = |run: &Run| {
        let (used, ns) = run.whole()?;
        let all: f64 = used.iter().sum();
        // Of nothing, each has its part.
        if all == 0.0 {
            return None;
        }
        let errors = used.iter().zip(case.wanted()).map(|(used, wanted)| (used - wanted * all).abs());
        let worst = errors.max_by(f64::total_cmp)?;
        Some([100.0 * worst / (ns * processors(case) as f64), worst / 1e6])
    };
    of_means.runs.iter().filter_map(of_run).collect()
}

fn processors(case: &Case) -> usize {
    if case.is_wide { available_parallelism().map_or(1, usize::from) } else { 1 }
}

fn points(case: &Case, of_means: &OfMeans) -> Vec<f64> {
    of_means.points(&case.wanted())
}

fn errors_ms(case: &Case, of_means: &OfMeans) -> Vec<f64> {
    worst(case, of_means).into_iter().map(|[_, ms]| ms).collect()
}

fn rows(case: &Case, of_means: &OfMeans) -> Vec<Row> {
    let name = format!("{}: {}", case.name, of_means.means.name());
    vec![
        Row::new(format!("{name}: worst error of a share"), "points", Ok(points(case, of_means))),
        Row::new(format!("{name}: the same in time"), "ms", Ok(errors_ms(case, of_means))),
    ]
}

impl OfCase {
    fn lines(&self) -> Vec<Value> {
        let line = |of_means: &OfMeans| {
            json!({
                "case": self.case.name, "means": of_means.means.name(),
                "points": median(&points(&self.case, of_means)),
                "error_ms": median(&errors_ms(&self.case, of_means)),
            })
        };
        self.found.iter().map(line).collect()
    }
}

/// How far a group is from its share at worst, in any run of the cases with this id.
fn shares(found: &[OfCase], id: &str, means: Means) -> Option<Finding> {
    let cases = || found.iter().filter(|of_case| of_case.case.id == id);
    let of_case = |of_case: &OfCase| Some(points(&of_case.case, OfMeans::find(&of_case.found, means)?));
    let points = cases().filter_map(of_case).flatten().max_by(f64::total_cmp)?;
    let is_large = cases().any(|of_case| processors(&of_case.case) > 2);
    let most = MOST_POINTS[usize::from(is_large)];
    Some(Finding::new(json!({ "points": points }), points <= most))
}

/// The same of very many groups, in what can be asked of them: each has a few quanta in a run.
fn crowd(found: &[OfCase], means: Means) -> Option<Finding> {
    let of_case = found.iter().find(|of_case| of_case.case.id == "crowd")?;
    let of_means = OfMeans::find(&of_case.found, means)?;
    let quantum_ms = of_means.runs.first()?.quantum?.get() as f64 / 1e6;
    let worst = worst(&of_case.case, of_means);
    let [percent, ms] = [0, 1].map(|which| worst.iter().map(|worst| worst[which]).max_by(f64::total_cmp));
    let (percent, quanta) = (percent?, ms? / quantum_ms);
    let holds = percent <= MOST_PERCENT && quanta <= MOST_QUANTA;
    Some(Finding::new(json!({ "percent": percent, "quanta": quanta, "quantum_ms": quantum_ms }), holds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_7_every_group_can_use_its_part() {
        for processors in [1, 2, 3, 8, 16, 64] {
            for case in cases(processors) {
                let width = if case.is_wide { processors } else { 1 };
                for (domain, wanted) in case.wanted().into_iter().enumerate() {
                    let hogs = case.parts.iter().filter(|part| part.domain == domain).count();
                    assert!(hogs as f64 >= wanted * width as f64, "{}, group {domain}: {hogs}", case.name);
                }
            }
        }
    }
}
