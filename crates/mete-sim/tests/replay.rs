//! A recorded schedule run again under other policies (NEW-1).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use mete_policy::{CATALOG, Setup, by_name};
use mete_sim::replay::{self, Event, Recording, RecordingError, Replay, Settings};
use mete_sim::{Hardware, Host, Scenario, report, trace};
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

/// What each domain of a trace ran, by its rows.
fn ran_ns(trace: &trace::Trace<'_>) -> Vec<u64> {
    let mut ran_ns = vec![0; trace.domains.len()];
    for (_, row) in trace.rows().filter(|(_, row)| row.event == Some(trace::event::SERVICE_TIME)) {
        ran_ns[usize::from(row.domain.unwrap())] += row.counter.unwrap();
    }
    ran_ns
}

#[test]
fn new_1_a_simulated_runs_trace_is_the_same_work_under_the_same_policy_and_any_other() {
    for (name, policy) in
        [("mix", "vtrr"), ("processors", "rr"), ("guests", "eevdf"), ("tavs-mixed", "credit-tavs")]
    {
        let settings = ["warm_up_ms=0", "duration_ms=2000", "host.switch_us=3"].map(str::to_owned);
        let scenario = Scenario::load(name, &settings).unwrap();
        let writer = trace::Writer::new(&scenario, Vec::new()).unwrap();
        let (_, writer) = report::run(&scenario, policy, 1, writer).unwrap().unwrap();
        let bytes = writer.finish().unwrap();
        let recording = Recording::read(&bytes[..]).unwrap();
        let trace = trace::read(&bytes).unwrap();
        let traced_ns = ran_ns(&trace);
        assert_eq!((recording.gaps, recording.processors), (0, trace.processors), "{name}");
        for script in &recording.scripts {
            assert_eq!(script.service_ns(), traced_ns[script.pid as usize], "{name}: {}", script.name);
            assert_eq!(script.name, trace.domains[script.pid as usize]);
        }
        let all_ns: u64 = recording.scripts.iter().map(|script| script.service_ns()).sum();
        assert_eq!(all_ns, traced_ns[1..].iter().sum::<u64>(), "{name}");
        let settings = Settings {
            processors: trace.processors as u16,
            quantum_ns: scenario.quantum_ns,
            switch_ns: 3000,
            seed: 1,
        };
        for policy in [policy, "stride"] {
            let outcome = replay::run(&recording, by_name(policy).unwrap(), settings).unwrap();
            for (thread, script) in outcome.threads.iter().zip(&recording.scripts) {
                assert_eq!(thread.ran_ns, script.service_ns(), "{name} under {policy}: {}", script.name);
            }
        }
        let wakes = |script: &replay::Script| {
            script.steps.iter().any(|step| matches!(step.action, replay::Action::Wake(_)))
        };
        let has_driver = name == "tavs-mixed";
        assert_eq!(recording.scripts.iter().any(wakes), has_driver, "{name}: a driver wakes its clients");
    }
}

#[test]
fn new_1_a_trace_that_is_cut_off_or_empty_is_refused() {
    let scenario = Scenario::load("mix", &["warm_up_ms=0".to_owned()]).unwrap();
    let bytes = trace::Writer::new(&scenario, Vec::new()).unwrap().finish().unwrap();
    assert!(matches!(Recording::read(&bytes[..]), Err(RecordingError::EmptyTrace)));
    assert!(matches!(Recording::read(&bytes[..20]), Err(RecordingError::Trace(_))));
}
