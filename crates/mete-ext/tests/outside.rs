//! A policy outside the kernel rules a real kernel: what it decides is carried out, and what it does not
//! decide harms no task.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Group, assert_shares, lateness_in, start_with, wait_for_hogs, within};
use mete_ext::{PolicyScheduler, PolicyStatus, Weight};
use mete_policy::{CATALOG, by_name};

fn policy(name: &str) -> impl FnOnce() -> Result<PolicyScheduler, mete_ext::ExtError> {
    let entry = by_name(name).unwrap();
    move || PolicyScheduler::start(entry)
}

/// Whether the policy has decided on almost all tasks that ran.
fn decides_all(status: &PolicyStatus) -> bool {
    status.ended.is_none() && status.decided > 100 && status.undecided * 100 <= status.decided
}

#[test]
fn new_1_a_policy_outside_the_kernel_gives_groups_their_shares() {
    let Some((scheduler, _alone)) =
        start_with("new_1_a_policy_outside_the_kernel_gives_groups_their_shares", policy("group-vtrr"))
    else {
        return;
    };
    let one = Group::top("mete-one", 200).hogs(1, Some(0));
    let many = Group::top("mete-many", 100).hogs(20, Some(0));
    assert_shares(&[&one, &many], &[666, 333], 5, || scheduler.status());
    assert!(decides_all(&scheduler.status()), "{:?}", scheduler.status());
    scheduler.set_weight(&many.path, Weight::new(600)).unwrap();
    // The group comes into the queue anew, and has its first turns when a cycle is over.
    sleep(Duration::from_secs(4));
    assert_shares(&[&one, &many], &[250, 750], 5, || scheduler.status());
}

#[test]
fn new_1_a_policy_outside_the_kernel_rules_all_processors() {
    let Some((scheduler, _alone)) =
        start_with("new_1_a_policy_outside_the_kernel_rules_all_processors", policy("distributed-vtrr"))
    else {
        return;
    };
    let few = Group::top("mete-few", 200).hogs(2, None);
    let many = Group::top("mete-many", 100).hogs(20, None);
    assert_shares(&[&few, &many], &[666, 333], 10, || scheduler.status());
    assert!(decides_all(&scheduler.status()), "{:?}", scheduler.status());
}

#[test]
fn new_1_every_policy_of_the_catalogue_rules_a_real_machine() {
    for entry in CATALOG {
        let Some((scheduler, _alone)) =
            start_with("new_1_every_policy_of_the_catalogue_rules_a_real_machine", policy(entry.name))
        else {
            return;
        };
        let hogs = Group::top("mete-hogs", 100).hogs(3, None);
        wait_for_hogs(&hogs);
        let script = "for n in 1 2 3 4; do cat /proc/version | grep -c Linux; done";
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        let status = scheduler.status();
        println!("{}: {status:?}", entry.name);
        assert_eq!(output.stdout, "1\n".repeat(4).into_bytes(), "{}: {status:?}", entry.name);
        assert!(status.ended.is_none() && status.decided > 20, "{}: {status:?}", entry.name);
    }
}

/// A policy that rules in a process of its own.
struct Ruler {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Ruler {
    fn start(policy: &str) -> Ruler {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mete-ext-ruler"));
        let mut process = command.arg(policy).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut ruler = Ruler { process, input, output: BufReader::new(output) };
        assert_eq!(ruler.line(), "ruling\n");
        ruler
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn status(&mut self) -> HashMap<String, u64> {
        self.input.write_all(b"\n").unwrap();
        let line = self.line();
        let words = line.split_whitespace().filter_map(|word| word.split_once('='));
        words.map(|(name, number)| (name.to_owned(), number.parse().unwrap())).collect()
    }

    fn signal(&self, name: &str) {
        let process = self.process.id().to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    }
}

impl Drop for Ruler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        wait_until_disabled();
    }
}

fn wait_until_disabled() {
    let state = || fs::read_to_string("/sys/kernel/sched_ext/state").unwrap();
    let begin = Instant::now();
    while state().trim() != "disabled" {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", state());
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn new_1_a_policy_that_is_stopped_costs_fairness_and_not_the_machine() {
    let name = "new_1_a_policy_that_is_stopped_costs_fairness_and_not_the_machine";
    // Whether it can rule here at all.
    let Some((scheduler, _alone)) = start_with(name, policy("group-vtrr")) else { return };
    drop(scheduler);
    wait_until_disabled();
    let mut ruler = Ruler::start("group-vtrr");
    let group = Group::top("mete-stopped", 100).hogs(3, Some(0));
    wait_for_hogs(&group);
    let before = ruler.status();
    ruler.signal("-STOP");
    // Some 5 s: each round sleeps for 5 ms and waits for three tasks at most.
    let (median, most) = lateness_in(&group, 500);
    ruler.signal("-CONT");
    sleep(Duration::from_secs(1));
    let after = ruler.status();
    println!("stopped: {median} us, {most} us; {before:?}, {after:?}");
    assert!(after["undecided"] > before["undecided"] + 100, "{before:?}, {after:?}");
    // The tasks run in turn, for a tick or two each.
    assert!(most < 20_000, "{median} us, {most} us");
    assert_eq!(after["ended"], 0);
    // It decides again.
    let decided = after["decided"];
    sleep(Duration::from_secs(1));
    let last = ruler.status();
    assert!(last["decided"] > decided + 100, "{after:?}, {last:?}");
}

#[test]
fn new_1_a_policy_that_is_killed_leaves_nothing_behind() {
    let name = "new_1_a_policy_that_is_killed_leaves_nothing_behind";
    let Some((scheduler, _alone)) = start_with(name, policy("stride")) else { return };
    drop(scheduler);
    wait_until_disabled();
    let group = Group::top("mete-killed", 100).hogs(3, None);
    wait_for_hogs(&group);
    for round in 0..10 {
        let ruler = Ruler::start("stride");
        sleep(Duration::from_millis(20 * round));
        let before = group.used();
        drop(ruler);
        sleep(Duration::from_millis(200));
        assert!(group.used() > before);
    }
}
