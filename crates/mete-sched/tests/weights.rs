//! Weights of control groups are set and put back, however the scheduler ends (design decision D9).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Running, SUBJECT, eventually, skip};
use mete_kernel::{Limit, Weight};
use mete_sched::actuator::{Restored, Weights};
use mete_sched::domains::process::{Process, processes};
use tempfile::TempDir;

fn weight(number: u32) -> Weight {
    Weight::new(number).unwrap()
}

/// A control group of a test, which goes with the test.
struct Group(PathBuf);

impl Group {
    /// `None` where this user may make none, with the reason printed.
    fn new(name: &str) -> Option<Group> {
        let root = Path::new("/sys/fs/cgroup");
        if root.join("cgroup.controllers").exists() {
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
        }
        let roots = [root.join("cpu"), root.join("cpu,cpuacct"), root.to_owned()];
        let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists());
        let path = root.unwrap_or_default().join(format!("mete-test-{name}-{}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => Some(Group(path)),
            Err(error) => {
                skip(&format!("no control group can be made: {}: {error}", path.display()));
                None
            }
        }
    }

    fn file(&self) -> PathBuf {
        let files = ["cpu.weight", "cpu.shares"].map(|name| self.0.join(name));
        files.into_iter().find(|path| path.exists()).unwrap()
    }

    fn value(&self) -> u64 {
        fs::read_to_string(self.file()).unwrap().trim().parse().unwrap()
    }

    /// What a weight is in this version's unit.
    fn unit(&self, weight: u64) -> u64 {
        if self.file().ends_with("cpu.weight") { weight } else { weight * 1024 / 100 }
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn start() -> Weights {
    Weights::start_with(|| Command::new(SUBJECT)).unwrap()
}

/// A scheduler with its journals in a place of its own, which has given groups a weight.
fn weighing(place: &TempDir, weight: u32, groups: &[&str]) -> Running {
    let mut command = Command::new(SUBJECT);
    command.arg("weigh").arg(weight.to_string()).args(groups).env("METE_RUNTIME_DIR", place.path());
    let mut scheduler = Running::start(&mut command);
    assert_eq!(scheduler.hear(), "weighed");
    scheduler
}

#[test]
fn vtrr_7_weights_are_set_and_put_back_in_the_end() {
    let (Some(one), Some(other)) = (Group::new("one"), Group::new("other")) else { return };
    fs::write(other.file(), other.unit(250).to_string()).unwrap();
    let mut weights = start();
    weights.set(&one.0, weight(300)).unwrap();
    weights.set(&other.0, weight(1)).unwrap();
    assert_eq!([one.value(), other.value()], [one.unit(300), other.unit(1)]);
    weights.set(&other.0, weight(10_000)).unwrap();
    assert_eq!(other.value(), other.unit(10_000));
    assert_eq!(weights.finish(), Restored { restored: 2, ..Restored::default() });
    assert_eq!([one.value(), other.value()], [one.unit(100), other.unit(250)]);
}

/// `None`: there is none.
fn limit(group: &Group) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(group.0.join(name)).ok();
    let text = read("cpu.max").or_else(|| read("cpu.cfs_quota_us")).unwrap();
    text.split_whitespace().next().unwrap().parse().ok()
}

/// Of a tenth of a second, in microseconds.
#[test]
fn vtrr_7_limits_are_set_and_put_back_in_the_end_and_after_a_kill() {
    let (Some(free), Some(limited)) = (Group::new("free"), Group::new("limited")) else { return };
    let processors = |number: f64| Limit::of_processors(number).unwrap();
    let mut weights = start();
    weights.set_limit(&limited.0, processors(0.5)).unwrap();
    assert_eq!(weights.finish(), Restored { restored: 1, ..Restored::default() });
    assert_eq!(limit(&limited), None);
    // What its owner gave it comes back.
    let file = ["cpu.max", "cpu.cfs_quota_us"].map(|name| limited.0.join(name));
    fs::write(file.iter().find(|path| path.exists()).unwrap(), "70000").unwrap();
    let mut weights = start();
    weights.set_limit(&free.0, processors(1.5)).unwrap();
    weights.set_limit(&limited.0, processors(0.25)).unwrap();
    weights.set_limit(&limited.0, processors(0.2)).unwrap();
    assert_eq!([limit(&free), limit(&limited)], [Some(150_000), Some(20_000)]);
    assert_eq!(weights.finish(), Restored { restored: 2, ..Restored::default() });
    assert_eq!(
        [limit(&free), limit(&limited)],
        [None, Some(70_000)].map(|found| found.filter(|found| *found > 0))
    );
    let place = tempfile::tempdir().unwrap();
    let scheduler = weighing(&place, 300, &["limit=0.3", free.text()]);
    assert_eq!((limit(&free), free.value()), (Some(30_000), free.unit(300)));
    scheduler.kill();
    eventually("all is put back", || limit(&free).is_none() && free.value() == free.unit(100));
    // Less than the kernel's least.
    fs::write(limited.0.join("cpu.cfs_period_us"), "10000")
        .or_else(|_| fs::write(limited.0.join("cpu.max"), "70000 10000"))
        .unwrap();
    let error = start().set_limit(&limited.0, processors(0.01)).unwrap_err().to_string();
    assert!(error.contains("at least a millisecond of a period"), "{error}");
    assert_eq!(limit(&limited), Some(70_000));
}

/// A group's limit is at most that of the group above it, so they are put back in an order that depends on both.
#[test]
fn vtrr_7_limits_of_groups_in_each_other_are_put_back_whether_they_were_raised_or_lowered() {
    let Some(outer) = Group::new("outer") else { return };
    let _ = fs::write(outer.0.join("cgroup.subtree_control"), "+cpu");
    let inner = Group(outer.0.join("inner"));
    fs::create_dir(&inner.0).unwrap();
    let own = |group: &Group| {
        let files = ["cpu.max", "cpu.cfs_quota_us"].map(|name| group.0.join(name));
        fs::write(files.iter().find(|path| path.exists()).unwrap(), "80000").unwrap();
    };
    [&outer, &inner].into_iter().for_each(own);
    for (processors, order) in [(1.5, [&outer, &inner]), (0.5, [&inner, &outer])] {
        let mut weights = start();
        for group in order {
            weights.set_limit(&group.0, Limit::of_processors(processors).unwrap()).unwrap();
        }
        assert_eq!(weights.finish(), Restored { restored: 2, ..Restored::default() });
        assert_eq!([limit(&outer), limit(&inner)], [Some(80_000); 2]);
    }
    drop(inner);
}

#[test]
fn vtrr_7_what_another_program_has_changed_or_removed_meanwhile_is_left_alone() {
    let (Some(changed), Some(removed)) = (Group::new("changed"), Group::new("removed")) else { return };
    let mut weights = start();
    weights.set(&changed.0, weight(300)).unwrap();
    weights.set(&removed.0, weight(300)).unwrap();
    fs::write(changed.file(), changed.unit(700).to_string()).unwrap();
    // Another group of the same name is not the one that was changed.
    fs::remove_dir(&removed.0).unwrap();
    fs::create_dir(&removed.0).unwrap();
    fs::write(removed.file(), removed.unit(300).to_string()).unwrap();
    assert_eq!(weights.finish(), Restored { left_alone: 1, ended: 1, ..Restored::default() });
    assert_eq!([changed.value(), removed.value()], [changed.unit(700), removed.unit(300)]);
}

#[test]
fn vtrr_7_weights_are_put_back_after_a_kill() {
    let Some(group) = Group::new("killed") else { return };
    let place = tempfile::tempdir().unwrap();
    let scheduler = weighing(&place, 300, &[group.text()]);
    assert_eq!(group.value(), group.unit(300));
    scheduler.kill();
    eventually("the weight is put back", || group.value() == group.unit(100));
}

#[test]
fn vtrr_7_the_weight_of_a_group_that_was_named_by_a_relative_path_is_put_back_after_a_kill() {
    let Some(group) = Group::new("relative") else { return };
    let place = tempfile::tempdir().unwrap();
    let (above, name) = (group.0.parent().unwrap(), group.0.file_name().unwrap());
    let mut command = Command::new(SUBJECT);
    command.args(["weigh", "300"]).arg(name).current_dir(above).env("METE_RUNTIME_DIR", place.path());
    let mut scheduler = Running::start(&mut command);
    assert_eq!((scheduler.hear(), group.value()), ("weighed".to_owned(), group.unit(300)));
    scheduler.kill();
    eventually("the weight is put back", || group.value() == group.unit(100));
}

#[test]
fn vtrr_7_the_next_start_puts_weights_back_even_if_all_three_processes_were_stopped_or_killed() {
    let Some(group) = Group::new("left") else { return };
    let place = tempfile::tempdir().unwrap();
    let scheduler = weighing(&place, 300, &[group.text()]);
    let mark = format!("/{}-", scheduler.pid());
    let is_watcher = |process: &Process| {
        let arguments = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        arguments.windows(mark.len()).any(|part| part == mark.as_bytes())
    };
    let watchers: Vec<_> = processes().into_iter().filter_map(Process::read).filter(is_watcher).collect();
    assert!(watchers.len() >= 2);
    let signal = |signal| {
        for watcher in &watchers {
            // SAFETY: no memory is passed. The watchers live as long as they are stopped.
            unsafe { libc::kill(watcher.pid as i32, signal) };
        }
    };
    signal(libc::SIGSTOP);
    scheduler.kill();
    let stood = group.value();
    let mut recover = Command::new(SUBJECT);
    let said = recover.arg("recover").env("METE_RUNTIME_DIR", place.path()).output().unwrap();
    let value = group.value();
    signal(libc::SIGCONT);
    assert_eq!((stood, value), (group.unit(300), group.unit(100)), "{said:?}");
    assert!(String::from_utf8(said.stdout).unwrap().contains("weights: Restored { restored: 1"));
}

#[test]
fn vtrr_7_a_group_that_another_scheduler_weighs_is_refused_until_that_one_has_ended() {
    let (Some(shared), Some(own)) = (Group::new("shared"), Group::new("not-shared")) else { return };
    let place = tempfile::tempdir().unwrap();
    let first = weighing(&place, 300, &[shared.text()]);
    let mut second = Command::new(SUBJECT);
    second.args(["weigh", "200", own.text(), shared.text()]).env("METE_RUNTIME_DIR", place.path());
    let refused = second.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains(&format!("process {}", first.pid())), "{said}");
    // What it had changed before is put back, and the other's is as it was.
    assert_eq!([own.value(), shared.value()], [own.unit(100), shared.unit(300)]);
    first.kill();
    let third = weighing(&place, 200, &[shared.text()]);
    assert_eq!(shared.value(), shared.unit(200));
    drop(third);
    eventually("the weight is put back", || shared.value() == shared.unit(100));
}

#[test]
fn vtrr_7_the_weight_of_a_group_that_was_renamed_meanwhile_is_put_back() {
    let Some(mut group) = Group::new("before") else { return };
    let inner = Group(group.0.join("inner"));
    fs::create_dir(&inner.0).unwrap();
    if group.file().ends_with("cpu.weight") {
        return skip("control groups of version 2 cannot be renamed");
    }
    let mut weights = start();
    weights.set(&group.0, weight(300)).unwrap();
    weights.set(&inner.0, weight(300)).unwrap();
    let after = group.0.with_file_name(format!("mete-test-after-{}", std::process::id()));
    fs::rename(&group.0, &after).unwrap();
    group.0 = after;
    let inner = Group(group.0.join("inner"));
    assert_eq!(weights.finish(), Restored { restored: 2, ..Restored::default() });
    assert_eq!([group.value(), inner.value()], [1024, 1024]);
}

#[test]
fn vtrr_7_an_idle_group_is_refused_and_the_user_is_told_what_to_do() {
    let Some(group) = Group::new("idle") else { return };
    if fs::write(group.0.join("cpu.idle"), "1").is_err() {
        return skip("this kernel has no idle control groups");
    }
    let said = start().set(&group.0, weight(300)).unwrap_err().to_string();
    assert!(said.contains("write 0 into its cpu.idle first"), "{said}");
}

#[test]
fn vtrr_7_what_can_have_no_weight_is_refused_and_nothing_changes() {
    let Some(group) = Group::new("refused") else { return };
    let mut weights = start();
    let root = group.0.parent().unwrap();
    for (path, why) in [
        (root, "competes with no other"),
        (Path::new("/proc"), "no control group"),
        (Path::new("/no/such"), "no control group"),
    ] {
        let said = weights.set(path, weight(300)).unwrap_err().to_string();
        assert!(said.contains(path.to_str().unwrap()) && said.contains(why), "{said}");
    }
    assert_eq!(weights.finish(), Restored::default());
}
