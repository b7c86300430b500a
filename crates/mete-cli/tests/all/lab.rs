//! Subcommands that other programs do: what they are given, and what the command says where they are missing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{beside, copy_program, has_two_processors, objects, write_program};

/// The command in a folder of its own, with programs beside it that print what they are given.
fn with_programs(names: &[&str]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    copy_program(env!("CARGO_BIN_EXE_mete"), place.path().join("mete"));
    for name in names {
        write_program(place.path().join(name), "#!/bin/sh\necho \"${0##*/}:\" \"$@\"\nexit 7\n");
    }
    place
}

fn run(place: &Path, arguments: &str) -> Output {
    Command::new(place.join("mete")).args(arguments.split(' ')).output().unwrap()
}

#[test]
fn the_demo_the_bench_and_the_studies_get_their_arguments_and_their_status_is_the_commands() {
    let place = with_programs(&["mete-demo", "mete-lab"]);
    for (typed, handed) in [
        ("demo", "mete-demo:"),
        ("demo --rounds 2 --json", "mete-demo: --rounds 2 --json"),
        ("bench --only user", "mete-lab: bench --only user"),
        ("study vtrr-micro --out there", "mete-lab: study vtrr-micro --out there"),
        // Every subcommand may be abbreviated.
        ("stu --list", "mete-lab: study --list"),
    ] {
        let output = run(place.path(), typed);
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{handed}\n"));
        assert_eq!(output.status.code(), Some(7), "{typed}");
    }
}

#[test]
fn what_is_mistyped_is_told_before_another_program_starts() {
    let place = with_programs(&["mete-demo", "mete-lab"]);
    for typed in ["demo --rounds 0", "bench --olny user", "study no-such-study", "study"] {
        let output = run(place.path(), typed);
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{typed}");
    }
    let help = run(place.path(), "bench --help");
    assert!(String::from_utf8_lossy(&help.stdout).contains("Usage: mete bench"));
}

#[test]
fn a_program_that_is_damaged_or_the_command_itself_is_not_started() {
    let place = with_programs(&["mete-lab"]);
    let program = place.path().join("mete-lab");
    // The kernel takes none of them for a program, and the last one only looks like one.
    for damaged in ["", "exit 0", "\x7fEL", "\x7fELF\nexit 0\n"] {
        write_program(&program, damaged);
        let output = run(place.path(), "study --list");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("mete-lab is damaged"), "{said}");
    }
    // A link to the command, and a copy of it: both would start themselves again and again.
    fs::remove_file(&program).unwrap();
    std::os::unix::fs::symlink("mete", &program).unwrap();
    let linked = run(place.path(), "study --list");
    fs::remove_file(&program).unwrap();
    copy_program(place.path().join("mete"), &program);
    let copied = run(place.path(), "study --list");
    // A copy with another name would take the options for its own.
    copy_program(&program, place.path().join("mete-demo"));
    let renamed = run(place.path(), "demo --rounds 1");
    for output in [renamed, linked, copied] {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("is this program itself"), "{said}");
    }
}

/// The command itself takes more descriptors than this.
#[test]
fn a_program_beside_has_the_limit_of_descriptors_that_the_user_has_set() {
    let place = with_programs(&["mete-lab"]);
    write_program(place.path().join("mete-lab"), "#!/bin/sh\nulimit -Sn\n");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 200 && exec \"$0\" bench"]).arg(place.path().join("mete"));
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "200\n", "{output:?}");
}

#[test]
fn a_program_that_is_missing_is_named() {
    let place = with_programs(&[]);
    for (typed, program) in [("demo", "mete-demo"), ("bench", "mete-lab"), ("study --list", "mete-lab")] {
        let output = run(place.path(), typed);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains(&format!("{program} is missing")) && said.contains("make install"), "{said}");
    }
}

#[test]
fn what_the_bench_is_asked_for_and_cannot_measure_is_a_failure() {
    if !has_two_processors() {
        return;
    }
    let place = with_programs(&[]);
    copy_program(beside("mete-lab"), place.path().join("mete-lab"));
    let output = run(place.path(), "bench --only demo --quick");
    let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(printed.contains("mete-demo-part is missing; it belongs beside this program"), "{printed}");
    let last = said.lines().last().unwrap_or_default();
    assert_eq!(last, "mete: nothing of demo could be measured here: the notes say what is missing");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_doctor_lists_the_programs_beside_the_command() {
    let place = with_programs(&["mete-lab", "mete-demo-part"]);
    write_program(place.path().join("mete-demo-part"), "");
    let printed = String::from_utf8(run(place.path(), "doctor --json").stdout).unwrap();
    let all = objects(&printed);
    let listed = all.iter().filter(|object| object["group"] == "programs beside mete");
    let found: Vec<_> = listed
        .map(|object| {
            let [name, finding, remedy] =
                ["name", "finding", "remedy"].map(|key| object[key].as_str().unwrap());
            assert!(remedy.contains("make install"), "{remedy}");
            let end = finding.rsplit('/').next().unwrap().split(';').next().unwrap();
            (name, object["present"].as_bool().unwrap(), end)
        })
        .collect();
    let expected = [
        ("mete-lab", true, "mete-lab"),
        ("mete-demo", false, "mete-demo is missing"),
        ("mete-demo-part", false, "mete-demo-part is damaged"),
    ];
    assert_eq!(found, expected);
}
