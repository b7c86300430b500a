//! A small world that drives any policy through random histories and keeps its own books, so that what
//! the interface promises can be checked for each of them.

#![allow(dead_code, reason = "each test file uses a part of it")]

use mete_policy::{Event, Observation, Policy, Setup, Share, Stop};
use proptest::prelude::*;

pub const CLIENTS: u32 = 12;
pub const PROCESSORS: u16 = 3;
pub const DOMAINS: u16 = 4;
pub const QUANTUM_NS: u64 = 1_000_000;

/// What a world may do next. Numbers are drawn beyond their range, too, so that nonsense is part of it.
#[derive(Clone, Debug)]
pub enum Step {
    Add(u32, u16, u32),
    Remove(u32),
    Share(u32, u32),
    DomainShare(u16, u32),
    Wake(u32),
    Pick(u16),
    /// The client, how much of its slice it used in 1/256, and why it stopped.
    Ran(u32, u8, u8),
    Tick(u16),
    Observe(u8, u32, u16),
    /// Time goes on by so many 1/256 quanta.
    Pass(u8),
}

pub fn steps(length: usize) -> impl Strategy<Value = Vec<Step>> {
    let client = 0..CLIENTS + 2;
    let share = prop_oneof![1u32..=10, 1u32..=1000, Just(1 << 20)];
    let step = prop_oneof![
        1 => (client.clone(), 0..DOMAINS + 1, share.clone()).prop_map(|(c, d, s)| Step::Add(c, d, s)),
        1 => client.clone().prop_map(Step::Remove),
        1 => (client.clone(), share.clone()).prop_map(|(c, s)| Step::Share(c, s)),
        1 => (0..DOMAINS + 1, share).prop_map(|(d, s)| Step::DomainShare(d, s)),
        4 => client.clone().prop_map(Step::Wake),
        6 => (0..PROCESSORS + 1).prop_map(Step::Pick),
        6 => (client.clone(), any::<u8>(), any::<u8>()).prop_map(|(c, u, s)| Step::Ran(c, u, s)),
        2 => (0..PROCESSORS + 1).prop_map(Step::Tick),
        3 => (any::<u8>(), client, any::<u16>()).prop_map(|(k, c, n)| Step::Observe(k, c, n)),
        3 => any::<u8>().prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..length)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Absent,
    Blocked,
    Ready,
    Running,
}

/// The world's books beside a policy.
pub struct World<P> {
    pub policy: P,
    pub states: Vec<State>,
    pub slices: Vec<u64>,
    pub now: u64,
    /// Everything that the policy answered, to compare two runs.
    pub answers: Vec<String>,
}

pub fn setup() -> Setup {
    Setup { clients: CLIENTS, domains: DOMAINS, processors: PROCESSORS, quantum_ns: QUANTUM_NS, seed: 7 }
}

impl<P: Policy> World<P> {
    pub fn new(mut policy: P) -> World<P> {
        policy.add_domain(1, 0, Share::ONE);
        policy.add_domain(2, 0, Share::MAX);
        policy.add_domain(3, 1, Share::ONE);
        World {
            policy,
            states: vec![State::Absent; CLIENTS as usize + 2],
            slices: vec![0; CLIENTS as usize + 2],
            now: 0,
            answers: Vec::new(),
        }
    }

    pub fn in_state(&self, state: State) -> usize {
        self.states.iter().filter(|&&found| found == state).count()
    }

    pub fn take(&mut self, step: &Step) {
        match *step {
            Step::Add(client, domain, weight) => self.add(client, domain, weight),
            Step::Remove(client) => {
                self.policy.remove(client, self.now);
                self.states[client as usize] = State::Absent;
            }
            Step::Share(client, weight) => {
                self.policy.set_share(client, Share::new(weight).expect("drawn in range"), self.now);
            }
            Step::DomainShare(domain, weight) => {
                self.policy.set_domain_share(domain, Share::new(weight).expect("drawn in range"), self.now);
            }
            Step::Wake(client) => self.wake(client),
            Step::Pick(processor) if processor < PROCESSORS => self.pick(processor),
            Step::Pick(_) => {}
            Step::Ran(client, used, why) => self.ran(client, used, why),
            Step::Tick(processor) => {
                let answer = self.policy.tick(processor, self.now);
                self.answers.push(format!("tick {processor}: {answer}"));
            }
            Step::Observe(kind, client, number) => self.observe(kind, client, number),
            Step::Pass(part) => self.now += u64::from(part) * QUANTUM_NS / 256,
        }
    }

    fn add(&mut self, client: u32, domain: u16, weight: u32) {
        self.policy.add(client, domain, Share::new(weight).expect("drawn in range"), self.now);
        if client < CLIENTS && self.states[client as usize] == State::Absent {
            self.states[client as usize] = State::Blocked;
        }
    }

    fn wake(&mut self, client: u32) {
        let answer = self.policy.wake(client, self.now);
        self.answers.push(format!("wake {client}: {answer:?}"));
        assert!(answer.is_none_or(|processor| processor < PROCESSORS), "preempts a processor that exists");
        if self.states[client as usize] == State::Blocked {
            self.states[client as usize] = State::Ready;
        }
    }

    fn pick(&mut self, processor: u16) {
        let ready = self.in_state(State::Ready);
        let decision = self.policy.pick(processor, self.now);
        self.answers.push(format!("pick {processor}: {decision:?}"));
        assert_eq!(decision.is_some(), ready > 0, "somebody is picked exactly when somebody is ready");
        let Some(decision) = decision else { return };
        let client = decision.client as usize;
        assert_eq!(self.states[client], State::Ready, "client {client} can be picked");
        assert!(decision.slice_ns > 0);
        self.states[client] = State::Running;
        self.slices[client] = decision.slice_ns;
    }

    fn ran(&mut self, client: u32, used: u8, why: u8) {
        let slice = self.slices[client as usize];
        let (stop, ran_ns) = match why % 4 {
            0 => (Stop::Blocked, slice * u64::from(used) / 256),
            1 => (Stop::Preempted, slice * u64::from(used) / 256),
            2 => (Stop::Yielded, slice * u64::from(used) / 256),
            _ => (Stop::Expired, slice),
        };
        self.now += ran_ns;
        self.policy.ran(client, ran_ns, stop, self.now);
        if self.states[client as usize] == State::Running {
            let blocked = stop == Stop::Blocked;
            self.states[client as usize] = if blocked { State::Blocked } else { State::Ready };
        }
    }

    fn observe(&mut self, kind: u8, client: u32, number: u16) {
        let observation = match kind % 7 {
            0 => Observation::TaskSwitch { client, task: number },
            1 => Observation::BlockRead { client, request: number },
            2 => Observation::EventPending { client, event: Event::Block(number) },
            3 => Observation::EventPending { client, event: Event::Packet { port: number % 3 } },
            4 => Observation::EventPending { client, event: Event::Other },
            5 => Observation::Notify { from: client, to: u32::from(number) % (CLIENTS + 2) },
            _ => {
                let driver = u32::from(number) % (CLIENTS + 2);
                Observation::DriverTime { driver, client, used_ns: u64::from(number) }
            }
        };
        let answer = self.policy.observe(observation, self.now);
        self.answers.push(format!("{observation:?}: {answer:?}"));
        assert!(answer.is_none_or(|processor| processor < PROCESSORS), "preempts a processor that exists");
    }
}
