//! LOG-6: the kernel puts processes into their domain as soon as they become what a rule selects.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod support;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::process::{self, Command, Stdio};
use std::time::Duration;

use mete_kernel::{Characteristic, DividedBy, Division, Glob, Principal, ProcessKind, Rule, Selects, event};
use mete_log::{DomainId, Entries, FileSpec, Plan, Shape, Stamp};
use rustix::time::ClockId;
use support::{Child, apply, clock_ns, exit, kernel, of_domain, plan, rows, spin, sum};

/// The domain of a process that is bound to none.
const NONE: DomainId = DomainId::new(0);
const A: DomainId = DomainId::new(1);
const B: DomainId = DomainId::new(2);
const C: DomainId = DomainId::new(3);

fn rule(selects: Selects, domain: DomainId) -> Rule {
    Rule { selects, domain }
}

fn comm(pattern: &str) -> Selects {
    Selects::Comm(Glob::of_names(pattern.as_bytes()))
}

fn rename(name: &[u8]) {
    let name = CString::new(name).unwrap();
    // SAFETY: the string ends with a zero.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Forks a process that waits until it is killed with its parent. Returns its number.
fn fork() -> i32 {
    // SAFETY: the child only sleeps.
    match unsafe { libc::fork() } {
        0 => {
            support::die_with_parent();
            // SAFETY: no memory is involved.
            unsafe { libc::pause() };
            exit(0)
        }
        pid => pid,
    }
}

#[test]
fn log_6_a_process_that_takes_a_name_is_bound_at_once_and_keeps_its_domain() {
    let Some(mut kernel) = kernel("log_6_rename") else { return };
    let mut child = Child::start(|gate| {
        for name in ["selected-1", "selected-2", "another"] {
            rename(name.as_bytes());
            gate.tell(fork() as u64);
            gate.wait();
        }
    });
    kernel.select(&[rule(comm("*-2"), A), rule(comm("selected*"), B)], None).unwrap();
    for expected in [B, A, A] {
        child.release();
        let inner = child.report() as i32;
        assert_eq!((kernel.domain_of(child.pid), kernel.domain_of(inner)), (expected, expected));
    }
}

#[test]
fn log_6_a_name_of_a_thread_is_no_name_of_its_process() {
    let Some(mut kernel) = kernel("log_6_thread_name") else { return };
    let mut child = Child::start(|gate| {
        std::thread::scope(|scope| drop(scope.spawn(|| rename(b"selected")).join()));
        gate.tell(0);
        gate.wait();
        let (ready, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                // SAFETY: asks for a number.
                let number = unsafe { libc::gettid() };
                ready.wait();
                go.wait();
                number
            });
            ready.wait();
            rename(b"selected");
            gate.tell(0);
            gate.wait();
            go.wait();
            gate.tell(thread.join().unwrap() as u64);
        });
        gate.wait();
    });
    kernel.select(&[rule(comm("selected"), A)], None).unwrap();
    child.release();
    child.report();
    assert_eq!(kernel.domain_of(child.pid), NONE);
    child.release();
    child.report();
    assert_eq!(kernel.domain_of(child.pid), A);
    child.release();
    let thread = child.report() as i32;
    assert_eq!(kernel.domain_of(thread), A, "with all its threads");
}

#[test]
fn log_6_children_of_a_process_are_bound_at_their_fork() {
    let Some(mut kernel) = kernel("log_6_children") else { return };
    let mut child = Child::start(|gate| {
        gate.tell(fork() as u64);
        gate.wait();
    });
    kernel.select(&[rule(Selects::Children(child.pid as u32), A)], None).unwrap();
    child.release();
    let inner = child.report() as i32;
    assert_eq!((kernel.domain_of(child.pid), kernel.domain_of(inner)), (NONE, A));
}

#[test]
fn log_6_a_process_is_bound_by_its_program_and_its_user_at_exec() {
    let Some(mut kernel) = kernel("log_6_exec") else { return };
    let cat = std::fs::canonicalize("/bin/cat").unwrap();
    let literal = Selects::Program(Glob::path(cat.as_os_str().as_bytes()));
    let pattern = Selects::Program(Glob::of_paths(b"/**/ca[s-u]"));
    for selects in [literal, pattern, comm("c?t")] {
        kernel.select(&[rule(comm("nothing"), B), rule(selects.clone(), A)], None).unwrap();
        let (here, other) =
            (reading(&mut Command::new("cat")), reading(Command::new("sh").args(["-c", "read x"])));
        let domains = [&here, &other].map(|child| kernel.domain_of(child.id() as i32));
        [here, other].into_iter().for_each(end);
        assert_eq!(domains, [A, NONE], "{selects:?}");
    }
    const NOBODY: u32 = 65_534;
    kernel.select(&[rule(Selects::User(NOBODY), C)], None).unwrap();
    let here = reading(std::os::unix::process::CommandExt::uid(&mut Command::new("cat"), NOBODY));
    let domain = kernel.domain_of(here.id() as i32);
    end(here);
    assert_eq!(domain, C);
}

#[test]
fn log_6_the_kernel_matches_patterns_of_paths_as_user_space_does() {
    let Some(mut kernel) = kernel("log_6_paths") else { return };
    let cat = std::fs::canonicalize("/bin/cat").unwrap();
    let cat = cat.to_str().unwrap();
    let last = cat.rfind('/').unwrap();
    let with = |slash: &str| format!("{}{slash}cat", &cat[..last]);
    let directories = cat[1..].matches('/').count();
    let patterns = ["?", "[/]", "[!a]", "*", "**", "/", "/?", "/[b-d]"].map(with);
    let of_depth = |depth: usize| format!("{}/cat", "/*".repeat(depth));
    let patterns = patterns.into_iter().chain([of_depth(directories), of_depth(directories - 1)]);
    let patterns = patterns.chain(["/*".into(), "/**".into(), "**/cat".into(), "*/cat".into()]);
    let (mut matching, mut all) = (0, 0);
    for pattern in patterns {
        let glob = Glob::of_paths(pattern.as_bytes());
        let expected = if glob.matches(cat.as_bytes()) { A } else { NONE };
        kernel.select(&[rule(Selects::Program(glob), A)], None).unwrap();
        let here = reading(&mut Command::new("cat"));
        let domain = kernel.domain_of(here.id() as i32);
        end(here);
        assert_eq!(domain, expected, "{pattern} {cat}");
        (matching, all) = (matching + u32::from(domain == A), all + 1);
    }
    assert!((4..all).contains(&matching), "some match and some do not: {matching} of {all}");
}

/// Starts a program that reads its input, and waits until it does.
fn reading(command: &mut Command) -> process::Child {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // A parent may go on a moment before its child runs the other program.
    let is_asleep =
        || std::fs::read_to_string(format!("/proc/{}/syscall", child.id())).unwrap().starts_with("0 ");
    support::wait_until("the program reads", is_asleep);
    child
}

fn end(mut reading: process::Child) {
    drop(reading.stdin.take());
    reading.wait().unwrap();
}

#[test]
fn log_6_the_kernel_matches_patterns_as_user_space_does() {
    let Some(mut kernel) = kernel("log_6_patterns") else { return };
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    println!("seed {state}");
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let parts = ["a", "b", "c", "?", "*", "**", "[ab]", "[!a]"];
    let mut text =
        |most: usize, of: usize| -> String { (0..random(most)).map(|_| parts[random(of)]).collect() };
    for _ in 0..20 {
        let globs: Vec<Glob> = (0..200).map(|_| Glob::of_names(text(8, 8).as_bytes())).collect();
        let rules: Vec<Rule> = globs
            .iter()
            .enumerate()
            .map(|(nth, glob)| rule(Selects::Comm(glob.clone()), DomainId::from_index(nth + 1)))
            .collect();
        let names: Vec<String> = (0..50).map(|_| text(12, 3)).collect();
        let names_of_child = names.clone();
        let mut child = Child::start(move |gate| {
            for name in names_of_child {
                rename(name.as_bytes());
                gate.tell(0);
                gate.wait();
            }
        });
        kernel.select(&rules, None).unwrap();
        for name in &names {
            kernel.bind(&Principal::Process(child.pid), NONE).unwrap();
            child.release();
            child.report();
            let expected = globs
                .iter()
                .position(|glob| glob.matches(name.as_bytes()))
                .map_or(NONE, |nth| DomainId::from_index(nth + 1));
            assert_eq!(
                kernel.domain_of(child.pid),
                expected,
                "{name:?} {:?}",
                globs[expected.index().max(1) - 1]
            );
        }
    }
}

/// The processor time of this thread before and after it takes a name.
fn rename_between(name: &str) -> [u64; 2] {
    let before = clock_ns(ClockId::ThreadCPUTime);
    rename(name.as_bytes());
    [before, clock_ns(ClockId::ThreadCPUTime)]
}

/// Emulating a processor may take long between any two instructions, and the thread is then said to have run. So the thread
/// itself reads how long each part has been at most and at least.
#[test]
fn log_13_time_before_and_after_a_change_of_domain_goes_to_each() {
    const PART: u64 = 20_000_000;
    const NAMES: [&str; 4] = ["first", "second", "third", "rest"];
    let Some(mut kernel) = kernel("log_13_divided") else { return };
    let (plan, files) = plan(&[event::SERVICE_TIME]);
    apply(&plan, &kernel);
    let mut child = Child::start(|gate| {
        let changes = NAMES.map(|name| {
            let change = rename_between(name);
            spin(PART);
            change
        });
        changes.as_flattened().iter().for_each(|&time| gate.tell(time));
    });
    let domains = [A, B, C, DomainId::new(4)];
    let rules: Vec<Rule> =
        NAMES.into_iter().zip(domains).map(|(name, domain)| rule(comm(name), domain)).collect();
    kernel.select(&rules, None).unwrap();
    kernel.enable(&Characteristic::ServiceTime).unwrap();
    child.release();
    let changes = NAMES.map(|_| [child.report(), child.report()]);
    child.wait();
    let rows = rows(&kernel, &plan, files[0]);
    for (domain, change) in domains.into_iter().zip(changes.windows(2)) {
        let used = sum(&of_domain(&rows, domain));
        let (least, most) = (change[1][0] - change[0][1], change[1][1] - change[0][0]);
        // Where the kernel switches, it reads the clock for each of the two accounts at another moment.
        assert!(
            used > least - PART / 2 && used < most + PART / 2,
            "domain {domain}: {used} ns where the thread has run for {least} to {most} ns"
        );
    }
}

/// It leaves the processor in the domain in which it came. Other tests have children with other names at the same time. How
/// long each part has been is known as in the test above.
#[test]
fn log_13_time_before_a_domain_is_left_and_come_back_to_is_charged() {
    let Some(mut kernel) = kernel("log_13_back") else { return };
    let (plan, files) = plan(&[event::SERVICE_TIME]);
    apply(&plan, &kernel);
    let mut child = Child::start(|gate| {
        let [_, begin] = rename_between("outer");
        let [mut least_inner, mut most_inner] = [0; 2];
        for _ in 0..200 {
            spin(200_000);
            let inner = rename_between("inner");
            spin(100_000);
            let outer = rename_between("outer");
            least_inner += outer[0] - inner[1];
            most_inner += outer[1] - inner[0];
            std::thread::sleep(Duration::from_micros(200));
        }
        let all = clock_ns(ClockId::ThreadCPUTime) - begin;
        [all - most_inner, all - least_inner, least_inner, most_inner]
            .into_iter()
            .for_each(|time| gate.tell(time));
    });
    let rules = [rule(comm("outer"), A), rule(comm("inner"), B)];
    kernel.select(&rules, None).unwrap();
    kernel.enable(&Characteristic::ServiceTime).unwrap();
    child.release();
    let ran = [(); 2].map(|()| [child.report(), child.report()]);
    child.wait();
    let rows = rows(&kernel, &plan, files[0]);
    for (domain, [least, most]) in [A, B].into_iter().zip(ran) {
        let used = sum(&of_domain(&rows, domain));
        println!("domain {domain}: {used} ns where the thread has run for {least} to {most} ns");
        // At each of the switches the kernel reads the clock for each of the two accounts at another moment.
        assert!(used > least / 2 && used < most + most / 2, "{domain}: {used} of {least} to {most}");
    }
}

#[test]
fn log_4_rows_at_a_change_of_domain_have_the_run_queues_time() {
    let Some(mut kernel) = kernel("log_4_change") else { return };
    let mut plan = Plan::new(Shape::KERNEL);
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::RunQueue, add: false, rows: 1024 };
    let file = plan.file(spec).unwrap();
    [A, B, C].iter().for_each(|&domain| plan.route(event::SERVICE_TIME, domain, file).unwrap());
    apply(&plan, &kernel);
    let mut child = Child::start(|_| {
        for name in ["first", "second", "third"].iter().cycle().take(300) {
            rename(name.as_bytes());
        }
    });
    let rules = [("first", A), ("second", B), ("third", C)].map(|(name, domain)| rule(comm(name), domain));
    kernel.select(&rules, None).unwrap();
    kernel.enable(&Characteristic::ServiceTime).unwrap();
    child.release();
    child.wait();
    // Most changes are in one phase on the processor: the program that sees the change logs the domain in between.
    let rows = rows(&kernel, &plan, file);
    assert!(rows.len() > 200, "{} rows", rows.len());
    assert!(rows.iter().all(|row| row.stamp.is_some_and(|stamp| stamp > 0)), "{rows:?}");
}

#[test]
fn log_6_every_program_has_a_domain_of_its_own_from_its_first_moment_on() {
    let Some(mut kernel) = kernel("log_6_division") else { return };
    let mut child = Child::start(|gate| {
        for name in ["first", "second", "first", "third", "fourth"] {
            rename(name.as_bytes());
            gate.tell(0);
            gate.wait();
        }
    });
    let known = vec![(ProcessKind::program(b"second"), C)];
    let division = Division { by: DividedBy::Program, known, free: DomainId::new(100)..DomainId::new(102) };
    kernel.select(&[rule(comm("fourth"), A)], Some(&division)).unwrap();
    // Other processes on this machine may take a domain meanwhile. A rule takes precedence, and a process
    // without a domain keeps its own.
    let mut domains = Vec::new();
    for _ in 0..5 {
        child.release();
        child.report();
        domains.push(kernel.domain_of(child.pid));
    }
    let kinds = kernel.kinds().unwrap();
    let of = |name: &[u8]| {
        kinds.iter().find(|(kind, _)| *kind == ProcessKind::program(name)).map(|(_, domain)| *domain)
    };
    let first = of(b"first").unwrap_or(NONE);
    let third = of(b"third").unwrap_or(domains[2]);
    assert_eq!(domains, [first, C, if first == NONE { C } else { first }, third, A]);
    assert!(kinds.len() <= 3, "{kinds:?}");
}
