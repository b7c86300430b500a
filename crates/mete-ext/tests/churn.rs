//! The scheduler under churn: tasks come, go, move between groups, are stopped, frozen and changed, all at
//! random and under load. No task may be lost, and the kernel may find no fault.
//!
//! `METE_CHURN_SECONDS` says for how long (20 if it is not set), `METE_CHURN_SEED` what happens.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Group, start, wait_for_hogs};

/// A number that follows from the last one (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

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
            8 => self.tell_hog("renice -n 5 -p $1; chrt -b -p 0 $1; chrt -f -p 1 $1; chrt -o -p 0 $1"),
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

#[test]
fn vtrr_7_nothing_is_lost_where_all_comes_and_goes() {
    let name = "vtrr_7_nothing_is_lost_where_all_comes_and_goes";
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let Some((scheduler, _alone)) = start(name) else { return };
    let (seconds, seed) =
        (number("METE_CHURN_SECONDS").unwrap_or(20), number("METE_CHURN_SEED").unwrap_or(1));
    println!("METE_CHURN_SECONDS={seconds} METE_CHURN_SEED={seed}");
    let groups: Vec<_> =
        (0..4).map(|nth| Group::top(&format!("mete-churn-{nth}"), 100).hogs(2, None)).collect();
    groups.iter().for_each(wait_for_hogs);
    let mut churn = Churn { dice: Dice(seed), groups, programs: Vec::new(), begun: 0 };
    let (begin, mut steps) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs(seconds) && scheduler.status().ended.is_none() {
        churn.step();
        steps += 1;
    }
    if let Some(ended) = scheduler.status().ended {
        panic!("after {steps} steps: {}: {}\n{}", ended.reason, ended.message, ended.dump);
    }
    // Each program still gets its turn and ends.
    let begin = Instant::now();
    while !churn.programs.is_empty() && begin.elapsed() < Duration::from_secs(120) {
        churn.programs.retain_mut(|program| program.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{steps} steps, {} scripts of programs, {:?}", churn.begun, scheduler.status());
    assert_eq!(churn.programs.len(), 0, "{:?}", scheduler.status());
    assert_eq!((scheduler.status().ended, scheduler.status().found), (None, 0));
}
