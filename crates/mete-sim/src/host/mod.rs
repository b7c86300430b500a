//! A host: processors, the clients' states, and the loop that carries out the policy's decisions.
//!
//! ```text
//!   queue, alarms ──▶ handle ──▶ acts of the model ──▶ wake, observe ──▶ preempt ─┐
//!                       ▲          (step: until the instant is over)              │
//!                       └───────── pick ◀── stop ◀────────────────────────────────┘
//! ```
//!
//! # The order of one instant
//!
//! Everything that falls on one instant is settled before time goes on, in the following order. After each
//! step the host begins again at the top, so a step is taken only while nothing above it is left to do.
//!
//! 1. The requests of clients and devices, in the order in which they were made.
//! 2. Ticks, in the order of the processors.
//! 3. Events from outside: wake-ups, signals, devices and remote users, in the order in which they were
//!    announced.
//! 4. Processors whose switch, burst or slice is over, in the order in which its end was set. A client whose
//!    burst is over is asked what it does next; one whose slice is over is stopped.
//! 5. Clients that acted, or were sent something, and go on: they are asked what they do next.
//! 6. Processors that the policy wants back are taken from their clients.
//! 7. Idle processors: the policy is asked which client runs there.
//!
//! Within each of the last three, processors come in the order of their numbers. So a client is picked only
//! when all accounting and all wake-ups of the instant are known. A machine does the same: ticks and devices
//! interrupt, and the scheduler runs when the last interrupt is handled. (In Xen the tick does its accounting
//! in the timers' soft interrupt. The end of a slice only raises the scheduler's soft interrupt, which is
//! served after the timers'.) Ticks come before wake-ups because a policy that answers a wake-up compares
//! priorities, and the accounting sets them.
//!
//! Nothing else decides the order, so a run is the same on every machine.

mod alarms;
mod processor;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::convert::Infallible;
use std::ops::ControlFlow;

use mete_policy::{ClientId, DomainIndex, Nanoseconds, Observation, Policy, ProcessorId, Share, Stop};

use crate::model::{Act, Context, HostEvent, Model, QueuedEvent, Reaction};
use crate::queue::{Class, Queue};
use crate::recorder::Recorder;
use alarms::Alarms;
pub use processor::Times;
use processor::{InstantStep, Phase, Processor, Todo};

/// The client that pays for a context switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Payer {
    /// No client: the policy is told the time that the client computed.
    #[default]
    Nobody,
    /// The client that is switched to: the policy is told the switch as time that it used. It has its whole
    /// slice after that, or a slice shorter than a switch would never let it compute.
    Incoming,
}

/// A host's hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// How many processors there are; at least 1.
    pub processors: u16,
    /// How long a switch takes: the time until a client computes that was not the last on its processor.
    pub switch_ns: Nanoseconds,
    /// The client that pays for it.
    pub payer: Payer,
}

impl Default for Hardware {
    fn default() -> Self {
        Hardware { processors: 1, switch_ns: Nanoseconds::ZERO, payer: Payer::Nobody }
    }
}

/// A model goes on at one instant without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "client {client} goes on without end at {now_ns} ns, and neither computes nor waits: something in its \
     program, or in that of a client that it talks to, has to take time"
)]
pub struct Stalled {
    /// The client that was asked last.
    pub client: ClientId,
    /// The instant.
    pub now_ns: Nanoseconds,
}

/// No sensible model takes more steps at one instant: a model that takes these, and [`STEPS_OF_ONE`] for each
/// of its clients, stands still.
const STEPS_AT_ONCE: usize = 1_000_000;
/// See [`STEPS_AT_ONCE`].
const STEPS_OF_ONE: usize = 100;
/// The number of events, about a millisecond's work, between two questions whether to go on. It is short
/// enough for people, and long enough that the questions cost nothing.
const EVENTS_BETWEEN: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientState {
    Absent,
    Blocked,
    Ready,
    Running(usize),
}

#[derive(Clone, Copy)]
struct Client {
    state: ClientState,
    ran_ns: Nanoseconds,
}

const NOBODY: Client = Client { state: ClientState::Absent, ran_ns: Nanoseconds::ZERO };

/// A simulated host: a policy `P` that schedules the clients of a model `M`, watched by `R`.
pub struct Host<P, M: Model, R = ()> {
    policy: P,
    model: M,
    recorder: R,
    hardware: Hardware,
    context: Context<M>,
    alarms: Alarms,
    processors: Vec<Processor>,
    clients: Vec<Client>,
    /// Processors with something to do at this instant, the most urgent on top. An entry counts only as long
    /// as the processor's own [`Todo`] is of its step.
    todo: BinaryHeap<Reverse<(InstantStep, usize)>>,
    idle: usize,
    ready: usize,
    /// An idle processor may now find a client.
    is_fill_due: bool,
    steps_at_once: usize,
    stalled: Option<Stalled>,
    decisions: u64,
}

impl<P: Policy, M: Model, R: Recorder> Host<P, M, R> {
    /// A host at time 0, without clients.
    pub fn new(hardware: Hardware, policy: P, model: M, recorder: R) -> Self {
        let processors = usize::from(hardware.processors.max(1));
        let mut queue = Queue::default();
        // All processors tick at the same instants; the order in the queue is that of their numbers.
        if let Some(tick_ns) = policy.tick_ns() {
            for processor in 0..processors {
                queue.push(tick_ns.max(Nanoseconds::new(1)), Class::Tick, QueuedEvent::Tick(processor));
            }
        }
        Host {
            policy,
            model,
            recorder,
            hardware,
            context: Context { now_ns: Nanoseconds::ZERO, acts: VecDeque::new(), queue },
            alarms: Alarms::new(processors),
            processors: vec![Processor::default(); processors],
            clients: Vec::new(),
            todo: BinaryHeap::new(),
            idle: processors,
            ready: 0,
            is_fill_due: false,
            steps_at_once: 0,
            stalled: None,
            decisions: 0,
        }
    }

    /// Makes a client known to the host and to the policy. It is blocked.
    pub fn add_blocked(&mut self, client: ClientId, domain: DomainIndex, share: Share) {
        let index = client.index();
        if self.clients.len() <= index {
            self.clients.resize(index + 1, NOBODY);
        }
        self.clients[index].state = ClientState::Blocked;
        self.policy.add(client, domain, share, self.context.now_ns);
    }

    /// Makes a client known to the host and to the policy, and wakes it at `start_ns`.
    pub fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, start_ns: Nanoseconds) {
        self.add_blocked(client, domain, share);
        self.context.queue.push(start_ns.max(self.context.now_ns), Class::Outside, QueuedEvent::Wake(client));
    }

    /// Lets the model prepare. Its requests are carried out when the host runs.
    pub fn prepare(&mut self, ask: impl FnOnce(&mut M, &mut Context<M>)) {
        ask(&mut self.model, &mut self.context);
    }

    /// Runs until `end_ns`. Events at that instant, and requests made then, wait for the next call.
    ///
    /// # Errors
    ///
    /// [`Stalled`] if the model does not let time go on; the host then stays as it is.
    pub fn run_until(&mut self, end_ns: Nanoseconds) -> Result<(), Stalled> {
        let ControlFlow::Continue(()) = self.run_while(end_ns, || ControlFlow::<Infallible>::Continue(()))?;
        Ok(())
    }

    /// As [`Host::run_until`], unless `go_on` says [`ControlFlow::Break`]: then the host stays as it is.
    /// `go_on` is asked every few thousand events.
    ///
    /// # Errors
    ///
    /// As [`Host::run_until`].
    pub fn run_while<B>(
        &mut self,
        end_ns: Nanoseconds,
        mut go_on: impl FnMut() -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, Stalled> {
        let mut left = EVENTS_BETWEEN;
        while self.stalled.is_none() {
            if self.context.now_ns >= end_ns || !self.step(end_ns) {
                self.pass_to(end_ns);
                self.charge_all();
                return Ok(ControlFlow::Continue(()));
            }
            left -= 1;
            if left == 0 {
                left = EVENTS_BETWEEN;
                if let ControlFlow::Break(stopped) = go_on() {
                    return Ok(ControlFlow::Break(stopped));
                }
            }
        }
        self.stalled.map_or(Ok(ControlFlow::Continue(())), Err)
    }

    /// Does the next thing; `false` if there is none before `end_ns`. The [module](self) describes the order.
    fn step(&mut self, end_ns: Nanoseconds) -> bool {
        if let Some(act) = self.context.acts.pop_front() {
            self.carry_out(act);
        } else if self.todo.is_empty() && !self.is_fill_due {
            return self.handle_next(end_ns);
        } else if !self.handle_next(self.context.now_ns.saturating_add(Nanoseconds::new(1))) {
            // No event is left at this instant, so the processors have their turn.
            self.attend_next();
        }
        true
    }

    /// Goes on to the next alarm or event; `false` if there is none before `end_ns`.
    fn handle_next(&mut self, end_ns: Nanoseconds) -> bool {
        if self.alarms.first() < self.context.queue.first() {
            let Some((at_ns, index)) = self.alarms.pop_before(end_ns) else { return false };
            self.pass_to(at_ns);
            self.processor_due(index);
        } else {
            let Some((at_ns, event)) = self.context.queue.pop_before(end_ns) else { return false };
            self.pass_to(at_ns);
            self.handle(event);
        }
        true
    }

    fn pass_to(&mut self, now_ns: Nanoseconds) {
        if now_ns > self.context.now_ns {
            self.context.now_ns = now_ns;
            // Time has passed, so the model does not stand still.
            self.steps_at_once = 0;
        }
    }

    fn handle(&mut self, event: HostEvent<M>) {
        match event {
            QueuedEvent::Tick(index) => self.tick(index),
            QueuedEvent::Preempt { processor, turn } => {
                // The processor may have been given away since the preemption was announced.
                if self.processors[processor].turn == turn && self.processors[processor].phase != Phase::Idle
                {
                    self.later(processor, Todo::Preempt);
                }
            }
            QueuedEvent::Wake(client) => self.wake(client),
            QueuedEvent::Deliver { to, signal } => self.deliver(to, signal),
            QueuedEvent::World(event) => {
                self.model.event(event, &mut self.context);
            }
        }
    }

    fn carry_out(&mut self, act: Act<M::Signal>) {
        match act {
            Act::Deliver { to, signal } => self.deliver(to, signal),
            Act::Observe(observation) => self.observe(observation),
            Act::SetShare { client, share } => {
                self.recorder.share_set(client, share, self.context.now_ns);
                self.policy.set_share(client, share, self.context.now_ns);
            }
            Act::SetDomainShare { domain, share } => {
                self.recorder.domain_share_set(domain, share, self.context.now_ns);
                self.policy.set_domain_share(domain, share, self.context.now_ns);
            }
            Act::Note(note) => self.recorder.noted(note, self.context.now_ns),
        }
    }

    fn tick(&mut self, index: usize) {
        let Some(tick_ns) = self.policy.tick_ns() else { return };
        let next_ns = self.context.now_ns.saturating_add(tick_ns.max(Nanoseconds::new(1)));
        self.context.queue.push(next_ns, Class::Tick, QueuedEvent::Tick(index));
        if self.policy.tick(ProcessorId::at(index), self.context.now_ns) {
            self.later(index, Todo::Preempt);
        }
        // A tick may make clients eligible that the policy held back.
        self.is_fill_due = true;
    }

    fn observe(&mut self, observation: Observation) {
        self.recorder.observed(observation, self.context.now_ns);
        let victim = self.policy.observe(observation, self.context.now_ns);
        self.preempt(victim);
    }

    fn deliver(&mut self, to: ClientId, signal: M::Signal) {
        // The policy sees it before the client does, as a host sees an event before it runs its receiver.
        if let Some(event) = self.model.seen(to, signal) {
            self.observe(Observation::EventPending { client: to, event });
        }
        if self.model.deliver(to, signal, &mut self.context) == Reaction::Pending {
            return;
        }
        match self.state(to) {
            ClientState::Blocked => self.wake(to),
            ClientState::Running(index) if self.processors[index].phase == Phase::Running => {
                self.later(index, Todo::Ask);
            }
            // A client whose processor is still switching is asked when it begins anyway.
            ClientState::Running(_) | ClientState::Ready | ClientState::Absent => {}
        }
    }

    fn wake(&mut self, client: ClientId) {
        if self.state(client) != ClientState::Blocked {
            return;
        }
        self.become_ready(client);
        self.recorder.woke(client, self.context.now_ns);
        let victim = self.policy.wake(client, self.context.now_ns);
        let Some(processor) = victim.map(ProcessorId::index) else { return };
        match self.model.make_way_ns(client, self.is_remote(client, processor)) {
            Nanoseconds::ZERO => self.preempt(victim),
            after_ns => self.preempt_after(processor, after_ns),
        }
    }

    fn become_ready(&mut self, client: ClientId) {
        self.clients[client.index()].state = ClientState::Ready;
        self.ready += 1;
        self.is_fill_due = true;
    }

    fn preempt(&mut self, victim: Option<ProcessorId>) {
        // A policy may name a processor that the host does not have; then there is nothing to take.
        if let Some(processor) = victim.map(ProcessorId::index).filter(|&index| index < self.processors.len())
        {
            self.later(processor, Todo::Preempt);
        }
    }

    /// Whether the client that woke this one runs on another processor.
    fn is_remote(&self, client: ClientId, processor: usize) -> bool {
        let waker = self.model.waker(client).map(|waker| self.state(waker));
        matches!(waker, Some(ClientState::Running(elsewhere)) if elsewhere != processor)
    }

    fn preempt_after(&mut self, processor: usize, after_ns: Nanoseconds) {
        if let Some(turn) = self.processors.get(processor).map(|processor| processor.turn) {
            self.context.announce(after_ns, QueuedEvent::Preempt { processor, turn });
        }
    }

    fn later(&mut self, index: usize, what: Todo) {
        let todo = &mut self.processors[index].todo;
        let what = todo.with(what);
        // An entry of a step that has changed stays in the heap; `attend_next` skips it.
        if *todo != what {
            *todo = what;
            self.todo.push(Reverse((what.step(), index)));
        }
    }

    /// Attends to the processor whose turn it is.
    fn attend_next(&mut self) {
        let first = self.todo.peek().map(|&Reverse((step, _))| step);
        if self.is_fill_due && first.is_none_or(|step| step == InstantStep::Pick) {
            // Only after all questions and preemptions: each may make a processor idle or a client ready.
            return self.fill();
        }
        if let Some(Reverse((step, index))) = self.todo.pop()
            && self.processors[index].todo.step() == step
        {
            self.attend(index);
        }
    }

    fn attend(&mut self, index: usize) {
        match std::mem::take(&mut self.processors[index].todo) {
            Todo::Nothing => {}
            Todo::Ask => {
                if self.processors[index].phase == Phase::Running {
                    self.advance(index);
                    self.ask(index);
                }
            }
            Todo::Preempt => {
                self.stop(index, Stop::Preempted);
                self.later(index, Todo::Pick);
            }
            // Another processor has taken the last ready client.
            Todo::Fill if self.ready == 0 => {}
            Todo::Fill | Todo::Pick => self.pick(index),
        }
    }

    /// Offers the ready clients to the idle processors.
    fn fill(&mut self) {
        self.is_fill_due = false;
        if self.idle == 0 || self.ready == 0 {
            return;
        }
        for index in 0..self.processors.len() {
            if self.processors[index].phase == Phase::Idle {
                self.later(index, Todo::Fill);
            }
        }
    }

    fn state(&self, client: ClientId) -> ClientState {
        self.clients.get(client.index()).map_or(ClientState::Absent, |client| client.state)
    }

    /// The present time.
    pub fn now_ns(&self) -> Nanoseconds {
        self.context.now_ns
    }

    /// How often the policy named a client when it was asked which one runs next.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// The processor time that a client has had, without context switches.
    pub fn ran_ns(&self, client: ClientId) -> Nanoseconds {
        self.clients.get(client.index()).map_or(Nanoseconds::ZERO, |client| client.ran_ns)
    }

    /// What each processor did with its time. It is exact when [`Host::run_until`] has returned.
    pub fn times(&self) -> impl ExactSizeIterator<Item = Times> {
        self.processors.iter().map(|processor| processor.times)
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// The policy, to change its settings between two calls of [`Host::run_until`].
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// What runs on the host.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The recorder.
    pub fn recorder(&self) -> &R {
        &self.recorder
    }

    /// The recorder, to begin anew after a warm-up.
    pub fn recorder_mut(&mut self) -> &mut R {
        &mut self.recorder
    }

    /// The recorder, at the end of the run.
    pub fn into_recorder(self) -> R {
        self.recorder
    }
}
