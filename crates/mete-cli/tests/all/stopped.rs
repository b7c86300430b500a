//! Ctrl-C: the results so far and one exit status for all subcommands, and nothing torn left behind.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{
    self, Ended, Running, catches, has_two_processors, kernel_is_there, listens, program, wait_until,
};
use rustix::process::Signal;

/// Stops a run with Ctrl-C once it is under way, which `is_under_way` tells by its process number.
fn stopped(command: &mut Command, is_under_way: impl Fn(u32) -> bool) -> Ended {
    let mut running = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    wait_until("it is under way", || is_under_way(running.pid()));
    running.signal(Signal::INT);
    let (mut printed, mut said) = (String::new(), String::new());
    running.0.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    Ended { code: running.wait().code(), printed, said }
}

/// It printed results, said that they are not all, and has the status of what was stopped.
fn is_stopped_with_results(ended: &Ended, result: &str) {
    assert_eq!(ended.code, Some(130), "{}", ended.said);
    assert!(ended.printed.contains(result), "{}", ended.printed);
    assert!(
        ended.said.contains("mete: stopped before the end: these are the results so far"),
        "{}",
        ended.said
    );
}

fn names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn what_is_ignored_from_the_start_stays_ignored() {
    let mut shell = Command::new("sh");
    // As `nohup` does it, and a script's shell for what it starts in the background.
    shell.args(["-c", "trap '' HUP INT; exec \"$0\" sim mix --set duration_ms=1e11"]);
    shell.arg(env!("CARGO_BIN_EXE_mete")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut running = Running::start_as_here(&mut shell);
    wait_until("it listens to SIGTERM", || catches(running.pid(), libc::SIGTERM));
    [Signal::HUP, Signal::INT].into_iter().for_each(|signal| running.signal(signal));
    assert!(!listens(running.pid()) && !catches(running.pid(), libc::SIGHUP));
    assert_eq!(running.0.try_wait().unwrap(), None);
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code(), Some(130));
}

#[test]
fn a_study_that_is_stopped_leaves_the_results_of_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("vtrr-error");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("vtrr-error.csv"), "good results").unwrap();
    let mut command = program(&["study", "vtrr-error", "--out", directory.path().to_str().unwrap()]);
    let ended = stopped(&mut command, listens);
    is_stopped_with_results(&ended, "not measured");
    assert!(ended.said.contains("nothing was written into") && ended.said.contains("stopped before its end"));
    assert_eq!(names(&folder), ["vtrr-error.csv"]);
    assert_eq!(std::fs::read_to_string(folder.join("vtrr-error.csv")).unwrap(), "good results");
}

#[test]
fn all_studies_stopped_in_the_first_one_write_none() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(&["study", "--all", "--out", directory.path().to_str().unwrap()]);
    let ended = stopped(&mut command, listens);
    // The results of the first study, or of none if it was stopped before that began.
    is_stopped_with_results(&ended, "verdict");
    assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
}

#[test]
fn a_bench_that_is_stopped_ends_as_one_that_was() {
    is_stopped_with_results(&stopped(&mut program(&["bench", "--only", "user"]), listens), "mete bench");
}

#[test]
fn a_demo_that_is_stopped_in_its_first_stretch_leaves_no_report() {
    if !has_two_processors() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(&["demo", "--no-kernel", "--stretch", "10m"]);
    let ended = stopped(command.current_dir(directory.path()), listens);
    assert_eq!(ended.code, Some(130), "{}", ended.said);
    assert!(ended.said.contains("nothing to show"), "{}", ended.said);
    assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
}

#[test]
fn a_demo_that_is_killed_leaves_the_report_before_and_what_it_began_is_removed_by_the_next_one() {
    if !has_two_processors() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // Where its folder of sockets stays, until a demo comes much later.
    let temporary = tempfile::tempdir().unwrap();
    let report = directory.path().join("mete-demo.html");
    std::fs::write(&report, "the report before").unwrap();
    let demo = || {
        let mut command = program(&["demo", "--no-kernel", "--stretch", "10m"]);
        command.current_dir(directory.path()).env("TMPDIR", temporary.path());
        command
    };
    let mut killed = Running::start(demo().stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until("it is under way", || listens(killed.pid()));
    killed.signal(Signal::KILL);
    killed.wait();
    assert_eq!(names(directory.path()).len(), 2, "the report and what was begun");
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "the report before");
    assert_eq!(stopped(&mut demo(), listens).code, Some(130));
    assert_eq!(names(directory.path()), ["mete-demo.html"]);
    assert_eq!(std::fs::read_to_string(&report).unwrap(), "the report before");
}

#[test]
fn a_scheduler_ends_by_ctrl_c_as_it_should_and_is_stopped_where_its_time_was_given() {
    if !kernel_is_there() {
        return;
    }
    if !has_two_processors() {
        return;
    }
    let (client, driver) = common::ping_pong();
    let [client_is, driver_is] =
        [("client", client.pid()), ("driver", driver.pid())].map(|(name, pid)| format!("{name}=pid:{pid}"));
    let who = ["schedule", "--dry-run", "--client", &client_is, "--driver", &driver_is];
    let is_logging = |pid| listens(pid) && !common::bpf_links(pid).is_empty();
    let ended = stopped(&mut program(&who), is_logging);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let ended = stopped(&mut program(&[&who[..], &["--for", "10m"]].concat()), is_logging);
    is_stopped_with_results(&ended, "nothing was moved");
}

/// The recorder waits for its schema when Ctrl-C comes, and gets the schema after that.
#[test]
fn klog_5_a_recording_that_is_stopped_before_its_command_runs_does_not_run_it_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (trace, ran) = (directory.path().join("trace"), directory.path().join("ran"));
    let mut command = program(&["record", "--schema", "-", "-o"]);
    command.arg(&trace).args(["--", "touch"]).arg(&ran);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(&mut command);
    wait_until("it listens", || listens(running.pid()));
    running.signal(Signal::INT);
    running.0.stdin.take().unwrap().write_all(b"event A { int pid }\n").unwrap();
    let mut said = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(running.wait().code(), Some(130), "{said}");
    assert_eq!(said, "mete: stopped before the end: nothing was recorded\n");
    assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
}

#[test]
fn a_log_that_is_stopped_ends_as_one_that_was() {
    if !kernel_is_there() {
        return;
    }
    let is_logging = |pid| listens(pid) && !common::bpf_links(pid).is_empty();
    let ended = stopped(&mut program(&["log", "--for", "10m"]), is_logging);
    // It is chance how much it has logged by then.
    is_stopped_with_results(&ended, "logged for ");
}

#[test]
fn new_6_a_conversion_that_is_stopped_leaves_what_had_the_name_before_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    mete_bench::synthetic::write_trace(&trace, 400_000, 2).unwrap();
    let out = directory.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("kept"), "good results").unwrap();
    for (form, name) in [("parquet", "kept"), ("perl", "kept"), ("ctf", "new")] {
        let path = out.join(name);
        let arguments = ["convert", trace.to_str().unwrap(), "--to", form, "-o", path.to_str().unwrap()];
        let ended = stopped(&mut program(&arguments), listens);
        assert_eq!(ended.code, Some(130), "{form}: {}", ended.said);
        assert!(ended.said.contains("stopped before the end: nothing was written"), "{form}: {}", ended.said);
        assert_eq!(names(&out), ["kept"], "{form}");
        assert_eq!(std::fs::read_to_string(out.join("kept")).unwrap(), "good results", "{form}");
    }
    let shown = stopped(&mut program(&["show", trace.to_str().unwrap(), "--json"]), listens);
    // It is chance how far it comes. It says nothing of the part that it has not seen.
    is_stopped_with_results(&shown, "");
    assert!(!shown.printed.contains("completeness"), "{}", shown.printed);
}
