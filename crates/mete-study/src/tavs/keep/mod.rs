//! A domain that receives a stream loses computation, because the driver that it wakes preempts it, unless the domain
//! keeps its place in the run queue: figures 8, 9 and 15 (TAVS paper, §4.1.2, §5.3).

mod findings;
mod pictures;

use super::BASELINE;
use super::measures::{driver_percent, hog_percent, hog_units, mbit_per_s, mean_response, own_percent};
use crate::simulated::{Case, Measure, Outcome, Plan, Ran, scenario};
use crate::study::{Findings, StudyFile, StudyTexts, texts};

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
    const NAME: &'static str = "tavs-keep";
    const SHOWS: &'static str =
        "how much a domain with a stream computes, without and with KeepOnRunQ (figures 9 and 15, table 2)";
    const TEXTS: StudyTexts = texts!("tavs-keep");
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
        findings::of(found)
    }

    fn pictures(found: &Ran) -> Vec<StudyFile> {
        pictures::of(found)
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
