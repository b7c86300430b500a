//! Programs that listen and send nothing, of any user and in any number, do not delay the others (LOG-11).

mod common;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{SocketDirectory, Subject, take_new, until};
use mete_log::{DomainId, EventId};
use mete_probe::attach::{AttachError, Component, Introduction};
use mete_probe::finder::Finder;
use mete_probe::wire::{Message, Name, Packet};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

/// Users that do not exist.
const OTHERS: [u32; 2] = [64_001, 64_002];
/// These tests never wait for its end.
const PATIENCE: Duration = Duration::from_secs(600);

/// A socket in a directory, at which a program of this user listens.
fn listener(place: &Path, user: u32, number: usize) -> OwnedFd {
    let path: PathBuf = place.join(format!("{number}.sock"));
    let listen = move || {
        // SAFETY: this changes the rights of this thread alone, which ends below. The library's call would
        // change those of all threads.
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, -1, user, -1) };
        assert_eq!(changed, 0);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let socket = socket.expect("a socket");
        rustix::net::bind(&socket, &SocketAddrUnix::new(&path).expect("a short path")).expect("bind");
        rustix::net::listen(&socket, 8).expect("listen");
        socket
    };
    std::thread::spawn(listen).join().expect("a listener")
}

fn belongs_to(place: &SocketDirectory, user: u32) {
    std::os::unix::fs::chown(place.path(), Some(user), None).expect("another user's directory");
}

/// The connections that the listener has not accepted yet.
fn calls(listener: &OwnedFd) -> Vec<OwnedFd> {
    std::iter::from_fn(|| rustix::net::accept_with(listener, SocketFlags::CLOEXEC).ok()).collect()
}

fn introduce(connection: &OwnedFd) {
    let message = Message::Hello { pid: 1, events: 0, name: Name::new("it") };
    rustix::net::send(connection, &Packet { token: 0, message }.encode(), SendFlags::NOSIGNAL).expect("send");
}

fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        println!("SKIPPED: {test}: not root");
    }
    is_root
}

fn step(finder: &mut Finder) -> Vec<Result<Component, AttachError>> {
    let (never, _open) = std::io::pipe().expect("a pipe");
    finder.wait_or(Duration::from_millis(5), &[std::os::fd::AsFd::as_fd(&never)]);
    finder.step(PATIENCE)
}

#[test]
fn log_11_a_component_is_found_among_any_number_of_silent_ones() {
    let place = SocketDirectory::new("finder-silent");
    let own = rustix::process::geteuid().as_raw();
    let silent: Vec<_> = (0..60).map(|number| listener(place.path(), own, number)).collect();
    let subject = Subject::start(&place, &["count", "1"]);
    until(|| subject.socket().exists().then_some(()));
    let mut finder = Finder::in_directories(vec![place.path().to_owned()]).expect("a finder");
    let found = until(|| Some(step(&mut finder)).filter(|found| !found.is_empty()));
    assert_eq!(
        found.into_iter().map(|found| found.expect("taken").pid()).collect::<Vec<_>>(),
        [subject.pid()]
    );
    assert_eq!(silent.iter().map(calls).map(|calls| calls.len()).sum::<usize>(), 60, "each is called once");
    assert!(!finder.is_settled());
    subject.finish();
}

#[test]
fn log_11_silent_sockets_of_one_user_leave_their_places_to_another() {
    if !is_root("log_11_silent_sockets_of_one_user_leave_their_places_to_another") {
        return;
    }
    let places = ["finder-first", "finder-second"].map(SocketDirectory::new);
    places.iter().zip(OTHERS).for_each(|(place, user)| belongs_to(place, user));
    let silent: Vec<_> = (0..300).map(|number| listener(places[0].path(), OTHERS[0], number)).collect();
    let directories = places.iter().map(|place| place.path().to_owned()).collect();
    let mut finder = Finder::in_directories(directories).expect("a finder");
    for _ in 0..5 {
        assert!(step(&mut finder).is_empty());
    }
    let held: Vec<_> = silent.iter().flat_map(calls).collect();
    assert_eq!(held.len(), 8, "of each user a limited number is called at once");

    let speaker = listener(places[1].path(), OTHERS[1], 1);
    let call = until(|| {
        assert!(step(&mut finder).is_empty());
        calls(&speaker).pop()
    });
    introduce(&call);
    let found = until(|| step(&mut finder).pop()).expect("taken");
    assert_eq!(found.user(), OTHERS[1]);
    drop(held);
    // After those that hung up, the next ones are called.
    until(|| {
        step(&mut finder);
        silent.iter().flat_map(calls).next()
    });
}

#[test]
fn log_11_a_program_that_listens_in_another_users_directory_is_left_alone() {
    if !is_root("log_11_a_program_that_listens_in_another_users_directory_is_left_alone") {
        return;
    }
    let place = SocketDirectory::new("finder-misplaced");
    let speaker = listener(place.path(), 0, 1);
    belongs_to(&place, OTHERS[0]);
    let target = SocketDirectory::new("finder-target");
    let _elsewhere = listener(target.path(), 0, 2);
    std::os::unix::fs::symlink(target.path().join("2.sock"), place.path().join("2.sock")).expect("a link");
    let mut finder = Finder::in_directories(vec![place.path().to_owned()]).expect("a finder");
    let found = take_new(&mut finder);
    assert!(
        matches!(found[..], [Err(AttachError::Misplaced { user: 0, owner, .. })] if owner == OTHERS[0]),
        "{found:?}"
    );
    drop(calls(&speaker));
    assert!(take_new(&mut finder).is_empty(), "and is reported once");
}

#[test]
fn log_11_neither_calling_nor_telling_a_component_waits_for_it() {
    let place = SocketDirectory::new("finder-full");
    let own = rustix::process::geteuid().as_raw();
    let deaf = listener(place.path(), own, 1);
    let path = place.path().join("1.sock");
    let mut introductions: Vec<_> = Vec::new();
    let begin = Instant::now();
    let full = loop {
        match Introduction::begin(&path, PATIENCE) {
            Ok(introduction) => introductions.push(introduction),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, AttachError::Silent { .. }), "{full:?}");
    let called = introductions.len();

    // A component that introduces itself and then takes no more requests.
    let call = calls(&deaf).swap_remove(0);
    introduce(&call);
    let mut component = match introductions.swap_remove(0).advance() {
        Ok(mete_probe::attach::Progress::Taken(component)) => component,
        other => panic!("{other:?}"),
    };
    let told = (0..10_000).map_while(|_| component.tell_to_bind(DomainId::new(3)).ok()).count();
    assert!((64..10_000).contains(&told), "{told} requests are kept, after {called} calls");
    assert!(matches!(component.tell_to_bind(DomainId::new(3)), Err(AttachError::Deaf { .. })));
    assert!(component.settle().expect("it is there").is_empty() && !component.is_settled());
    assert!(begin.elapsed() < PATIENCE);
}

#[test]
fn log_11_answers_are_taken_when_they_arrive_and_refusals_are_reported() {
    let place = SocketDirectory::new("finder-answers");
    let subject = Subject::start(&place, &["count", "1"]);
    let mut component = subject.connect();
    component.tell_to_bind(DomainId::new(3)).expect("sent");
    component.tell_to_enable(EventId::new(0)).expect("sent");
    let refused = until(|| {
        let refused = component.settle().expect("it is there");
        (!refused.is_empty()).then_some(refused)
    });
    assert!(matches!(refused[0], AttachError::Refused { .. }), "{refused:?}");
    until(|| {
        component.settle().expect("it is there");
        component.is_settled().then_some(())
    });
    // Requests with and without waiting do not disturb each other.
    let log = common::Log::new(64, mete_log::Stamp::None);
    component.tell_to_log_into(log.region.clone()).expect("sent");
    component.enable(EventId::new(0)).expect("enable");
    assert!(component.settle().expect("it is there").is_empty() && component.is_settled());
    drop(component);
    subject.finish();
}
