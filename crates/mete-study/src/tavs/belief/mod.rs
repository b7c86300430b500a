//! Programs like those of a desktop: what they gain by boosting and by inheritance (figures 16, 17(a) and 19), and
//! the degrees of belief in their tasks (figures 17(b) and 18; TAVS paper, §5.4).

mod believed;
mod curve;
mod findings;
mod pair;
mod pictures;

use mete_measure::report::Report;
use mete_sim::scenario::Shipped;

use self::believed::Believed;
use self::pair::{PAIRS, Pair};
use super::FAIR_KERNEL;
use super::measures::{hog_percent, mean_response, median_response, own_percent};
use crate::simulated::{Case, Measure, Outcome, Plan, Ran, scenario};
use crate::study::{Findings, StudyFile, StudyTexts, texts};

/// The lines of figure 16, without and with TAVS.
const COMPILE: [&str; 2] = ["editor + cc1, baseline", "editor + cc1, TAVS"];
const BROWSE: [&str; 2] = ["editor + browser, baseline", "editor + browser, TAVS"];
/// A browser that pauses after each picture, as if it had the time.
const PAUSES: [&str; 2] = ["editor + browser that pauses, baseline", "editor + browser that pauses, TAVS"];
const PAUSING: &str =
    "guest.mixed.task.browser.program=[{ compute_ms = { uniform = [10, 30] } }, { sleep_ms = 30 }, \"done\"]";
/// The same in a guest whose kernel prefers the task that has used the processor least.
const PREFERS: [&str; 2] = [
    "editor + browser that pauses, fair kernel, baseline",
    "editor + browser that pauses, fair kernel, TAVS",
];

const RATE: Measure = Measure::new("work of the I/O-bound program", "units/s", |outcome| {
    (!edits(outcome)).then(|| outcome.a_second(outcome.probe.done))
});
const RESPONSE: Measure = Measure::new("mean response", "ms", mean_response);
const MEDIAN: Measure = Measure::new("median response", "ms", median_response);
const OWN: Measure = Measure::new("processor time of the mixed domain", "%", own_percent);
const OTHERS: Measure = Measure::new("of a domain that computes", "%", hog_percent);

fn edits(outcome: &Outcome) -> bool {
    [COMPILE, BROWSE, PAUSES, PREFERS].as_flattened().contains(&outcome.line)
}

pub(crate) struct Belief;

impl Plan for Belief {
    const NAME: &'static str = "tavs-belief";
    const SHOWS: &'static str =
        "what realistic mixes gain, and what is believed of their tasks (figures 16 to 19)";
    const TEXTS: StudyTexts = texts!("tavs-belief");
    const SEEDS: u64 = 20;
    const MEASURES: &'static [Measure] = &[RATE, RESPONSE, MEDIAN, OWN, OTHERS];
    type Besides = Believed;

    fn cases() -> Vec<Case> {
        let browser = scenario!("tavs-belief", "edit-browse");
        editing(COMPILE, scenario!("tavs-belief", "edit-compile"), &[])
            .into_iter()
            .chain(editing(BROWSE, browser, &[]))
            .chain(editing(PAUSES, browser, &[PAUSING]))
            .chain(editing(PREFERS, browser, &[PAUSING, FAIR_KERNEL]))
            .chain(PAIRS.iter().flat_map(Pair::cases))
            .collect()
    }

    fn besides(_: &mut Report) -> Believed {
        Believed::simulated()
    }

    fn findings(found: &Ran<Believed>) -> Findings {
        findings::of(found)
    }

    fn pictures(found: &Ran<Believed>) -> Vec<StudyFile> {
        pictures::of(found)
    }
}

fn editing([baseline, tavs]: [&'static str; 2], scenario: Shipped, settings: &[&str]) -> [Case; 2] {
    [(baseline, "credit"), (tavs, "credit-tavs")].map(|(line, policy)| {
        Case::new(line, scenario, policy, ("mixed", "editor")).with(settings.iter().copied())
    })
}
