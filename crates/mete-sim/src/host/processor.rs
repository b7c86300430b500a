//! One processor: switch, run, stop, and what it did with its time.

use mete_policy::{ClientId, Nanoseconds, Policy, ProcessorId, Stop};

use super::{ClientState, Host, Payer, STEPS_AT_ONCE, STEPS_OF_ONE, Stalled};
use crate::model::{Model, Step};
use crate::queue::Class;
use crate::recorder::Recorder;

/// What a processor did with its time. The three add up to the time that has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Clients computed.
    pub run_ns: Nanoseconds,
    /// It was switching between clients.
    pub switch_ns: Nanoseconds,
    /// No client was there to run.
    pub idle_ns: Nanoseconds,
}

impl Times {
    /// The time that has passed.
    pub fn total_ns(self) -> Nanoseconds {
        self.run_ns + self.switch_ns + self.idle_ns
    }

    /// The sum of both.
    pub fn and(self, other: Times) -> Times {
        Times {
            run_ns: self.run_ns + other.run_ns,
            switch_ns: self.switch_ns + other.switch_ns,
            idle_ns: self.idle_ns + other.idle_ns,
        }
    }

    /// The times since `earlier`.
    pub fn since(self, earlier: Times) -> Times {
        Times {
            run_ns: self.run_ns - earlier.run_ns,
            switch_ns: self.switch_ns - earlier.switch_ns,
            idle_ns: self.idle_ns - earlier.idle_ns,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Idle,
    Switching,
    Running,
}

/// The last three steps of an instant, in their order (see the [host](super)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InstantStep {
    Ask,
    Preempt,
    Pick,
}

/// What has to be done with a processor before time goes on. Finding a client comes last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Todo {
    #[default]
    Nothing,
    /// Ask the running client what it does now.
    Ask,
    /// Take it from its client, and then find another.
    Preempt,
    /// Find a client if the processor is idle and a client is ready.
    Fill,
    /// Find a client if the processor is idle, even if none is ready: the policy may want to know that it is
    /// idle.
    Pick,
}

impl Todo {
    /// Both together. Taking the processor from its client covers everything. Finding a client covers asking,
    /// because the client that was to be asked has left.
    pub(super) fn with(self, other: Todo) -> Todo {
        if self == Todo::Preempt || other == Todo::Preempt { Todo::Preempt } else { self.max(other) }
    }

    /// The step at which it is done. [`Todo::Nothing`] comes with the picks: there is nothing to do.
    pub(super) fn step(self) -> InstantStep {
        match self {
            Todo::Ask => InstantStep::Ask,
            Todo::Preempt => InstantStep::Preempt,
            Todo::Nothing | Todo::Fill | Todo::Pick => InstantStep::Pick,
        }
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Processor {
    pub(super) phase: Phase,
    pub(super) todo: Todo,
    pub(super) times: Times,
    /// The client that runs, or ran last: going on with this one needs no switch.
    client: Option<ClientId>,
    /// From when on the client's time is reported to the policy.
    charged_from_ns: Nanoseconds,
    slice_end_ns: Nanoseconds,
    burst_end_ns: Nanoseconds,
    /// Up to when the client's body knows of its progress.
    advanced_ns: Nanoseconds,
    /// Up to when `times` is right.
    counted_ns: Nanoseconds,
    /// Since when it is idle, if it is.
    idle_since_ns: Nanoseconds,
    /// How often it has been given to a client.
    pub(super) turn: u64,
}

impl<P: Policy, M: Model, R: Recorder> Host<P, M, R> {
    /// Gives an idle processor to the client that the policy names.
    pub(super) fn pick(&mut self, index: usize) {
        if self.processors[index].phase != Phase::Idle {
            return;
        }
        let Some(decision) = self.policy.pick(ProcessorId::at(index), self.context.now_ns) else { return };
        let client = decision.client;
        if self.state(client) != ClientState::Ready {
            // A policy that names a client that cannot run is wrong, and its tests fail here. The host goes
            // on.
            debug_assert!(false, "{} picked client {client}, which is not ready", self.policy.name());
            return;
        }
        self.decisions += 1;
        self.count(index);
        self.ready -= 1;
        self.idle -= 1;
        self.clients[client.index()].state = ClientState::Running(index);
        self.recorder.dispatched(ProcessorId::at(index), client, decision.grant, self.context.now_ns);
        self.switch(index, client, decision.slice_ns.max(Nanoseconds::new(1)));
    }

    fn switch(&mut self, index: usize, client: ClientId, slice_ns: Nanoseconds) {
        let is_switch = self.processors[index].client.replace(client) != Some(client);
        // Within the instant in which its client left, the processor was not idle: it need not be woken up.
        let was_idle = self.context.now_ns > self.processors[index].idle_since_ns;
        let switch_ns = if is_switch { self.hardware.switch_ns } else { Nanoseconds::ZERO };
        let is_remote = self.is_remote(client, index);
        let start_ns = if was_idle { self.model.start_ns(client, is_remote) } else { Nanoseconds::ZERO };
        let cost_ns = switch_ns.saturating_add(start_ns);
        // A preemption that was announced for an earlier turn does not count for this one.
        self.processors[index].turn += 1;
        let begins_ns = self.context.now_ns.saturating_add(cost_ns);
        // A switch that no client pays for is not in the time that the policy is told.
        let processor = &mut self.processors[index];
        processor.charged_from_ns =
            if self.hardware.payer == Payer::Incoming { self.context.now_ns } else { begins_ns };
        processor.slice_end_ns = begins_ns.saturating_add(slice_ns);
        if cost_ns.is_zero() {
            self.begin(index);
        } else {
            processor.phase = Phase::Switching;
            self.alarms.set(index, self.context.queue.moment(begins_ns, Class::Processor));
        }
    }

    /// The client has the processor from now on.
    fn begin(&mut self, index: usize) {
        self.count(index);
        let processor = &mut self.processors[index];
        // Only after `count`: the time until now was the switch's.
        processor.phase = Phase::Running;
        processor.advanced_ns = self.context.now_ns;
        let Some(client) = processor.client else { return };
        self.model.dispatched(client, &mut self.context);
        self.ask(index);
    }

    pub(super) fn processor_due(&mut self, index: usize) {
        match self.processors[index].phase {
            Phase::Idle => {}
            Phase::Switching => self.begin(index),
            Phase::Running => {
                self.advance(index);
                // If burst and slice end together, the client is asked first: it may block or exit now.
                if self.context.now_ns >= self.processors[index].burst_end_ns {
                    self.ask(index);
                } else {
                    self.leave(index, Stop::Expired);
                }
            }
        }
    }

    /// Tells the running client's body how far it has come.
    pub(super) fn advance(&mut self, index: usize) {
        let processor = &mut self.processors[index];
        let ran_ns = self.context.now_ns - processor.advanced_ns;
        processor.advanced_ns = self.context.now_ns;
        if let Some(client) = processor.client.filter(|_| !ran_ns.is_zero()) {
            self.model.advance(client, ran_ns);
        }
    }

    /// Asks the running client what it does next.
    pub(super) fn ask(&mut self, index: usize) {
        let Some(client) = self.processors[index].client else { return };
        self.steps_at_once += 1;
        if self.steps_at_once > STEPS_AT_ONCE + STEPS_OF_ONE * self.clients.len() {
            self.stalled = Some(Stalled { client, now_ns: self.context.now_ns });
            return;
        }
        match self.model.next(client, &mut self.context) {
            Step::Compute(burst_ns) => self.compute(index, burst_ns),
            Step::Continue => {
                // The old burst's end does not count any more; the model's requests are carried out first.
                self.alarms.clear(index);
                self.later(index, super::Todo::Ask);
            }
            Step::Block => self.leave(index, Stop::Blocked),
            Step::Yield => self.leave(index, Stop::Yielded),
            Step::Exit => self.exit(index, client),
        }
    }

    fn compute(&mut self, index: usize, burst_ns: Nanoseconds) {
        let processor = &mut self.processors[index];
        // The client went on at the very end of its slice.
        if self.context.now_ns >= processor.slice_end_ns {
            return self.leave(index, Stop::Expired);
        }
        processor.burst_end_ns = self.context.now_ns.saturating_add(burst_ns);
        let due_ns = processor.burst_end_ns.min(processor.slice_end_ns);
        self.alarms.set(index, self.context.queue.moment(due_ns, Class::Processor));
    }

    /// The client leaves. The policy is asked for the next one when the instant has nothing else left.
    fn leave(&mut self, index: usize, stop: Stop) {
        self.stop(index, stop);
        self.later(index, Todo::Pick);
    }

    fn exit(&mut self, index: usize, client: ClientId) {
        // The policy hears that it stopped before it hears that it is gone.
        self.stop(index, Stop::Blocked);
        self.policy.remove(client, self.context.now_ns);
        self.recorder.exited(client, self.context.now_ns);
        self.clients[client.index()].state = ClientState::Absent;
        self.later(index, Todo::Pick);
    }

    /// Takes the processor from its client, if it has one.
    pub(super) fn stop(&mut self, index: usize, stop: Stop) {
        if self.processors[index].phase == Phase::Idle {
            return;
        }
        if self.processors[index].phase == Phase::Running {
            self.advance(index);
        }
        self.count(index);
        let processor = &mut self.processors[index];
        self.alarms.clear(index);
        processor.phase = Phase::Idle;
        processor.idle_since_ns = self.context.now_ns;
        self.idle += 1;
        let Some(client) = processor.client else { return };
        // The client may be stopped during a switch that it does not pay for, before its time begins.
        let ran_ns = self.context.now_ns.saturating_sub(processor.charged_from_ns);
        if stop == Stop::Blocked {
            self.clients[client.index()].state = ClientState::Blocked;
        } else {
            self.become_ready(client);
        }
        self.recorder.stopped(ProcessorId::at(index), client, ran_ns, stop, self.context.now_ns);
        self.policy.ran(client, ran_ns, stop, self.context.now_ns);
    }

    /// Brings every processor's times up to the present.
    pub(super) fn charge_all(&mut self) {
        (0..self.processors.len()).for_each(|index| self.count(index));
    }

    fn count(&mut self, index: usize) {
        let processor = &mut self.processors[index];
        let passed_ns = self.context.now_ns - processor.counted_ns;
        processor.counted_ns = self.context.now_ns;
        match (processor.phase, processor.client) {
            (Phase::Running, Some(client)) => {
                processor.times.run_ns += passed_ns;
                self.clients[client.index()].ran_ns += passed_ns;
            }
            (Phase::Switching, _) => processor.times.switch_ns += passed_ns,
            _ => processor.times.idle_ns += passed_ns,
        }
    }
}
