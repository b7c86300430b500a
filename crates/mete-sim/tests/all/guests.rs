//! Guest kernels: which task runs, what the host sees of it, and when.

use std::sync::Arc;

use mete_policy::{
    ClientId, DomainIndex, Event, Nanoseconds, Observation, RequestId, RoundRobin, Setup, Share, TaskId,
};
use mete_sim::random::{Distribution, Stream};
use mete_sim::scene::guest::{Fair, Guest, Kernel, KernelCosts, Priority};
use mete_sim::scene::{Disk, Io, Network, Op, Program};
use mete_sim::{Hardware, Host, Note, Recorder, Scenario, Scene, report};

const MS: Nanoseconds = Nanoseconds::new(1_000_000);

#[derive(Default)]
struct Seen {
    observed: Vec<(Observation, Nanoseconds)>,
    woke: Vec<(u16, Nanoseconds)>,
    done: [u64; 4],
}

impl Recorder for Seen {
    fn observed(&mut self, observation: Observation, now_ns: Nanoseconds) {
        self.observed.push((observation, now_ns));
    }

    fn noted(&mut self, note: Note, now_ns: Nanoseconds) {
        match note {
            Note::TaskWoke { task, .. } => self.woke.push((task, now_ns)),
            Note::Done { task, .. } => self.done[usize::from(task)] += 1,
            Note::Response { .. } => {}
        }
    }
}

fn program(ops: &[Op]) -> Arc<Program> {
    let mut program = Program::new(None);
    ops.iter().for_each(|op| program.push(op.clone()));
    Arc::new(program)
}

fn compute(ns: Nanoseconds) -> Op {
    Op::Compute(Distribution::Fixed(ns.get()))
}

fn sleep(ns: Nanoseconds) -> Op {
    Op::Sleep(Distribution::Fixed(ns.get()))
}

/// One guest with these tasks, alone on its host.
fn host(kernel: Kernel, costs: KernelCosts, tasks: &[Arc<Program>]) -> Host<RoundRobin, Scene, Seen> {
    let mut guest = Guest::new(1, kernel, costs);
    for (number, task) in tasks.iter().enumerate() {
        guest.add_task(Arc::clone(task), 0, Stream::new(1, &format!("task {number}")));
    }
    let disk = Disk { seek: Distribution::Fixed((5 * MS).get()), bytes_per_s: 0 };
    let network = Network::default();
    let mut scene = Scene::new(Io::new(vec![disk], network, 1), 1);
    scene.add_guest(guest);
    let policy = RoundRobin::new(&Setup::for_clients(1));
    let mut host = Host::new(Hardware::default(), policy, scene, Seen::default());
    host.add(ClientId::new(0), DomainIndex::new(0), Share::ONE, Nanoseconds::ZERO);
    host
}

fn priority() -> Kernel {
    Kernel::Priority(Priority::new(100 * MS))
}

fn task_switches(seen: &Seen) -> Vec<(u16, Nanoseconds)> {
    let switch = |(observation, now_ns): &(Observation, Nanoseconds)| match observation {
        Observation::TaskSwitch { task, .. } => Some((task.get(), *now_ns)),
        _ => None,
    };
    seen.observed.iter().filter_map(switch).collect()
}

fn ran_ns(host: &Host<RoundRobin, Scene, Seen>, client: ClientId, task: u16) -> Nanoseconds {
    host.model().guest(client).map_or(Nanoseconds::ZERO, |guest| guest.ran_ns(task))
}

#[test]
fn tavs_2_the_host_sees_an_io_bound_task_preempt_a_computing_one_at_each_event() {
    let io = program(&[sleep(50 * MS), compute(MS / 10)]);
    let mut host = host(priority(), KernelCosts::default(), &[io, program(&[compute(MS)])]);
    host.run_until(1_000 * MS).expect("time goes on");
    let seen = host.recorder();
    let after_start: Vec<_> =
        task_switches(seen).into_iter().skip_while(|(_, now_ns)| *now_ns < 500 * MS).collect();
    let events: Vec<_> = seen
        .observed
        .iter()
        .filter(|(what, now_ns)| {
            *now_ns >= 500 * MS && matches!(what, Observation::EventPending { event: Event::Other, .. })
        })
        .map(|(_, now_ns)| *now_ns)
        .collect();
    assert!(events.len() >= 9, "a timer every 50.1 ms");
    for event_ns in events {
        assert!(after_start.contains(&(0, event_ns)), "switched to at once at {event_ns}");
    }
}

#[test]
fn two_tasks_that_compute_share_a_guest_evenly_even_beside_one_that_wakes_often() {
    for kernel in [priority(), Kernel::Fair(Fair::new(20 * MS, 4 * MS))] {
        let hog = program(&[compute(7 * MS)]);
        let io = program(&[sleep(3 * MS), compute(MS / 100)]);
        let mut host = host(kernel, KernelCosts::default(), &[hog.clone(), hog, io]);
        host.run_until(20_000 * MS).expect("time goes on");
        let (first, second) = (ran_ns(&host, ClientId::new(0), 0), ran_ns(&host, ClientId::new(0), 1));
        assert!(first.abs_diff(second) <= 100 * MS, "{first} and {second}");
        let woke = host.recorder().woke.len();
        assert!(woke > 5_000, "the third woke {woke} times");
    }
}

#[test]
fn a_guest_with_nothing_to_do_leaves_its_processor_idle_and_the_same_task_is_no_switch() {
    let mut host = host(priority(), KernelCosts::default(), &[program(&[compute(MS), sleep(9 * MS)])]);
    host.run_until(1_000 * MS).expect("time goes on");
    let times = host.times().next().expect("there is one");
    assert_eq!((times.run_ns, times.idle_ns), (100 * MS, 900 * MS));
    assert_eq!(task_switches(host.recorder()), [(0, Nanoseconds::ZERO)]);
}

#[test]
fn tavs_5_a_completed_read_is_seen_with_its_request_before_the_task_wakes() {
    let reader = program(&[
        Op::Read { disk: 0, bytes: Distribution::Fixed(4096), goes_on: false },
        compute(MS),
        Op::Done,
    ]);
    let mut host = host(priority(), KernelCosts::default(), &[reader]);
    host.run_until(60 * MS).expect("time goes on");
    let seen = host.recorder();
    assert_eq!(
        seen.observed[..3],
        [
            (Observation::TaskSwitch { client: ClientId::new(0), task: TaskId::new(0) }, Nanoseconds::ZERO),
            (
                Observation::BlockRead { client: ClientId::new(0), request: RequestId::new(0) },
                Nanoseconds::ZERO
            ),
            (
                Observation::EventPending {
                    client: ClientId::new(0),
                    event: Event::Block(RequestId::new(0))
                },
                5 * MS
            ),
        ]
    );
    assert_eq!((seen.woke[0], seen.done[0]), ((0, 5 * MS), 9));
}

#[test]
fn a_kernels_own_work_is_done_before_its_tasks_go_on() {
    let costs = KernelCosts {
        switch_ns: Nanoseconds::new(2_000),
        interrupt_ns: Nanoseconds::new(3_000),
        ..KernelCosts::default()
    };
    let mut host = host(priority(), costs, &[program(&[compute(MS), sleep(9 * MS)])]);
    host.run_until(40 * MS).expect("time goes on");
    let times = host.times().next().expect("there is one");
    assert_eq!(ran_ns(&host, ClientId::new(0), 0), 4 * MS);
    assert_eq!(
        times.run_ns,
        4 * MS + Nanoseconds::new(2_000) + Nanoseconds::new(3 * 3_000),
        "one switch, and an interrupt for each of three wake-ups"
    );
}

#[test]
fn a_lock_serialises_the_tasks_of_a_guest() {
    let locker = program(&[Op::Lock(0), compute(MS), sleep(MS), Op::Unlock(0), Op::Done]);
    let mut host = host(priority(), KernelCosts::default(), &[locker.clone(), locker]);
    host.run_until(20 * MS).expect("time goes on");
    let times = host.times().next().expect("there is one");
    assert_eq!((times.run_ns, times.idle_ns), (10 * MS, 10 * MS), "never both at a time");
    assert_eq!(host.recorder().done[..2], [5, 4]);
}

#[test]
fn a_lock_inside_one_guest_is_none_inside_another() {
    let text = r#"
        about = "two guests, two processors, one name"
        duration_ms = 100
        host = { processors = 2 }
        guest = [{ name = "g", count = 2, task = [
            { name = "t", program = [{ lock = "l" }, { compute_ms = 1 }, { unlock = "l" }, "done"] },
        ] }]
    "#;
    let scenario = Scenario::parse("x.toml", text, &[]).expect("it is right");
    let (report, ()) = report::run(&scenario, "rr", 1, ()).expect("it is known").expect("time goes on");
    assert_eq!(
        (report.times.idle_ns, report.clients[0].done, report.clients[1].done),
        (Nanoseconds::ZERO, 99, 99)
    );
}

#[test]
fn packets_between_tasks_of_a_guest_are_not_seen_outside_and_wait_for_room() {
    let text = r#"
        about = "a guest that talks to itself"
        duration_ms = 100
        network = { delay_us = 1000 }
        driver = {}
        guest = [{ name = "g", interrupt_us = 9, port_packets = 8, task = [
            { name = "sender", program = [{ compute_us = 10 }, { send = { to = "g", port = 7, bytes = 9 } }, "done"] },
            { name = "receiver", program = [{ receive = { port = 7 } }, { compute_us = 90 }, "done"] },
            { name = "answered", program = [{ receive = { port = 8 } }] },
            { name = "asker", times = 1, program = [{ sleep_us = 1 }, { send = { to = "g", port = 8, bytes = 1 } }] },
        ] }]
    "#;
    let scenario = Scenario::parse("x.toml", text, &[]).expect("it is right");
    let policy = scenario.policy("rr", 1).expect("it is in the catalog");
    let mut host = scenario.host(policy, Seen::default(), 1);
    let mut full = 0;
    for step in 1..=1_000 {
        host.run_until(step * MS / 10).expect("time goes on");
        let [sent, received, ..] = host.recorder().done;
        assert!(sent <= received + 9, "{sent} sent and {received} received: 8 wait, one is in hand");
        full += u32::from(sent >= received + 8);
    }
    let [sent, received, ..] = host.recorder().done;
    assert!(received >= 990 && full > 100, "{received} received of {sent}, {full} times full");
    let events = host.recorder().observed.iter().filter(|(what, _)| {
        matches!(what, Observation::EventPending { client, .. } if client.get() == 1)
            || matches!(what, Observation::Notify { .. })
    });
    assert_eq!(events.count(), 1, "the asker's timer, and no packet");
}
