//! `mete sim` with many runs, too many runs, and runs that Ctrl-C ends before their end.

use std::io::Read;
use std::process::Stdio;

use crate::common::{Running, fails, failure, listens, program, wait_until};
use rustix::process::Signal;

#[test]
fn more_runs_than_can_be_kept_are_refused_in_one_sentence() {
    for seeds in ["99999999999999", "18446744073709551615", "100001", "0"] {
        fails(&["sim", "mix", "--seeds", seeds], "1 or more, and at most 100000");
    }
    let values = "host.switch_us=0,1,2,3,4,5,6,7,8,9";
    let said = failure(&["sim", "mix", "--seeds", "100000", "--vary", values, "--policy", "vtrr,rr"]);
    assert!(
        said.contains("100000 seeds, 10 combinations of values and 2 policies are too many runs"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1);
    fails(&["sim", "mix", "--seed", "18446744073709551615", "--seeds", "2"], "take a smaller --seed");
}

#[test]
fn what_was_mistyped_is_answered_in_terms_of_what_was_typed() {
    for (arguments, expected) in [
        (&["sim", "mix", "--for", "1s"][..], "--for 1s: the warm-up"),
        (&["sim", "mix", "--for", "1s"], "take a longer time, or --set warm_up_ms=0"),
        (&["sim"], "the <SCENARIO> is missing: give a file, or a name that mete sim --list shows"),
        (&["sim", "mxi"], "did you mean mix?"),
        (&["sim", "mix", "--policy", "vttr"], "did you mean vtrr?"),
        (&["replay", "-", "--policy", "vttr"], "did you mean vtrr?"),
    ] {
        let said = failure(arguments);
        assert!(said.contains(expected) && !said.contains("--set duration_ms"), "{said}");
    }
}

#[test]
fn ctrl_c_ends_a_run_long_before_its_end_with_status_130_and_leaves_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (trace, csv) = (at("trace"), at("csv"));
    // No machine simulates this much time within the patience of a test.
    let long = ["sim", "mix", "--set", "duration_ms=1e11"];
    for more in [
        &[][..],
        &["--policy", "vtrr,rr,eevdf"],
        &["--trace", &trace],
        &["--seeds", "3", "--csv", &csv],
        &["--vary", "host.switch_us=0,5", "--plot", directory.path().to_str().unwrap()],
    ] {
        let mut command = program(&[&long[..], more].concat());
        let mut running = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        wait_until("it listens to Ctrl-C", || listens(running.pid()));
        running.signal(Signal::INT);
        let mut said = String::new();
        running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(running.wait().code(), Some(130), "{more:?}: {said}");
        assert!(said.contains("stopped before the end") && said.lines().count() == 1, "{more:?}: {said}");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0, "{more:?}");
    }
}

#[test]
fn a_trace_that_is_stopped_leaves_the_one_of_before() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    std::fs::write(&trace, "of before").unwrap();
    let name = trace.to_str().unwrap();
    let mut command = program(&["sim", "mix", "--set", "duration_ms=1e11", "--trace", name]);
    let mut running = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until("it listens to Ctrl-C", || listens(running.pid()));
    running.signal(Signal::INT);
    assert_eq!(running.wait().code(), Some(130));
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), "of before");
    assert_eq!(directory.path().read_dir().unwrap().count(), 1);
}
