//! The scheduler of Linux 2.2: the client whose goodness is highest runs (VTRR paper, §4; the rules
//! are those of `kernel/sched.c` in 2.2.18).
//!
//! | | |
//! |---|---|
//! | selection | linear in ready clients; linear in all clients when the counters are recharged |
//! | insertion | constant time |
//! | fairness | a client that never blocks gets its priority's number of ticks between two recharges |
//! | several processors | one queue serves all; a client is 15 better on the processor where it ran last |
//!
//! There is no fairness over shorter times, and none by shares beyond 40.
//!
//! A client's counter is the number of ticks that it has left. Its goodness is 0 once the counter is 0, and
//! otherwise counter + priority, and 15 more where there are several processors and it last ran on this one,
//! and 1 more for the client that this processor ran last. The highest goodness wins. Of equals, the client
//! that ran last wins, then the one that stands first in the queue. A client that wakes stands before all
//! others. It preempts the client on the processor where it ran last, if it is better than that one and no
//! processor is idle. When no ready client has a tick left, every client's counter, a blocked one's too,
//! becomes counter / 2 + priority: so a client that blocks saves up to twice its priority. A client that
//! yields counts as 0 in the next decision for its processor.
//!
//! **Shares and priorities.** A share of 1 to 40 is the priority of that number (20 is Linux's default,
//! nice 0; 40 its highest, nice −20). A larger share is a priority of 40, because Linux had none
//! above.
//!
//! **Where it deviates.** A tick is one quantum (10 ms by default, as there). The kernel charges a whole
//! tick to the task that runs when the clock ticks; here processor time is charged as it was used, so that no
//! tick is needed and no client hides between two. The kernel lets a client run until its counter drops
//! below zero, one tick more than the counter says; here, as the VTRR paper has it (§4), until it drops
//! to zero. A decision's slice is all that the counter holds. Bonuses for a shared address space go
//! only to the client that ran last. A new client starts with a full counter instead of half its parent's.
//! Real-time classes are left out.

use alloc::vec;
use alloc::vec::Vec;

use crate::occupancy::Occupancy;
use crate::queue::Queues;
use crate::roster::{ClientState, Roster};
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The highest priority: twice the default of 20.
const MOST_PRIORITY: u32 = 40;
/// The bonus of a client on the processor where it ran last.
const SAME_PROCESSOR: u32 = 15;
/// The bonus of the client that a processor ran last, there.
const SAME_CLIENT: u32 = 1;

#[derive(Clone, Copy, Default)]
struct Task {
    /// Ticks left, at most twice the highest priority.
    counter: u32,
    /// The used part of the next tick.
    used_ns: Nanoseconds,
    /// The processor where it ran last.
    processor: Option<ProcessorId>,
    /// The processor that it is picked for.
    picked_for: ProcessorId,
    yielded: bool,
}

/// The goodness policy.
pub struct Goodness {
    roster: Roster,
    /// Ready and running clients, as the kernel's run queue.
    queue: Queues,
    tasks: Vec<Task>,
    occupancy: Occupancy,
    /// The client that each processor ran last.
    previous: Vec<Option<ClientId>>,
    tick_ns: Nanoseconds,
    recharges: u64,
}

impl Goodness {
    /// A policy without clients.
    pub fn new(setup: &Setup) -> Goodness {
        Goodness {
            roster: Roster::new(setup),
            queue: Queues::new(1, setup.clients),
            tasks: vec![Task::default(); setup.clients as usize],
            occupancy: Occupancy::new(setup.processors),
            previous: vec![None; usize::from(setup.processors.max(1))],
            tick_ns: setup.quantum_ns.max(Nanoseconds::new(1)),
            recharges: 0,
        }
    }

    fn priority(&self, client: ClientId) -> u32 {
        self.roster.share(client).get().min(MOST_PRIORITY)
    }

    /// How good it is to run a client that has `counter` ticks left.
    fn goodness(&self, client: ClientId, counter: u32, bonus: u32) -> u32 {
        if counter == 0 { 0 } else { counter + self.priority(client) + bonus }
    }

    fn goodness_when_ready(&self, client: ClientId, processor: ProcessorId, last: bool) -> u32 {
        let task = self.tasks[client.index()];
        let here = if task.processor == Some(processor) { self.same_processor() } else { 0 };
        self.goodness(client, task.counter, here + if last { SAME_CLIENT } else { 0 })
    }

    /// The bonus for the processor where a client ran last, if there is another one.
    fn same_processor(&self) -> u32 {
        if self.previous.len() > 1 { SAME_PROCESSOR } else { 0 }
    }

    /// The best ready client and its goodness.
    fn best(&self, processor: ProcessorId) -> Option<(ClientId, u32)> {
        let last = self.previous[processor.index()];
        // First, so that the client that ran last wins among equals; the loop keeps only what is better.
        let mut best = self.last_if_ready(processor);
        let mut next = self.queue.front(0);
        while let Some(client) = next {
            next = self.queue.next(client);
            if self.roster.state(client) != ClientState::Ready || last == Some(client) {
                continue;
            }
            let goodness = self.goodness_when_ready(client, processor, false);
            if best.is_none_or(|(_, highest)| goodness > highest) {
                best = Some((client, goodness));
            }
        }
        best
    }

    /// The client that this processor ran last, with its goodness, if it is ready.
    fn last_if_ready(&self, processor: ProcessorId) -> Option<(ClientId, u32)> {
        let last = self.previous[processor.index()]?;
        if self.roster.state(last) != ClientState::Ready {
            return None;
        }
        let yielded = self.tasks[last.index()].yielded;
        Some((last, if yielded { 0 } else { self.goodness_when_ready(last, processor, true) }))
    }

    /// Sets every client's counter to half of what it has and its priority.
    fn recharge(&mut self) {
        self.recharges = self.recharges.saturating_add(1);
        for client in ClientId::first(self.roster.clients()) {
            // Absent clients, too: `add` sets their counters anew.
            let priority = self.priority(client);
            let task = &mut self.tasks[client.index()];
            task.counter = task.counter / 2 + priority;
            task.yielded = false;
        }
    }

    fn charge(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        let task = &mut self.tasks[client.index()];
        let used_ns = task.used_ns.saturating_add(ran_ns);
        let ticks = u32::try_from(used_ns / self.tick_ns).unwrap_or(u32::MAX);
        task.counter = task.counter.saturating_sub(ticks);
        // A client without ticks gets whole ones at the recharge, so no part of a tick is held against it.
        task.used_ns = if task.counter == 0 { Nanoseconds::ZERO } else { used_ns % self.tick_ns };
    }

    /// Notes where a client has run, and whether it yielded.
    fn place(&mut self, client: ClientId, stop: Stop) {
        let task = &mut self.tasks[client.index()];
        task.processor = Some(task.picked_for);
        task.yielded = stop == Stop::Yielded;
        self.previous[task.picked_for.index()] = Some(client);
    }

    /// The processor that a woken client should take, if any (`reschedule_idle` in the kernel).
    fn preempted_by(&self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.occupancy.any_idle() {
            return None;
        }
        // A client that has never run has no such processor; any is as good.
        let processor = self.tasks[client.index()].processor.unwrap_or_default();
        let goodness = self.goodness_when_ready(client, processor, false);
        // A processor that is promised to another client is compared with that one.
        if let Some(asking) = self.occupancy.asking(processor, client, &self.roster) {
            return (goodness > self.goodness_when_ready(asking, processor, false)).then_some(processor);
        }
        let occupant = self.occupancy.on(processor)?;
        // The running client is charged when it stops: what it has used until now comes off here.
        let task = self.tasks[occupant.client.index()];
        let used_ns = task.used_ns.saturating_add(now.saturating_sub(occupant.since_ns));
        let ticks = u32::try_from(used_ns / self.tick_ns).unwrap_or(u32::MAX);
        let left = task.counter.saturating_sub(ticks);
        let running = self.goodness(occupant.client, left, self.same_processor() + SAME_CLIENT);
        (goodness > running).then_some(processor)
    }

    fn is_queued(state: ClientState) -> bool {
        matches!(state, ClientState::Ready | ClientState::Running)
    }
}

impl Policy for Goodness {
    fn name(&self) -> &'static str {
        "goodness"
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.tasks[client.index()] = Task { counter: self.priority(client), ..Task::default() };
        }
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        if Self::is_queued(self.roster.remove(client)) {
            self.queue.remove(0, client);
        }
        self.occupancy.leave(client);
        // The next client of this number must not have the bonus of this one.
        self.previous.iter_mut().filter(|last| **last == Some(client)).for_each(|last| *last = None);
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        self.roster.set_share(client, share);
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if !self.roster.wake(client) {
            return None;
        }
        self.queue.push_front(0, client);
        let victim = self.preempted_by(client, now)?;
        self.occupancy.ask(victim, client);
        Some(victim)
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        let (mut client, goodness) = self.best(processor)?;
        // A best of 0: no ready client has a tick left, except perhaps one that has yielded.
        if goodness == 0 {
            self.recharge();
            (client, _) = self.best(processor)?;
        }
        self.roster.run(client);
        self.occupancy.enter(processor, client, now);
        let task = &mut self.tasks[client.index()];
        task.picked_for = processor;
        // The counter is at least 1 now, and less than a tick is used, so the difference is positive.
        let slice_ns = self.tick_ns.saturating_mul(task.counter.into()) - task.used_ns;
        Some(Decision::by_share(client, slice_ns))
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(next) = self.roster.stop(client, stop) else { return };
        self.occupancy.leave(client);
        // A decision that was given back counts as not made.
        if stop != Stop::Preempted || !ran_ns.is_zero() {
            self.charge(client, ran_ns);
            self.place(client, stop);
        }
        // A client that goes on keeps its place: running clients stay in the queue, as in the kernel's.
        if next == ClientState::Blocked {
            self.queue.remove(0, client);
        }
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("recharges", self.recharges);
    }
}
