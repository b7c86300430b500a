//! `mete replay`: a recorded schedule beside what other policies make of the same work.

use std::path::Path;

use crate::common::{fails, failure, mete, objects, printed_by, said_by, stdout};
use serde_json::Value;

fn recording() -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../mete-sim/tests/all/data/perf-sched-ping-pong.txt");
    path.to_str().unwrap().to_owned()
}

#[test]
fn new_1_the_recording_and_each_policy_stand_side_by_side() {
    let mut command = mete(&["replay", &recording(), "--policy", "eevdf,vtrr"]);
    let text = printed_by(&command.env("COLUMNS", "80").assert().success());
    for expected in ["recorded: ", "events are missing", "\nas recorded ", "\neevdf ", "\nvtrr ", "pingpong"]
    {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn new_1_how_far_the_replay_is_from_the_recording_is_always_said_and_bounds_what_is_concluded() {
    let text = stdout(&["replay", &recording(), "--policy", "vtrr"]);
    assert!(text.contains("how far this replay is from the recording, by eevdf (tick "), "{text}");
    assert!(text.contains("\nmedian ") && text.contains("processors' parts of the work "), "{text}");
    let objects = objects(&stdout(&["replay", &recording(), "--policy", "eevdf,rr", "--json"]));
    let run = |policy: &str| objects.iter().find(|of| of["kind"] == "run" && of["policy"] == policy).unwrap();
    let error = objects.iter().find(|of| of["kind"] == "error").unwrap();
    for figure in ["median_ns", "mean_ns", "p99_ns"] {
        let of = |object: &Value| object[figure].as_u64().unwrap();
        let (was, is) = (&error[figure]["recorded_ns"], &error[figure]["replayed_ns"]);
        assert_eq!([was, is].map(|ns| ns.as_u64().unwrap()), [of(run("as recorded")), of(run("eevdf"))]);
        let is_within =
            of(run("rr")).abs_diff(of(run("eevdf"))) <= of(run("eevdf")).abs_diff(of(run("as recorded")));
        let within = run("rr")["within_error"].as_array().unwrap();
        assert_eq!(within.contains(&figure.into()), is_within, "{figure}");
    }
}

#[test]
fn new_1_every_policy_is_given_the_same_work_in_json() {
    let objects = objects(&stdout(&["replay", &recording(), "--policy", "rr,wfq", "--json"]));
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
        (
            vec!["replay", &recording(), "--processors", "0"],
            "'--processors <N>': it takes a whole number from 1 to 65535",
        ),
        (vec!["replay", "/etc/passwd", "--policy", "fastest"], "there is no policy \"fastest\": there are "),
    ] {
        let output = mete(&arguments).assert().failure();
        let said = said_by(&output);
        assert!(said.contains(expected) && output.get_output().stdout.is_empty(), "{arguments:?}: {said}");
    }
}

#[test]
fn new_1_the_trace_of_a_simulated_run_is_replayed_as_a_recorded_one_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mix.rows");
    mete(&["sim", "mix", "--for", "6s", "--trace", path.to_str().unwrap()]).assert().success();
    let text = stdout(&["replay", path.to_str().unwrap(), "--policy", "vtrr,stride"]);
    assert!(text.contains("recorded: 4 threads on 1 processor in ") && text.contains("\nfilm "), "{text}");
    std::fs::write(&path, &std::fs::read(&path).unwrap()[..1000]).unwrap();
    fails(&["replay", path.to_str().unwrap()], "the trace ends in the middle");
}

#[test]
fn new_1_uncertain_time_is_said_and_is_no_threads_work() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../mete-sim/tests/all/data/perf-sched-missing-switches.txt");
    let path = path.to_str().unwrap();
    let text = stdout(&["replay", path, "--policy", "rr"]);
    for expected in [
        "recorded: 5 threads on 2 processors in 30.000 ms, 32.000 ms of work.",
        "2 contradictions: events are missing",
        "12.000 ms, 20.00 % of the processors' time",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    let output = mete(&["replay", path, "--policy", "rr", "--json"]).assert().success();
    let run = output.get_output().stdout.split(|&byte| byte == b'\n').next().unwrap();
    let run: Value = serde_json::from_slice(run).unwrap();
    assert_eq!((run["gaps"].as_u64(), run["uncertain_ns"].as_u64()), (Some(2), Some(12_000_000)));
}

#[test]
fn new_1_perfs_own_file_and_a_directory_without_a_trace_are_told_from_a_recorded_schedule() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    std::fs::write(&path, b"PERFILE2h\0\0\0\xff\xfe").unwrap();
    let (file, folder) = (path.to_str().unwrap(), directory.path().to_str().unwrap());
    let command = format!("`perf sched script --ns -i {file} > schedule.txt`");
    for (name, expected) in [(file, command), (folder, format!("cannot read {folder}/description.json"))] {
        let said = failure(&["replay", name]);
        assert!(said.contains(&expected) && said.lines().count() == 1, "{said}");
    }
}
