//! Every change of the affinity actuator is put back, however the scheduler ends (LOG-16, design decision
//! D9).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Random, Running, SUBJECT, children, eventually, skip};
use mete_keeper::{Keepers, Role};
use mete_log::DomainId;
use mete_sched::actuator::affinity::ENFORCES;
use mete_sched::actuator::{ActuatorError, Affinity, Mask, Restored, watcher};
use mete_sched::domains::process::{self, Process};

const DOMAIN: DomainId = DomainId::new(2);

/// Two processors that this test may use. If there are none, prints why.
fn two_processors() -> Option<(usize, usize, Mask)> {
    let own = Mask::of_thread(std::process::id()).unwrap();
    let mut processors = own.processors();
    match (processors.next(), processors.next()) {
        (Some(first), Some(second)) => Some((first, second, own)),
        _ => {
            skip("placement needs two processors");
            None
        }
    }
}

fn start() -> Affinity {
    Affinity::start_with(|| Command::new(SUBJECT)).unwrap()
}

fn masks(pid: u32) -> Vec<Mask> {
    process::threads(pid).into_iter().filter_map(|thread| Mask::of_thread(thread).ok()).collect()
}

fn all_have(pid: u32, mask: Mask) -> bool {
    let masks = masks(pid);
    !masks.is_empty() && masks.iter().all(|found| *found == mask)
}

fn single(processor: usize) -> Mask {
    Mask::single(processor).unwrap()
}

fn watcher_of(scheduler: u32) -> Option<Process> {
    children(scheduler).into_iter().find(|child| child.comm == "mete-restore")
}

#[test]
fn log_16_placed_threads_run_on_one_processor_and_are_put_back_in_the_end() {
    let Some((first, second, own)) = two_processors() else { return };
    let mut client = Running::waiting();
    client.tell("more");
    client.hear();
    let mut affinity = start();
    assert_eq!(affinity.place(DOMAIN, &[client.pid()], second).unwrap(), 2);
    assert!(all_have(client.pid(), single(second)));
    assert_eq!(affinity.place(DOMAIN, &[client.pid()], second).unwrap(), 0, "they are there already");
    assert_eq!(affinity.place(DOMAIN, &[client.pid()], first).unwrap(), 2);
    assert!(all_have(client.pid(), single(first)));
    let restored = affinity.finish();
    assert_eq!(restored, Restored { restored: 2, ..Restored::default() });
    assert!(all_have(client.pid(), own));
}

#[test]
fn log_16_masks_of_a_process_whose_name_is_no_text_are_put_back() {
    let Some((first, _, own)) = two_processors() else { return };
    // The kernel cuts the name within its eighth letter.
    let client = common::waiting_as("сериализатор");
    assert!(Process::read(client.pid()).unwrap().comm.to_str().is_none());
    let mut affinity = start();
    affinity.place(DOMAIN, &[client.pid()], first).unwrap();
    assert!(all_have(client.pid(), single(first)));
    assert_eq!(affinity.finish(), Restored { restored: 1, ..Restored::default() });
    assert!(all_have(client.pid(), own));
}

#[test]
fn log_16_a_process_that_leaves_its_domain_goes_free_at_once() {
    let Some((first, _, own)) = two_processors() else { return };
    let (leaves, stays) = (Running::waiting(), Running::waiting());
    let mut affinity = start();
    affinity.place(DOMAIN, &[leaves.pid(), stays.pid()], first).unwrap();
    affinity.release(leaves.pid());
    assert!(all_have(leaves.pid(), own) && all_have(stays.pid(), single(first)));
    affinity.place(DOMAIN, &[leaves.pid()], first).unwrap();
    assert_eq!(affinity.finish(), Restored { restored: 2, ..Restored::default() });
    assert!(all_have(leaves.pid(), own) && all_have(stays.pid(), own));
}

#[test]
fn log_16_threads_and_processes_that_are_born_under_a_changed_mask_are_put_back_too() {
    let Some((first, second, own)) = two_processors() else { return };
    let mut client = Running::waiting();
    let mut affinity = start();
    affinity.place(DOMAIN, &[client.pid()], first).unwrap();
    client.tell("more");
    client.hear();
    let child = children(client.pid())[0].pid;
    assert!(all_have(child, single(first)) && all_have(client.pid(), single(first)), "they have inherited");
    // The child is moved as well, and must still get the mask that its parent had at the beginning.
    affinity.place(DOMAIN, &[client.pid(), child], second).unwrap();
    client.tell("more");
    client.hear();
    let restored = affinity.finish();
    assert_eq!(
        (restored.restored, restored.failed, restored.left_alone),
        (5, 0, 0),
        "three threads, two children"
    );
    for pid in children(client.pid()).iter().map(|child| child.pid).chain([client.pid()]) {
        assert!(all_have(pid, own), "{:?}", masks(pid));
    }
}

#[test]
fn log_16_a_mask_that_another_program_changes_meanwhile_is_left_alone() {
    let Some((first, second, _)) = two_processors() else { return };
    let client = Running::waiting();
    let mut affinity = start();
    affinity.place(DOMAIN, &[client.pid()], first).unwrap();
    single(second).give_to(client.pid()).unwrap();
    assert_eq!(affinity.finish(), Restored { left_alone: 1, ..Restored::default() });
    assert!(all_have(client.pid(), single(second)));
}

#[test]
fn log_16_the_next_start_puts_masks_back_even_if_the_watchers_of_a_killed_scheduler_are_stopped() {
    let Some((first, _, own)) = two_processors() else { return };
    let client = Running::waiting();
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(SUBJECT);
    command
        .args(["pin", &first.to_string(), &client.pid().to_string()])
        .env("METE_RUNTIME_DIR", place.path());
    let mut scheduler = Running::start(&mut command);
    assert_eq!(scheduler.hear(), "placed 1");
    let mark = format!("/{}-", scheduler.pid());
    let is_watcher = |process: &Process| {
        let arguments = std::fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        arguments.windows(mark.len()).any(|part| part == mark.as_bytes())
    };
    let watchers: Vec<_> =
        process::processes().into_iter().filter_map(Process::read).filter(is_watcher).collect();
    assert!(watchers.len() >= 2);
    let signal = |signal| {
        for watcher in &watchers {
            // SAFETY: no memory is passed. The watchers live as long as they are stopped.
            unsafe { libc::kill(watcher.pid as i32, signal) };
        }
    };
    signal(libc::SIGSTOP);
    scheduler.kill();
    let mut recover = Command::new(SUBJECT);
    let said = recover.arg("recover").env("METE_RUNTIME_DIR", place.path()).output().unwrap();
    let is_restored = all_have(client.pid(), own);
    signal(libc::SIGCONT);
    assert!(is_restored, "{said:?}");
}

#[test]
fn log_16_masks_are_put_back_even_if_the_scheduler_has_no_descriptor_left_to_look_at_threads() {
    let Some((first, _, own)) = two_processors() else { return };
    let client = Running::waiting();
    let mut scheduler = Running::subject(&["pin", &first.to_string(), &client.pid().to_string()]);
    assert_eq!(scheduler.hear(), "placed 1");
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let pid = rustix::process::Pid::from_raw(scheduler.pid() as i32);
    rustix::process::prlimit(pid, rustix::process::Resource::Nofile, none).unwrap();
    let said = scheduler.end();
    assert!(said.contains("ended: 0,") && !said.contains("left: 0 "), "{said}");
    eventually("its watchers have put it back", || all_have(client.pid(), own));
}

#[test]
fn log_16_what_is_enforced_names_the_mask_that_stays_behind() {
    assert!(ENFORCES.contains("a mask of the thread's own") && ENFORCES.contains("widened later"));
}

#[test]
fn log_16_a_thread_is_not_moved_where_its_owner_does_not_let_it_run() {
    let Some((first, second, own)) = two_processors() else { return };
    let (mut client, free) = (Running::waiting(), Running::waiting());
    client.tell("more");
    client.hear();
    let pinned = process::threads(client.pid()).into_iter().find(|&thread| thread != client.pid()).unwrap();
    single(first).give_to(pinned).unwrap();
    let mut affinity = start();
    let error = affinity.place(DOMAIN, &[free.pid(), client.pid()], second).unwrap_err();
    assert!(matches!(error, ActuatorError::Forbidden { thread, .. } if thread == pinned), "{error}");
    assert!(error.to_string().contains(&format!("its own mask is {first}")), "{error}");
    assert_eq!(Mask::of_thread(client.pid()), Ok(own), "nothing has changed");
    assert!(all_have(free.pid(), own));
}

#[test]
fn log_16_kernel_threads_and_processors_that_do_not_exist_are_refused() {
    let client = Running::waiting();
    let mut affinity = start();
    let error = affinity.place(DOMAIN, &[client.pid()], Mask::PROCESSORS).unwrap_err();
    assert!(matches!(error, ActuatorError::NoProcessor { .. }), "{error}");
    let error = affinity.place(DOMAIN, &[client.pid()], Mask::PROCESSORS - 1).unwrap_err();
    assert!(matches!(error, ActuatorError::Forbidden { .. }), "{error}");
    if Process::read(2).is_some_and(|process| process.is_kernel) {
        let error = affinity.place(DOMAIN, &[2], 0).unwrap_err();
        assert!(matches!(error, ActuatorError::Kernel { .. }), "{error}");
    } else {
        skip("no kernel threads are to be seen from here");
    }
}

#[test]
fn log_16_a_program_that_does_not_watch_is_no_watcher() {
    let error = Affinity::start_with(|| Command::new("true")).unwrap_err();
    assert!(matches!(error, ActuatorError::NoWatcher { .. }), "{error}");
    let error = Affinity::start_with(|| Command::new("/no/such/program")).unwrap_err();
    assert!(matches!(error, ActuatorError::NoWatcher { .. }), "{error}");
}

#[test]
fn log_16_processes_that_have_ended_are_no_error() {
    let client = Running::waiting();
    let pid = client.pid();
    let mut affinity = start();
    assert!(affinity.place(DOMAIN, &[pid], 0).is_ok());
    client.kill();
    assert_eq!(affinity.place(DOMAIN, &[pid], 0).unwrap(), 0);
    assert_eq!(affinity.finish().failed, 0);
}

#[test]
fn log_16_a_watcher_that_ends_is_replaced_at_once_and_the_new_one_knows_everything() {
    let Some((first, second, own)) = two_processors() else { return };
    let client = Running::waiting();
    let mut scheduler = Running::subject(&["pin", &first.to_string(), &client.pid().to_string()]);
    assert_eq!(scheduler.hear(), "placed 1");
    for _ in 0..3 {
        let before = watchers(&scheduler);
        before.iter().for_each(|watcher| kill(watcher.pid));
        eventually("they end", || before.iter().all(has_ended));
        eventually("two others are there", || watchers(&scheduler).len() == 2);
    }
    scheduler.tell(&second.to_string());
    assert_eq!(scheduler.hear(), "placed 1", "it goes on");
    let watchers = watchers(&scheduler);
    scheduler.kill();
    eventually("the mask is put back", || all_have(client.pid(), own));
    eventually("the watchers end", || watchers.iter().all(has_ended));
}

#[test]
fn log_16_no_polite_signal_ends_a_watcher() {
    let Some((first, ..)) = two_processors() else { return };
    let client = Running::waiting();
    let mut scheduler = Running::subject(&["pin", &first.to_string(), &client.pid().to_string()]);
    assert_eq!(scheduler.hear(), "placed 1");
    let watchers = watchers(&scheduler);
    assert_eq!(watchers.len(), 2);
    for watcher in watchers {
        let status = std::fs::read_to_string(format!("/proc/{}/status", watcher.pid)).unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
        let ignored = u64::from_str_radix(ignored, 16).unwrap();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            assert_eq!(ignored >> (signal - 1) & 1, 1, "{signal}: {ignored:x}");
        }
    }
}

#[test]
fn log_16_if_no_watcher_can_be_started_a_wait_fails_at_once_and_a_later_watcher_is_found() {
    static ROLE: Role = Role { argument: watcher::ARGUMENT, names: [c"mete-restore", c"mete-restore-2"] };
    let (is_there, file) = (Arc::new(AtomicBool::new(true)), memory_file());
    let program = {
        let is_there = Arc::clone(&is_there);
        move || Command::new(if is_there.load(Ordering::Relaxed) { SUBJECT } else { "/no/such/program" })
    };
    let mark = format!("mete-test-{}", std::process::id());
    let keepers =
        Keepers::start(&ROLE, program, vec![file], vec![String::new().into(), mark.into()]).unwrap();
    let all = || watchers_with(&format!("mete-test-{}", std::process::id()));
    assert_eq!(all().len(), 3, "two watchers, and the parent of the second one");
    is_there.store(false, Ordering::Relaxed);
    let end_all = || all().into_iter().for_each(kill);
    // A day: the wait must fail by its own, and long before that.
    let day = Duration::from_secs(24 * 60 * 60);
    let mut refused = None;
    eventually("there is none", || {
        end_all();
        refused = keepers.wait_for_one(day).err();
        refused.is_some()
    });
    assert_eq!(refused.unwrap().kind(), std::io::ErrorKind::Other);
    is_there.store(true, Ordering::Relaxed);
    eventually("they are there again", || keepers.wait_for_one(day).is_ok());
    eventually("both are", || all().len() == 3);
}

/// An empty file, which says that there is nothing to undo.
fn memory_file() -> OwnedFd {
    rustix::fs::memfd_create("mete-test", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
}

/// Processes with this word among their arguments.
fn watchers_with(word: &str) -> Vec<u32> {
    let has_word = |pid: &u32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes())
    };
    process::processes().into_iter().filter(has_word).collect()
}

/// Both watchers of a scheduler. The second one is a child of neither the scheduler nor the test, but it has
/// the journal open, as the scheduler has.
fn watchers(scheduler: &Running) -> Vec<Process> {
    let Some(journal) = journal(scheduler.pid()) else { return Vec::new() };
    let all = process::processes().into_iter().filter_map(Process::read);
    let of_it = all.filter(|process| process.comm.as_bytes().starts_with(b"mete-restore"));
    of_it.filter(|process| open_files(process.pid).contains(&journal)).collect()
}

/// The device and the inode number of a scheduler's journal, which is named after the scheduler.
fn journal(scheduler: u32) -> Option<(u64, u64)> {
    let start = Process::read(scheduler)?.start;
    let path = mete_probe::directory::own().join(format!("{scheduler}-{start}.masks"));
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

fn open_files(pid: u32) -> Vec<(u64, u64)> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files
        .filter_map(|file| std::fs::metadata(file.path()).ok())
        .map(|found| (found.dev(), found.ino()))
        .collect()
}

fn kill(pid: u32) {
    // SAFETY: no memory is passed. The number was read a moment ago from a process that waits for input.
    unsafe { libc::kill(pid as i32, libc::SIGKILL) };
}

fn has_ended(process: &Process) -> bool {
    Process::read(process.pid).is_none_or(|found| found.start != process.start)
}

/// The session of a process. It is 0 for a first process that never made one, so it is no
/// `rustix::process::Pid`.
fn session(pid: u32) -> libc::pid_t {
    // SAFETY: no memory is passed.
    let session = unsafe { libc::getsid(pid as libc::pid_t) };
    assert!(session >= 0, "{}", std::io::Error::last_os_error());
    session
}

#[test]
fn log_16_ctrl_c_reaches_the_scheduler_and_not_its_watcher() {
    let Some((first, _, own)) = two_processors() else { return };
    let client = Running::waiting();
    let mut scheduler = Running::subject(&["pin", &first.to_string(), &client.pid().to_string()]);
    assert_eq!(scheduler.hear(), "placed 1");
    let watcher = watcher_of(scheduler.pid()).unwrap();
    assert_ne!(session(watcher.pid), session(scheduler.pid()));
    scheduler.signal(libc::SIGINT);
    eventually("the mask is put back", || all_have(client.pid(), own));
    eventually("the watcher ends", || has_ended(&watcher));
}

#[test]
fn log_16_a_scheduler_that_panics_has_put_everything_back_when_it_is_gone() {
    let Some((first, _, own)) = two_processors() else { return };
    let client = Running::waiting();
    let mut scheduler = Running::subject(&["pin", &first.to_string(), &client.pid().to_string()]);
    assert_eq!(scheduler.hear(), "placed 1");
    scheduler.tell("panic");
    assert_eq!(scheduler.hear(), "", "its end");
    assert!(all_have(client.pid(), own));
}

#[test]
fn log_16_a_scheduler_killed_at_any_moment_leaves_no_mask_changed_and_no_process_behind() {
    let Some((first, second, own)) = two_processors() else { return };
    let mut random = Random::seeded();
    let mut clients = [Running::waiting(), Running::waiting()];
    for client in &mut clients {
        client.tell("more");
        client.hear();
    }
    let pids = [clients[0].pid().to_string(), clients[1].pid().to_string()];
    let arguments = ["pin", &first.to_string(), &pids[0], &pids[1]];
    for round in 0..20 {
        let mut scheduler = Running::subject(&arguments);
        // Some schedulers are killed before they have changed anything, some while they place back and forth.
        if round % 4 != 0 {
            assert_eq!(scheduler.hear(), "placed 4");
            for place in 0..random.below(40) {
                scheduler.tell(&[first, second][place as usize % 2].to_string());
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(3000)));
        let watcher = watcher_of(scheduler.pid());
        scheduler.kill();
        for client in &clients {
            eventually("every mask is put back", || all_have(client.pid(), own));
        }
        if let Some(watcher) = watcher {
            eventually("the watcher ends", || has_ended(&watcher));
        }
        for client in &clients {
            assert!(all_have(client.pid(), own), "round {round}: {:?}", masks(client.pid()));
        }
    }
}
