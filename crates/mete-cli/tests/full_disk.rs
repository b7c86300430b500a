//! A disk that fills while results are written: one sentence and a failure, and what was found out
//! is printed all the same.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{PATIENCE, mask, program};

fn run(command: Command) -> Output {
    assert_cmd::Command::from_std(command).timeout(PATIENCE).output().unwrap()
}

/// It fails and ends with a sentence that names the file.
fn fails(output: &Output, expected: &[&str]) {
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    let sentences: Vec<_> = said.lines().filter(|line| line.contains("cannot")).collect();
    assert!(output.status.code() == Some(1) && !said.contains("panicked"), "{said}");
    assert!(sentences.len() == 1 && said.lines().last() == Some(sentences[0]), "{said}");
    assert!(sentences[0].starts_with("mete: "), "{said}");
    assert!(expected.iter().all(|expected| sentences[0].contains(expected)), "{said}");
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_demo_whose_report_finds_no_room_fails_and_shows_its_tables() {
    if mask(std::process::id()).len() < 2 {
        eprintln!("SKIPPED: this needs two processors");
        return;
    }
    let arguments = ["demo", "--no-kernel", "--rounds", "1", "--stretch", "1s", "--report", "/dev/full"];
    let output = run(program(&arguments));
    fails(&output, &["cannot write the report /dev/full", "No space left"]);
    let printed = printed(&output);
    assert!(printed.contains("log rows was read.") && printed.contains("requests/s"), "{printed}");
}

#[test]
fn a_study_whose_folder_finds_no_room_fails_prints_its_results_and_leaves_the_ones_before() {
    const FILL: &str = "mount -t tmpfs -o size=4k none \"$1\" && shift && exec \"$@\"";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    // The mount is this process's own and ends with it.
    let in_a_small_place = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", FILL, "sh", path]).args(arguments);
        command
    };
    if !in_a_small_place(&["true"]).output().is_ok_and(|tried| tried.status.success()) {
        eprintln!("SKIPPED: this may not mount a small file system");
        return;
    }
    let mete = env!("CARGO_BIN_EXE_mete");
    const KEPT: &str = "mkdir -p vtrr-micro && echo kept > vtrr-micro/schedules.svg; \"$0\" \"$@\"; status=$?; \
                        ls -A vtrr-micro >&2; cat vtrr-micro/* >&2; exit $status";
    let script = format!("cd {path} && {KEPT}");
    let output = run(in_a_small_place(&["sh", "-c", &script, mete, "study", "vtrr-micro", "--out", path]));
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(output.status.code() == Some(1) && said.contains("No space left"), "{said}");
    assert!(said.contains(&format!("mete: cannot write into {path}")), "{said}");
    assert!(said.ends_with("schedules.svg\nkept\n"), "what was there stays, and nothing comes to it: {said}");
    assert!(printed(&output).contains("mete study vtrr-micro"));
    assert!(is_empty(directory.path()), "nothing was written beside the small file system");
}

fn is_empty(directory: &Path) -> bool {
    directory.read_dir().unwrap().next().is_none()
}

#[test]
fn a_study_that_cannot_have_its_folder_fails_before_the_work() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("below");
    let places = [
        (file.path().to_str().unwrap(), "it is a file, not a folder"),
        ("/dev/full", "it is a file, not a folder"),
        (below.to_str().unwrap(), "cannot make"),
        ("/proc", "cannot write into"),
    ];
    for (place, why) in places {
        let output = run(program(&["study", "log-cost", "--out", place]));
        fails(&output, &[why, place]);
        assert!(output.stdout.is_empty(), "nothing was measured");
    }
}
