//! What came out of the paper's claims on waiting for locks.

use mete_measure::statistics::Interval;
use serde_json::json;

use super::waited::{Curve, Waited};
use crate::study::{Finding, Findings};
use mete_measure::Verdict;

/// The paper's highest degree of parallelism.
const MOST: usize = 32;
/// The factor by which spinning has to grow from 1 to 32 at once. In the paper it more than doubles from four
/// on.
const GROWS: f64 = 2.0;
/// The paper's “little more than 6 %” (§8.1); then the factor by which our value may be more or less.
const NETWORK_PERCENT: f64 = 6.0;
const NETWORK_FACTOR: f64 = 2.0;

pub(super) fn of(curves: &[Curve]) -> Findings {
    let of = |load: &str| curves.iter().find(|curve| curve.load == load)?.at(MOST);
    let others = curves.iter().flat_map(|curve| &curve.points).map(|(_, waited)| waited.others);
    let others = others.fold(0.0, f64::max);
    let all = [
        ("spinning", spinning(of("web server"), of("make"))),
        ("growth", growth(curves)),
        ("network", of("network").map(network)),
        ("big-lock", of("make").and_then(big_lock)),
    ];
    all.map(|(id, finding)| (id, finding.map(|finding| unless_busy(finding, others)))).into()
}

/// The finding, without a verdict if others were busy. One that is not measured stays so.
fn unless_busy(finding: Finding, others_percent: f64) -> Finding {
    match finding.verdict {
        Verdict::NotMeasured => finding,
        _ => finding.unless_busy(others_percent),
    }
}

/// With the highest parallelism the web server spins for more than 20 % of the time, make for more than 15 %.
/// If one of them is missing, the sentence shows the other one, and there is no verdict.
fn spinning(web: Option<&Waited>, make: Option<&Waited>) -> Option<Finding> {
    let [web, make] = [web, make].map(|waited| waited.map(|waited| waited.spinning));
    let holds = web.zip(make).map(|(web, make)| web > 20.0 && make > 15.0);
    web.or(make)?;
    Some(Finding {
        verdict: holds.map_or(Verdict::NotMeasured, Verdict::of),
        ..Finding::new(json!({ "web": web, "make": make }), true)
    })
}

/// Spinning grows under every load that was measured with the most processes.
fn growth(curves: &[Curve]) -> Option<Finding> {
    let ends =
        curves.iter().filter_map(|curve| Some((curve.load, &curve.points.first()?.1, curve.at(MOST)?)));
    let ends: Vec<_> = ends.collect();
    // What is sure of one load counts for all.
    let verdict =
        ends.iter().map(|(_, few, many)| has_grown(few, many)).max_by_key(|verdict| match verdict {
            Verdict::Holds => 0,
            Verdict::TooNoisy => 1,
            Verdict::Fails | Verdict::NotMeasured => 2,
        })?;
    let loads = ends
        .iter()
        .map(|(load, few, many)| json!({ "load": load, "few": few.spinning, "many": many.spinning }));
    let values = json!({ "loads": loads.collect::<Vec<_>>() });
    Some(Finding { verdict, ..Finding::new(values, true) })
}

/// The verdict on growth, by the intervals of the medians over the parts of the time.
fn has_grown(few: &Waited, many: &Waited) -> Verdict {
    let [few, many] = [few, many].map(|waited| Interval::of_median(&waited.parts));
    match (few, many) {
        (Some(few), Some(many)) if many.low > GROWS * few.high => Verdict::Holds,
        (Some(few), Some(many)) if many.high <= GROWS * few.low => Verdict::Fails,
        _ => Verdict::TooNoisy,
    }
}

/// The network load spins for about as long as the paper's.
fn network(waited: &Waited) -> Finding {
    let alike = NETWORK_PERCENT / NETWORK_FACTOR..=NETWORK_PERCENT * NETWORK_FACTOR;
    Finding::new(json!({ "percent": waited.spinning }), alike.contains(&waited.spinning))
}

/// Nearly all of make's spinning is on one lock: never here, because the big kernel lock is gone.
fn big_lock(make: &Waited) -> Option<Finding> {
    let (lock, percent) = make.most().into_iter().next().filter(|_| make.spinning > 0.0)?;
    let part = 100.0 * percent / make.spinning;
    Some(Finding::new(json!({ "at_once": MOST, "percent": part, "lock": lock }), false))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use mete_measure::Verdict::{Fails, Holds, NotMeasured, TooNoisy};

    /// The claims of `claims.toml`, in its order.
    const CLAIMS: [&str; 5] = ["spinning", "growth", "network", "full-link", "big-lock"];

    fn curve(load: &'static str, percents: [f64; 2]) -> Curve {
        let waited = |spinning| Waited {
            spinning,
            parts: vec![spinning; 10],
            by_lock: BTreeMap::from([("spinlocks".to_owned(), spinning)]),
            ..Waited::default()
        };
        Curve { load, points: vec![(1, waited(percents[0])), (32, waited(percents[1]))] }
    }

    fn verdicts(curves: &[Curve]) -> Vec<Verdict> {
        let found = of(curves);
        let finding = |id| found.iter().find(|(of, _)| *of == id)?.1.as_ref();
        CLAIMS.map(|id| finding(id).map_or(NotMeasured, |finding| finding.verdict)).into()
    }

    fn papers() -> [Curve; 3] {
        [curve("make", [0.1, 16.0]), curve("network", [0.1, 6.2]), curve("web server", [1.0, 21.0])]
    }

    #[test]
    fn klog_9_locks_as_in_the_paper_agree_but_for_the_lock_that_is_gone() {
        assert_eq!(verdicts(&papers()), [Holds, Holds, Holds, NotMeasured, Fails]);
        let ours = [curve("make", [0.2, 0.1]), curve("network", [0.1, 13.0])];
        assert_eq!(verdicts(&ours), [NotMeasured, Fails, Fails, NotMeasured, Fails]);
        assert_eq!(verdicts(&[]), [NotMeasured; 5]);
    }

    #[test]
    fn klog_9_a_network_load_that_spins_for_far_less_than_the_papers_differs_as_well() {
        let of = |percent| verdicts(&[curve("network", [0.01, percent])])[2];
        assert_eq!([1.12, 2.9, 3.0, 6.0, 12.0, 12.1].map(of), [Fails, Fails, Holds, Holds, Holds, Fails]);
    }

    #[test]
    fn klog_9_spinning_grows_only_where_it_doubles_under_every_load() {
        let of = |make: [f64; 2]| verdicts(&[curve("make", make), curve("network", [0.1, 6.0])])[1];
        assert_eq!([[1.0, 2.1], [1.0, 2.0], [1.0, 1.0], [0.0, 0.0]].map(of), [Holds, Fails, Fails, Fails]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_growth_where_parts_of_the_time_differ_by_more() {
        let mut curves = papers();
        let noisy = [0.1, 9.0].into_iter().cycle().take(10).collect();
        curves[0].points[0].1.parts = noisy;
        assert_eq!(verdicts(&curves)[1], TooNoisy);
        curves[1].points[1].1.parts = vec![0.1; 10];
        assert_eq!(verdicts(&curves)[1], Fails, "what is sure of one load counts");
    }

    #[test]
    fn klog_9_a_run_that_ended_before_32_at_once_has_no_verdict_on_it() {
        let mut curves = papers();
        for curve in &mut curves {
            curve.points.truncate(1);
        }
        assert_eq!(verdicts(&curves), [NotMeasured; 5]);
    }

    #[test]
    fn klog_9_there_is_no_verdict_on_spinning_beside_others() {
        let mut curves = papers();
        curves[1].points[0].1.others = 10.5;
        assert_eq!(verdicts(&curves), [TooNoisy, TooNoisy, TooNoisy, NotMeasured, TooNoisy]);
    }
}
