//! `mete study`: what it prints and writes.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use common::mete;
use mete_study::study::STUDIES;
use serde_json::Value;

fn stdout(arguments: &[&str]) -> String {
    let output = mete(arguments).assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

fn failure(arguments: &[&str]) -> String {
    let output = mete(arguments).assert().failure();
    assert!(output.get_output().stdout.is_empty(), "{arguments:?} prints results");
    String::from_utf8(output.get_output().stderr.clone()).unwrap()
}

#[test]
fn the_list_names_every_study_with_a_line_each() {
    let list = stdout(&["study", "--list"]);
    for entry in STUDIES {
        assert!(list.contains(&format!("\n{} ", entry.name)), "{}: {list}", entry.name);
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
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
fn what_is_no_study_is_told_what_there_is() {
    let said = failure(&["study", "vtrr-eror"]);
    assert!(said.contains("vtrr-error"), "{said}");
    let said = failure(&["study"]);
    assert!(said.contains("NAME") && said.contains("--help"), "{said}");
    failure(&["study", "vtrr-micro", "--all"]);
}
