//! What holds for every scenario under every policy.

use mete_policy::{CATALOG, ClientId, Grant, Nanoseconds, ProcessorId, Stop};
use mete_sim::trace::Writer;
use mete_sim::{Recorder, Scenario, report};
use proptest::prelude::*;

/// A step of a program. Some steps wait for other tasks, so that all tasks may end up waiting.
fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (0u32..30_000).prop_map(|us| format!("{{ compute_us = {us} }}")),
        1 => (1u32..5_000).prop_map(|us| format!("{{ compute_us = {{ exponential = {us} }} }}")),
        2 => (0u32..20_000).prop_map(|us| format!("{{ sleep_us = {{ uniform = [{us}, 20000] }} }}")),
        1 => (0u32..3, 0u32..5_000)
            .prop_map(|(lock, us)| format!("{{ lock = \"{lock}\" }}, {{ compute_us = {us} }}, {{ unlock = \"{lock}\" }}")),
        1 => (0u32..3, 0u32..5_000)
            .prop_map(|(lock, us)| format!("{{ spin_lock = \"s{lock}\" }}, {{ compute_us = {us} }}, {{ unlock = \"s{lock}\" }}")),
        1 => (0u32..300).prop_map(|kb| format!("{{ read = {{ disk = \"d\", kb = {kb} }} }}")),
        1 => (0u32..2).prop_map(|to| format!("{{ send = {{ to = \"t{to}\", port = 7, bytes = 100 }} }}")),
        1 => (1u32..4, 1u32..900)
            .prop_map(|(times, us)| format!("{{ repeat = {{ times = {times}, program = [{{ compute_us = {us} }}, \"yield\"] }} }}")),
        1 => (1u32..9).prop_map(|us| {
            let request = "{ request = { remote = \"s\", port = 9, bytes = 50 } }";
            format!("{request}, {{ receive_all = {{ port = 9, each_us = {us} }} }}")
        }),
        1 => (0u32..300).prop_map(|kb| format!("{{ read_on = {{ disk = \"d\", kb = {kb} }} }}")),
        1 => Just("\"done\"".to_owned()),
    ]
}

/// Every program ends with computing, so that time goes on.
fn program() -> impl Strategy<Value = String> {
    (prop::collection::vec(step(), 0..5), 1u32..4_000).prop_map(|(steps, us)| {
        format!("[{}, {{ compute_us = {us} }}]", steps.join(", ")).replace("[, ", "[")
    })
}

/// The tasks that packets are sent to. Every packet is received, though perhaps late, and every port that a
/// task receives on is sent to, though perhaps only once.
const RECEIVERS: usize = 2;

fn task(number: usize) -> impl Strategy<Value = String> {
    let times =
        prop_oneof![3 => Just(String::new()), 1 => (1u32..20).prop_map(|times| format!("times = {times}\n"))];
    // The largest share that can be multiplied by 6, for guests with two and with three virtual processors.
    let share = prop_oneof![4 => 1u32..20, 1 => Just((1u32 << 20) / 6)];
    (program(), share, 0u32..50, 0u32..3, times).prop_map(move |(program, share, start_ms, domain, times)| {
        let receive = "[{ receive = { port = 7 } }, { reply = { bytes = 10 } }, ";
        let program = if number < RECEIVERS { program.replacen('[', receive, 1) } else { program };
        let domain = if domain == 0 { String::new() } else { format!("domain = \"d{domain}\"\n") };
        format!(
            "[[task]]\nname = \"t{number}\"\nshare = {share}\nstart_ms = {start_ms}\n{domain}{times}program = {program}\n"
        )
    })
}

fn guest(number: usize) -> impl Strategy<Value = String> {
    let tasks = prop::collection::vec((program(), -20i32..20), 1..6);
    (tasks, any::<bool>(), 0u32..9, 1u32..4).prop_map(move |(tasks, is_fair, us, vcpus)| {
        let scheduler = if is_fair {
            "{ fair = { latency_ms = 6, least_ms = 1 } }"
        } else {
            "{ priority = { slice_ms = 5 } }"
        };
        let head = format!(
            "[[guest]]\nname = \"g{number}\"\nvcpus = {vcpus}\nscheduler = {scheduler}\n\
             switch_us = {us}\ninterrupt_us = {us}\n"
        );
        let tasks = tasks.iter().enumerate().map(|(task, (program, nice))| {
            format!("[[guest.task]]\nname = \"{task}\"\nnice = {nice}\nprogram = {program}\n")
        });
        std::iter::once(head).chain(tasks).collect()
    })
}

/// A driver domain or none, perhaps a remote machine that asks and one that sends, and always one that
/// serves.
fn devices() -> impl Strategy<Value = String> {
    let driver = prop_oneof![
        Just(String::new()),
        (0u32..30, 1u32..70)
            .prop_map(|(us, batch)| format!("[driver]\nreceive_us = {us}\nbatch = {batch}\n")),
    ];
    (driver, any::<bool>(), any::<bool>(), 1u32..50).prop_map(|(driver, asks, sends, kib)| {
        let serves = format!(
            "[[remote]]\nname = \"s\"\nserves = {{ kib = {kib}, think_ms = {{ exponential = 2 }} }}\n"
        );
        let asks = asks.then_some(
            "[[remote]]\nname = \"a\"\ncount = 2\n\
             asks = { to = \"t0\", port = 7, bytes = 40, think_ms = { uniform = [1, 20] } }\n",
        );
        let sends = sends.then_some("[[remote]]\nname = \"b\"\nsends = { to = \"t1\", port = 7 }\n");
        [&driver, &serves, asks.unwrap_or_default(), sends.unwrap_or_default()].concat()
    })
}

fn scenario() -> impl Strategy<Value = String> {
    let tasks = (2usize..7).prop_flat_map(|tasks| (0..tasks).map(task).collect::<Vec<_>>());
    let guests = (0usize..3).prop_flat_map(|guests| (0..guests).map(guest).collect::<Vec<_>>());
    let payer = prop_oneof![Just("nobody"), Just("incoming")];
    (1u32..6, 0u32..60, payer, tasks, guests, devices(), 1u32..40).prop_map(
        |(processors, switch_us, payer, tasks, guests, devices, share)| {
            let sends = |to: usize| format!("to = \"t{to}\", port = 7");
            let (tasks, guests) = (tasks.concat(), guests.concat());
            let is_silent =
                |to: &usize| ![&tasks, &guests, &devices].iter().any(|text| text.contains(&sends(*to)));
            let more = (0..RECEIVERS).filter(is_silent).map(|to| {
                format!("[[remote]]\nname = \"more {to}\"\nsends = {{ {}, mib = 0.01 }}\n", sends(to))
            });
            let more: String = more.collect();
            format!(
                "about = \"random\"\nduration_ms = 300\n[host]\nprocessors = {processors}\n\
                 switch_us = {switch_us}\npayer = \"{payer}\"\n[policy]\nquantum_ms = 4\n\
                 [[disk]]\nname = \"d\"\nseek_ms = {{ uniform = [0, 9] }}\nmb_per_s = 50\n\
                 [network]\ndelay_us = 50\nmbit_per_s = 100\nsegment_bytes = 1460\n\
                 [[domain]]\nname = \"d1\"\nshare = {share}\n[[domain]]\nname = \"d2\"\nparent = \"d1\"\n\
                 [[change]]\nat_ms = 150\nclient = \"t0\"\nshare = {share}\n{devices}{more}{tasks}{guests}"
            )
        },
    )
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Blocked,
    Ready,
    Running(ProcessorId),
    Over,
}

/// Follows each client's life, and looks for processors that idle while a client is ready.
struct Checker {
    policy: &'static str,
    clients: Vec<State>,
    processors: usize,
    now_ns: Nanoseconds,
}

impl Checker {
    fn change(&mut self, client: ClientId, from: impl Fn(State) -> bool, to: State, now_ns: Nanoseconds) {
        if now_ns > self.now_ns {
            let ready = self.clients.iter().filter(|state| **state == State::Ready).count();
            let running = self.clients.iter().filter(|state| matches!(state, State::Running(_))).count();
            assert!(
                ready == 0 || running == self.processors,
                "{}: {ready} were ready and {running} ran from {} to {now_ns}",
                self.policy,
                self.now_ns
            );
        }
        self.now_ns = now_ns;
        let state = &mut self.clients[client.index()];
        assert!(from(*state), "{}: client {client} went from {state:?} to {to:?}", self.policy);
        *state = to;
    }
}

impl Recorder for Checker {
    fn woke(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.change(client, |state| state == State::Blocked, State::Ready, now_ns);
    }

    fn dispatched(&mut self, processor: ProcessorId, client: ClientId, _grant: Grant, now_ns: Nanoseconds) {
        assert!(!self.clients.contains(&State::Running(processor)), "{}", self.policy);
        self.change(client, |state| state == State::Ready, State::Running(processor), now_ns);
    }

    fn stopped(
        &mut self,
        processor: ProcessorId,
        client: ClientId,
        ran_ns: Nanoseconds,
        stop: Stop,
        now_ns: Nanoseconds,
    ) {
        assert!(ran_ns <= now_ns);
        let next = if stop == Stop::Blocked { State::Blocked } else { State::Ready };
        self.change(client, |state| state == State::Running(processor), next, Nanoseconds::new(now_ns.get()));
    }

    fn exited(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.change(client, |state| state == State::Blocked, State::Over, now_ns);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_machine_conserves_work_and_time_and_repeats_itself(text in scenario(), seed in 0u64..1000) {
        let scenario = Scenario::parse("random", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        for entry in CATALOG {
            let run = || {
                let clients = vec![State::Blocked; scenario.clients.len()];
                let processors = usize::from(scenario.hardware.processors);
                let checker = Checker { policy: entry.name, clients, processors, now_ns: Nanoseconds::ZERO };
                let writer = Writer::new(&scenario, Vec::new()).expect("it fits");
                let run = report::run(&scenario, entry.name, seed, (checker, writer));
                let (report, (_, writer)) = run.expect("it is in the catalog").expect("time goes on");
                (report, writer.finish().expect("memory can be written"))
            };
            let (report, bytes) = run();
            let all_ns = report.measured_ns * u64::from(scenario.hardware.processors);
            prop_assert_eq!(report.times.total_ns(), all_ns, "{}", entry.name);
            let ran_ns: Nanoseconds = report.clients.iter().map(|client| client.ran_ns).sum();
            prop_assert_eq!(ran_ns, report.times.run_ns, "{}", entry.name);
            prop_assert!(run().1 == bytes, "{} does not repeat itself", entry.name);
        }
    }
}
