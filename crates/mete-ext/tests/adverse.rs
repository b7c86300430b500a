//! What other tasks do to a policy: they are many, of a higher class, or changed while they run. None of them starves,
//! and none gains by it.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::ruler::Ruler;
use common::{Group, HOG, computes, start, start_with, wait_for_hogs};
use mete_ext::{Ended, ExtError, PolicyScheduler};
use mete_policy::{CATALOG, by_name};

/// More than go ahead in five seconds, though each of them waits for so long.
const CROWD: usize = 500;

fn policy(name: &str) -> impl FnOnce() -> Result<PolicyScheduler, ExtError> {
    let entry = by_name(name).unwrap();
    move || PolicyScheduler::start(entry)
}

/// A hog with almost all of the first processor, and a crowd of threads with the rest.
fn crowd() -> (Group, Group) {
    let mut crowd = Group::top("mete-crowd", 10_000);
    let script = format!(
        "echo $$ >{}/cgroup.procs && exec taskset -c 0 {} {CROWD} 600",
        crowd.path.display(),
        env!("CARGO_BIN_EXE_mete-ext-crowd")
    );
    let mut program = Command::new("sh").arg("-c").arg(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(program.stdout.take().unwrap());
    crowd.members.push(program);
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    // Now that all are there.
    crowd.set_weight(1);
    (Group::top("mete-few", 10_000).hogs(1, Some(0)), crowd)
}

/// What each thread of a crowd has used, in nanoseconds; without the one that only waits for the others.
fn used_by_each(group: &Group) -> HashMap<u32, u64> {
    let threads = fs::read_to_string(group.path.join("cgroup.threads")).unwrap();
    let first = group.processes();
    let used = |thread: u32| {
        let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).ok()?;
        Some((thread, text.split(' ').next()?.parse().ok()?))
    };
    let threads = threads.lines().filter_map(|line| line.parse().ok());
    threads.filter(|thread| !first.contains(thread)).filter_map(used).collect()
}

/// All of a crowd run before the kernel would end the scheduler, which it does after thirty to forty-five seconds. The scheduler
/// says why it has ended, and how many tasks it has had go ahead.
fn assert_none_starves(did: impl Fn() -> (Option<Ended>, u64)) {
    let (few, crowd) = crowd();
    wait_for_hogs(&few);
    let before = used_by_each(&crowd);
    let used_before = [few.used(), crowd.used()];
    sleep(Duration::from_secs(25));
    let [few_used, crowd_used] = [few.used() - used_before[0], crowd.used() - used_before[1]];
    let after = used_by_each(&crowd);
    let starved = before.iter().filter(|(thread, used)| after.get(thread) == Some(used)).count();
    let (ended, hastened) = did();
    println!("{hastened} went ahead, {few_used} µs for few, {crowd_used} for many");
    // The kernel lets none wait for long, but what that takes is little.
    assert!(few_used > 4 * crowd_used, "{few_used} {crowd_used}");
    assert_eq!((before.len(), starved, ended), (CROWD, 0, None));
    assert!(hastened >= CROWD as u64, "{hastened} went ahead");
    // The others end sooner without it.
    drop(few);
}

#[test]
fn vtrr_7_none_of_many_starves_however_small_its_share_is() {
    let Some((scheduler, _alone)) = start("vtrr_7_none_of_many_starves_however_small_its_share_is") else {
        return;
    };
    assert_none_starves(|| {
        let status = scheduler.status();
        (status.ended, status.hastened)
    });
}

#[test]
fn new_1_none_of_many_starves_whatever_the_policy_decides() {
    let name = "new_1_none_of_many_starves_whatever_the_policy_decides";
    let Some((scheduler, _alone)) = start_with(name, policy("group-vtrr")) else { return };
    assert_none_starves(|| {
        let status = scheduler.status();
        (status.ended, status.hastened)
    });
}

/// A task that computes on the second processor, ahead of all ordinary ones, until this is dropped, or for a minute.
struct RealTime(Child);

impl RealTime {
    fn start() -> RealTime {
        // What ends it is not in real time itself.
        let mut command = Command::new("timeout");
        command.args(["60", "taskset", "-c", "1", "chrt", "-f", "1", HOG]);
        let task = RealTime(command.spawn().unwrap());
        let begin = Instant::now();
        while !task.computes() {
            assert!(begin.elapsed() < Duration::from_secs(60), "it does not start");
            sleep(Duration::from_millis(20));
        }
        task
    }

    /// Whether its last program runs: the loop, which has no child.
    fn computes(&self) -> bool {
        let children = format!("/proc/{0}/task/{0}/children", self.0.id());
        let children = fs::read_to_string(children).unwrap_or_default();
        children.split_whitespace().next().is_some_and(|child| computes(child.parse().unwrap()))
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        // It ends what it has started.
        let process = self.0.id().to_string();
        let _ = Command::new("kill").arg(process).status();
        let _ = self.0.wait();
    }
}

/// What each of two groups uses in two seconds in which a real-time task has the second processor.
fn used_beside_real_time(hogs: &[Group; 2]) -> [u64; 2] {
    let _real_time = RealTime::start();
    let before = hogs.each_ref().map(Group::used);
    sleep(Duration::from_secs(2));
    let after = hogs.each_ref().map(Group::used);
    [after[0] - before[0], after[1] - before[1]]
}

/// Without a policy that looks after it, one of them would have nothing but half a millisecond in five seconds.
fn both_have_a_fifth(used: &[u64; 2]) -> bool {
    used.iter().all(|one| one * 5 > used.iter().sum())
}

#[test]
fn new_1_what_is_decided_for_a_processor_in_real_time_runs_on_another_one() {
    let name = "new_1_what_is_decided_for_a_processor_in_real_time_runs_on_another_one";
    let Some((scheduler, _alone)) = start_with(name, policy("vtrr")) else { return };
    let hogs = ["mete-a", "mete-b"].map(|name| Group::top(name, 100).hogs(1, None));
    hogs.iter().for_each(wait_for_hogs);
    for entry in CATALOG {
        scheduler.set_policy(entry).unwrap();
        let used = used_beside_real_time(&hogs);
        println!("{}: {used:?}", entry.name);
        assert!(both_have_a_fifth(&used), "{}: {used:?}, {:?}", entry.name, scheduler.status());
    }
    assert_eq!(scheduler.status().ended, None);
}

/// Whether the kernel lets tasks of sched_ext run beside one in real time, for a twentieth of its processor; if not, the reason is printed.
/// By the name of what does so among all names of the kernel's types.
fn are_served_beside_real_time(test: &str) -> bool {
    let names = fs::read("/sys/kernel/btf/vmlinux").unwrap();
    let are_served = names.windows(12).any(|name| name == b"\0ext_server\0");
    if !are_served {
        println!("SKIPPED: {test}: Linux before 7 keeps no part of the processor for sched_ext");
    }
    are_served
}

/// A task that is bound to the processor that another one has in real time.
fn assert_served_beside_real_time(case: &str) {
    let bound = Group::top("mete-bound", 100).hogs(2, Some(1));
    wait_for_hogs(&bound);
    let _real_time = RealTime::start();
    let before = bound.used();
    sleep(Duration::from_secs(4));
    let used = bound.used() - before;
    println!("{case}: {used} µs of 4 s");
    // The twentieth would be 200 ms. Its first part comes after a second, and threads of the kernel run in it, too.
    assert!(used > 50_000, "{case}: {used} µs");
}

#[test]
fn vtrr_7_tasks_have_the_kernels_part_of_a_processor_in_real_time() {
    let name = "vtrr_7_tasks_have_the_kernels_part_of_a_processor_in_real_time";
    if !are_served_beside_real_time(name) {
        return;
    }
    let Some((scheduler, _alone)) = start(name) else { return };
    for _ in 0..3 {
        assert_served_beside_real_time("mete-ext");
    }
    assert_eq!(scheduler.status().ended, None);
}

#[test]
fn new_1_tasks_have_the_kernels_part_of_a_processor_in_real_time_by_every_policy() {
    let name = "new_1_tasks_have_the_kernels_part_of_a_processor_in_real_time_by_every_policy";
    if !are_served_beside_real_time(name) {
        return;
    }
    let Some((scheduler, _alone)) = start_with(name, policy("vtrr")) else { return };
    for entry in CATALOG {
        scheduler.set_policy(entry).unwrap();
        assert_served_beside_real_time(entry.name);
    }
    assert_eq!(scheduler.status().ended, None);
}

#[test]
fn new_1_a_task_gains_nothing_by_being_changed_while_it_runs() {
    let name = "new_1_a_task_gains_nothing_by_being_changed_while_it_runs";
    // A policy that prefers what wakes.
    let Some((scheduler, _alone)) = start_with(name, policy("credit")) else { return };
    let still = Group::top("mete-still", 100).hogs(1, Some(0));
    let changed = Group::top("mete-changed", 100).hogs(1, Some(0));
    [&still, &changed].into_iter().for_each(wait_for_hogs);
    let mut changer = Group::top("mete-changer", 100);
    let hogs = changed.processes().iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    // The kernel takes a task out of its queue and puts it back, whatever is changed.
    let script = format!(
        "echo $$ >{}/cgroup.procs && exec taskset -c 1 timeout 600 sh -c 'while :; do for hog in {hogs}; do chrt -b -p 0 $hog; chrt -o -p 0 $hog; done; done'",
        changer.path.display()
    );
    changer.members.push(Command::new("sh").arg("-c").arg(script).spawn().unwrap());
    sleep(Duration::from_secs(2));
    // Its turns are 30 ms, so stretches differ by some in a hundred; one that gains has more in each.
    let stretches = [(); 3].map(|()| {
        let (before, other) = (still.used(), changed.used());
        sleep(Duration::from_secs(10));
        (still.used() - before, changed.used() - other)
    });
    println!("{stretches:?}, {:?}", scheduler.status());
    assert!(
        stretches.iter().any(|used| used.1 * 100 <= used.0 * 110),
        "{stretches:?}, {:?}",
        scheduler.status()
    );
}

#[test]
fn new_1_a_policy_that_was_stopped_comes_back_on_an_idle_machine() {
    let name = "new_1_a_policy_that_was_stopped_comes_back_on_an_idle_machine";
    let Some((scheduler, _alone)) = start_with(name, policy("stride")) else { return };
    drop(scheduler);
    common::ruler::wait_until_disabled();
    let mut ruler = Ruler::start("stride");
    ruler.signal("-STOP");
    sleep(Duration::from_secs(2));
    ruler.signal("-CONT");
    // Nothing computes here, and no task waits behind another one for long.
    assert_eq!(ruler.set_policy("lottery"), "set\n");
    let rounds = ruler.status()["rounds"];
    sleep(Duration::from_secs(3));
    assert!(ruler.status()["rounds"] > rounds + 1, "{:?}", ruler.status());
}
