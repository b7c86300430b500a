//! `mete log` of phases: what it prints of their lengths, against the program's own clock. The program is
//! this one, started again.

use std::io::BufRead;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{self, Running, wait_until};
use mete_probe::{enter, event, exit};
use rustix::process::Signal;
use serde_json::Value;

event! {
    static NAP: phase "nap";
}

const ROLE: &str = "METE_TEST_ROLE";
const NAPS: u64 = 50;
const NAP_NS: u64 = 2_000_000;

#[test]
#[ignore = "the program that the test below logs"]
fn program() {
    if std::env::var_os(ROLE).is_none() {
        return println!("SKIPPED: no test has started this");
    }
    wait_until("the phases are logged", || NAP.is_enabled());
    let begin = Instant::now();
    for _ in 0..NAPS {
        let phase = enter!(NAP);
        std::thread::sleep(Duration::from_nanos(NAP_NS));
        exit!(NAP, phase);
    }
    println!("\n>{}", begin.elapsed().as_nanos());
    // It stays until the test closes its standard input.
    std::io::stdin().lock().lines().for_each(drop);
}

#[test]
fn log_15_lengths_of_phases_are_told_in_nanoseconds_as_the_program_itself_measures_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "log_phases::program", "--nocapture"]).env(ROLE, "naps");
    command.env("METE_RUNTIME_DIR", directory.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut sleeper = Running::start(&mut command);
    let mut log = common::program(&["log", "--json", "--components", "--for", "10m", "--every", "100ms"]);
    log.arg("--domain").arg(format!("sleeper=pid:{}", sleeper.pid()));
    let mut log = Running::start(log.env("METE_RUNTIME_DIR", directory.path()).stdout(Stdio::piped()));
    let mut naps =
        log.lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()).filter(is_nap);
    let line = sleeper.lines().find(|line| line.as_ref().unwrap().starts_with('>')).unwrap().unwrap();
    let measured_ns: u64 = line[1..].parse().unwrap();
    let mut read = 0;
    while read < NAPS {
        read += naps.next().unwrap()["count"].as_u64().unwrap();
    }
    log.signal(Signal::INT);
    let whole = naps.find(|nap| nap["scope"] == "whole").unwrap();
    let value = |name: &str| whole[name].as_u64().unwrap();
    assert!(whole["type"] == "phase" && whole["domain"] == "sleeper", "{whole}");
    assert_eq!((value("count"), value("rows")), (NAPS, NAPS));
    // Two clocks, whose rates differ by less than one in a thousand.
    let all_ns = NAPS * NAP_NS..=measured_ns + measured_ns / 1000;
    assert!(all_ns.contains(&(value("sum") + value("sum") / 1000)), "{whole}, {measured_ns}");
    assert!(value("mean_ns").abs_diff(value("sum") / NAPS) <= 1, "{whole}");
    // Classes of lengths are at most a few percent wide.
    assert!((NAP_NS * 9 / 10..=value("sum")).contains(&value("p50_ns")), "{whole}");
    assert!(value("p50_ns") <= value("p99_ns") && value("last") >= NAP_NS * 9 / 10, "{whole}");
}

fn is_nap(object: &Value) -> bool {
    object["kind"] == "event" && object["event"] == "nap"
}
