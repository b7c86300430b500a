//! What came out of the paper's claims on effective quanta. There is no verdict on a program that shared the processors
//! with others, because the others ended its quanta.

use serde_json::json;

use super::find;
use super::program::ProgramQuanta;
use crate::klogger::workloads::{COMPUTATION, MAKE};
use crate::study::{Finding, Findings};

/// The paper's maximum quantum.
const PAPERS_QUANTUM_US: f64 = 100_000.0;

pub(super) fn of(all: &[ProgramQuanta]) -> Findings {
    vec![
        ("interactive", interactive(all)),
        ("make", find(all, MAKE).and_then(make)),
        ("computation", find(all, COMPUTATION).and_then(computation)),
    ]
}

/// All programs except make and the computation have short quanta.
fn interactive(all: &[ProgramQuanta]) -> Option<Finding> {
    let programs = || all.iter().filter(|of| of.name != MAKE && of.name != COMPUTATION);
    let parts: Vec<_> = programs().filter_map(|of| Some((&of.name, of.short_part()?))).collect();
    if parts.is_empty() {
        return None;
    }
    let others_percent = programs().map(|of| of.others_percent).fold(0.0, f64::max);
    let holds = parts.iter().all(|(_, part)| *part >= 0.85);
    let programs: Vec<_> =
        parts.iter().map(|(name, part)| json!({ "name": name, "percent": 100.0 * part })).collect();
    Some(Finding::new(json!({ "programs": programs }), holds).unless_busy(others_percent))
}

/// Nine in ten quanta of a compilation are shorter than about a millisecond.
fn make(make: &ProgramQuanta) -> Option<Finding> {
    let us = make.us.quantile(0.9)?;
    let holds = (500.0..=2_000.0).contains(&us);
    Some(Finding::new(json!({ "nine_in_ten_us": us }), holds).unless_busy(make.others_percent))
}

/// Most quanta of the computation are shorter than the paper's longest one.
fn computation(computation: &ProgramQuanta) -> Option<Finding> {
    let part = computation.us.part_below(PAPERS_QUANTUM_US)?;
    let half_ms = computation.us.half()? / 1e3;
    let values = json!({ "long_percent": 100.0 * (1.0 - part), "half_ms": half_ms });
    Some(Finding::new(values, part >= 0.5).unless_busy(computation.others_percent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::klogger::cdf::Distribution;
    use mete_measure::Verdict;

    fn quanta(name: &str, us: &[f64]) -> ProgramQuanta {
        ProgramQuanta {
            name: name.to_owned(),
            us: Distribution::of(us.to_vec()),
            preempted: 0,
            others_percent: 0.0,
            lost: 0,
        }
    }

    fn verdicts(all: &[ProgramQuanta]) -> Vec<Verdict> {
        let verdict = |found: Option<Finding>| found.map_or(Verdict::NotMeasured, |found| found.verdict);
        of(all).into_iter().map(|(_, found)| verdict(found)).collect()
    }

    #[test]
    fn klog_9_quanta_as_in_the_paper_agree_and_others_differ() {
        let papers = [
            quanta("find", &[10.0, 20.0, 90.0]),
            quanta(MAKE, &[1_000.0, 1_000.0]),
            quanta(COMPUTATION, &[50_000.0, 60_000.0, 100_000.0]),
        ];
        assert_eq!(verdicts(&papers), [Verdict::Holds; 3]);
        let others =
            [quanta("find", &[200.0]), quanta(MAKE, &[9.0]), quanta(COMPUTATION, &[100_000.0, 200_000.0])];
        assert_eq!(verdicts(&others), [Verdict::Fails; 3]);
        assert_eq!(verdicts(&[]), [Verdict::NotMeasured; 3]);
    }
}
