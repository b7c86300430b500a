//! The driver domain, disks, the network and remote machines: when things happen, and what the host sees.

use std::sync::Arc;

use mete_policy::{
    ClientId, DomainIndex, Event, Nanoseconds, Observation, RequestId, RoundRobin, Setup, Share, TaskId,
};
use mete_sim::random::{Distribution, LONGEST_NS, Stream};
use mete_sim::scene::guest::{Guest, Kernel, KernelCosts, Priority};
use mete_sim::scene::{Disk, DriverCosts, Io, Network, Op, Program, Remote, TellSent};
use mete_sim::{Hardware, Host, Note, Recorder, Scene};

const US: Nanoseconds = Nanoseconds::new(1_000);
const MS: Nanoseconds = Nanoseconds::new(1_000_000);
const S: Nanoseconds = Nanoseconds::from_secs(1);

const DRIVER: ClientId = ClientId::new(0);
const GUEST: ClientId = ClientId::new(1);
const OTHER: ClientId = ClientId::new(2);
const PORT: u16 = 7;
/// Linux's least timeout.
const PATIENCE_NS: Nanoseconds = Nanoseconds::from_millis(200);

#[derive(Default)]
struct Seen {
    observed: Vec<(Nanoseconds, Observation)>,
    responses_ns: Vec<Nanoseconds>,
    done: u64,
}

impl Recorder for Seen {
    fn observed(&mut self, observation: Observation, now_ns: Nanoseconds) {
        self.observed.push((now_ns, observation));
    }

    fn noted(&mut self, note: Note, _now_ns: Nanoseconds) {
        match note {
            Note::Response { took_ns, .. } => self.responses_ns.push(took_ns),
            Note::Done { client: GUEST, .. } => self.done += 1,
            _ => {}
        }
    }
}

impl Seen {
    fn times(&self, wanted: impl Fn(&Observation) -> bool) -> Vec<Nanoseconds> {
        self.observed.iter().filter(|(_, what)| wanted(what)).map(|&(now_ns, _)| now_ns).collect()
    }
}

fn program(times: Option<u64>, ops: &[Op]) -> Arc<Program> {
    let mut program = Program::new(times);
    ops.iter().for_each(|op| program.push(op.clone()));
    Arc::new(program)
}

fn fixed(value: u64) -> Distribution {
    Distribution::Fixed(value)
}

fn receive() -> Op {
    Op::Receive { port: PORT }
}

/// A millisecond's transfer.
fn read(goes_on: bool) -> Op {
    Op::Read { disk: 0, bytes: fixed(100_000), goes_on }
}

fn disk() -> Disk {
    Disk { seek: fixed((5 * MS).get()), bytes_per_s: 100_000_000 }
}

/// 100 Mbit/s of Ethernet with TCP, without a delay.
const ETHERNET: Network =
    Network { delay_ns: Nanoseconds::ZERO, bytes_per_s: 12_500_000, header_bytes: 78, segment_bytes: 1460 };

type Devices = Host<RoundRobin, Scene, Seen>;

/// A driver and guests with one task each. Each has a processor of its own, so that no client waits for one.
fn host(network: Network, costs: DriverCosts, remotes: &[Remote], tasks: &[Arc<Program>]) -> Devices {
    let mut io = Io::new(vec![disk()], network, 1);
    for &remote in remotes {
        io.add_remote(remote);
    }
    let mut scene = Scene::new(io, 0);
    scene.add_driver(costs);
    for (number, task) in tasks.iter().enumerate() {
        let mut guest = Guest::new(1, Kernel::Priority(Priority::new(100 * MS)), KernelCosts::default());
        guest.add_task(Arc::clone(task), 0, Stream::new(1, &format!("task {number}")));
        scene.add_guest(guest);
    }
    let clients = tasks.len() as u32 + 1;
    let hardware = Hardware { processors: clients as u16, ..Hardware::default() };
    let setup = Setup { processors: hardware.processors, ..Setup::for_clients(clients) };
    let mut host = Host::new(hardware, RoundRobin::new(&setup), scene, Seen::default());
    for client in 0..clients {
        host.add(ClientId::new(client), DomainIndex::new(0), Share::ONE, Nanoseconds::ZERO);
    }
    host.prepare(|scene, context| scene.start(context));
    host
}

/// 10 µs for each kind of work, and this number of jobs in a batch.
fn batches_of(batch: u32) -> DriverCosts {
    DriverCosts { batch, ..DriverCosts::default() }
}

#[test]
fn a_read_goes_through_the_driver_both_ways_and_the_host_sees_each_step() {
    let reader = program(Some(1), &[read(false)]);
    let mut host = host(ETHERNET, batches_of(64), &[], &[reader]);
    host.run_until(S).expect("time goes on");
    let driver_time = Observation::DriverTime { driver: DRIVER, client: GUEST, used_ns: 10 * US };
    let kick = Observation::EventPending { client: DRIVER, event: Event::Other };
    // 10 µs of the driver, 5 ms of positioning, 1 ms of data, 10 µs of the driver.
    assert_eq!(
        host.recorder().observed,
        [
            (Nanoseconds::ZERO, Observation::Driver { client: DRIVER }),
            (Nanoseconds::ZERO, Observation::TaskSwitch { client: GUEST, task: TaskId::new(0) }),
            (Nanoseconds::ZERO, Observation::BlockRead { client: GUEST, request: RequestId::new(0) }),
            (Nanoseconds::ZERO, Observation::Notify { from: GUEST, to: DRIVER }),
            (Nanoseconds::ZERO, kick),
            (10 * US, driver_time),
            (6 * MS + 10 * US, kick),
            (6 * MS + 20 * US, driver_time),
            (6 * MS + 20 * US, Observation::Notify { from: DRIVER, to: GUEST }),
            (
                6 * MS + 20 * US,
                Observation::EventPending { client: GUEST, event: Event::Block(RequestId::new(0)) }
            ),
            (6 * MS + 20 * US, Observation::TaskExit { client: GUEST, task: TaskId::new(0) }),
        ]
    );
}

#[test]
fn a_read_that_goes_on_needs_no_positioning_unless_another_was_there() {
    let (anew, on) = (false, true);
    let reader = |goes_on, times| program(Some(times), &[read(goes_on)]);
    let last = |tasks: &[Arc<Program>]| {
        let mut host = host(ETHERNET, batches_of(64), &[], tasks);
        host.run_until(S).expect("time goes on");
        let reads = host.recorder().times(|what| {
            matches!(what, Observation::EventPending { event: Event::Block(_), client } if *client != DRIVER)
        });
        reads.into_iter().next_back()
    };
    let driver_ns = 20 * US;
    assert_eq!(last(&[reader(anew, 4)]), Some(4 * (6 * MS + driver_ns)));
    assert_eq!(last(&[reader(on, 4)]), Some(5 * MS + 4 * (MS + driver_ns)));
    let in_turn = last(&[reader(on, 4), reader(on, 4)]);
    assert!(in_turn > Some(8 * 6 * MS), "each moves the other's head: {in_turn:?}");
}

/// What TAVS's inspection window is for (TAVS paper, section 3.5.1): another task runs when the read is sent.
#[test]
fn tavs_5_a_kernel_that_serves_one_reader_at_a_time_sends_the_next_read_when_one_is_complete() {
    let reader = || program(None, &[read(false), Op::Done]);
    let requests = |depth| {
        let mut guest = Guest::new(1, Kernel::Priority(Priority::new(100 * MS)), KernelCosts::default());
        for (task, program) in [reader(), reader()].into_iter().enumerate() {
            guest.add_task(program, 0, Stream::new(1, &format!("task {task}")));
        }
        guest.set_read_depth(depth);
        let mut scene = Scene::new(Io::new(vec![disk()], ETHERNET, 1), 0);
        scene.add_guest(guest);
        let policy = RoundRobin::new(&Setup::for_clients(1));
        let mut host = Host::new(Hardware::default(), policy, scene, Seen::default());
        host.add(ClientId::new(0), DomainIndex::new(0), Share::ONE, Nanoseconds::ZERO);
        host.run_until(20 * MS).expect("time goes on");
        host.recorder().times(|what| matches!(what, Observation::BlockRead { .. }))
    };
    assert_eq!(
        requests(0)[..3],
        [Nanoseconds::ZERO, Nanoseconds::ZERO, 6 * MS],
        "both at once, and again when the first is complete"
    );
    assert_eq!(requests(1)[..3], [Nanoseconds::ZERO, 6 * MS, 12 * MS]);
}

#[test]
fn packets_take_their_time_on_the_wire_one_after_the_other() {
    let sender =
        program(Some(1), &[Op::Request { remote: 0, port: PORT, bytes: fixed(1460) }, receive(), Op::Done]);
    let server = Remote::Serves { bytes: fixed(1460), think: fixed(0), window: 44, patience_ns: PATIENCE_NS };
    let mut host = host(ETHERNET, batches_of(64), &[server], &[sender]);
    host.run_until(S).expect("time goes on");
    let arrived = host.recorder().times(|what| {
        *what == Observation::EventPending { client: GUEST, event: Event::Packet { port: PORT } }
    });
    // 1538 bytes are 123.04 µs each way, and the driver takes 10 µs for each.
    assert_eq!((arrived, host.recorder().done), (vec![2 * (Nanoseconds::new(123_040) + 10 * US)], 1));
}

#[test]
fn a_batch_notifies_each_guest_once_and_is_cut_where_the_driver_is_told_to() {
    // Each remote machine asks with a message of 3 packets, and the wire takes no time: 6 jobs stand in the
    // queue.
    let at_once = Network { segment_bytes: 1460, ..Network::default() };
    let asks =
        |to| Remote::Asks { to, port: PORT, bytes: fixed(3 * 1460), think: fixed(0), acknowledge_ns: None };
    let reader = || program(None, &[receive(), Op::Compute(fixed(1))]);
    for (batch, expected) in [(64, vec![60, 60]), (4, vec![40, 40, 60]), (1, vec![10, 20, 30, 40, 50, 60])] {
        let remotes = [asks(GUEST), asks(OTHER)];
        let mut host = host(at_once, batches_of(batch), &remotes, &[reader(), reader()]);
        host.run_until(60 * US + Nanoseconds::new(1)).expect("time goes on");
        let notified = host.recorder().times(|what| matches!(what, Observation::Notify { from: DRIVER, .. }));
        let notified_us: Vec<_> = notified.iter().map(|&now_ns| now_ns / US).collect();
        assert_eq!(notified_us, expected, "batches of {batch}");
        let packets = host
            .recorder()
            .times(|what| matches!(what, Observation::EventPending { event: Event::Packet { .. }, .. }));
        assert_eq!(packets.len(), 6, "each packet is seen by itself");
    }
}

#[test]
fn a_guest_notifies_its_driver_only_when_that_has_taken_all_it_asked_for() {
    let send = Op::Request { remote: 0, port: PORT, bytes: fixed(100) };
    let burst = program(Some(1), &[send.clone(), send.clone(), send, Op::Compute(fixed(MS.get()))]);
    let server = Remote::Serves { bytes: fixed(1), think: fixed(0), window: 2, patience_ns: PATIENCE_NS };
    let mut host = host(ETHERNET, batches_of(64), &[server], &[burst]);
    host.run_until(S / 2).expect("time goes on");
    let notified = host.recorder().times(|what| *what == Observation::Notify { from: GUEST, to: DRIVER });
    assert_eq!(notified, [Nanoseconds::ZERO], "three packets, one notification");
}

#[test]
fn a_stream_is_clocked_by_its_acknowledgements_and_fills_the_link() {
    let sends = |window| Remote::Sends {
        to: GUEST,
        port: PORT,
        bytes: LONGEST_NS.get(),
        window,
        patience_ns: PATIENCE_NS,
    };
    let reader = program(None, &[receive(), Op::Done]);
    let mbit_per_s = |network, window| {
        let mut host = host(network, batches_of(64), &[sends(window)], std::slice::from_ref(&reader));
        host.run_until(10 * S).expect("time goes on");
        host.recorder().done * 1460 * 8 / 10 / 1_000_000
    };
    // Of 1538 bytes on the wire, 1460 are the stream's.
    assert_eq!(mbit_per_s(ETHERNET, 44), 94);
    // 10 ms each way: 44 segments in 20.2 ms are 25.4 Mbit/s, and half of them are half of that.
    let far = Network { delay_ns: 10 * MS, ..ETHERNET };
    assert_eq!((mbit_per_s(far, 44), mbit_per_s(far, 22)), (25, 12));
}

#[test]
fn a_stream_has_no_more_under_way_than_its_window() {
    let silent =
        program(None, &[Op::Sleep(fixed(MS.get())), Op::Send { to: GUEST, port: PORT + 1, bytes: fixed(1) }]);
    let listens_elsewhere = program(None, &[Op::Receive { port: PORT }, Op::Sleep(fixed((10 * S).get()))]);
    let sends =
        Remote::Sends { to: GUEST, port: PORT, bytes: LONGEST_NS.get(), window: 2, patience_ns: PATIENCE_NS };
    let mut host = host(ETHERNET, batches_of(64), &[sends], &[listens_elsewhere, silent]);
    host.run_until(S).expect("time goes on");
    let packets = host.recorder().times(|what| {
        *what == Observation::EventPending { client: GUEST, event: Event::Packet { port: PORT } }
    });
    assert_eq!(packets.len(), 3, "the receiver takes one and sleeps; its kernel says that one more has room");
}

#[test]
fn a_page_comes_in_segments_and_its_time_is_measured_where_it_was_asked_for() {
    let browser = program(
        Some(3),
        &[
            Op::Request { remote: 0, port: PORT, bytes: fixed(300) },
            Op::ReceiveAll { port: PORT, each: fixed((20 * US).get()) },
            Op::Done,
        ],
    );
    let server =
        Remote::Serves { bytes: fixed(8_600), think: fixed(MS.get()), window: 44, patience_ns: PATIENCE_NS };
    let mut host = host(ETHERNET, batches_of(64), &[server], &[browser]);
    host.run_until(S).expect("time goes on");
    let packets = host.recorder().times(|what| {
        *what == Observation::EventPending { client: GUEST, event: Event::Packet { port: PORT } }
    });
    assert_eq!((packets.len(), host.recorder().done), (3 * 6, 3), "8.6 KB are six segments");
    let responses_ns = &host.recorder().responses_ns;
    assert_eq!(responses_ns.len(), 3);
    let on_the_wire_ns = (8_600 + 6 * 78) * 80;
    assert!(
        responses_ns
            .iter()
            .all(|&took_ns| took_ns > MS + Nanoseconds::new(on_the_wire_ns) && took_ns < 3 * MS)
    );
}

#[test]
fn a_remote_client_thinks_asks_and_waits_and_long_answers_come_whole() {
    let server =
        program(None, &[receive(), Op::Compute(fixed((100 * US).get())), Op::Reply { bytes: fixed(3_000) }]);
    let asks = Remote::Asks {
        to: GUEST,
        port: PORT,
        bytes: fixed(40),
        think: fixed((50 * MS).get()),
        acknowledge_ns: None,
    };
    let mut host = host(ETHERNET, batches_of(64), &[asks], &[server]);
    host.run_until(S).expect("time goes on");
    let took_ns = host.recorder().responses_ns.first().copied();
    // 118 bytes to the guest; 3000 bytes back in 3 packets, the first two full; 10 µs of the driver for each
    // packet.
    let back_ns = 2 * 1538 * 80 + (80 + 78) * 80;
    assert_eq!(
        took_ns,
        Some(Nanoseconds::new(118 * 80) + 10 * US + 100 * US + 10 * US + Nanoseconds::new(back_ns))
    );
    assert_eq!(host.recorder().responses_ns.len(), 19, "one each 50.5 ms");
}

#[test]
fn without_a_driver_devices_serve_clients_at_once() {
    let reader = program(Some(1), &[read(false)]);
    let mut guest = Guest::new(1, Kernel::Priority(Priority::new(100 * MS)), KernelCosts::default());
    guest.add_task(reader, 0, Stream::new(1, "reader"));
    let mut scene = Scene::new(Io::new(vec![disk()], ETHERNET, 1), 0);
    scene.add_guest(guest);
    let policy = RoundRobin::new(&Setup::for_clients(1));
    let mut host = Host::new(Hardware::default(), policy, scene, Seen::default());
    host.add(ClientId::new(0), DomainIndex::new(0), Share::ONE, Nanoseconds::ZERO);
    host.run_until(S).expect("time goes on");
    let done = host.recorder().times(|what| matches!(what, Observation::EventPending { .. }));
    assert_eq!(done, [6 * MS]);
}

/// Xen's network frontend asks for an event by the packet in the middle of those under way when it looks.
#[test]
fn tavs_6_a_guest_hears_that_a_packet_is_sent_if_the_driver_tells() {
    for tell_sent in [TellSent::Never, TellSent::Middle, TellSent::After(1), TellSent::After(2)] {
        let sender = program(Some(1), &[Op::Request { remote: 0, port: PORT, bytes: fixed(40) }]);
        let serves =
            Remote::Serves { bytes: fixed(40), think: fixed(S.get()), window: 2, patience_ns: PATIENCE_NS };
        let costs = DriverCosts { tell_sent, ..DriverCosts::default() };
        let mut host = host(ETHERNET, costs, &[serves], &[sender, program(None, &[receive()])]);
        host.run_until(100 * MS).expect("time goes on");
        let told = Observation::EventPending { client: GUEST, event: Event::Other };
        let hears = matches!(tell_sent, TellSent::Middle | TellSent::After(1));
        let expected = if hears { vec![10 * US] } else { vec![] };
        assert_eq!(host.recorder().times(|what| *what == told), expected);
    }
}

/// TAVS §5.2: "TCP requires kernel-level instrumentation due to control packets such as ACK".
#[test]
fn tavs_4_an_answer_over_tcp_is_acknowledged_late_unless_the_next_question_is_earlier() {
    for (think_ms, acknowledged) in [(30, 0), (90, 1)] {
        let server = program(None, &[receive(), Op::Reply { bytes: fixed(40) }, Op::Done]);
        let asks = Remote::Asks {
            to: GUEST,
            port: PORT,
            bytes: fixed(40),
            think: fixed((think_ms * MS).get()),
            acknowledge_ns: Some(40 * MS),
        };
        let mut host = host(ETHERNET, batches_of(64), &[asks], &[server]);
        host.run_until(10 * think_ms * MS).expect("time goes on");
        let seen = host.recorder();
        let packet = Observation::EventPending { client: GUEST, event: Event::Packet { port: PORT } };
        let packets = seen.times(|what| *what == packet).len() as u64;
        assert_eq!(seen.done, 9, "a question at a time, and no task is woken for an acknowledgement");
        assert_eq!(packets - seen.done, seen.done * acknowledged, "after {think_ms} ms");
    }
}
