//! A client that wakes in the middle of a quantum begins where virtual time is then. So sleeping is worth
//! nothing, and a hog beside sleepers has what fair queueing gives it.
//!
//! The machine here is a small one of these tests' own: one processor, hogs, and sleepers that compute for a
//! fixed time and sleep for another. The ideal server runs in parallel, in whole numbers: at every moment it
//! serves each client that is awake in proportion to its share.

use crate::common::plain::Policy;
use mete_policy::{Nanoseconds, Setup, Share, Stop, by_name};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const QUANTUM_NS: u64 = 10 * MS;

/// Shares of hogs, and sleepers as (share, computes, sleeps).
struct Load<'a> {
    hogs: &'a [u32],
    sleepers: &'a [(u32, u64, u64)],
}

struct Machine {
    policy: Box<dyn mete_policy::Policy + Send>,
    now: u64,
    hogs: usize,
    /// What each sleeper still has to compute, how long a burst and a sleep are, and when it wakes.
    sleepers: Vec<(u64, u64, u64, Option<u64>)>,
    served_ns: Vec<u64>,
}

impl Machine {
    fn new(policy: &str, load: &Load<'_>) -> Machine {
        let clients = load.hogs.len() + load.sleepers.len();
        let setup = Setup { quantum_ns: Nanoseconds::new(QUANTUM_NS), ..Setup::for_clients(clients as u32) };
        let mut policy = (by_name(policy).expect("it is in the catalog").make)(&setup);
        let shares = load.hogs.iter().chain(load.sleepers.iter().map(|(share, ..)| share));
        for (client, &share) in (0..).zip(shares) {
            policy.add(client, 0, Share::new(share).expect("in range"), 0);
        }
        for client in 0..clients as u32 {
            let _ = policy.wake(client, 0);
        }
        let sleepers = load.sleepers.iter().map(|&(_, burst, sleep)| (burst, burst, sleep, None)).collect();
        Machine { policy, now: 0, hogs: load.hogs.len(), sleepers, served_ns: vec![0; clients] }
    }

    /// Goes on to the next end of a stretch, and wakes the clients that are due. An answer to a wake-up takes
    /// effect at once.
    fn step(&mut self) {
        let Some(decision) = self.policy.pick(0, self.now) else { return self.idle() };
        let client = decision.client as usize;
        let burst = self.sleeper(client).map_or(u64::MAX, |sleeper| sleeper.0);
        let (began, end) = (self.now, self.now + decision.slice_ns.min(burst));
        let mut stop = if burst <= decision.slice_ns { Stop::Blocked } else { Stop::Expired };
        while let Some(at) = self.next_wake().filter(|&at| at <= end) {
            self.now = at;
            if self.wake_due() && at < end {
                stop = Stop::Preempted;
                break;
            }
        }
        if stop != Stop::Preempted {
            self.now = end;
        }
        let ran_ns = self.now - began;
        self.served_ns[client] += ran_ns;
        let now = self.now;
        if let Some(sleeper) = self.sleeper(client) {
            sleeper.0 -= ran_ns;
            if stop == Stop::Blocked {
                (sleeper.0, sleeper.3) = (sleeper.1, Some(now + sleeper.2));
            }
        }
        self.policy.ran(decision.client, ran_ns, stop, now);
    }

    fn sleeper(&mut self, client: usize) -> Option<&mut (u64, u64, u64, Option<u64>)> {
        client.checked_sub(self.hogs).map(|sleeper| &mut self.sleepers[sleeper])
    }

    fn idle(&mut self) {
        self.now = self.next_wake().expect("a client sleeps");
        self.wake_due();
    }

    fn next_wake(&self) -> Option<u64> {
        self.sleepers.iter().filter_map(|sleeper| sleeper.3).min()
    }

    /// Wakes the clients that are due; answers whether a client is to give way.
    fn wake_due(&mut self) -> bool {
        let (mut preempts, now) = (false, self.now);
        for (client, sleeper) in (self.hogs..).zip(&mut self.sleepers) {
            if sleeper.3.take_if(|at| *at <= now).is_some() {
                preempts |= self.policy.wake(client as u32, now).is_some();
            }
        }
        preempts
    }
}

fn served(policy: &str, load: &Load<'_>, until_ns: u64) -> Vec<u64> {
    let mut machine = Machine::new(policy, load);
    while machine.now < until_ns {
        machine.step();
    }
    machine.served_ns
}

/// Under these policies hogs keep the ratio of their shares beside any sleepers: they have no part in what a
/// sleeper loses or gains.
const BY_SHARES: [&str; 9] =
    ["vtrr", "vtrr-ranged", "group-vtrr", "wfq-linear", "wfq", "wf2q+", "stride", "group-ratio", "eevdf"];

/// Fair queueing in fractions: all times in 1/[`UNITS`] ns, which every sum of a few small shares divides.
#[derive(Default)]
struct Fluid {
    clock: i128,
    clients: Vec<Fluent>,
    running: Option<(usize, u64)>,
}

#[derive(Clone, Copy)]
struct Fluent {
    share: i128,
    time: i128,
    /// How far it was ahead of the clock when it blocked.
    ahead: i128,
    awake: bool,
}

/// The least common multiple of 1 to 16.
const UNITS: i128 = 720_720;
/// Two times that differ by less may compare either way, because the policy rounds.
const NEARLY: i128 = 2;

impl Fluid {
    /// The clock goes on by what was used, over the shares that are awake.
    fn serve(&mut self, used_ns: u64) {
        let shares: i128 = self.clients.iter().filter(|client| client.awake).map(|client| client.share).sum();
        self.clock += i128::from(used_ns) * UNITS / shares;
    }

    fn wake(&mut self, client: usize, keeps_lag: bool) {
        let clock = self.clock;
        let client = &mut self.clients[client];
        client.time = if keeps_lag { clock + client.ahead } else { client.time.max(clock) };
        client.awake = true;
    }

    fn finish(&self, client: usize) -> i128 {
        self.clients[client].time + i128::from(QUANTUM_NS) * UNITS / self.clients[client].share
    }

    fn ready(&self) -> impl Iterator<Item = usize> {
        let running = self.running.map(|(client, _)| client);
        (0..self.clients.len()).filter(move |&client| self.clients[client].awake && Some(client) != running)
    }

    fn stop(&mut self, client: usize, ran_ns: u64, blocks: bool) {
        let clock = self.clock;
        let client = &mut self.clients[client];
        client.time += i128::from(ran_ns) * UNITS / client.share;
        client.ahead = client.time - clock;
        client.awake = !blocks;
        self.running = None;
    }
}

/// Which clients wake after which part of the quantum, after which part the running client stops, and whether
/// it blocks.
type Stretch = (Vec<(usize, u64)>, u64, bool);

/// Runs a policy and the fractions side by side. In each stretch, the clients in `wakes` that sleep wake one
/// after another, each after that part of the quantum. The running client stops after that part, and blocks
/// or not.
fn side_by_side(name: &str, shares: &[u32], stretches: &[Stretch]) {
    let setup = Setup { quantum_ns: Nanoseconds::new(QUANTUM_NS), ..Setup::for_clients(shares.len() as u32) };
    let mut policy = (by_name(name).expect("it is in the catalog").make)(&setup);
    let mut fluid = Fluid::default();
    for (client, &share) in (0..).zip(shares) {
        policy.add(client, 0, Share::new(share).expect("in range"), 0);
        fluid.clients.push(Fluent { share: share.into(), time: 0, ahead: 0, awake: false });
    }
    let keeps_lag = name == "stride";
    let mut now = 0;
    for (wakes, part, blocks) in stretches {
        let Some(decision) = policy.pick(0, now) else {
            let _ = policy.wake(wakes[0].0 as u32, now);
            fluid.wake(wakes[0].0, keeps_lag);
            continue;
        };
        let picked = decision.client as usize;
        if name == "wf2q+" {
            let starts = fluid.ready().map(|client| fluid.clients[client].time);
            fluid.clock = fluid.clock.max(starts.min().expect("one is ready"));
        }
        let may = |&client: &usize| name != "wf2q+" || fluid.clients[client].time <= fluid.clock - NEARLY;
        let least = fluid.ready().filter(may).map(|client| fluid.finish(client)).min();
        let (finish, start) = (fluid.finish(picked), fluid.clients[picked].time);
        assert!(least.is_none_or(|least| finish <= least + NEARLY), "{name}: {picked} is not the first");
        assert!(name != "wf2q+" || start <= fluid.clock + NEARLY, "{name}: {picked} is not eligible");
        fluid.running = Some((picked, 0));
        let end = part * (QUANTUM_NS / 16);
        let mut served = 0;
        let mut wakes = wakes.clone();
        wakes.sort_by_key(|&(_, after)| after);
        for (client, after) in wakes {
            let after = (after * (QUANTUM_NS / 16)).min(end);
            if !fluid.clients[client].awake {
                fluid.serve(after - served);
                served = after;
                let _ = policy.wake(client as u32, now + after);
                fluid.wake(client, keeps_lag);
            }
        }
        fluid.serve(end - served);
        now += end;
        let stop = if *blocks { Stop::Blocked } else { Stop::Expired };
        policy.ran(decision.client, end, stop, now);
        fluid.stop(picked, end, *blocks);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn vtrr_3_clocks_go_on_while_a_quantum_is_used_as_in_fractions(
        shares in prop::collection::vec(1u32..=4, 2..=4),
        stretches in prop::collection::vec(
            (prop::collection::vec((0usize..4, 0u64..=16), 1..4), 1u64..=16, any::<bool>()), 1..200),
    ) {
        let mut stretches = stretches;
        for (wakes, ..) in &mut stretches {
            wakes.iter_mut().for_each(|(client, _)| *client %= shares.len());
        }
        for name in ["wfq", "wfq-linear", "stride", "wf2q+"] {
            side_by_side(name, &shares, &stretches);
        }
    }
}

#[test]
fn vtrr_2_vtrr_3_hogs_keep_their_ratio_beside_sleepers_however_long() {
    for (burst, sleep) in [(3, 11), (7, 13), (15, 9), (1, 29)] {
        for sleeper in [1, 2, 3, 7] {
            for until_s in [10, 300] {
                for policy in BY_SHARES {
                    let load = Load { hogs: &[3, 1], sleepers: &[(sleeper, burst * MS, sleep * MS)] };
                    let had = served(policy, &load, until_s * 1_000 * MS);
                    let apart = had[0].abs_diff(3 * had[1]) / QUANTUM_NS;
                    // Five quanta between the two; the lighter one's count threefold.
                    let most = if policy.contains("vtrr") { 100 } else { 15 };
                    assert!(
                        apart <= most,
                        "{policy}, {burst} of {sleep} ms, share {sleeper}, {until_s} s: {had:?}"
                    );
                }
            }
        }
    }
}
