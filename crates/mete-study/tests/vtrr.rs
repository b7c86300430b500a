//! The studies of the VTRR paper: their results are the same at each run, and they say what they did not
//! simulate.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use mete_base::Progress;
use mete_measure::Verdict;
use mete_study::study::{StudyOptions, StudyResults};
use mete_study::{by_name, studies};

/// A quick run of the study of this name.
fn run(name: &str, progress: &mut dyn Progress) -> StudyResults {
    (by_name(name).unwrap().run)(StudyOptions { is_quick: true }, progress)
}

/// A run that is stopped from the beginning.
struct Stopped;

impl Progress for Stopped {
    fn begin(&mut self, _what: &str, _steps: u64) {}
    fn step(&mut self) {}
    fn is_cancelled(&self) -> bool {
        true
    }
}

/// A file of a study, without the lines that name the machine and the time.
fn file<'a>(study: &'a StudyResults, name: &str) -> Vec<&'a str> {
    let (_, text) = study.files.iter().find(|(found, _)| found == name).unwrap();
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn vtrr_4_the_error_study_finds_the_same_at_each_run() {
    let [first, second] = [run("vtrr-error", &mut ()), run("vtrr-error", &mut ())];
    for name in ["surfaces.csv", "policies.csv", "vtrr-against-wrr.svg", "vtrr-against-wfq.svg"] {
        assert_eq!(file(&first, name), file(&second, name), "{name}");
    }
    assert_eq!(first.claim_results, second.claim_results);
    let bound = first.claim_results.iter().find(|claim| claim.figure.contains("bound")).unwrap();
    assert_eq!(bound.verdict, Verdict::Holds, "a theorem about WFQ: {bound:?}");
    assert_eq!(file(&first, "surfaces.csv").len(), 1 + 3 * 10 * 8, "a line for each point of three surfaces");
}

#[test]
fn vtrr_4_vtrr_5_a_study_that_is_stopped_says_what_is_missing() {
    for name in [
        "vtrr-error",
        "vtrr-cost",
        "vtrr-micro",
        "vtrr-workloads",
        "live-shares",
        "live-latency",
        "live-micro",
    ] {
        let study = run(name, &mut Stopped);
        assert!(!study.report.is_complete && !study.claim_results.is_empty());
        assert!(study.claim_results.iter().all(|claim| claim.verdict == Verdict::NotMeasured));
        assert!(study.report.rows.iter().all(|row| row.median.is_none() && !row.note.is_empty()));
        let (_, page) = study.files.iter().find(|(name, _)| name == "README.md").unwrap();
        assert!(page.contains("stopped before its end"), "{page}");
    }
}

#[test]
fn vtrr_6_schedules_and_workloads_are_as_the_paper_says() {
    let (micro, workloads) = (run("vtrr-micro", &mut ()), run("vtrr-workloads", &mut ()));
    for claim in micro.claim_results.iter().chain(&workloads.claim_results) {
        assert_eq!(claim.verdict, Verdict::Holds, "{claim:?}");
    }
    assert!(file(&micro, "schedules.svg").len() > 20);
    for policy in ["goodness", "wfq", "vtrr"] {
        for workload in ["encoders", "virtual-machines"] {
            assert!(file(&workloads, &format!("{workload}-{policy}.svg")).len() > 20);
        }
    }
    let again = run("vtrr-workloads", &mut ());
    assert_eq!(file(&workloads, "done.csv"), file(&again, "done.csv"));
}

#[test]
fn studies_answer_to_their_names() {
    for entry in studies() {
        assert_eq!(by_name(entry.name).map(|found| found.shows), Some(entry.shows));
        assert!(!entry.shows.is_empty());
    }
    assert!(by_name("no such study").is_none());
}
