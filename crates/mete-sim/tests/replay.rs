//! A recorded schedule run again under other policies (NEW-1).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use mete_policy::{CATALOG, Setup, by_name};
use mete_sim::replay::{self, Event, Recording, Replay, Settings};
use mete_sim::{Hardware, Host};
use proptest::prelude::*;

fn recording() -> Recording {
    Recording::read(include_str!("data/perf-sched-ping-pong.txt").as_bytes()).unwrap()
}

fn setup(recording: &Recording, processors: u16) -> Setup {
    let clients = recording.scripts.len() as u32;
    Setup { processors, quantum_ns: 1_000_000, ..Setup::for_clients(clients) }
}

#[test]
fn new_1_every_policy_does_exactly_the_recorded_work() {
    let recording = recording();
    for entry in CATALOG {
        for processors in [1, 2, 4] {
            let policy = (entry.make)(&setup(&recording, processors));
            let hardware = Hardware { processors, ..Hardware::default() };
            let mut host = Replay::host(&recording, hardware, policy, ());
            host.run_until(100 * recording.duration_ns).unwrap();
            for (client, script) in (0..).zip(&recording.scripts) {
                let name = (entry.name, processors, &script.name);
                assert!(host.model().is_done(client), "{name:?}");
                assert_eq!(host.ran_ns(client), script.service_ns(), "{name:?}");
            }
        }
    }
}

#[test]
fn new_1_eight_processors_are_done_no_later_than_one() {
    let recording = recording();
    let end_on = |processors: u16| {
        let policy = (CATALOG[0].make)(&setup(&recording, processors));
        let hardware = Hardware { processors, ..Hardware::default() };
        let mut host = Replay::host(&recording, hardware, policy, ());
        while !all_done(&host, &recording) {
            host.run_until(host.now_ns() + 1_000_000).unwrap();
        }
        host.now_ns()
    };
    assert!(end_on(8) <= end_on(1), "{} and {}", end_on(8), end_on(1));
}

fn all_done<P: mete_policy::Policy>(host: &Host<P, Replay<'_>>, recording: &Recording) -> bool {
    (0..recording.scripts.len() as u32).all(|client| host.model().is_done(client))
}

#[test]
fn new_1_what_if_is_answered_thread_by_thread_beside_the_recording() {
    let recording = recording();
    let settings = Settings { processors: 2, quantum_ns: 3_000_000, switch_ns: 1000, seed: 1 };
    let recorded = replay::as_recorded(&recording);
    let outcome = replay::run(&recording, by_name("eevdf").unwrap(), settings).unwrap();
    assert!(outcome.end_ns >= recording.duration_ns / 2, "two processors can at best halve it");
    for (thread, recorded) in outcome.threads.iter().zip(&recorded) {
        assert_eq!((&thread.name, thread.ran_ns), (&recorded.name, recorded.ran_ns));
    }
    assert!(replay::all_waits(&recorded).count() > 50 && replay::all_waits(&outcome.threads).count() > 50);
    assert_eq!(outcome, replay::run(&recording, by_name("eevdf").unwrap(), settings).unwrap());
}

/// Any events, in any order: threads that run twice, wake themselves, never leave.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let (pid, processor) = (0u32..6, 0u32..3);
    let switch = (pid.clone(), pid.clone(), processor, 0u64..2000, any::<(bool, bool)>()).prop_map(
        |(previous, next, processor, at_ns, (runnable, ended))| Event::Switch {
            at_ns,
            processor,
            previous,
            previous_name: "p".into(),
            runnable,
            ended,
            next,
            next_name: "n".into(),
        },
    );
    let wake = (prop::option::of(pid.clone()), pid, 0u64..2000, any::<(bool, bool)>()).prop_map(
        |(waker, pid, at_ns, (new, at_cause))| Event::Wake {
            at_ns,
            waker,
            pid,
            name: "w".into(),
            new,
            at_cause,
        },
    );
    prop::collection::vec(prop_oneof![3 => switch, 3 => wake, 1 => Just(Event::Lost)], 0..120)
}

proptest! {
    #[test]
    fn new_1_any_recording_can_be_run_to_its_end(events in events(), is_sorted: bool) {
        let mut events = events;
        if is_sorted {
            events.sort_by_key(|event| match event {
                Event::Switch { at_ns, .. } | Event::Wake { at_ns, .. } => *at_ns,
                Event::Lost => 0,
            });
        }
        let recording = Recording::from_events(&events);
        let settings = Settings { processors: 2, quantum_ns: 100, switch_ns: 0, seed: 1 };
        let outcome = replay::run(&recording, &CATALOG[0], settings).unwrap();
        for (thread, script) in outcome.threads.iter().zip(&recording.scripts) {
            prop_assert_eq!(thread.ran_ns, script.service_ns());
        }
    }
}
