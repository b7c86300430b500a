//! Either side can be killed at any moment; the other one continues (LOG-11).

mod common;

use std::time::Duration;

use common::{LIMIT, Log, SocketDirectory, Subject, id, poll_all, take_new, until};
use mete_log::Stamp;
use mete_probe::attach::{AttachError, Component};
use mete_probe::finder::Finder;

/// A subject that is a scheduler and reads another subject.
fn scheduler_of(place: &SocketDirectory, subject: &Subject) -> Subject {
    until(|| subject.socket().exists().then_some(()));
    let mut scheduler =
        Subject::start(place, &["schedule", subject.socket().to_str().expect("a plain path")]);
    assert_eq!(scheduler.line(), "reading");
    scheduler
}

#[test]
fn log_11_a_killed_scheduler_leaves_the_component_running_for_the_next_one() {
    let place = SocketDirectory::new("scheduler-killed");
    let mut subject = Subject::start(&place, &["count", "2"]);
    for round in 0..8 {
        let mut scheduler = scheduler_of(&place, &subject);
        std::thread::sleep(Duration::from_millis(round * 3));
        scheduler.kill();
        assert!(subject.is_running());
    }
    let mut component = subject.connect();
    let log = Log::of(&mut component, 1024, Stamp::None);
    let mut readers = log.readers();
    std::thread::sleep(Duration::from_millis(20));
    let late = poll_all(&mut readers, |_, _| ()).rows;
    assert!(late <= 2, "the dead scheduler's probes are off: {late} rows, not one late one for each thread");
    assert_eq!(poll_all(&mut readers, |_, _| ()).rows, 0);
    component.enable(id(&component, "number")).expect("enable");
    until(|| (poll_all(&mut readers, |_, _| ()).rows > 0).then_some(()));
    subject.finish();
}

#[test]
fn log_11_a_second_scheduler_learns_which_process_has_the_component() {
    let place = SocketDirectory::new("busy");
    let subject = Subject::start(&place, &["count", "1"]);
    let scheduler = scheduler_of(&place, &subject);
    match Component::connect(subject.socket(), LIMIT) {
        Err(error @ AttachError::Busy { pid, scheduler: holder, .. }) => {
            assert_eq!((pid, holder), (subject.pid(), scheduler.pid()));
            let numbers = [pid, holder].map(|pid| format!(" ({pid})"));
            assert!(numbers.iter().all(|number| error.to_string().contains(number)), "{error}: no names");
        }
        other => panic!("{other:?}"),
    }
    scheduler.finish();
}

#[test]
fn log_11_a_killed_component_is_noticed_and_its_last_rows_are_read() {
    let place = SocketDirectory::new("component-killed");
    for round in 0..12 {
        let mut subject = Subject::start(&place, &["count", "3"]);
        let mut component = subject.connect();
        let log = Log::of(&mut component, 1024, Stamp::Hardware);
        let mut readers = log.readers();
        component.enable(id(&component, "number")).expect("enable");
        until(|| (poll_all(&mut readers, |_, _| ()).rows > 0).then_some(()));
        std::thread::sleep(Duration::from_micros(round * 700));
        assert!(component.is_alive());
        subject.kill();
        assert!(!component.is_alive());
        let number = id(&component, "number");
        let _ = poll_all(&mut readers, |_, row| assert_eq!(row.event, Some(number)));
        assert_eq!(poll_all(&mut readers, |_, _| ()).rows, 0, "no process writes any more");
        assert!(component.disable(number).is_err());
        assert!(subject.socket().exists(), "a killed program cannot clean up");
    }
    let mut finder = Finder::in_directories(vec![place.path().to_owned()]).expect("a finder");
    assert!(take_new(&mut finder).is_empty());
    let left = std::fs::read_dir(place.path()).expect("the sockets' directory").count();
    assert_eq!(left, 0, "a process that looks for components cleans up");
}

#[test]
fn log_11_a_stopped_component_does_not_hold_up_the_scheduler() {
    let place = SocketDirectory::new("stopped");
    let subject = Subject::start(&place, &["count", "1"]);
    until(|| subject.socket().exists().then_some(()));
    let signal = |signal| {
        let pid = rustix::process::Pid::from_raw(subject.pid() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    };
    signal(rustix::process::Signal::STOP);
    until(|| is_stopped(subject.pid()).then_some(()));
    let answer = Component::connect(subject.socket(), Duration::from_millis(100));
    signal(rustix::process::Signal::CONT);
    assert!(matches!(answer, Err(AttachError::Silent { .. })), "{answer:?}");
    drop(answer);
    // What it was asked while it was stopped is forgotten. It can be taken as before.
    until(|| Component::connect(subject.socket(), LIMIT).ok());
}

fn is_stopped(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    })
}

#[test]
fn log_12_components_that_start_later_are_found() {
    let place = SocketDirectory::new("finder");
    let first = Subject::start(&place, &["count", "1"]);
    until(|| first.socket().exists().then_some(()));
    let mut finder = Finder::in_directories(vec![place.path().to_owned()]).expect("a finder");
    let pids = |found: Vec<Result<Component, AttachError>>| -> Vec<_> {
        found.into_iter().map(|found| found.expect("taken").pid()).collect()
    };
    assert_eq!(pids(take_new(&mut finder)), [first.pid()]);
    assert!(take_new(&mut finder).is_empty(), "a component is taken once");
    let second = Subject::start(&place, &["count", "1"]);
    let found = until(|| Some(pids(take_new(&mut finder))).filter(|found| !found.is_empty()));
    assert_eq!(found, [second.pid()]);
    let socket = first.socket().to_owned();
    first.finish();
    assert!(!socket.exists(), "a program that ends removes its socket");
}
