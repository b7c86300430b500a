//! `mete replay`: a recorded schedule beside what other policies make of the same work.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::path::Path;

use common::mete;
use serde_json::Value;

fn recording() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mete-sim/tests/data/perf-sched-ping-pong.txt");
    path.to_str().unwrap().to_owned()
}

#[test]
fn new_1_the_recording_and_each_policy_stand_side_by_side() {
    let output = mete(&["replay", &recording(), "--policy", "eevdf,vtrr"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    for expected in ["recorded: ", "events are missing", "\nas recorded ", "\neevdf ", "\nvtrr ", "pingpong"]
    {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn new_1_every_policy_is_given_the_same_work_in_json() {
    let output = mete(&["replay", &recording(), "--policy", "rr,wfq", "--json"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let objects: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let work = |policy: &str| -> Vec<u64> {
        let of = objects.iter().filter(|object| object["kind"] == "thread" && object["policy"] == policy);
        of.map(|object| object["ran_ns"].as_u64().unwrap()).collect()
    };
    assert!(!work("as recorded").is_empty());
    assert_eq!((work("rr"), work("wfq")), (work("as recorded"), work("as recorded")));
}

#[test]
fn what_cannot_be_replayed_is_one_clear_sentence() {
    for (arguments, expected) in [
        (vec!["replay", "/no/such/file"], "/no/such/file cannot be read"),
        (vec!["replay", "/etc/passwd"], "there is no sched_switch event in it"),
        (vec!["replay", &recording(), "--processors", "0"], "'--processors <N>': 0 is not in 1..=65535"),
        (vec!["replay", "/etc/passwd", "--policy", "fastest"], "there is no policy \"fastest\": there are "),
    ] {
        let output = mete(&arguments).assert().failure();
        let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
        assert!(said.contains(expected) && output.get_output().stdout.is_empty(), "{arguments:?}: {said}");
    }
}

#[test]
fn new_1_the_trace_of_a_simulated_run_is_replayed_as_a_recorded_one_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mix.rows");
    mete(&["sim", "mix", "--for", "6s", "--trace", path.to_str().unwrap()]).assert().success();
    let output = mete(&["replay", path.to_str().unwrap(), "--policy", "vtrr,stride"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.contains("recorded: 4 threads on 1 processors") && text.contains("\nfilm "), "{text}");
    std::fs::write(&path, &std::fs::read(&path).unwrap()[..1000]).unwrap();
    let output = mete(&["replay", path.to_str().unwrap()]).assert().failure();
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert!(said.contains("the trace ends in the middle"), "{said}");
}
