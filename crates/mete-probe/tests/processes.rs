//! Programs of many kinds: threads with domains, forks, no permission, probes that are passed on.

mod common;

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, Stdio};

use common::{LIMIT, Log, SocketDirectory, Subject, id, poll_all, until};
use mete_log::{DomainId, EventId, Stamp};
use mete_probe::attach::{AttachError, Component};
use mete_probe::wire::Refusal;

/// Has the subject "domains" pass its probes after an order. Returns the domains to which its main thread and
/// a new thread were charged.
fn domains_after(subject: &mut Subject, log: &Log, order: &str) -> (u16, u16) {
    let mut readers = log.readers();
    subject.say(order);
    assert_eq!(subject.line(), "passed");
    let mut charged = BTreeMap::new();
    let _ = poll_all(&mut readers, |_, row| {
        charged.insert(row.event.expect("selected"), row.domain.expect("selected"));
    });
    let charged: Vec<u16> = charged.into_values().map(DomainId::get).collect();
    // "number" of the main thread comes before "other thread" by name.
    assert_eq!(charged.len(), 2, "one row of each thread: {charged:?}");
    (charged[0], charged[1])
}

fn enable(component: &mut Component, names: &[&str]) {
    for name in names {
        component.enable(id(component, name)).expect("enable");
    }
}

#[test]
fn log_6_the_thread_precedes_the_process_and_the_scheduler_precedes_the_program() {
    let place = SocketDirectory::new("domains");
    let mut subject = Subject::start(&place, &["domains"]);
    let thread: u32 = subject.line().parse().expect("a thread's number");
    let mut component = subject.connect();
    let log = Log::new(64, Stamp::None);
    let refused = |answer| match answer {
        Err(AttachError::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(component.bind(DomainId::new(3))), Refusal::NoMemory);
    component.provide(log.region.clone()).expect("provide");
    enable(&mut component, &["number", "other thread"]);

    assert_eq!(domains_after(&mut subject, &log, ""), (0, 0), "nothing is set: the default domain");
    assert_eq!(domains_after(&mut subject, &log, "process 4"), (4, 4));
    assert_eq!(domains_after(&mut subject, &log, "thread 5"), (5, 4), "the thread's own, inherited by none");
    component.bind(DomainId::new(6)).expect("bind the process");
    assert_eq!(domains_after(&mut subject, &log, ""), (5, 6), "the thread's before the process'");
    component.bind_thread(thread, DomainId::new(7)).expect("bind the thread");
    assert_eq!(domains_after(&mut subject, &log, "thread 8"), (7, 6), "the scheduler's before the program's");

    assert_eq!(refused(component.bind(DomainId::new(256))), Refusal::NoSuchDomain);
    assert_eq!(refused(component.bind_thread(u32::MAX, DomainId::new(1))), Refusal::NoSuchThread);
    assert_eq!(refused(component.bind_thread(std::process::id(), DomainId::new(1))), Refusal::NoSuchThread);
    assert_eq!(refused(component.enable(EventId::new(64))), Refusal::NoSuchEvent);

    drop(component);
    let mut component = subject.connect();
    component.provide(log.region.clone()).expect("provide");
    enable(&mut component, &["number", "other thread"]);
    assert_eq!(domains_after(&mut subject, &log, ""), (8, 4), "what the last scheduler bound is forgotten");
    subject.finish();
}

#[test]
fn log_6_a_driver_learns_its_clients_domains_from_the_scheduler() {
    let place = SocketDirectory::new("bindings");
    let mut subject = Subject::start(&place, &["domains"]);
    subject.line();
    let ask = |subject: &mut Subject| {
        subject.say("of 4711");
        subject.line()
    };
    assert_eq!(ask(&mut subject), "None");
    let mut component = subject.connect();
    let log = Log::of(&mut component, 64, Stamp::None);
    assert_eq!(ask(&mut subject), "None");
    log.region.bindings().bind(4711, DomainId::new(9)).expect("publish");
    assert_eq!(ask(&mut subject), "Some(9)");
    drop(component);
    until(|| (ask(&mut subject) == "None").then_some(()));
    subject.finish();
}

#[test]
fn log_12_the_child_of_a_fork_is_a_component_of_its_own() {
    let place = SocketDirectory::new("fork");
    let mut subject = Subject::start(&place, &["fork"]);
    let mut parent = subject.connect();
    let parents_log = Log::of(&mut parent, 1024, Stamp::None);
    let mut parents = parents_log.readers();
    enable(&mut parent, &["number"]);

    let line = subject.line();
    let (pid, is_on) = line.split_once(' ').expect("what the child says");
    assert_eq!(is_on, "false", "the child starts with its probes off");
    let pid: u32 = pid.parse().expect("the child's number");
    let socket = place.path().join(format!("{pid}.sock"));
    let mut child = until(|| Component::connect(&socket, LIMIT).ok());
    assert_eq!(child.pid(), pid);
    let childs_log = Log::of(&mut child, 1024, Stamp::None);
    let mut children = childs_log.readers();
    enable(&mut child, &["number"]);
    // The parent's threads log as 1, the child's as 2, each into its own log only.
    let only = |expected| move |_, row: mete_log::Row| assert_eq!(row.correspondent, Some(expected));
    until(|| (poll_all(&mut children, only(DomainId::new(2))).rows > 0).then_some(()));
    until(|| (poll_all(&mut parents, only(DomainId::new(1))).rows > 0).then_some(()));
    drop(child);
    drop(parent);
    subject.finish();
    assert!(!socket.exists(), "the child removes its socket, too");
}

#[test]
fn log_11_the_children_of_a_program_that_has_withdrawn_are_no_components() {
    let place = SocketDirectory::new("withdrawn");
    let mut subject = Subject::start(&place, &["withdrawn"]);
    assert_eq!(subject.line(), "0", "sockets");
    subject.finish();
}

#[test]
fn log_11_a_program_that_cannot_publish_itself_runs_unchanged() {
    let place = SocketDirectory::new("unpublished");
    let open_to_all = place.path().join("open");
    std::fs::create_dir(&open_to_all).expect("a directory");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&open_to_all, mode).expect("open it");
    let link = place.path().join("link");
    std::os::unix::fs::symlink(place.path(), &link).expect("a link");
    let long = place.path().join("x".repeat(120));
    for directory in ["/dev/null/x".into(), "/proc/mete".into(), open_to_all.clone(), link, long] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mete-probe-subject"))
            .args(["count", "1"])
            .env("METE_RUNTIME_DIR", &directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start the subject");
        drop(child.stdin.take());
        let mut said = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut said).expect("its errors");
        let output = child.wait_with_output().expect("its end");
        assert!(output.status.success() && said.is_empty(), "{directory:?}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    }
    assert_eq!(std::fs::read_dir(&open_to_all).expect("the open directory").count(), 0);
}

#[test]
fn log_12_debugging_shows_why_a_program_is_not_published() {
    let output = Command::new(env!("CARGO_BIN_EXE_mete-probe-subject"))
        .args(["count", "1"])
        .env("METE_RUNTIME_DIR", "/dev/null/x")
        .env("METE_DEBUG", "1")
        .stdin(Stdio::null())
        .output()
        .expect("run the subject");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not published"), "{said}");
}

#[test]
fn log_15_a_component_completes_the_rows_of_another_one_and_passes_them_on() {
    const ROWS: u64 = 5000;
    let place = SocketDirectory::new("recursive");
    let mut source = Subject::start(&place, &["numbers", "1", &ROWS.to_string()]);
    until(|| source.socket().exists().then_some(()));
    let mut middle = Subject::start(&place, &["complete", source.socket().to_str().expect("a plain path")]);
    let mut component = middle.connect();
    let log = Log::of(&mut component, 8192, Stamp::None);
    let mut readers = log.readers();
    // The middle one reads the source only once a scheduler reads the result.
    enable(&mut component, &["number"]);
    assert_eq!(middle.line(), "completing");
    assert_eq!(source.line(), "done");

    let mut numbers = Vec::new();
    let mut sum = mete_log::Poll::default();
    until(|| {
        sum += poll_all(&mut readers, |_, row| {
            let number = row.counter.expect("selected");
            assert_eq!(row.correspondent, Some(DomainId::new((number % 5) as u16 + 1)), "completed");
            numbers.push(number);
        });
        (sum.rows + sum.overwritten + sum.refused >= ROWS).then_some(())
    });
    source.finish();
    assert_eq!(middle.finish(), [format!("{ROWS} 0")], "nothing was lost on the way in");
    numbers.sort_unstable();
    assert_eq!((sum.overwritten, sum.refused), (0, 0), "nor on the way out");
    assert_eq!(numbers, (0..ROWS).collect::<Vec<_>>());
}

#[test]
fn log_11_a_program_that_is_started_with_its_probes_off_is_no_component_and_runs_unchanged() {
    let place = SocketDirectory::new("off");
    let output = Command::new(env!("CARGO_BIN_EXE_mete-probe-subject"))
        .args(["count", "1"])
        .env("METE_RUNTIME_DIR", place.path())
        .env("METE_PROBES", "off")
        .env("METE_DEBUG", "1")
        .stdin(Stdio::null())
        .output()
        .expect("run the subject");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not published: METE_PROBES is off"), "{said}");
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).lines().count() == 1);
}
