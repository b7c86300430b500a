//! The studies as a whole: they stop on request, and in every case nothing stays switched on. No test checks
//! a measured time.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

#[path = "../../mete-bench/tests/common/mod.rs"]
mod common;

use std::fs;

use common::{StopAfter, all_are_said, alone, names, traces};
use mete_base::{Progress, draft};
use mete_measure::Verdict;
use mete_study::by_name;
use mete_study::study::{StudyEntry, StudyOptions, StudyResults};

#[test]
fn log_17_a_study_that_is_stopped_says_so() {
    let _alone = alone();
    assert!(!quick("log-readers", &mut StopAfter(1)).report.is_complete);
}

#[test]
fn log_17_figures_of_a_study_that_is_stopped_are_not_said_to_be_beyond_this_machine() {
    let _alone = alone();
    for name in ["log-cost", "log-readers"] {
        let study = quick(name, &mut StopAfter(1));
        assert!(!study.claim_results.is_empty());
        for claim in study.claim_results {
            assert_eq!(claim.verdict, Verdict::NotMeasured);
            assert!(claim.ours.contains("stopped before"), "{claim:?}");
        }
    }
}

#[test]
fn log_17_a_study_writes_its_data_its_plots_and_its_page() {
    let _alone = alone();
    let before = traces();
    let study = quick("log-readers", &mut ());
    assert_eq!(traces(), before);
    all_are_said(&study.report);
    let folder = std::env::temp_dir().join(format!("mete-studies-{}", std::process::id()));
    let contents = study.contents();
    draft::write_all(&folder, contents.iter().map(|(name, text)| (name.as_str(), text.as_str()))).unwrap();
    let written = names(folder.to_str().unwrap());
    fs::remove_dir_all(&folder).unwrap();
    for name in ["README.md", "log-readers.csv", "distribution.csv", "figure-5.6-full-speed.svg"] {
        assert!(written.iter().any(|file| file == name), "{name} is missing in {written:?}");
    }
}

#[test]
fn log_17_the_cost_study_covers_the_thesis_table_and_leaves_nothing_switched_on() {
    let _alone = alone();
    let before = traces();
    let study = quick("log-cost", &mut StopAfter(30));
    assert_eq!(traces(), before);
    all_are_said(&study.report);
    for setting in ["native", "disabled", "0 entries", "1 entry", "4 entries", "5 entries"] {
        for partner in ["cross AS", "intra AS"] {
            let name = format!("user probes, {partner}: {setting}");
            assert!(study.report.rows.iter().any(|row| row.name == name), "{name} is missing");
        }
    }
}

/// The case studies of the KLogger paper.
const CASES: [&str; 7] = ["loggers", "locks", "quanta", "migrations", "switch-cost", "noise", "timer"];

fn case(name: &str) -> &'static StudyEntry {
    by_name(name).unwrap()
}

fn quick(name: &str, progress: &mut dyn Progress) -> StudyResults {
    (case(name).run)(StudyOptions { is_quick: true }, progress)
}

/// Whether the kernel can be recorded here. Prints the reason if not.
fn was_recorded(study: &StudyResults) -> bool {
    let reason = study.report.rows.iter().find(|row| row.median.is_none());
    let is_recorded = study.report.rows.iter().any(|row| row.median.is_some());
    if !is_recorded {
        println!("SKIPPED: {}: {}", study.folder, reason.map_or("no row", |row| &row.note));
    }
    is_recorded
}

#[test]
fn klog_9_a_case_study_that_is_stopped_says_so_and_leaves_nothing_behind() {
    let _alone = alone();
    let before = traces();
    for name in CASES {
        let study = quick(name, &mut StopAfter(1));
        assert_eq!(traces(), before, "{name}");
        assert!(!study.report.is_complete || !was_recorded(&study), "{name}");
    }
}

#[test]
fn klog_9_a_case_study_has_rows_figures_data_and_a_page_of_a_real_recording() {
    let _alone = alone();
    let before = traces();
    for (name, files) in [
        ("timer", ["README.md", "timer.svg", "distribution.csv"]),
        ("noise", ["README.md", "noise.svg", "tail.svg"]),
    ] {
        let study = quick(name, &mut ());
        assert_eq!(traces(), before, "{name}");
        all_are_said(&study.report);
        assert!(study.report.is_complete && !study.claim_results.is_empty(), "{name}");
        if !was_recorded(&study) {
            continue;
        }
        assert!(study.report.rows.iter().all(|row| row.median.is_some()), "{name}: {:?}", study.report.rows);
        for file in files {
            let text = study.files.iter().find(|(name, _)| name == file).map(|(_, text)| text);
            assert!(text.is_some_and(|text| !text.contains("NaN")), "{name}: {file}");
        }
    }
}

#[test]
fn klog_9_what_is_no_trace_is_refused_by_its_name() {
    let directory = std::env::temp_dir().join(format!("mete-no-trace-{}", std::process::id()));
    for name in CASES {
        let Some(of_trace) = case(name).of_trace else {
            assert_eq!(name, "loggers", "all others can be told from a trace");
            continue;
        };
        let error = of_trace(&directory).unwrap_err().to_string();
        assert!(error.contains("mete-no-trace"), "{name}: {error}");
    }
}
