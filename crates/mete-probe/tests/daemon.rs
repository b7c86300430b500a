//! Programs that close their descriptors, as daemons do (LOG-11).

mod common;

use common::{Log, SocketDirectory, Subject, until};
use mete_log::{EventId, Stamp};
use mete_probe::attach::Component;

fn order(subject: &mut Subject, order: &str) {
    subject.say(order);
    assert_eq!(subject.line(), format!("{order} done"));
}

fn threads(subject: &mut Subject) -> u32 {
    subject.say("threads");
    let count = subject.line().parse().expect("a number");
    assert_eq!(subject.line(), "threads done");
    count
}

#[test]
fn log_11_a_program_that_closes_all_descriptors_runs_unchanged() {
    let place = SocketDirectory::new("closer");
    let mut subject = Subject::start(&place, &["daemon"]);
    until(|| subject.socket().exists().then_some(()));
    order(&mut subject, "close");
    // A scheduler that connects to the socket that is left makes the listener look at its descriptors.
    until(|| {
        let found = Component::connect(subject.socket(), std::time::Duration::from_millis(50));
        assert!(found.is_err(), "its socket is closed");
        (!subject.socket().exists()).then_some(())
    });
    until(|| (threads(&mut subject) == 1).then_some(()));
    order(&mut subject, "check");
    order(&mut subject, "fork");
    assert!(subject.finish().is_empty());
}

#[test]
fn log_11_a_program_that_closes_all_descriptors_and_forks_runs_unchanged() {
    let place = SocketDirectory::new("closer-forks");
    let mut subject = Subject::start(&place, &["daemon"]);
    until(|| subject.socket().exists().then_some(()));
    order(&mut subject, "close");
    order(&mut subject, "fork");
    order(&mut subject, "check");
    assert!(subject.finish().is_empty());
    assert_eq!(std::fs::read_dir(place.path()).expect("the directory").count(), 1, "the child's, killed");
}

#[test]
fn log_11_a_program_can_fork_until_its_end() {
    let place = SocketDirectory::new("late");
    let mut subject = Subject::start(&place, &["forks"]);
    until(|| subject.socket().exists().then_some(()));
    for occasion in ["in a thread", "at a thread's end", "in the main thread", "at the end"] {
        assert_eq!(subject.line(), format!("{occasion}: 7"));
    }
    assert!(subject.finish().is_empty());
}

#[test]
fn log_11_a_program_that_closes_all_descriptors_while_it_is_read_runs_unchanged() {
    let place = SocketDirectory::new("closer-read");
    let mut subject = Subject::start(&place, &["daemon"]);
    let mut component = subject.connect();
    let _log = Log::of(&mut component, 64, Stamp::None);
    component.enable(EventId::new(0)).expect("enable");
    order(&mut subject, "close");
    assert!(component.disable(EventId::new(0)).is_err(), "there is no answer");
    drop(component);
    until(|| (threads(&mut subject) == 1).then_some(()));
    order(&mut subject, "check");
    order(&mut subject, "fork");
    assert!(subject.finish().is_empty());
}

#[test]
fn log_11_a_program_that_is_started_without_standard_descriptors_writes_into_none_of_the_probes() {
    use std::os::unix::process::CommandExt;
    let place = SocketDirectory::new("bare");
    let told = place.path().join("descriptors");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_mete-probe-subject"));
    command.arg("descriptors").arg(&told).env("METE_RUNTIME_DIR", place.path());
    // SAFETY: the child closes descriptors and does nothing else.
    unsafe { command.pre_exec(|| (0..3).try_for_each(|number| closed(libc::close(number)))) };
    assert!(command.status().expect("start the subject").success());
    let told = std::fs::read_to_string(told).expect("what it wrote");
    let line = |number: &str| told.lines().find_map(|line| line.strip_prefix(number));
    assert_eq!(["0 ", "1 ", "2 "].map(line), [Some("/dev/null"); 3], "as its language fills them: {told}");
    assert_eq!(told.matches("socket:").count(), 1, "the probes' own: {told}");
}

fn closed(answer: libc::c_int) -> std::io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
