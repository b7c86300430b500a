//! A recorded schedule, run again under other policies (NEW-1).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use mete_policy::{CATALOG, ClientId, DomainIndex, Nanoseconds, Setup, Share, by_name};
use mete_sim::replay::{self, Event, Recording, RecordingError, Replay, RunningThread, Settings, Under};
use mete_sim::{Hardware, Host, Scenario, report, trace};
use proptest::prelude::*;

fn recording() -> Recording {
    Recording::read(include_str!("data/perf-sched-ping-pong.txt").as_bytes()).unwrap()
}

fn under(policy: &str) -> Under {
    Under::Policy(by_name(policy).unwrap())
}

/// No cost of switches, and quanta of that number of nanoseconds.
fn settings(processors: u16, quantum_ns: u64) -> Settings {
    let quantum_ns = Nanoseconds::new(quantum_ns);
    Settings { processors, quantum_ns, switch_ns: Nanoseconds::ZERO, seed: 1, measured: None }
}

fn setup(recording: &Recording, processors: u16) -> Setup {
    let clients = recording.scripts.len() as u32;
    Setup { processors, quantum_ns: Nanoseconds::new(1_000_000), ..Setup::for_clients(clients) }
}

#[test]
fn new_1_every_policy_does_exactly_the_recorded_work() {
    let recording = recording();
    for entry in CATALOG {
        for processors in [1, 2, 4] {
            let policy = (entry.make)(&setup(&recording, processors));
            let hardware = Hardware { processors, ..Hardware::default() };
            let mut host = Replay::new(&recording, 1).host(hardware, policy, ());
            host.run_until(100 * recording.duration_ns).unwrap();
            for (client, script) in (0..).zip(&recording.scripts) {
                let name = (entry.name, processors, &script.name);
                assert!(host.model().is_done(ClientId::new(client)), "{name:?}");
                assert_eq!(host.ran_ns(ClientId::new(client)), script.service_ns(), "{name:?}");
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
        let mut host = Replay::new(&recording, 1).host(hardware, policy, ());
        while !all_done(&host, &recording) {
            host.run_until(host.now_ns() + Nanoseconds::new(1_000_000)).unwrap();
        }
        host.now_ns()
    };
    assert!(end_on(8) <= end_on(1), "{} and {}", end_on(8), end_on(1));
}

fn all_done<P: mete_policy::Policy>(host: &Host<P, Replay<'_>>, recording: &Recording) -> bool {
    (0..recording.scripts.len() as u32).all(|client| host.model().is_done(ClientId::new(client)))
}

#[test]
fn new_1_what_if_is_answered_thread_by_thread_beside_the_recording() {
    let recording = recording();
    let settings = Settings {
        processors: 2,
        quantum_ns: Nanoseconds::new(3_000_000),
        switch_ns: Nanoseconds::new(1000),
        seed: 1,
        measured: None,
    };
    let recorded = replay::as_recorded(&recording);
    let outcome = replay::run(&recording, under("eevdf"), settings).unwrap();
    assert!(outcome.end_ns >= recording.duration_ns / 2, "two processors can at best halve it");
    for (thread, recorded) in outcome.threads.iter().zip(&recorded) {
        assert_eq!((&thread.name, thread.ran_ns), (&recorded.name, recorded.ran_ns));
    }
    assert!(replay::all_waits(&recorded).count() > 50 && replay::all_waits(&outcome.threads).count() > 50);
    assert_eq!(outcome, replay::run(&recording, under("eevdf"), settings).unwrap());
}

/// The recorded ping-pong with another time stamp in one of its events.
fn with_stamp(nth: usize, stamp: &str) -> Recording {
    let text = include_str!("data/perf-sched-ping-pong.txt");
    let is_event = |line: &&str| line.contains("sched:sched_");
    let line = text.lines().filter(is_event).nth(nth).unwrap();
    let old = line.split_whitespace().find(|word| word.ends_with(':')).unwrap();
    Recording::read(text.replacen(line, &line.replacen(old, stamp, 1), 1).as_bytes()).unwrap()
}

#[test]
fn new_1_one_far_off_time_stamp_costs_nothing_and_moves_nothing_else() {
    let whole = recording();
    let last = include_str!("data/perf-sched-ping-pong.txt").matches("sched:sched_").count() - 1;
    let settings = settings(2, 3_000_000);
    for nth in [0, last / 2, last] {
        for stamp in ["0.000000001:", "9999999999.000000:", "18446744073.709551615:"] {
            let recording = with_stamp(nth, stamp);
            assert!(recording.gaps > whole.gaps, "{nth} {stamp}");
            assert!(recording.duration_ns <= whole.duration_ns, "{nth} {stamp}: {}", recording.duration_ns);
            assert!(10 * recording.work_ns() > 9 * whole.work_ns(), "{nth} {stamp}: {}", recording.work_ns());
            for name in ["eevdf", "credit"] {
                replay::run(&recording, under(name), settings).unwrap();
            }
        }
    }
}

#[test]
fn new_1_a_recording_too_long_for_its_quanta_is_refused_before_it_is_run() {
    let mut text = String::new();
    for hour in 0..1000 {
        let (left, came) = [(7, 8), (8, 7)][hour % 2];
        text += &format!(
            "x 7 [000] {}.000000: sched:sched_switch: prev_comm=x prev_pid={left} prev_prio=120 prev_state=R ==> \
             next_comm=x next_pid={came} next_prio=120\n",
            3600 * hour,
        );
    }
    let recording = Recording::read(text.as_bytes()).unwrap();
    assert_eq!((recording.gaps, recording.duration_ns / Nanoseconds::from_secs(3_600)), (0, 999));
    let settings = settings(1, 1_000_000);
    let refused = replay::run(&recording, under("eevdf"), settings).unwrap_err();
    assert!(matches!(refused, replay::RunError::TooLong { .. }), "{refused}");
    assert!(refused.to_string().contains("name a longer --quantum"), "{refused}");
}

#[test]
fn new_1_a_file_of_nothing_is_refused_after_its_first_bytes() {
    use std::io::{BufReader, Read, repeat};
    let endless = BufReader::new(repeat(0).take(1 << 40));
    let refused = Recording::read(endless).unwrap_err();
    assert!(refused.to_string().starts_with("line 1 is longer than 65536 bytes"), "{refused}");
}

/// Any events, in any order: threads that run twice at once, wake themselves, or never leave.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let (pid, processor) = (0u32..6, 0u32..3);
    let switch =
        (pid.clone(), pid.clone(), processor, (0u64..2000).prop_map(Nanoseconds::new), any::<(bool, bool)>())
            .prop_map(|(previous, next, processor, at_ns, (runnable, ended))| Event::Switch {
                at_ns,
                processor,
                previous,
                previous_name: "p".into(),
                runnable,
                ended,
                next,
                next_name: "n".into(),
                next_priority: None,
            });
    let wake =
        (prop::option::of(pid.clone()), pid, (0u64..2000).prop_map(Nanoseconds::new), any::<(bool, bool)>())
            .prop_map(|(waker, pid, at_ns, (new, at_cause))| Event::Wake {
                at_ns,
                seen: waker.map(|pid| RunningThread { processor: pid % 3, pid, name: "s".into() }),
                waker,
                pid,
                name: "w".into(),
                priority: None,
                new,
                at_cause,
            });
    prop::collection::vec(prop_oneof![3 => switch, 3 => wake, 1 => Just(Event::Lost)], 0..120)
}

proptest! {
    #[test]
    fn new_1_any_recording_can_be_run_to_its_end(events in events(), is_sorted: bool) {
        let mut events = events;
        if is_sorted {
            events.sort_by_key(|event| match event {
                Event::Switch { at_ns, .. } | Event::Wake { at_ns, .. } => *at_ns,
                Event::Lost => Nanoseconds::ZERO,
            });
        }
        let recording = Recording::from_events(&events);
        let settings = settings(2, 100);
        let outcome = replay::run(&recording, Under::Policy(&CATALOG[0]), settings).unwrap();
        let linux = Under::Linux(replay::Kernel::of(&recording, 2));
        let linux = replay::run(&recording, linux, settings).unwrap();
        for (threads, script) in outcome.threads.iter().zip(&linux.threads).zip(&recording.scripts) {
            prop_assert_eq!([threads.0.ran_ns, threads.1.ran_ns], [script.service_ns(); 2]);
        }
    }
}

/// How long each domain of a trace ran, by its rows.
fn ran_ns(trace: &trace::Trace<'_>) -> Vec<u64> {
    let mut ran_ns = vec![0; trace.domains.len()];
    for (_, row) in trace.rows().filter(|(_, row)| row.event == Some(trace::event::SERVICE_TIME)) {
        ran_ns[row.domain.unwrap().index()] += row.counter.unwrap();
    }
    ran_ns
}

#[test]
fn new_1_a_simulated_runs_trace_is_the_same_work_under_the_same_policy_and_any_other() {
    for (name, policy) in
        [("mix", "vtrr"), ("processors", "rr"), ("guests", "eevdf"), ("tavs-mixed", "credit-tavs")]
    {
        let settings =
            ["warm_up_ms=0", "duration_ms=2000", "host.switch_us=3"].map(|text| text.parse().unwrap());
        let scenario = Scenario::load(name, &settings).unwrap();
        let writer = trace::Writer::new(&scenario, Vec::new()).unwrap();
        let (_, writer) = report::run(&scenario, policy, 1, writer).unwrap().unwrap();
        let bytes = writer.finish().unwrap();
        let recording = Recording::read(&bytes[..]).unwrap();
        let trace = trace::read(&bytes).unwrap();
        let traced_ns = ran_ns(&trace);
        assert_eq!((recording.gaps, recording.processors), (0, trace.processors), "{name}");
        for script in &recording.scripts {
            assert_eq!(script.service_ns().get(), traced_ns[script.pid as usize], "{name}: {}", script.name);
            assert_eq!(script.name, trace.domains[script.pid as usize]);
        }
        assert_eq!(recording.work_ns().get(), traced_ns[1..].iter().sum::<u64>(), "{name}");
        let settings = Settings {
            processors: trace.processors as u16,
            quantum_ns: scenario.quantum_ns,
            switch_ns: Nanoseconds::new(3000),
            seed: 1,
            measured: None,
        };
        for policy in [policy, "stride"] {
            let outcome = replay::run(&recording, under(policy), settings).unwrap();
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
    let scenario = Scenario::load("mix", &["warm_up_ms=0".parse().unwrap()]).unwrap();
    let bytes = trace::Writer::new(&scenario, Vec::new()).unwrap().finish().unwrap();
    assert!(matches!(Recording::read(&bytes[..]), Err(RecordingError::EmptyTrace)));
    assert!(matches!(Recording::read(&bytes[..20]), Err(RecordingError::Trace(_))));
}

#[test]
fn new_1_a_missing_switch_is_no_threads_work_and_its_time_counts_as_uncertain() {
    let recording = Recording::read(include_str!("data/perf-sched-missing-switches.txt").as_bytes()).unwrap();
    // The worker leaves processor 0 unseen after 4 ms, and processor 1 unseen after coming there at 12 ms.
    assert_eq!((recording.gaps, recording.uncertain_ns), (2, Nanoseconds::from_millis(6 + 6)));
    assert_eq!((recording.processors, recording.duration_ns), (2, Nanoseconds::from_millis(30)));
    let mut work: Vec<_> = recording
        .scripts
        .iter()
        .map(|script| (script.name.as_str(), script.service_ns() / Nanoseconds::from_millis(1)))
        .collect();
    work.sort_unstable();
    assert_eq!(work, [("btf", 0), ("cargo", 0), ("linker", 10), ("rustc", 12 + 6), ("worker", 4)]);
}

#[test]
fn new_1_perfs_own_file_is_refused_with_the_command_that_prints_it() {
    for begin in [&b"PERFILE2h\0\0\0\xff"[..], b"2ELIFREP"] {
        let error = Recording::read(begin).unwrap_err();
        assert!(error.to_string().contains("perf sched script --ns -i FILE > schedule.txt"), "{error}");
    }
}

#[test]
fn new_1_a_threads_name_may_be_any_bytes() {
    let mut text = b"x-0 [000] d..2. 1.5: sched_switch: prev_comm=swapper prev_pid=0 prev_prio=120 ".to_vec();
    text.extend(b"prev_state=R ==> next_comm=\xff\xfe next_pid=7 next_prio=120\n");
    assert_eq!(Recording::read(&text[..]).unwrap().scripts[0].pid, 7);
}

/// What truly happened on some processors, and all that a recorder could have seen of it.
struct History {
    processors: Vec<u32>,
    is_blocked: [bool; THREADS],
    ran_ns: [u64; THREADS],
    now_ns: u64,
    events: Vec<Event>,
}

const THREADS: usize = 6;
const PROCESSORS: usize = 3;

impl History {
    /// The history of these moves. All processors are idle at its beginning and at its end.
    fn of(moves: &[(usize, usize, u64, u8)]) -> History {
        let mut history = History {
            processors: vec![0; PROCESSORS],
            is_blocked: [false; THREADS],
            ran_ns: [0; THREADS],
            now_ns: 0,
            events: Vec::new(),
        };
        (0..PROCESSORS).for_each(|processor| history.switch(processor, 0, false));
        for &(processor, who, ns, kind) in moves {
            history.pass(ns);
            match kind {
                0 => history.wake(processor, who),
                kind => history.switch(processor, who as u32, kind == 1),
            }
        }
        history.pass(5);
        (0..PROCESSORS).for_each(|processor| history.switch(processor, 0, false));
        history
    }

    fn pass(&mut self, ns: u64) {
        self.now_ns += ns;
        self.processors.iter().filter(|&&pid| pid != 0).for_each(|&pid| self.ran_ns[pid as usize] += ns);
    }

    fn switch(&mut self, processor: usize, to: u32, blocks: bool) {
        let is_free = !self.processors.contains(&to) && !self.is_blocked[to as usize];
        let next = if is_free { to } else { 0 };
        let previous = std::mem::replace(&mut self.processors[processor], next);
        self.is_blocked[previous as usize] = blocks && previous != 0;
        self.events.push(Event::Switch {
            at_ns: Nanoseconds::new(self.now_ns),
            processor: processor as u32,
            previous,
            previous_name: "p".into(),
            runnable: !blocks,
            ended: false,
            next,
            next_name: "n".into(),
            next_priority: None,
        });
    }

    fn wake(&mut self, processor: usize, who: usize) {
        let pid = self.processors[processor];
        if std::mem::take(&mut self.is_blocked[who]) {
            self.events.push(Event::Wake {
                at_ns: Nanoseconds::new(self.now_ns),
                seen: Some(RunningThread { processor: processor as u32, pid, name: "s".into() }),
                waker: Some(pid),
                pid: who as u32,
                name: "w".into(),
                priority: None,
                new: false,
                at_cause: true,
            });
        }
    }

    /// All events except the deleted ones. The first and the last event of each processor are always kept.
    fn recorded(&self, is_deleted: &[bool]) -> Vec<Event> {
        let last = self.events.len() - PROCESSORS;
        let is_kept = |nth: usize| nth < PROCESSORS || nth >= last || !is_deleted[nth % is_deleted.len()];
        self.events
            .iter()
            .enumerate()
            .filter(|(nth, _)| is_kept(*nth))
            .map(|(_, event)| event.clone())
            .collect()
    }
}

/// Time on a processor between two events that agree although switches between them are deleted: nothing in
/// the recording shows that. It is given by the thread that seems to have run.
fn hidden_ns(history: &History, recorded: &[Event]) -> [u64; THREADS] {
    let mut hidden = [0; THREADS];
    for processor in 0..PROCESSORS as u32 {
        let of = |event: &Event| match event {
            Event::Switch { at_ns, processor: on, previous, next, .. } if *on == processor => {
                Some((at_ns.get(), *previous, *next))
            }
            Event::Wake { at_ns, seen: Some(seen), .. } if seen.processor == processor => {
                Some((at_ns.get(), seen.pid, seen.pid))
            }
            _ => None,
        };
        let kept: Vec<_> = recorded.iter().filter_map(of).collect();
        let all: Vec<_> = history.events.iter().filter_map(of).collect();
        for pair in kept.windows(2) {
            let [(from_ns, _, believed), (to_ns, found, _)] = *pair else { continue };
            let is_between = |&&(at_ns, previous, next): &&(u64, u32, u32)| {
                previous != next && from_ns < at_ns && at_ns < to_ns
            };
            if believed == found && all.iter().any(|event| is_between(&event)) {
                hidden[believed as usize] += to_ns - from_ns;
            }
        }
    }
    hidden
}

proptest! {
    #[test]
    fn new_1_no_thread_is_given_work_that_it_did_not_do_with_any_loss_of_the_recorder(
        moves in prop::collection::vec((0..PROCESSORS, 0..THREADS, 1u64..100, 0u8..4), 0..80),
        is_deleted in prop::collection::vec(prop::bool::weighted(0.2), 1..60),
    ) {
        let history = History::of(&moves);
        let recorded = history.recorded(&is_deleted);
        let hidden = hidden_ns(&history, &recorded);
        let recording = Recording::from_events(&recorded);
        prop_assert!(recording.work_ns() + recording.uncertain_ns <= recording.capacity_ns());
        for script in recording.scripts.iter() {
            let (pid, work_ns) = (script.pid as usize, script.service_ns().get());
            let (true_ns, all_hidden) = (history.ran_ns[pid], hidden.iter().sum::<u64>());
            prop_assert!(work_ns <= true_ns + hidden[pid], "{pid}: {work_ns} of {true_ns}");
            prop_assert!(true_ns <= work_ns + recording.uncertain_ns.get() + all_hidden, "{pid}: {work_ns} of {true_ns}");
        }
        if recorded.len() == history.events.len() {
            prop_assert_eq!((recording.gaps, recording.uncertain_ns), (0, Nanoseconds::ZERO));
            prop_assert_eq!(recording.work_ns().get(), history.ran_ns[1..].iter().sum::<u64>());
        }
    }
}

/// A thread that wakes every 10 ms and computes for 50 us, beside one that always computes. As under Linux,
/// the woken thread has the processor after 2 us.
fn sleeper_beside_hog() -> Recording {
    let mut text = String::new();
    let switch = |at_us: u64, from: u32, state: char, to: u32| {
        let at = format!("{}.{:06}", at_us / 1_000_000, at_us % 1_000_000);
        format!(
            "x {from} [000] {at}: sched:sched_switch: prev_comm=x prev_pid={from} prev_prio=120 prev_state={state} ==> \
             next_comm=x next_pid={to} next_prio=120\n"
        )
    };
    for round in 0..200 {
        let at_us = 1000 + 10_050 * round;
        let at = format!("{}.{:06}", at_us / 1_000_000, at_us % 1_000_000);
        text += &format!("x-7 [000] d.h2. {at}: sched_waking: comm=x pid=8 prio=120 target_cpu=000\n");
        text += &switch(at_us + 2, 7, 'R', 8);
        text += &switch(at_us + 52, 8, 'S', 7);
    }
    Recording::read(text.as_bytes()).unwrap()
}

#[test]
fn new_1_under_linuxs_own_scheduler_a_woken_thread_waits_as_recorded() {
    let recording = sleeper_beside_hog();
    let settings = settings(1, 3_000_000);
    let figures = |under| {
        let waits = replay::all_waits(&replay::run(&recording, under, settings).unwrap().threads);
        (waits.count(), waits.quantile_ns(0.5).unwrap(), waits.quantile_ns(0.9).unwrap())
    };
    let recorded = replay::all_waits(&replay::as_recorded(&recording));
    assert_eq!((recorded.count(), recorded.quantile_ns(0.5)), (200, Some(Nanoseconds::new(2000))));
    let (wakes, median_ns, most_ns) = figures(Under::Linux(replay::Kernel::of(&recording, 1)));
    assert_eq!((wakes, median_ns), (200, Nanoseconds::new(2000)));
    assert!(most_ns < Nanoseconds::new(4_000_000), "it waits for a tick at most: {most_ns}");
    let (_, round_robin_ns, _) = figures(under("rr"));
    assert!(
        round_robin_ns > Nanoseconds::new(100_000),
        "a policy that takes no processor at a wake-up: {round_robin_ns}"
    );
}

#[test]
fn new_1_linuxs_slice_and_tick_are_those_of_the_recordings_kernel() {
    let mut recording = sleeper_beside_hog();
    let kernel = |recording: &Recording, processors| {
        let kernel = replay::Kernel::of(recording, processors);
        (kernel.slice_ns, kernel.tick_ns)
    };
    assert_eq!(
        kernel(&recording, 1),
        (Nanoseconds::from_micros(700), Nanoseconds::from_millis(4)),
        "nothing is known of it"
    );
    recording.machine.kernel = Some("Linux 6.12.57+deb13-amd64".into());
    assert_eq!(kernel(&recording, 2), (Nanoseconds::from_micros(1_500), Nanoseconds::from_millis(4)));
    recording.machine.kernel = Some("Linux 6.18.44".into());
    assert_eq!(
        [1, 2, 4, 8, 64].map(|of| kernel(&recording, of).0),
        [1, 2, 3, 4, 4].map(|of| of * Nanoseconds::from_micros(700))
    );
}

#[test]
fn new_1_linuxs_own_scheduler_does_exactly_the_recorded_work_on_any_number_of_processors() {
    let recording = recording();
    for processors in [1, 2, 3, 8] {
        let settings = settings(processors, 1);
        let kernel = replay::Kernel::of(&recording, processors);
        let outcome = replay::run(&recording, Under::Linux(kernel), settings).unwrap();
        for (thread, script) in outcome.threads.iter().zip(&recording.scripts) {
            assert_eq!(thread.ran_ns, script.service_ns(), "{processors}: {}", script.name);
        }
        assert_eq!(outcome.busy_ns.iter().copied().sum::<Nanoseconds>(), recording.work_ns());
    }
}

/// Two threads that only compute, in turn, for ten seconds.
fn two_hogs() -> Recording {
    let switch = |nth: u64| {
        let [previous, next] = [1 + (nth % 2) as u32, 2 - (nth % 2) as u32];
        Event::Switch {
            at_ns: Nanoseconds::from_millis(10 * nth),
            processor: 0,
            previous,
            previous_name: previous.to_string(),
            runnable: true,
            ended: false,
            next,
            next_name: next.to_string(),
            next_priority: None,
        }
    };
    Recording::from_events(&(0..=1000).map(switch).collect::<Vec<_>>())
}

#[test]
fn new_1_recorded_threads_may_be_put_into_domains_with_shares_and_measured_while_all_have_work() {
    let mut recording = two_hogs();
    recording.domains = [2, 1].into_iter().filter_map(Share::new).collect();
    for (script, domain) in recording.scripts.iter_mut().zip(1..) {
        script.domain = DomainIndex::new(domain);
    }
    let ran = |measured| {
        let settings = Settings { measured, ..settings(1, 10_000_000) };
        let outcome = replay::run(&recording, under("group-vtrr"), settings).unwrap();
        let ms: Vec<_> = outcome.threads.iter().map(|thread| thread.ran_ns.as_millis_f64().round()).collect();
        ms
    };
    assert_eq!(ran(Some([1, 4].map(Nanoseconds::from_secs))), [2000.0, 1000.0]);
    assert_eq!(ran(None), [5000.0, 5000.0], "in the end each has done its work");
}
