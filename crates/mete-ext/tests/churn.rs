//! The scheduler under churn: tasks come, go, move between groups, are stopped, frozen and changed, all at
//! random and under load. No task may be lost, and the kernel may find no fault.
//!
//! `METE_CHURN_SECONDS` says for how long (20 if it is not set), `METE_CHURN_SEED` what happens, `METE_CHURN_KILLS` how
//! often a policy is killed (5).

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use std::fmt::Debug;
use std::fs;
use std::io::{Write, stderr};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::dice::Dice;
use common::ruler::{Ruler, wait_until_disabled};
use common::{Group, SLEEPER, assert_shares, start, start_with, wait_for_hogs};
use mete_ext::{Ended, PolicyScheduler};
use mete_policy::{CATALOG, by_name};

/// What is going on: groups with hogs in them, and programs that end by themselves.
struct Churn {
    dice: Dice,
    groups: Vec<Group>,
    programs: Vec<Child>,
    begun: usize,
}

impl Churn {
    fn step(&mut self) {
        match self.dice.roll(11) {
            0..=3 => self.run_programs(),
            4 => self.set_weight(),
            5 => self.move_hog(),
            6 => self.tell_hog("kill -STOP $1; kill -CONT $1"),
            7 => self.tell_hog("taskset -pc 0 $1; taskset -pc 0-1 $1"),
            // What it forks meanwhile is not in real time: no step would change that back.
            8 => self.tell_hog("renice -n 5 -p $1; chrt -b -p 0 $1; chrt -R -f -p 1 $1; chrt -o -p 0 $1"),
            9 => self.freeze(),
            _ => self.replace_hog(),
        }
        self.programs.retain_mut(|program| program.try_wait().unwrap().is_none());
    }

    /// Programs that wake each other and end, each in a process of its own.
    fn run_programs(&mut self) {
        let group = self.group().path.join("cgroup.procs");
        let script = "echo $$ >$1; for n in 1 2 3 4 5 6; do cat /proc/version | grep -q Linux & done; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(group).stdout(Stdio::null());
        self.programs.push(command.spawn().unwrap());
        self.begun += 1;
    }

    fn group(&mut self) -> &Group {
        let nth = self.dice.roll(self.groups.len());
        &self.groups[nth]
    }

    fn hog(&mut self) -> Option<u32> {
        let processes = self.group().processes();
        (!processes.is_empty()).then(|| processes[self.dice.roll(processes.len())])
    }

    fn set_weight(&mut self) {
        let weight = [50, 80, 100, 200, 400][self.dice.roll(5)];
        self.group().set_weight(weight);
    }

    /// One that has ended meanwhile cannot be moved.
    fn move_hog(&mut self) {
        let Some(hog) = self.hog() else { return };
        let _ = fs::write(self.group().path.join("cgroup.procs"), hog.to_string());
    }

    fn tell_hog(&mut self, script: &str) {
        let Some(hog) = self.hog() else { return };
        let _ = Command::new("sh").args(["-c", script, "sh", &hog.to_string()]).output();
    }

    fn freeze(&mut self) {
        let file = self.group().path.join("cgroup.freeze");
        fs::write(&file, "1").unwrap();
        self.run_programs();
        fs::write(&file, "0").unwrap();
    }

    fn replace_hog(&mut self) {
        self.tell_hog("kill -KILL $1");
        let nth = self.dice.roll(self.groups.len());
        self.groups[nth].add_hogs(1, None);
    }
}

impl Drop for Churn {
    /// A group waits for the hogs that it has started, and some of them are in another one now.
    fn drop(&mut self) {
        self.groups.iter().for_each(Group::kill);
    }
}

/// What a test may be told: a number from the environment, or this one.
fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

impl Churn {
    fn begin() -> Churn {
        let seed = setting("METE_CHURN_SEED", 1);
        println!("METE_CHURN_SEED={seed}");
        let group = |nth| Group::top(&format!("mete-churn-{nth}"), 100).hogs(2, None);
        let groups: Vec<_> = (0..4).map(group).collect();
        groups.iter().for_each(wait_for_hogs);
        Churn { dice: Dice(seed), groups, programs: Vec::new(), begun: 0 }
    }

    /// Goes on for the time of a test, or until the scheduler has ended, which is a fault.
    fn go_on(&mut self, ended: impl Fn() -> Option<Ended>, mut besides: impl FnMut(&mut Dice)) {
        let seconds = Duration::from_secs(setting("METE_CHURN_SECONDS", 20));
        let (begin, mut steps) = (Instant::now(), 0);
        while begin.elapsed() < seconds && ended().is_none() {
            self.step();
            besides(&mut self.dice);
            steps += 1;
        }
        if let Some(ended) = ended() {
            panic!("after {steps} steps: {}: {}\n{}", ended.reason, ended.message, ended.dump);
        }
        println!("{steps} steps, {} scripts of programs", self.begun);
    }

    /// Each program still gets its turn and ends.
    fn assert_ends<S: Debug>(&mut self, status: impl Fn() -> S) {
        let begin = Instant::now();
        while !self.programs.is_empty() && begin.elapsed() < Duration::from_secs(120) {
            self.programs.retain_mut(|program| program.try_wait().unwrap().is_none());
            sleep(Duration::from_millis(100));
        }
        println!("{:?}", status());
        assert_eq!(self.programs.len(), 0, "{:?}", status());
    }
}

/// Groups are made and removed as soon as the kernel allows it, again and again. Something in real time keeps the processor from their
/// programs most of the time, also while these end. Afterwards new groups, which have the numbers of former ones, have shares and places of
/// their own.
fn assert_new_groups_have_their_own_shares<S: Debug>(status: impl Fn() -> S) {
    let mut real_time = Command::new("timeout");
    real_time.args(["600", "taskset", "-c", "0", "chrt", "-f", "1", SLEEPER, "100000", "31", "30"]);
    let mut real_time = real_time.stdout(Stdio::null()).spawn().unwrap();
    let outer = Group::top("mete-outer", 10_000);
    fs::write(outer.path.join("cgroup.subtree_control"), "+cpu").unwrap();
    for _ in 0..40 {
        let inner = Group::new(&outer.path, "mete-inner", 1);
        let script = "echo $$ >$1; for n in 1 2 3; do echo $n & done; wait";
        let mut program = Command::new("taskset");
        program.args(["-c", "0", "sh", "-c", script, "sh"]).arg(inner.path.join("cgroup.procs"));
        let mut program = program.stdout(Stdio::null()).spawn().unwrap();
        while inner.processes().is_empty() && program.try_wait().unwrap().is_none() {}
        while fs::remove_dir(&inner.path).is_err() {}
        program.wait().unwrap();
        // There is nothing left of it.
        std::mem::forget(inner);
    }
    drop(outer);
    let _ = Command::new("kill").arg(real_time.id().to_string()).status();
    let _ = real_time.wait();
    let groups =
        [1, 2, 3].map(|share| Group::top(&format!("mete-new-{share}"), 100 * share).hogs(2, Some(0)));
    groups.iter().for_each(wait_for_hogs);
    assert_shares(&groups.each_ref(), &[167, 333, 500], 10, status);
}

#[test]
fn vtrr_7_a_group_has_nothing_of_one_that_was_removed_before() {
    let Some((scheduler, _alone)) = start("vtrr_7_a_group_has_nothing_of_one_that_was_removed_before") else {
        return;
    };
    assert_new_groups_have_their_own_shares(|| scheduler.status());
    assert_eq!(scheduler.status().ended, None);
}

#[test]
fn new_1_a_group_has_nothing_of_one_that_was_removed_before() {
    let name = "new_1_a_group_has_nothing_of_one_that_was_removed_before";
    let begin = || PolicyScheduler::start(by_name("group-vtrr").unwrap());
    let Some((scheduler, _alone)) = start_with(name, begin) else { return };
    assert_new_groups_have_their_own_shares(|| scheduler.status());
    assert_eq!(scheduler.status().ended, None);
}

#[test]
fn vtrr_7_nothing_is_lost_where_all_comes_and_goes() {
    let Some((scheduler, _alone)) = start("vtrr_7_nothing_is_lost_where_all_comes_and_goes") else { return };
    let mut churn = Churn::begin();
    churn.go_on(|| scheduler.status().ended, |_| {});
    churn.assert_ends(|| scheduler.status());
    assert_eq!((scheduler.status().ended, scheduler.status().found), (None, 0));
}

#[test]
fn new_1_nothing_is_lost_where_all_comes_and_goes_and_policies_change() {
    let name = "new_1_nothing_is_lost_where_all_comes_and_goes_and_policies_change";
    let begin = || PolicyScheduler::start(&CATALOG[0]);
    let Some((scheduler, _alone)) = start_with(name, begin) else { return };
    let mut churn = Churn::begin();
    let mut changes = 0;
    churn.go_on(
        || scheduler.status().ended,
        |dice| {
            // At once, and then now and then: where the tick is long, there are few steps.
            if changes == 0 || dice.roll(8) == 0 {
                scheduler.set_policy(&CATALOG[dice.roll(CATALOG.len())]).unwrap();
                changes += 1;
            }
        },
    );
    churn.assert_ends(|| scheduler.status());
    let status = scheduler.status();
    assert!(changes > 0 && status.decided > 100, "{changes} changes, {status:?}");
    assert_eq!((status.ended, status.failure), (None, None));
}

#[test]
fn new_1_a_policy_that_is_killed_under_churn_leaves_nothing_behind() {
    let name = "new_1_a_policy_that_is_killed_under_churn_leaves_nothing_behind";
    let Some((scheduler, _alone)) = start_with(name, || PolicyScheduler::start(&CATALOG[0])) else { return };
    drop(scheduler);
    wait_until_disabled();
    let mut churn = Churn::begin();
    let kills = setting("METE_CHURN_KILLS", 5);
    for nth in 1..=kills {
        let policy = CATALOG[churn.dice.roll(CATALOG.len())].name;
        let ruler = Ruler::start(policy);
        for _ in 0..churn.dice.roll(4) {
            churn.step();
        }
        // It is killed, and the kernel rules again.
        drop(ruler);
        if nth % 50 == 0 {
            // Not captured: a thousand take hours.
            writeln!(stderr(), "killed {nth} times").unwrap();
        }
    }
    churn.assert_ends(|| kills);
}
