//! A policy outside the kernel rules a real kernel: what it decides is carried out, and what it does not
//! decide harms no task.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use std::fs;
use std::hint::spin_loop;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::ruler::{Ruler, wait_until_disabled};
use common::{
    Group, assert_shares, assert_weights_from_before, lateness_in, lateness_of, sleeper_in, start_with,
    wait_for_hogs, waits_of_requests,
};
use mete_ext::{PolicyScheduler, PolicyStatus, Weight};
use mete_policy::{
    CATALOG, ClientId, Decision, DomainIndex, Entry, Nanoseconds, Observation, Policy, ProcessorId, Setup,
    Share, Stop, by_name, each_policy_call,
};

fn policy(name: &str) -> impl FnOnce() -> Result<PolicyScheduler, mete_ext::ExtError> {
    let entry = by_name(name).unwrap();
    move || PolicyScheduler::start(entry)
}

/// Whether the policy has decided on almost all tasks that ran. Of two emulated processors, the one on which it decides may stand still for some
/// ticks while the other one goes on, which then takes tasks by turn; up to three in a hundred were seen.
fn decides_all(status: &PolicyStatus) -> bool {
    status.ended.is_none() && status.decided > 100 && status.undecided * 20 <= status.decided
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
    let refused = policy("stride")().err().map(|error| error.to_string());
    assert!(refused.as_deref().unwrap().contains("another mete schedule"), "{refused:?}");
    scheduler.set_weight(&many.path, Weight::new(600)).unwrap();
    // The group comes into the queue anew, and has its first turns when a cycle is over.
    sleep(Duration::from_secs(4));
    assert_shares(&[&one, &many], &[250, 750], 5, || scheduler.status());
}

#[test]
fn new_1_cgroups_have_their_weights_from_before_the_scheduler_began() {
    let name = "new_1_cgroups_have_their_weights_from_before_the_scheduler_began";
    assert_weights_from_before(name, policy("group-vtrr"), |scheduler| scheduler.status().ended);
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
    let name = "new_1_every_policy_of_the_catalogue_rules_a_real_machine";
    let Some((scheduler, _alone)) = start_with(name, policy("rr")) else { return };
    let hogs = Group::top("mete-hogs", 100).hogs(3, None);
    wait_for_hogs(&hogs);
    for entry in CATALOG {
        let before = scheduler.status().decided;
        // The scheduler is loaded once: the kernel's verifier takes longer than the rest of this test.
        scheduler.set_policy(entry).unwrap();
        let script = "for n in 1 2 3 4; do cat /proc/version | grep -c Linux; done";
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        let status = scheduler.status();
        println!("{}: {status:?}", entry.name);
        assert_eq!(output.stdout, "1\n".repeat(4).into_bytes(), "{}: {status:?}", entry.name);
        assert_eq!((status.policy, &status.failure, &status.ended), (entry.name, &None, &None), "{status:?}");
        assert!(status.decided > before + 20, "{}: {status:?}", entry.name);
    }
}

#[test]
fn new_1_who_goes_ahead_runs_before_the_policy_is_asked_and_shares_hold() {
    let name = "new_1_who_goes_ahead_runs_before_the_policy_is_asked_and_shares_hold";
    let Some((scheduler, _alone)) = start_with(name, policy("distributed-vtrr")) else { return };
    let served = Group::top("mete-served", 100).hogs(3, Some(0));
    let beside = Group::top("mete-beside", 100).hogs(1, Some(0));
    [&served, &beside].into_iter().for_each(wait_for_hogs);
    let went_ahead = |rounds| {
        let before = scheduler.status().went_ahead;
        lateness_in(&served, rounds);
        scheduler.status().went_ahead - before
    };
    // It is taken for one that runs briefly after some five rounds.
    let often = went_ahead(600);
    assert!(often >= 400, "{often} times, {:?}", scheduler.status());
    let sleeper = sleeper_in(&served, "1000");
    assert_shares(&[&served, &beside], &[500, 500], 10, || scheduler.status());
    lateness_of(sleeper);
    assert!(decides_all(&scheduler.status()), "{:?}", scheduler.status());
    // Another policy does not say so, and what the one before has said is forgotten.
    scheduler.set_policy(by_name("stride").unwrap()).unwrap();
    assert_eq!(went_ahead(100), 0, "{:?}", scheduler.status());
}

#[test]
fn tavs_5_a_server_goes_ahead_when_packets_wake_it_though_it_computes_for_long_when_a_timer_does() {
    let name =
        "tavs_5_a_server_goes_ahead_when_packets_wake_it_though_it_computes_for_long_when_a_timer_does";
    let Some((scheduler, _alone)) = start_with(name, policy("distributed-vtrr")) else { return };
    let before = scheduler.status().went_ahead;
    let [median, most, requests] = waits_of_requests("");
    let status = scheduler.status();
    let ahead = status.went_ahead - before;
    println!(
        "{requests} requests to a server that computes for long, too: {median} us, {most} us, ahead {ahead} times"
    );
    assert!(requests > 300, "{requests}, {status:?}");
    assert!(median < 500 && most < 1500, "{median} us, {most} us, {status:?}");
    assert!(ahead > requests, "{ahead}, {status:?}");
}

#[test]
fn new_1_who_was_decided_upon_once_goes_ahead_again() {
    let name = "new_1_who_was_decided_upon_once_goes_ahead_again";
    let Some((scheduler, _alone)) = start_with(name, policy("distributed-vtrr")) else { return };
    let beside = Group::top("mete-beside", 100).hogs(1, Some(0));
    wait_for_hogs(&beside);
    let served = Group::top("mete-served", 100);
    let rounds = 1000;
    let before = scheduler.status();
    lateness_in(&served, rounds);
    let after = scheduler.status();
    let often = after.went_ahead - before.went_ahead;
    println!("{often} of {rounds}");
    // Now and then it wakes in the moment in which the policy decides about another one, and is decided upon as well; more often where an
    // emulated processor stands still meanwhile.
    assert!(often >= u64::from(rounds) * 3 / 4, "{often} of {rounds}, {after:?}");
}

#[test]
fn new_1_policies_without_groups_heed_the_weights_of_all_groups_around_a_task() {
    let name = "new_1_policies_without_groups_heed_the_weights_of_all_groups_around_a_task";
    let Some((scheduler, _alone)) = start_with(name, policy("stride")) else { return };
    let beside = Group::top("mete-beside", 100).hogs(1, Some(0));
    let outer = Group::top("mete-outer", 300);
    fs::write(outer.path.join("cgroup.subtree_control"), "+cpu").unwrap();
    let inner = Group::new(&outer.path, "mete-inner", 100).hogs(1, Some(0));
    [&beside, &inner].into_iter().for_each(wait_for_hogs);
    assert_shares(&[&beside, &inner], &[250, 750], 10, || scheduler.status());
    outer.set_weight(100);
    assert_shares(&[&beside, &inner], &[500, 500], 10, || scheduler.status());
}

/// How often the kernel has begun to have a scheduler rule.
fn beginnings() -> u64 {
    fs::read_to_string("/sys/kernel/sched_ext/enable_seq").unwrap().trim().parse().unwrap()
}

#[test]
fn new_1_another_policy_takes_over_without_a_moment_under_the_kernels_own() {
    let Some((scheduler, _alone)) = start_with(
        "new_1_another_policy_takes_over_without_a_moment_under_the_kernels_own",
        policy("group-vtrr"),
    ) else {
        return;
    };
    let one = Group::top("mete-one", 200).hogs(1, Some(0));
    let many = Group::top("mete-many", 100).hogs(5, Some(0));
    [&one, &many].into_iter().for_each(wait_for_hogs);
    let begun = beginnings();
    for entry in CATALOG {
        scheduler.set_policy(entry).unwrap();
        let before = scheduler.status();
        assert_eq!((before.policy, &before.ended), (entry.name, &None));
        sleep(Duration::from_millis(400));
        let after = scheduler.status();
        let [decided, undecided] = [after.decided - before.decided, after.undecided - before.undecided];
        println!("{}: {decided} decided, {undecided} not", entry.name);
        assert!(after.decided - before.decided >= 2, "{}: {before:?}, {after:?}", entry.name);
        assert_eq!(after.failure, None);
    }
    scheduler.set_policy(by_name("group-vtrr").unwrap()).unwrap();
    assert_shares(&[&one, &many], &[666, 333], 5, || scheduler.status());
    assert!(decides_all(&scheduler.status()), "{:?}", scheduler.status());
    // So does the same policy with another quantum.
    let decided = || {
        let before = scheduler.status().decided;
        sleep(Duration::from_secs(3));
        scheduler.status().decided - before
    };
    let short = decided();
    scheduler.set_quantum(Nanoseconds::from_millis(16)).unwrap();
    let long = decided();
    assert!(long * 2 < short, "{short} decisions by a quantum of 4 ms, {long} by 16 ms");
    assert!(scheduler.set_quantum(Nanoseconds::ZERO).is_err());
    assert_eq!(beginnings(), begun, "the same scheduler all the time");
}

/// A policy that fails at its 5,000th call.
struct Breaks {
    inner: Box<dyn Policy + Send>,
    calls: u32,
    how: How,
}

/// How it fails.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Panics,
    Computes,
    Sleeps,
}

/// A policy that hangs does so as long as this is set.
static HANGS: AtomicBool = AtomicBool::new(false);

impl Breaks {
    fn count(&mut self) {
        self.calls += 1;
        if self.calls >= 5000 {
            assert!(self.how != How::Panics, "broken on purpose");
            while HANGS.load(Ordering::Relaxed) {
                if self.how == How::Sleeps {
                    sleep(Duration::from_millis(10));
                }
                spin_loop();
            }
        }
    }
}

macro_rules! passes_on {
    ($($variant:ident $call:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        impl Policy for Breaks {
            fn name(&self) -> &'static str {
                "breaks"
            }

            $(fn $call(&mut self, $($argument: $kind),*) -> $answer {
                self.count();
                self.inner.$call($($argument),*)
            })*
        }
    };
}

each_policy_call!(passes_on);

/// It fails after this number of calls.
fn breaks(setup: &Setup, calls: u32, how: How) -> Box<dyn Policy + Send> {
    Box::new(Breaks { inner: (by_name("stride").unwrap().make)(setup), calls: 5000 - calls, how })
}

const fn breaking(name: &'static str, make: fn(&Setup) -> Box<dyn Policy + Send>) -> Entry {
    Entry { name, about: "a policy that fails", has_turns_by_share: false, has_domains: false, make }
}

const BREAKS: Entry = breaking("breaks", |setup| breaks(setup, 5000, How::Panics));
const BREAKS_AT_ONCE: Entry = breaking("breaks", |setup| breaks(setup, 1, How::Panics));
const COMPUTES: Entry = breaking("computes", |setup| breaks(setup, 5000, How::Computes));
const SLEEPS: Entry = breaking("sleeps", |setup| breaks(setup, 5000, How::Sleeps));

#[test]
fn new_1_a_policy_that_panics_is_replaced_by_the_one_before() {
    let name = "new_1_a_policy_that_panics_is_replaced_by_the_one_before";
    let Some((scheduler, alone)) = start_with(name, policy("group-vtrr")) else { return };
    let one = Group::top("mete-one", 200).hogs(1, Some(0));
    let many = Group::top("mete-many", 100).hogs(5, Some(0));
    [&one, &many].into_iter().for_each(wait_for_hogs);
    let begun = beginnings();
    for entry in [&BREAKS, &BREAKS_AT_ONCE] {
        scheduler.set_policy(entry).unwrap();
        let begin = Instant::now();
        while scheduler.status().failure.is_none() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", scheduler.status());
            sleep(Duration::from_millis(20));
        }
        let status = scheduler.status();
        let failure = status.failure.clone().unwrap();
        assert_eq!((failure.policy, failure.message.as_str()), ("breaks", "broken on purpose"));
        assert_eq!((status.policy, &status.ended), ("group-vtrr", &None));
        assert_shares(&[&one, &many], &[666, 333], 5, || scheduler.status());
        // The failure is told until another policy is set.
        scheduler.set_policy(by_name("group-vtrr").unwrap()).unwrap();
        assert_eq!(scheduler.status().failure, None);
    }
    assert_eq!(beginnings(), begun, "the same scheduler all the time");
    drop((scheduler, alone));
    // Where none was before, the kernel's side has tasks run in turn, and says so.
    let (scheduler, _alone) = start_with(name, || PolicyScheduler::start(&BREAKS)).unwrap();
    let begin = Instant::now();
    while scheduler.status().ended.is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", scheduler.status());
        sleep(Duration::from_millis(20));
    }
    let said = scheduler.status().ended.unwrap();
    assert!(said.message.contains("broken on purpose"), "{said:?}");
    let before = one.used() + many.used();
    sleep(Duration::from_secs(1));
    assert!(one.used() + many.used() > before + 500_000, "{:?}", scheduler.status());
    drop(scheduler);
    wait_until_disabled();
}

/// Looks after a scheduler until this is so.
fn look_until(scheduler: &PolicyScheduler, is_so: impl Fn(&PolicyStatus) -> bool) -> PolicyStatus {
    let begin = Instant::now();
    loop {
        scheduler.look().unwrap();
        let status = scheduler.status();
        if is_so(&status) {
            return status;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{status:?}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn new_1_a_policy_that_hangs_is_replaced_by_the_one_before() {
    let name = "new_1_a_policy_that_hangs_is_replaced_by_the_one_before";
    let Some((scheduler, alone)) = start_with(name, policy("group-vtrr")) else { return };
    let one = Group::top("mete-one", 200).hogs(1, Some(0));
    let many = Group::top("mete-many", 100).hogs(5, Some(0));
    [&one, &many].into_iter().for_each(wait_for_hogs);
    let begun = beginnings();
    for (entry, does) in [(&COMPUTES, "computed"), (&SLEEPS, "slept")] {
        HANGS.store(true, Ordering::Relaxed);
        scheduler.set_policy(entry).unwrap();
        let status = look_until(&scheduler, |status| status.failure.is_some());
        let failure = status.failure.clone().unwrap();
        assert_eq!((failure.policy, status.policy), (entry.name, "group-vtrr"));
        assert!(failure.message.contains(does), "{failure}");
        // Tasks ran in turn until then.
        assert!(status.undecided > 100 && status.ended.is_none(), "{status:?}");
        // The thread that hangs is a client with a small weight now, in the group of this test.
        let decided = status.decided;
        look_until(&scheduler, |status| status.decided > decided + 100);
        HANGS.store(false, Ordering::Relaxed);
        assert_shares(&[&one, &many], &[666, 333], 5, || scheduler.status());
        scheduler.set_policy(by_name("group-vtrr").unwrap()).unwrap();
    }
    // Another one takes over from one that hangs and was not found to do so yet.
    HANGS.store(true, Ordering::Relaxed);
    scheduler.set_policy(&COMPUTES).unwrap();
    let before = scheduler.status().undecided;
    let begin = Instant::now();
    while scheduler.status().undecided == before {
        assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", scheduler.status());
        sleep(Duration::from_millis(20));
    }
    scheduler.set_policy(by_name("stride").unwrap()).unwrap();
    assert_eq!(scheduler.status().policy, "stride");
    assert_eq!(beginnings(), begun, "the same scheduler all the time");
    HANGS.store(false, Ordering::Relaxed);
    drop((scheduler, alone));
    wait_until_disabled();
    // Where none was before, tasks run in turn, until the owner ends it.
    HANGS.store(true, Ordering::Relaxed);
    let (scheduler, _alone) = start_with(name, || PolicyScheduler::start(&COMPUTES)).unwrap();
    let status = look_until(&scheduler, |status| status.ended.is_some());
    let words = status.ended.as_ref().unwrap().message.clone();
    assert!(words.contains("computes has failed: it has computed"), "{status:?}");
    let refused = scheduler.set_policy(by_name("stride").unwrap()).unwrap_err().to_string();
    assert!(refused.contains("the scheduler has ended"), "{refused}");
    let before = one.used() + many.used();
    sleep(Duration::from_secs(1));
    assert!(one.used() + many.used() > before + 500_000, "{:?}", scheduler.status());
    drop(scheduler);
    wait_until_disabled();
    HANGS.store(false, Ordering::Relaxed);
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
    // Some 10 s: each round sleeps for 5 ms and waits for three tasks at most.
    let (median, most) = lateness_in(&group, 1000);
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
