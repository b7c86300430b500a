//! Neither side can harm the other by what it sends or writes (LOG-11).

mod common;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{LIMIT, Log, SocketDirectory, Subject, poll_all, until};
use mete_log::{DomainId, EventId, FileId, Region, Shape, Stamp};
use mete_probe::attach::{AttachError, Component};
use mete_probe::wire::{Message, Name, PACKET_BYTES, Packet};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

/// A bare connection whose introduction has been read.
fn raw_connection(path: &Path) -> OwnedFd {
    let socket = raw_socket();
    rustix::net::connect(&socket, &SocketAddrUnix::new(path).expect("a short path")).expect("connect");
    for _ in 0..5 {
        receive(&socket);
    }
    socket
}

fn raw_socket() -> OwnedFd {
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .expect("a socket");
    let timeout = rustix::net::sockopt::Timeout::Recv;
    rustix::net::sockopt::set_socket_timeout(&socket, timeout, Some(LIMIT)).expect("a limit");
    socket
}

fn receive(socket: &OwnedFd) -> Option<Packet> {
    let mut bytes = [0; 256];
    let (length, _) = rustix::net::recv(socket, &mut bytes, RecvFlags::empty()).expect("an answer in time");
    (length > 0).then(|| Packet::decode(&bytes[..length]).expect("a sound packet"))
}

fn send(socket: &OwnedFd, bytes: &[u8]) {
    rustix::net::send(socket, bytes, SendFlags::NOSIGNAL).expect("send");
}

/// Packets of all kinds, which are whole, or garbled in some bytes, or cut, or extended; and noise.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let message = (0_u32..9, any::<u32>(), any::<u32>()).prop_map(|(kind, a, b)| match kind {
        0 => Message::Hello { pid: a, events: b, name: Name::new("x") },
        1 => Message::Event {
            id: EventId::new(a as u16),
            kind: mete_probe::ProbeKind::Phase,
            name: Name::new("y"),
        },
        2 => Message::Provide { shape: Shape::COMPONENT, processors: b },
        3 => Message::Enable { event: EventId::new(a as u16) },
        4 => Message::Disable { event: EventId::new(a as u16) },
        5 => Message::Bind { tid: a, domain: DomainId::new(b as u16) },
        6 => Message::Ack,
        7 => Message::Error(mete_probe::wire::Refusal::NoMemory),
        _ => Message::Busy { pid: a },
    });
    let packet =
        (message, any::<u32>()).prop_map(|(message, token)| Packet { token, message }.encode().to_vec());
    let spoilt = (packet.clone(), proptest::collection::vec((0..PACKET_BYTES, any::<u8>()), 0..4));
    let spoilt = spoilt.prop_map(|(mut bytes, changes)| {
        changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        bytes
    });
    let resized = (packet, 1_usize..300).prop_map(|(mut bytes, length)| {
        bytes.resize(length, 0xa5);
        bytes
    });
    prop_oneof![spoilt, resized, proptest::collection::vec(any::<u8>(), 1..300)]
}

#[test]
fn log_11_garbled_requests_of_every_kind_and_length_are_answered_without_harm() {
    let place = SocketDirectory::new("garbled");
    let mut subject = Subject::start(&place, &["count", "1"]);
    until(|| subject.socket().exists().then_some(()));
    let socket = raw_connection(subject.socket());
    let mut runner = TestRunner::new(Config { cases: 600, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&garbage(), |bytes| {
        send(&socket, &bytes);
        let answer = receive(&socket).expect("the component stays");
        // Without memory the component can do nothing, so it acknowledges nothing.
        prop_assert!(matches!(answer.message, Message::Error(_)), "{answer:?}");
        Ok(())
    });
    outcome.expect("no harm");
    assert!(subject.is_running());
    drop(socket);
    until(|| Component::connect(subject.socket(), LIMIT).ok());
    subject.finish();
}

#[test]
fn log_11_a_component_that_answers_garbage_harms_no_scheduler() {
    let place = SocketDirectory::new("fake");
    let path = place.path().join("1.sock");
    let listener = raw_socket();
    rustix::net::bind(&listener, &SocketAddrUnix::new(&path).expect("a short path")).expect("bind");
    rustix::net::listen(&listener, 8).expect("listen");
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let answers = proptest::collection::vec(garbage(), 0..6);
    let outcome = runner.run(&(answers, any::<bool>()), |(answers, is_hello_sound)| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let socket = rustix::net::accept(&listener).expect("a scheduler");
                if is_hello_sound {
                    let message = Message::Hello { pid: 1, events: 0, name: Name::new("fake") };
                    send(&socket, &Packet { token: 0, message }.encode());
                }
                for answer in &answers {
                    // The scheduler may be gone already.
                    let _ = rustix::net::send(&socket, answer, SendFlags::NOSIGNAL);
                }
            });
            let taken = Component::connect(&path, LIMIT);
            if let Ok(mut component) = taken {
                // Whatever it answers, it has not done it. A matching token has a chance of one in 2^32.
                let region = Arc::new(Region::create(Shape::COMPONENT, 1).expect("a region"));
                let _ = component.provide(region);
                assert!(component.events().len() <= mete_probe::MAX_EVENTS);
            }
        });
        Ok(())
    });
    outcome.expect("no harm");
}

/// A component that sends one packet after the other, with pauses, once a scheduler has connected. Its last
/// packet can be an answer to the scheduler's request.
fn drip(listener: &OwnedFd, first: &[Message], rest: &[Packet], last: Option<Message>) {
    const PAUSE: Duration = Duration::from_millis(100);
    let socket = rustix::net::accept(listener).expect("a scheduler");
    // The scheduler may be gone at any time.
    let say = |packet: &Packet| _ = rustix::net::send(&socket, &packet.encode(), SendFlags::NOSIGNAL);
    first.iter().for_each(|&message| say(&Packet { token: 0, message }));
    let asked = last.and_then(|message| Some(Packet { token: receive(&socket)?.token, message }));
    for packet in rest {
        std::thread::sleep(PAUSE);
        say(packet);
    }
    asked.iter().for_each(say);
}

#[test]
fn log_11_a_component_that_answers_slowly_takes_no_more_time_than_it_is_given() {
    const PATIENCE: Duration = Duration::from_secs(3);
    let place = SocketDirectory::new("slow");
    let path = place.path().join("1.sock");
    let listener = raw_socket();
    rustix::net::bind(&listener, &SocketAddrUnix::new(&path).expect("a short path")).expect("bind");
    rustix::net::listen(&listener, 8).expect("listen");
    let hello = |events| Message::Hello { pid: 1, events, name: Name::new("slow") };
    let event = |id| Message::Event { id, kind: mete_probe::ProbeKind::Access, name: Name::new("x") };
    let events: Vec<_> = EventId::all_below(60).map(|id| Packet { token: 0, message: event(id) }).collect();
    // Each packet arrives in time, but all of them together take too long.
    std::thread::scope(|scope| {
        scope.spawn(|| drip(&listener, &[hello(60)], &events, None));
        let taken = Component::connect(&path, PATIENCE);
        assert!(matches!(taken, Err(AttachError::Silent { .. })), "{taken:?}");
    });
    let late = [Packet { token: u32::MAX, message: Message::Ack }; 60];
    std::thread::scope(|scope| {
        scope.spawn(|| drip(&listener, &[hello(1), event(EventId::new(0))], &late, Some(Message::Ack)));
        let mut component = Component::connect(&path, PATIENCE).expect("a component");
        let answer = component.enable(EventId::new(0));
        assert!(matches!(answer, Err(AttachError::Silent { .. })), "{answer:?}");
    });
}

/// Offers a memory file and expects it to be refused.
fn assert_memory_refused(subject: &Subject, shape: Shape, processors: u32, file: Option<BorrowedFd<'_>>) {
    let socket = until(|| {
        let socket = raw_socket();
        rustix::net::connect(&socket, &SocketAddrUnix::new(subject.socket()).expect("a short path")).ok()?;
        let is_taken = matches!(receive(&socket)?.message, Message::Hello { .. });
        is_taken.then_some(socket)
    });
    for _ in 0..4 {
        receive(&socket);
    }
    let packet = Packet { token: 7, message: Message::Provide { shape, processors } };
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
    let files = file.as_slice();
    if !files.is_empty() {
        control.push(rustix::net::SendAncillaryMessage::ScmRights(files));
    }
    let bytes = packet.encode();
    rustix::net::sendmsg(&socket, &[std::io::IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)
        .expect("send");
    let answer = receive(&socket).expect("an answer");
    let refused = Message::Error(mete_probe::wire::Refusal::BadMemory);
    assert_eq!((answer.token, answer.message), (7, refused));
}

#[test]
fn log_11_memory_that_could_change_under_the_component_is_refused() {
    let place = SocketDirectory::new("memory");
    let mut subject = Subject::start(&place, &["count", "1"]);
    until(|| subject.socket().exists().then_some(()));
    let shape = Shape::COMPONENT;
    let processors = mete_probe::attach::configured_processors();
    let (bytes, enough) = (Region::bytes_for(shape, processors) as u64, processors as u32);

    let unsealed = memory_file(bytes);
    assert_memory_refused(&subject, shape, enough, Some(unsealed.as_fd()));
    let partly = memory_file(bytes);
    rustix::fs::fcntl_add_seals(&partly, rustix::fs::SealFlags::SHRINK).expect("seal");
    assert_memory_refused(&subject, shape, enough, Some(partly.as_fd()));
    for wrong in [0, 4096, bytes - 4096, bytes + 4096] {
        let file = memory_file(wrong);
        rustix::fs::fcntl_add_seals(&file, mete_log::sealed::SEALS).expect("seal");
        assert_memory_refused(&subject, shape, enough, Some(file.as_fd()));
    }
    let region = Region::create(shape, processors).expect("a region");
    for processors in [0, enough + 1, 4097, u32::MAX] {
        assert_memory_refused(&subject, shape, processors, Some(region.fd()));
    }
    assert_memory_refused(&subject, Shape::KERNEL, enough, Some(region.fd()));
    assert_memory_refused(&subject, shape, enough, None);
    let ordinary = std::fs::File::open("/dev/null").expect("a file");
    assert_memory_refused(&subject, shape, enough, Some(ordinary.as_fd()));
    assert!(subject.is_running());
    subject.finish();
}

fn memory_file(bytes: u64) -> OwnedFd {
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create("mete-test", flags).expect("a memory file");
    rustix::fs::ftruncate(&file, bytes).expect("size it");
    file
}

#[test]
fn log_11_a_scheduler_that_scribbles_over_the_whole_region_harms_no_component() {
    for tunables in ["", "glibc.pthread.rseq=0"] {
        let place = SocketDirectory::new(&format!("scribble{}", tunables.len()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_mete-probe-subject"));
        command.args(["count", "3"]).env("GLIBC_TUNABLES", tunables);
        let mut subject = Subject::start_command(&place, command);
        let mut component = subject.connect();
        let log = Log::of(&mut component, 1024, Stamp::Hardware);
        EventId::all_below(4).for_each(|event| component.enable(event).expect("enable"));

        scribble(&log.region, Duration::from_secs(1));
        EventId::all_below(4).for_each(|event| component.disable(event).expect("disable"));
        assert!(subject.is_running());
        assert_eq!(subject.finish().len(), 3, "all threads came through");
    }
}

/// Writes random words everywhere, most of them into control words.
fn scribble(region: &Region, how_long: Duration) {
    let words = region.bytes() / 8;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let areas: Vec<_> = region.areas().collect();
    let end = Instant::now() + how_long;
    while Instant::now() < end {
        for _ in 0..1000 {
            let (place, word) = (next() as usize % words, next());
            // SAFETY: this is a word of the region, which is shared memory for atomics.
            let target = unsafe { region.base().cast::<AtomicU64>().add(place).as_ref() };
            target.store(word, Ordering::Relaxed);
            for area in &areas {
                let pair = area.pair(DomainId::new(0), EventId::new((word >> 8 & 3) as u16));
                pair.selector.store((word >> 16) as u16, Ordering::Relaxed);
                pair.threshold.store((word >> 60) as u32, Ordering::Relaxed);
                let register = area.register(FileId::new((word >> 16) as u16));
                // Mostly enabled, so that rows are written to the place that the word names.
                let enabled = mete_log::control::ENABLED_BIT | mete_log::control::PLAIN_BIT;
                register.set_control(mete_log::Control::from_bits(
                    next() & !mete_log::control::FROZEN_BIT | enabled,
                ));
                register.index.store(next(), Ordering::Relaxed);
            }
        }
    }
}

#[test]
fn log_11_one_scheduler_after_the_other_at_full_speed() {
    let place = SocketDirectory::new("takeover");
    let subject = Subject::start(&place, &["count", "3"]);
    for _ in 0..100 {
        let mut component = subject.connect();
        let log = Log::of(&mut component, 64, Stamp::None);
        EventId::all_below(4).for_each(|event| component.enable(event).expect("enable"));
        let mut readers = log.readers();
        let _ = poll_all(&mut readers, |_, row| assert!(row.event.is_some_and(|event| event.get() < 4)));
    }
    assert_eq!(subject.finish().len(), 3);
}

/// Rows that its threads log on the other processors would be lost silently.
#[test]
fn log_9_memory_for_fewer_processors_than_there_are_is_refused() {
    let place = SocketDirectory::new("few");
    let subject = Subject::start(&place, &["count", "1"]);
    until(|| subject.socket().exists().then_some(()));
    let fewer = mete_probe::attach::configured_processors() - 1;
    if fewer == 0 {
        println!("SKIPPED: log_9_memory_for_fewer_processors_than_there_are_is_refused: one processor");
        return;
    }
    let region = Region::create(Shape::COMPONENT, fewer).expect("a region");
    assert_memory_refused(&subject, Shape::COMPONENT, fewer as u32, Some(region.fd()));
}
