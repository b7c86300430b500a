//! `mete study`: what it prints and writes.

use crate::common::{fails, failure, mete, objects, stdout};
use mete_command::lab::STUDIES;
use serde_json::Value;

#[test]
fn the_list_names_every_study_with_a_line_each() {
    let list = stdout(&["study", "--list"]);
    for name in STUDIES {
        assert!(list.contains(&format!("\n{name} ")), "{name}: {list}");
    }
    assert_eq!(stdout(&["study", "--list", "--json"]).lines().count(), STUDIES.len());
}

#[test]
fn a_study_prints_its_rows_and_the_papers_figures_beside_ours() {
    let text = stdout(&["study", "vtrr-micro"]);
    for part in ["mete study vtrr-micro", "figure", "paper's", "ours", "verdict", "agrees"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_rows_of_a_study_are_objects_for_scripts() {
    let text = stdout(&["study", "vtrr-micro", "--json"]);
    let objects = objects(&text);
    let (rows, figures): (Vec<&Value>, Vec<&Value>) =
        objects.iter().partition(|object| object["kind"] == "row");
    assert!(rows.len() > 10);
    assert!(rows.iter().all(|row| row["name"].is_string() && row["median"].is_number()), "{text}");
    assert!(!figures.is_empty());
    assert!(
        figures.iter().all(|figure| figure["kind"] == "figure" && figure["verdict"] == "agrees"),
        "{text}"
    );
}

#[test]
fn a_study_is_written_into_its_folder() {
    let directory = tempfile::tempdir().unwrap();
    stdout(&["study", "vtrr-workloads", "--out", directory.path().to_str().unwrap()]);
    let folder = directory.path().join("vtrr-workloads");
    for name in ["README.md", "vtrr-workloads.csv", "done.csv", "encoders-vtrr.svg"] {
        assert!(folder.join(name).metadata().unwrap().len() > 0, "{name}");
    }
}

#[test]
fn klog_9_a_study_of_a_trace_says_what_it_needs() {
    let said = failure(&["study", "vtrr-micro", "--trace", "somewhere"]);
    assert!(said.contains("cannot be evaluated from a trace") && said.contains("quanta"), "{said}");
    fails(&["study", "quanta", "--trace", "no-such-trace"], "no-such-trace");
    failure(&["study", "--all", "--trace", "somewhere"]);
}

#[test]
fn klog_9_studies_tell_of_a_trace_that_was_recorded_before() {
    let directory = tempfile::tempdir().unwrap();
    for (schema, studies) in [
        ("scheduler", &["quanta", "migrations", "switch-cost"][..]),
        ("interrupt", &["noise", "timer"]),
        ("locking", &["locks"]),
    ] {
        let trace = directory.path().join(schema);
        let trace = trace.to_str().unwrap();
        let record = mete(&["record", "--schema", schema, "-o", trace, "--for", "300ms"]).output().unwrap();
        if !record.status.success() {
            println!("SKIPPED: {schema}: {}", String::from_utf8_lossy(&record.stderr));
            continue;
        }
        for study in studies {
            let text = stdout(&["study", study, "--trace", trace]);
            let is_told = text.contains(&format!("mete study {study} --trace")) && !text.contains("verdict");
            assert!(is_told, "{text}");
        }
        let said =
            failure(&["study", if schema == "scheduler" { "noise" } else { "quanta" }, "--trace", trace]);
        assert!(said.contains("record with: mete record --schema"), "{said}");
    }
}

#[test]
fn what_is_no_study_is_told_what_there_is() {
    fails(&["study", "vtrr-eror"], "vtrr-error");
    let said = failure(&["study"]);
    assert!(said.contains("NAME") && said.contains("--help"), "{said}");
    failure(&["study", "vtrr-micro", "--all"]);
}
