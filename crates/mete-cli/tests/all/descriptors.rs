//! A process that may open only a few files: it fails with one sentence or does its work, and no folder stays
//! behind.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Ended, beside, has_two_processors, kernel_is_there, run};

/// Runs a script in a folder, with the command as `$0`, which may open this number of files.
fn with_few(most: u32, place: &Path, script: &str) -> Ended {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {most}; exec {script}");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_mete")]).current_dir(place).env("TMPDIR", place);
    run(command)
}

fn names(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// It fails and ends with a sentence, or it is done.
fn says_why(ended: &Ended, most: u32) -> bool {
    let last = ended.said.lines().last().unwrap_or_default();
    let is_said = last.starts_with("mete: ") && last.contains("Too many open files");
    assert!(ended.code == Some(0) || is_said, "{most}: {}", ended.said);
    ended.code != Some(0)
}

#[test]
fn the_demos_folder_goes_where_no_more_files_may_be_open() {
    if !has_two_processors() {
        return;
    }
    beside("mete-demo");
    const DEMO: &str = "\"$0\" demo --no-kernel --rounds 1 --stretch 100ms --report /dev/null";
    let failed = (5..16).filter(|&most| {
        let place = tempfile::tempdir().unwrap();
        let Ended { code, said, .. } = with_few(most, place.path(), DEMO);
        assert_eq!(names(place.path()), [""; 0], "{most}: {said}");
        code == Some(1) && said.contains("Too many open files")
    });
    assert!(failed.count() > 5, "with a few descriptors, it begins and fails");
}

#[test]
fn folders_of_results_go_where_no_more_files_may_be_open() {
    beside("mete-lab");
    for command in
        ["study vtrr-micro --out a/b", "sim mix --policy vtrr --plot a/b", "generate completions --out a/b"]
    {
        let failed = (5..12).filter(|&most| {
            let place = tempfile::tempdir().unwrap();
            let ended = with_few(most, place.path(), &format!("\"$0\" {command}"));
            let has_failed = says_why(&ended, most);
            assert_eq!(names(place.path()).is_empty(), has_failed, "{command}, {most}: {}", ended.said);
            has_failed
        });
        assert!(failed.count() > 2, "{command}");
    }
}

#[test]
fn klog_6_folders_of_traces_and_ctf_go_where_no_more_files_may_be_open() {
    let place = tempfile::tempdir().unwrap();
    let recorded = with_few(1000, place.path(), "\"$0\" record --schema stopwatch -o trace -- true");
    assert_eq!(recorded.code, Some(0), "{}", recorded.said);
    for command in ["record --schema stopwatch -o a/b -- true", "convert trace --to ctf -o a"] {
        let failed = (5..14).filter(|&most| {
            let ended = with_few(most, place.path(), &format!("\"$0\" {command}"));
            let left = names(place.path());
            let has_failed = ended.code == Some(1);
            assert_eq!(left == ["trace"], has_failed, "{command}, {most}: {left:?}: {}", ended.said);
            let _ = fs::remove_dir_all(place.path().join("a"));
            has_failed
        });
        assert!(failed.count() > 2, "{command}");
    }
}

#[test]
fn log_13_what_the_kernels_programs_take_is_named() {
    if !kernel_is_there() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let record = "record --schema scheduler -o trace -- true";
    for (most, command) in [(48, "log --for 100ms"), (26, record)] {
        let Ended { code, said, .. } = with_few(most, place.path(), &format!("\"$0\" {command}"));
        assert_eq!(code, Some(1), "{said}");
        let why = format!("of the {most} that this process may have");
        assert!(said.contains(&why) && said.contains("raise the limit, as by ulimit -n"), "{said}");
        assert_eq!(names(place.path()), [""; 0]);
    }
    // The programs of a schema are fewer, and run where there is room for them and a file for each processor.
    let recorded = with_few(100, place.path(), &format!("\"$0\" {record}"));
    assert_eq!(recorded.code, Some(0), "{}", recorded.said);
}
