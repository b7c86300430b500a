//! A small world that drives any policy through a history of calls and keeps its own books. So it can check
//! for each policy what the interface promises. It knows no test framework: the fuzz target `policies` uses
//! it, too.

use mete_policy::{
    Causes, ClientId, Decision, DomainIndex, Event, Nanoseconds, Observation, Policy, ProcessorId, RequestId,
    Setup, Share, Stop, TaskId,
};

pub const CLIENTS: u32 = 12;
pub const PROCESSORS: u16 = 3;
pub const DOMAINS: u16 = 4;
pub const QUANTUM_NS: u64 = 1_000_000;

pub fn setup() -> Setup {
    Setup {
        clients: CLIENTS,
        domains: DOMAINS,
        processors: PROCESSORS,
        quantum_ns: Nanoseconds::new(QUANTUM_NS),
        seed: 7,
    }
}

/// The next step of a world. Numbers are drawn beyond their range, too, so that nonsense is part of a
/// history.
#[derive(Clone, Debug)]
pub enum Step {
    /// The client, its domain, its share.
    Add(u32, u16, u32),
    Remove(u32),
    Share(u32, u32),
    /// The domain, its parent, its share.
    AddDomain(u16, u16, u32),
    RemoveDomain(u16),
    DomainShare(u16, u32),
    Wake(u32),
    /// Wakes a client. If the policy wants a processor to be taken from its client, does so and picks anew.
    WakeAndObey(u32),
    Pick(u16),
    /// The client, the part of its slice that it used in 1/256, and why it stopped.
    Ran(u32, u8, u8),
    /// The client, the time that it ran, whatever its slice, and why it stopped.
    RanFor(u32, u64, u8),
    /// The latest decision for a processor cannot be carried out.
    GiveBack(u16),
    Tick(u16),
    Observe(u8, u32, u16),
    /// Time goes on by that number of 1/256 quanta.
    Pass(u8),
    /// The clock jumps to this time, earlier or later.
    Clock(u64),
    /// The next event is reported with a time that lies that far back.
    Late(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Absent,
    Blocked,
    Ready,
    Running,
}

/// An answer of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Pick(Option<Decision>),
    /// Whether the processor should be taken from its client.
    Tick(bool),
    /// The processor that should be taken from its client.
    Preempt(Option<u16>),
    /// The processors whose clients keep them, a bit each.
    Kept(u64),
    /// By what a client that wakes would have to be woken to go ahead.
    Ahead(Causes),
}

/// A policy, and the world's books on it.
pub struct World<P> {
    pub policy: P,
    pub states: Vec<State>,
    pub slices: Vec<u64>,
    /// The events that are pending for blocked clients.
    events: Vec<Option<Event>>,
    pub now: u64,
    /// Everything that the policy answered, to compare two runs.
    pub answers: Vec<Answer>,
    setup: Setup,
    /// The latest decision for each processor.
    latest: Vec<Option<Decision>>,
    /// The clients that were picked for each processor and have not stopped, in this order.
    picked: Vec<Vec<u32>>,
    /// Whether nothing is picked for a processor for which two clients are: one that runs, and one ahead.
    picks_one_ahead: bool,
    /// The processors on which a client was told to give way and none was picked since, a bit each.
    promised: u64,
    late_ns: u64,
}

impl<P: Policy> World<P> {
    /// A world for a policy that was made for [`setup`].
    pub fn new(policy: P) -> World<P> {
        let mut world = World::with(policy, setup());
        for (domain, parent, share) in [(1, 0, Share::ONE), (2, 0, Share::MAX), (3, 1, Share::ONE)] {
            world.policy.add_domain(DomainIndex::new(domain), DomainIndex::new(parent), share);
        }
        world
    }

    /// A world for a policy that was made for this setup; the policy knows no domain yet.
    pub fn with(policy: P, setup: Setup) -> World<P> {
        World {
            policy,
            states: vec![State::Absent; setup.clients as usize],
            slices: vec![0; setup.clients as usize],
            events: vec![None; setup.clients as usize],
            now: 0,
            answers: Vec::new(),
            setup,
            latest: vec![None; usize::from(setup.processors.max(1))],
            picked: vec![Vec::new(); usize::from(setup.processors.max(1))],
            picks_one_ahead: false,
            promised: 0,
            late_ns: 0,
        }
    }

    /// The same; it picks one ahead at most, as the interface has it.
    pub fn picking_one_ahead(self) -> World<P> {
        World { picks_one_ahead: true, ..self }
    }

    /// The clients that were picked for a processor and have not stopped.
    pub fn picked(&self, processor: u16) -> &[u32] {
        self.picked.get(usize::from(processor)).map_or(&[], Vec::as_slice)
    }

    pub fn in_state(&self, state: State) -> usize {
        self.states.iter().filter(|&&found| found == state).count()
    }

    pub fn take(&mut self, step: &Step) {
        match *step {
            Step::Add(client, domain, weight) => self.add(client, domain, weight),
            Step::Remove(client) => {
                let now = self.time();
                self.policy.remove(ClientId::new(client), Nanoseconds::new(now));
                self.enter(client, State::Absent);
            }
            Step::Share(client, weight) => {
                let now = self.time();
                self.policy.set_share(ClientId::new(client), share(weight), Nanoseconds::new(now));
            }
            Step::AddDomain(domain, parent, weight) => {
                self.policy.add_domain(DomainIndex::new(domain), DomainIndex::new(parent), share(weight));
            }
            Step::RemoveDomain(domain) => self.policy.remove_domain(DomainIndex::new(domain)),
            Step::DomainShare(domain, weight) => {
                let now = self.time();
                self.policy.set_domain_share(DomainIndex::new(domain), share(weight), Nanoseconds::new(now));
            }
            Step::Wake(client) => {
                self.wake(client);
            }
            Step::WakeAndObey(client) => self.wake_and_obey(client),
            Step::Pick(processor) => self.pick(processor),
            Step::Ran(client, used, why) => {
                let slice_ns = self.slices.get(client as usize).copied().unwrap_or(QUANTUM_NS);
                let used = if stop(why) == Stop::Expired { 256 } else { u128::from(used) };
                self.ran(client, (u128::from(slice_ns) * used / 256) as u64, stop(why));
            }
            Step::RanFor(client, ran_ns, why) => self.ran(client, ran_ns, stop(why)),
            Step::GiveBack(processor) => {
                if let Some(&Some(decision)) = self.latest.get(usize::from(processor)) {
                    self.ran(decision.client.get(), 0, Stop::Preempted);
                }
            }
            Step::Tick(processor) => {
                let now = self.time();
                let answer = self.policy.tick(ProcessorId::new(processor), Nanoseconds::new(now));
                self.answers.push(Answer::Tick(answer));
            }
            Step::Observe(kind, client, number) => self.observe(kind, client, number),
            Step::Pass(part) => self.pass(self.setup.quantum_ns.get() / 256 * u64::from(part)),
            Step::Clock(now) => self.now = now,
            Step::Late(late_ns) => self.late_ns = late_ns,
        }
    }

    fn pass(&mut self, time_ns: u64) {
        self.now = self.now.saturating_add(time_ns);
    }

    /// The time of the event that is reported now.
    fn time(&mut self) -> u64 {
        self.now.saturating_sub(std::mem::take(&mut self.late_ns))
    }

    fn state(&self, client: u32) -> State {
        self.states.get(client as usize).copied().unwrap_or(State::Absent)
    }

    fn enter(&mut self, client: u32, state: State) {
        self.picked.iter_mut().for_each(|picked| picked.retain(|picked| *picked != client));
        if let Some(entry) = self.states.get_mut(client as usize) {
            *entry = state;
            self.events[client as usize] = None;
        }
    }

    fn add(&mut self, client: u32, domain: u16, weight: u32) {
        let now = self.time();
        self.policy.add(
            ClientId::new(client),
            DomainIndex::new(domain),
            share(weight),
            Nanoseconds::new(now),
        );
        if self.state(client) == State::Absent {
            self.enter(client, State::Blocked);
        }
    }

    fn wake(&mut self, client: u32) -> Option<u16> {
        let now = self.time();
        let kept = self.note_kept();
        let goes_ahead = self.goes_ahead(client);
        self.answers.push(Answer::Ahead(self.policy.goes_ahead(ClientId::new(client))));
        let answer = self.policy.wake(ClientId::new(client), Nanoseconds::new(now)).map(ProcessorId::get);
        self.check_kept(kept, answer);
        self.check_ahead(client, goes_ahead, kept, answer);
        self.answers.push(Answer::Preempt(answer));
        self.check_processor(answer);
        self.promised |= answer.map_or(0, |processor| 1 << processor);
        if self.state(client) == State::Blocked {
            self.enter(client, State::Ready);
        } else {
            assert_eq!(
                answer,
                None,
                "{}: client {client}, not blocked, preempts no client",
                self.policy.name()
            );
        }
        answer
    }

    fn wake_and_obey(&mut self, client: u32) {
        let goes_ahead = self.goes_ahead(client) && self.is_settled();
        let Some(processor) = self.wake(client) else { return };
        if let Some(decision) = self.latest[usize::from(processor)] {
            self.ran(decision.client.get(), decision.slice_ns.get() / 3, Stop::Preempted);
        }
        self.pick(processor);
        if goes_ahead {
            let name = self.policy.name();
            assert_eq!(self.picked(processor), [client], "{name}: it is the one that went ahead");
            let keeps = self.policy.keeps(ProcessorId::new(processor));
            assert!(keeps, "{name}: client {client} keeps the processor that it has taken");
        }
    }

    /// Whether a client goes ahead if what is pending wakes it.
    fn goes_ahead(&self, client: u32) -> bool {
        let event = self.events.get(client as usize).copied().flatten();
        self.policy.goes_ahead(ClientId::new(client)).has(event)
    }

    /// Whether each processor has one client, and nothing is promised to another one.
    fn is_settled(&self) -> bool {
        let has_one =
            |(picked, latest): (&Vec<u32>, &Option<Decision>)| picked.len() == 1 && latest.is_some();
        self.promised == 0 && self.picked.iter().zip(&self.latest).all(has_one)
    }

    fn check_ahead(&self, client: u32, goes_ahead: bool, kept: u64, answer: Option<u16>) {
        let name = self.policy.name();
        if goes_ahead && kept == 0 && self.is_settled() {
            assert!(answer.is_some(), "{name}: client {client} goes ahead, and takes no processor");
        }
    }

    fn note_kept(&mut self) -> u64 {
        let keeps = |processor: &usize| self.policy.keeps(ProcessorId::at(*processor));
        let kept = (0..self.latest.len()).filter(keeps).fold(0, |kept, processor| kept | 1 << processor);
        self.answers.push(Answer::Kept(kept));
        kept
    }

    fn check_kept(&self, kept: u64, answer: Option<u16>) {
        let is_kept = answer.is_some_and(|processor| kept >> processor & 1 == 1);
        let name = self.policy.name();
        assert!(!is_kept, "{name}: takes a processor from a client that keeps it: {answer:?}");
    }

    fn check_processor(&self, answer: Option<u16>) {
        let exists = |processor| usize::from(processor) < self.latest.len();
        let name = self.policy.name();
        assert!(answer.is_none_or(exists), "{name}: preempts a processor that exists: {answer:?}");
    }

    fn pick(&mut self, processor: u16) {
        if self.picks_one_ahead && self.picked(processor).len() > 1 {
            return;
        }
        let ready = self.in_state(State::Ready);
        let now = self.time();
        let decision = self.policy.pick(ProcessorId::new(processor), Nanoseconds::new(now));
        self.answers.push(Answer::Pick(decision));
        let name = self.policy.name();
        let Some(latest) = self.latest.get_mut(usize::from(processor)) else {
            assert_eq!(decision, None, "{name}: there is no processor {processor}");
            return;
        };
        assert_eq!(
            decision.is_some(),
            ready > 0,
            "{name}: a client is picked exactly when a client is ready"
        );
        let Some(decision) = decision else { return };
        *latest = Some(decision);
        self.promised &= !(1 << processor);
        let client = decision.client.get();
        assert_eq!(self.state(client), State::Ready, "{name}: client {client} can be picked");
        assert!(!decision.slice_ns.is_zero(), "{name}: client {client} may run for some time");
        self.enter(client, State::Running);
        self.slices[client as usize] = decision.slice_ns.get();
        self.picked[usize::from(processor)].push(client);
    }

    fn ran(&mut self, client: u32, ran_ns: u64, stop: Stop) {
        self.pass(ran_ns);
        let now = self.time();
        self.policy.ran(ClientId::new(client), Nanoseconds::new(ran_ns), stop, Nanoseconds::new(now));
        if self.state(client) == State::Running {
            self.enter(client, if stop == Stop::Blocked { State::Blocked } else { State::Ready });
            for latest in &mut self.latest {
                latest.take_if(|decision| decision.client.get() == client);
            }
        }
    }

    fn observe(&mut self, kind: u8, client: u32, number: u16) {
        let other = ClientId::new(u32::from(number) % self.setup.clients.saturating_add(2));
        let (client, task) = (ClientId::new(client), TaskId::new(number % 300));
        let request = RequestId::new(number);
        let observation = match kind % 9 {
            0 => Observation::TaskSwitch { client, task },
            1 => Observation::BlockRead { client, request },
            2 => Observation::EventPending { client, event: Event::Block(request) },
            3 => Observation::EventPending { client, event: Event::Packet { port: number % 7 } },
            4 => Observation::EventPending { client, event: Event::Other },
            5 => Observation::Notify { from: client, to: other },
            6 => Observation::Driver { client },
            7 => Observation::TaskExit { client, task },
            _ => Observation::DriverTime { driver: other, client, used_ns: Nanoseconds::new(number.into()) },
        };
        let now = self.time();
        let kept = self.note_kept();
        let answer = self.policy.observe(observation, Nanoseconds::new(now)).map(ProcessorId::get);
        if let Observation::EventPending { client, event } = observation
            && self.state(client.get()) == State::Blocked
        {
            self.events[client.index()] = Some(event);
        }
        self.check_kept(kept, answer);
        self.answers.push(Answer::Preempt(answer));
        self.check_processor(answer);
    }
}

/// Any number as a share.
fn share(weight: u32) -> Share {
    Share::new(weight.clamp(1, Share::MAX.get())).unwrap_or(Share::ONE)
}

fn stop(why: u8) -> Stop {
    [Stop::Blocked, Stop::Preempted, Stop::Yielded, Stop::Expired][usize::from(why % 4)]
}
