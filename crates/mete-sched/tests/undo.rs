//! Whatever the affinity actuator changes is put back, however the scheduler ends (LOG-16, design
//! decision D9).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::process::Command;
use std::time::Duration;

use common::{Running, SUBJECT, children, eventually, skip};
use mete_sched::actuator::{ActuatorError, Affinity, ENFORCES, Mask, Restored, watcher};
use mete_sched::domains::process::{self, Process};

/// Two processors that this test may use, or a word about why not.
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
    let mut command = Command::new(SUBJECT);
    command.arg(watcher::ARGUMENT);
    Affinity::start_with(command).unwrap()
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

/// A pseudo-random sequence whose seed is printed.
struct Random(u64);

impl Random {
    fn seeded() -> Random {
        let seed =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
        println!("seed {seed}");
        Random(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn log_16_placed_threads_run_on_one_processor_and_are_put_back_in_the_end() {
    let Some((first, second, own)) = two_processors() else { return };
    let mut client = Running::waiting();
    client.tell("more");
    client.hear();
    let mut affinity = start();
    assert_eq!(affinity.place(2, &[client.pid()], second).unwrap(), 2);
    assert!(all_have(client.pid(), single(second)));
    assert_eq!(affinity.place(2, &[client.pid()], second).unwrap(), 0, "they are there already");
    assert_eq!(affinity.place(2, &[client.pid()], first).unwrap(), 2);
    assert!(all_have(client.pid(), single(first)));
    let restored = affinity.finish().unwrap();
    assert_eq!(restored, Restored { restored: 2, ..Restored::default() });
    assert!(all_have(client.pid(), own));
}

#[test]
fn log_16_a_process_that_leaves_its_domain_goes_free_at_once() {
    let Some((first, _, own)) = two_processors() else { return };
    let (leaves, stays) = (Running::waiting(), Running::waiting());
    let mut affinity = start();
    affinity.place(2, &[leaves.pid(), stays.pid()], first).unwrap();
    affinity.release(leaves.pid());
    assert!(all_have(leaves.pid(), own) && all_have(stays.pid(), single(first)));
    affinity.place(2, &[leaves.pid()], first).unwrap();
    assert_eq!(affinity.finish().unwrap(), Restored { restored: 2, ..Restored::default() });
    assert!(all_have(leaves.pid(), own) && all_have(stays.pid(), own));
}

#[test]
fn log_16_threads_and_processes_that_are_born_under_a_changed_mask_are_put_back_too() {
    let Some((first, second, own)) = two_processors() else { return };
    let mut client = Running::waiting();
    let mut affinity = start();
    affinity.place(2, &[client.pid()], first).unwrap();
    client.tell("more");
    client.hear();
    let child = children(client.pid())[0].pid;
    assert!(all_have(child, single(first)) && all_have(client.pid(), single(first)), "they have inherited");
    // Moved as well, the child counts with the mask that its parent had in the beginning.
    affinity.place(2, &[client.pid(), child], second).unwrap();
    client.tell("more");
    client.hear();
    let restored = affinity.finish().unwrap();
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
fn log_16_a_mask_that_somebody_else_changes_meanwhile_is_left_alone() {
    let Some((first, second, _)) = two_processors() else { return };
    let client = Running::waiting();
    let mut affinity = start();
    affinity.place(2, &[client.pid()], first).unwrap();
    single(second).give_to(client.pid()).unwrap();
    assert_eq!(affinity.finish().unwrap(), Restored { left_alone: 1, ..Restored::default() });
    assert!(all_have(client.pid(), single(second)));
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
    let error = affinity.place(2, &[free.pid(), client.pid()], second).unwrap_err();
    assert!(matches!(error, ActuatorError::Forbidden { thread, .. } if thread == pinned), "{error}");
    assert!(error.to_string().contains(&format!("its own mask is {first}")), "{error}");
    assert_eq!(Mask::of_thread(client.pid()), Ok(own), "nothing has changed");
    assert!(all_have(free.pid(), own));
}

#[test]
fn log_16_kernel_threads_and_processors_that_do_not_exist_are_refused() {
    let client = Running::waiting();
    let mut affinity = start();
    let error = affinity.place(2, &[client.pid()], Mask::PROCESSORS).unwrap_err();
    assert!(matches!(error, ActuatorError::NoProcessor { .. }), "{error}");
    let error = affinity.place(2, &[client.pid()], Mask::PROCESSORS - 1).unwrap_err();
    assert!(matches!(error, ActuatorError::Forbidden { .. }), "{error}");
    if Process::read(2).is_some_and(|process| process.is_kernel) {
        let error = affinity.place(2, &[2], 0).unwrap_err();
        assert!(matches!(error, ActuatorError::Kernel { .. }), "{error}");
    } else {
        skip("no kernel threads are to be seen from here");
    }
}

#[test]
fn log_16_a_program_that_does_not_watch_is_no_watcher() {
    let error = Affinity::start_with(Command::new("true")).unwrap_err();
    assert!(matches!(error, ActuatorError::NoWatcher { .. }), "{error}");
    let error = Affinity::start_with(Command::new("/no/such/program")).unwrap_err();
    assert!(matches!(error, ActuatorError::NoWatcher { .. }), "{error}");
}

#[test]
fn log_16_processes_that_have_ended_are_no_error() {
    let client = Running::waiting();
    let pid = client.pid();
    let mut affinity = start();
    assert!(affinity.place(2, &[pid], 0).is_ok());
    client.kill();
    assert_eq!(affinity.place(2, &[pid], 0).unwrap(), 0);
    assert_eq!(affinity.finish().unwrap().failed, 0);
}

#[test]
fn log_16_without_its_watcher_the_actuator_changes_nothing_more_and_puts_back_itself() {
    let Some((first, second, own)) = two_processors() else { return };
    let client = Running::waiting();
    let mut scheduler = Running::subject(&["pin", &first.to_string(), &client.pid().to_string()]);
    assert_eq!(scheduler.hear(), "placed 1");
    let watcher = watcher_of(scheduler.pid()).unwrap();
    // SAFETY: the number was read from the child's own child a moment ago; that waits for input.
    assert_eq!(unsafe { libc::kill(watcher.pid as i32, libc::SIGKILL) }, 0);
    eventually("the watcher ends", || has_ended(&watcher));
    scheduler.tell(&second.to_string());
    // It ends with the error, and on its way it puts back what it had changed.
    assert_eq!(scheduler.hear(), "");
    eventually("the mask is put back", || all_have(client.pid(), own));
}

fn has_ended(process: &Process) -> bool {
    Process::read(process.pid).is_none_or(|found| found.start != process.start)
}

/// Its session; 0 for that of a first process which never made one, so no `rustix::process::Pid`.
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
        // Some are killed before they have changed anything, some while they place back and forth.
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
