//! The machine itself, with a model of a few lines: clients that compute, wait and signal.

use mete_policy::{CATALOG, ClientId, DomainIndex, Nanoseconds, ProcessorId, RoundRobin, Setup, Share, Stop};
use mete_sim::random::Stream;
use mete_sim::{Context, Hardware, Host, Model, Payer, Reaction, Recorder, Step};

const MS: Nanoseconds = Nanoseconds::new(1_000_000);

/// Computes and sleeps by turns; its stream gives the lengths. With a longest sleep of 0 it never sleeps.
struct Sleeper {
    stream: Stream,
    longest_burst_ns: Nanoseconds,
    longest_sleep_ns: Nanoseconds,
    left_ns: Nanoseconds,
    is_asleep: bool,
    ran_ns: Nanoseconds,
}

struct Sleepers(Vec<Sleeper>);

impl Model for Sleepers {
    type Signal = ();
    type Event = ();

    fn next(&mut self, client: ClientId, context: &mut Context<Self>) -> Step {
        let sleeper = &mut self.0[client.index()];
        if sleeper.is_asleep {
            return Step::Block;
        }
        if sleeper.left_ns.is_zero() {
            sleeper.left_ns = Nanoseconds::new(1 + sleeper.stream.below(sleeper.longest_burst_ns.get()));
            if !sleeper.longest_sleep_ns.is_zero() {
                sleeper.is_asleep = true;
                context.notify_after(
                    Nanoseconds::new(sleeper.stream.below(sleeper.longest_sleep_ns.get())),
                    client,
                    (),
                );
                return Step::Block;
            }
        }
        Step::Compute(sleeper.left_ns)
    }

    fn advance(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let sleeper = &mut self.0[client.index()];
        sleeper.left_ns -= ran_ns;
        sleeper.ran_ns += ran_ns;
    }

    fn deliver(&mut self, client: ClientId, (): (), _context: &mut Context<Self>) -> Reaction {
        self.0[client.index()].is_asleep = false;
        Reaction::Wake
    }

    fn event(&mut self, (): (), _context: &mut Context<Self>) {}
}

fn sleeper(seed: u64, client: u32, longest_burst_ns: u64, longest_sleep_ns: u64) -> Sleeper {
    let stream = Stream::new(seed, &format!("client {client}"));
    Sleeper {
        stream,
        longest_burst_ns: Nanoseconds::new(longest_burst_ns),
        longest_sleep_ns: Nanoseconds::new(longest_sleep_ns),
        left_ns: Nanoseconds::ZERO,
        is_asleep: false,
        ran_ns: Nanoseconds::ZERO,
    }
}

/// Every line of a run as text: equal texts mean equal runs.
#[derive(Default)]
struct Lines(Vec<String>);

impl Recorder for Lines {
    fn woke(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.0.push(format!("{now_ns} {client} woke"));
    }

    fn stopped(
        &mut self,
        processor: ProcessorId,
        client: ClientId,
        ran_ns: Nanoseconds,
        stop: Stop,
        now_ns: Nanoseconds,
    ) {
        self.0.push(format!("{now_ns} {client} ran {ran_ns} on {processor}: {stop:?}"));
    }
}

/// A host with clients of all kinds, under the policy with this index in the catalog.
fn mixed(policy: usize, seed: u64, hardware: Hardware) -> Host<impl mete_policy::Policy, Sleepers, Lines> {
    let clients = 7;
    let setup = Setup { processors: hardware.processors, seed, ..Setup::for_clients(clients) };
    let sleepers = (0..clients)
        .map(|client| sleeper(seed, client, (20 * MS).get(), (u64::from(client % 3) * 15 * MS).get()))
        .collect();
    let mut host = Host::new(hardware, (CATALOG[policy].make)(&setup), Sleepers(sleepers), Lines::default());
    for client in 0..clients {
        host.add(
            ClientId::new(client),
            DomainIndex::new(0),
            Share::new(1 + client).expect("in range"),
            u64::from(client) * MS,
        );
    }
    host
}

fn hardware(processors: u16) -> Hardware {
    Hardware { processors, switch_ns: Nanoseconds::new(3_000), payer: Payer::Nobody }
}

#[test]
fn round_robin_deals_slices_in_turn_and_switches_cost_what_the_hardware_says() {
    let setup = Setup::for_clients(2);
    let sleepers = Sleepers(vec![sleeper(0, 0, u64::MAX >> 1, 0), sleeper(0, 1, u64::MAX >> 1, 0)]);
    let mut host = Host::new(hardware(1), RoundRobin::new(&setup), sleepers, Lines::default());
    host.add(ClientId::new(0), DomainIndex::new(0), Share::ONE, Nanoseconds::ZERO);
    host.add(ClientId::new(1), DomainIndex::new(0), Share::ONE, Nanoseconds::ZERO);
    host.run_until(21 * MS).expect("time goes on");
    let lines: Vec<_> = host.recorder().0.iter().map(String::as_str).collect();
    assert_eq!(
        lines,
        [
            "0 0 woke",
            "0 1 woke",
            "10003000 0 ran 10000000 on 0: Expired",
            "20006000 1 ran 10000000 on 0: Expired"
        ]
    );
    let times: Vec<_> = host.times().collect();
    assert_eq!(
        (times[0].switch_ns, times[0].run_ns, times[0].idle_ns),
        (Nanoseconds::new(9_000), Nanoseconds::new(20_991_000), Nanoseconds::ZERO)
    );
}

#[test]
fn a_client_that_pays_for_a_switch_is_charged_it_as_time_that_it_ran() {
    let setup = Setup::for_clients(2);
    let sleepers = Sleepers(vec![sleeper(0, 0, u64::MAX >> 1, 0), sleeper(0, 1, u64::MAX >> 1, 0)]);
    let paid = Hardware { payer: Payer::Incoming, ..hardware(1) };
    let mut host = Host::new(paid, RoundRobin::new(&setup), sleepers, Lines::default());
    host.add(ClientId::new(0), DomainIndex::new(0), Share::ONE, Nanoseconds::ZERO);
    host.add(ClientId::new(1), DomainIndex::new(0), Share::ONE, Nanoseconds::ZERO);
    host.run_until(11 * MS).expect("time goes on");
    assert_eq!(host.recorder().0[2], "10003000 0 ran 10003000 on 0: Expired");
    assert_eq!(host.ran_ns(ClientId::new(0)), 10 * MS, "the switch is no work");
}

#[test]
fn the_times_of_all_processors_add_up_to_the_duration_under_every_policy() {
    for (policy, entry) in CATALOG.iter().enumerate() {
        for processors in [1, 2, 3, 8] {
            let mut host = mixed(policy, 5, hardware(processors));
            let mut ran_ns = Nanoseconds::ZERO;
            for end_ns in [Nanoseconds::new(1), 7 * MS, Nanoseconds::new(333_333_333), 2_000 * MS] {
                host.run_until(end_ns).expect("time goes on");
                for times in host.times() {
                    assert_eq!(times.run_ns + times.switch_ns + times.idle_ns, end_ns, "{}", entry.name);
                }
                ran_ns = host.times().map(|times| times.run_ns).sum();
                let of_clients: Nanoseconds = (0..7).map(|client| host.ran_ns(ClientId::new(client))).sum();
                assert_eq!(of_clients, ran_ns, "{}", entry.name);
            }
            let known_to_bodies: Nanoseconds = host.model().0.iter().map(|sleeper| sleeper.ran_ns).sum();
            assert!(ran_ns - known_to_bodies < u64::from(processors) * 1_000 * MS, "{}", entry.name);
        }
    }
}

#[test]
fn a_seed_gives_one_run_line_by_line_under_every_policy() {
    for policy in 0..CATALOG.len() {
        let run = |seed| {
            let mut host = mixed(policy, seed, hardware(2));
            host.run_until(1_000 * MS).expect("time goes on");
            host.into_recorder().0
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}

#[test]
fn stopping_in_the_middle_changes_nothing() {
    let mut whole = mixed(0, 3, hardware(2));
    whole.run_until(500 * MS).expect("time goes on");
    let mut pieces = mixed(0, 3, hardware(2));
    for end_ns in (0..=500).map(|piece| piece * MS) {
        pieces.run_until(end_ns).expect("time goes on");
    }
    assert_eq!(whole.into_recorder().0, pieces.into_recorder().0);
}

/// A model that asks for nothing and takes no time.
struct Restless;

impl Model for Restless {
    type Signal = ();
    type Event = ();

    fn next(&mut self, _client: ClientId, _context: &mut Context<Self>) -> Step {
        Step::Continue
    }

    fn advance(&mut self, _client: ClientId, _ran_ns: Nanoseconds) {}

    fn deliver(&mut self, _client: ClientId, (): (), _context: &mut Context<Self>) -> Reaction {
        Reaction::Pending
    }

    fn event(&mut self, (): (), _context: &mut Context<Self>) {}
}

#[test]
fn a_model_that_never_lets_time_go_on_is_an_error_and_no_endless_loop() {
    let mut host = Host::new(hardware(1), RoundRobin::new(&Setup::for_clients(1)), Restless, ());
    host.add(ClientId::new(0), DomainIndex::new(0), Share::ONE, Nanoseconds::new(5));
    let stalled = host.run_until(MS).expect_err("it stands still");
    assert_eq!((stalled.client, stalled.now_ns), (ClientId::new(0), Nanoseconds::new(3_005)));
}
