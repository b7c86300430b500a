//! A domain that receives a stream loses computation, because the driver that it wakes preempts it, unless
//! the domain keeps its place in the run queue: figures 8, 9 and 15 (TAVS paper, §4.1.2, §5.3).

use serde_json::json;

use super::{BASELINE, driver_percent, hog_percent, hog_units, mbit_per_s, mean_response, own_percent};
use crate::simulated::{Case, Measure, Outcome, Plan, Ran, scenario};
use crate::study::{Finding, Findings, StudyFile, about};

const KEEP: &str = "KeepOnRunQ";

/// Without and with KeepOnRunQ.
const TEXT: [&str; 2] = ["text, baseline", "text, KeepOnRunQ"];
const IMAGE: [&str; 2] = ["image, baseline", "image, KeepOnRunQ"];
/// The pages with their sizes in KiB: the paper's 8.6 and 300 KB.
const PAGES: [([&str; 2], &str); 2] = [(TEXT, "8.4"), (IMAGE, "293")];

const OWN: Measure = Measure::new("processor time of the domain with the stream", "%", own_percent);
const OTHERS: Measure = Measure::new("of a domain without", "%", hog_percent);
const DRIVER: Measure = Measure::new("of the driver", "%", driver_percent);
/// A unit of computation is 10 ms long.
const COMPUTED: Measure = Measure::new("computation beside the stream", "units/s", |outcome| {
    streams(outcome).then(|| outcome.a_second(outcome.probe.done_beside))
});
const COMPUTED_ELSEWHERE: Measure = Measure::new("computation of a domain without", "units/s", hog_units);
const STREAM: Measure =
    Measure::new("throughput", "Mbit/s", |outcome| if streams(outcome) { mbit_per_s(outcome) } else { None });
const FETCH: Measure = Measure::new("mean time to fetch a page", "ms", mean_response);

fn streams(outcome: &Outcome) -> bool {
    [BASELINE, KEEP].contains(&outcome.line)
}

pub(crate) struct Keep;

impl Plan for Keep {
    about!(
        "tavs-keep",
        "how much a domain with a stream computes, without and with KeepOnRunQ (figures 9 and 15, table 2)"
    );
    const SEEDS: u64 = 40;
    const MEASURES: &'static [Measure] = &[OWN, OTHERS, DRIVER, COMPUTED, COMPUTED_ELSEWHERE, STREAM, FETCH];
    type Besides = ();

    fn cases() -> Vec<Case> {
        let web = PAGES.iter().flat_map(|&([baseline, keep], kib)| {
            [(baseline, false), (keep, true)].map(|(line, keeps)| web(line, keeps, kib))
        });
        [stream(BASELINE, false), stream(KEEP, true)].into_iter().chain(web).collect()
    }

    fn findings(found: &Ran) -> Findings {
        vec![
            ("unfair", usage(found, BASELINE, |part| part < 0.9)),
            ("fair", usage(found, KEEP, |part| (part - 1.0).abs() < 0.05)),
            ("loss", loss(found)),
            ("gap", gap(found)),
            ("pages", pages(found)),
        ]
    }

    fn pictures(found: &Ran) -> Vec<StudyFile> {
        let allocation =
            bars(found, "Figures 9(a) and 15(a): CPU allocation", "processor time, %", [&OWN, &OTHERS]);
        let computation = bars(
            found,
            "Figures 9(b) and 15(b): computation",
            "units of 10 ms a second",
            [&COMPUTED, &COMPUTED_ELSEWHERE],
        );
        vec![("figure-9a-15a.svg".into(), allocation), ("figure-9b-15b.svg".into(), computation)]
    }
}

fn stream(line: &'static str, keeps: bool) -> Case {
    Case::new(line, scenario!("tavs-keep", "stream"), "credit", ("mixed", "reader")).with([keep(keeps)])
}

/// A case in which a page of `kib` KiB is fetched.
fn web(line: &'static str, keeps: bool, kib: &str) -> Case {
    Case::new(line, scenario!("tavs-keep", "web"), "credit", ("browser", "browser"))
        .with([keep(keeps), format!("remote.web.serves.kib={kib}")])
}

fn keep(keeps: bool) -> String {
    format!("policy.credit.keep_on_run_queue={keeps}")
}

/// Figures 9(a) and 15(a): the processor time of the domain with the stream as a part of what others have.
fn usage(found: &Ran, line: &str, holds: fn(f64) -> bool) -> Option<Finding> {
    let (own, others) = (found.mean(line, &OWN)?, found.mean(line, &OTHERS)?);
    Some(Finding::new(json!({ "own": own, "others": others }), holds(own / others)))
}

/// Figure 9(b).
fn loss(found: &Ran) -> Option<Finding> {
    let lost = lost_percent(found, BASELINE)?;
    Some(Finding::new(json!({ "percent": lost }), (25.0..=75.0).contains(&lost)))
}

/// Figure 15(b).
fn gap(found: &Ran) -> Option<Finding> {
    let (before, after) = (lost_percent(found, BASELINE)?, lost_percent(found, KEEP)?);
    Some(Finding::new(json!({ "before": before, "after": after }), after < before / 2.0))
}

/// How much less a task computes beside the stream than one in a domain without.
fn lost_percent(found: &Ran, line: &str) -> Option<f64> {
    Some(100.0 * (1.0 - found.mean(line, &COMPUTED)? / found.mean(line, &COMPUTED_ELSEWHERE)?))
}

/// Table 2.
fn pages(found: &Ran) -> Option<Finding> {
    let fetch = |lines: [&str; 2]| {
        let [before, after] = lines.map(|line| found.mean(line, &FETCH));
        Some([before?, after?])
    };
    let (image_ms, text_ms) = (fetch(IMAGE)?, fetch(TEXT)?);
    let [image, text] = [image_ms, text_ms].map(|[before, after]| 100.0 * (1.0 - after / before));
    let values = json!({ "image": image, "image_ms": image_ms, "text": text, "text_ms": text_ms });
    // A few fetches of a text have to wait for a turn, so its mean can also be a little worse.
    Some(Finding::new(values, image > 10.0 && (-5.0..image / 2.0).contains(&text)))
}

/// A measure of the domain with the stream beside that of a domain without, for both schedulers.
fn bars(found: &Ran, title: &str, label: &str, [own, others]: [&Measure; 2]) -> String {
    let lines = [BASELINE, KEEP];
    let places = || lines.map(Into::into).to_vec();
    let series = [("domain with the stream", places(), own), ("domain without", places(), others)];
    found.bars(title, label, &lines.map(str::to_owned), &series)
}
