//! The manager: at each look it charges clients for what they have used, tells the policy who cannot run any more and who
//! can again, and has those go on that the policy names.

use mete_policy::{ClientId, DomainIndex, Nanoseconds, Policy, ProcessorId, Share, Stop};
use mete_sched::actuator::ActuatorError;

use crate::client::{Client, Clients, State};
use crate::processes::Processes;

/// The number of looks in a quantum; half of it while no chosen client sleeps, and one look where no client can run. After
/// `LOOKS_UNTIL_CALM` looks at which none slept, the next one is when the first of their slices ends. A client that goes to sleep leaves a hole
/// until the next look.
const LOOKS_IN_QUANTUM: u64 = 8;
const LOOKS_UNTIL_CALM: u64 = 16;
/// How many of the clients that were not chosen are looked at in one look, in turn.
const MOST_LOOKED_AT: usize = 256;
/// How many quanta pass between looks at the paused clients: another program may have continued them.
const LOOKS_AT_PAUSED: u64 = 2;
/// One that has used this much since it was looked at last may be another process, which has the number by now.
const MUCH: Nanoseconds = Nanoseconds::from_secs(1);
/// A client that has used this part of the time since the last look was not asleep.
const BUSY_PERMILLE: u64 = 900;
/// After so many slices a chosen client gives way, also if others keep the processor from it.
const MOST_SLICES: u64 = 8;

/// What the dispatcher has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often the policy was asked who runs next.
    pub decisions: u64,
    /// How often a process was paused.
    pub pauses: u64,
    /// How often one that was paused was found to run: its user had it go on, or those that watch over this process did, while
    /// that was stopped.
    pub found_running: u64,
    /// By how much a look came late, at most.
    pub late_ns: Nanoseconds,
    /// The processor time that its thread has used, and the looks for processes.
    pub own_ns: Nanoseconds,
}

/// What the dispatcher's owner tells the manager.
#[derive(Debug)]
pub(crate) enum Message<P> {
    Join {
        number: ClientId,
        process: P,
        domain: DomainIndex,
        share: Share,
        allowed: u64,
    },
    Leave(ClientId),
    Allowed {
        number: ClientId,
        allowed: u64,
    },
    /// A domain has another share, and each client, too.
    Shares {
        domain: DomainIndex,
        share: Share,
        clients: Vec<(ClientId, Share)>,
    },
    /// The processors on which any client may run.
    Processors(u64),
}

/// The client that the policy has named for a processor.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    client: ClientId,
    slice: Nanoseconds,
    /// What it had used then, and when that was.
    before: Nanoseconds,
    since: Nanoseconds,
}

pub(crate) struct Manager<W: Processes> {
    processes: W,
    policy: Box<dyn Policy + Send>,
    clients: Clients<W::Process>,
    slots: Vec<Option<Chosen>>,
    /// The processors on which clients may run, a bit each.
    processors: u64,
    /// How long it is from one look to the next at least.
    period: Nanoseconds,
    /// None that was chosen was found asleep at the last look; and at how many before, while no other one ran.
    are_busy: bool,
    calm_looks: u64,
    /// What is left of the slice that ends first, or until the policy's tick.
    left: Nanoseconds,
    last_look: Option<Nanoseconds>,
    next_tick: Option<Nanoseconds>,
    /// When the paused clients were looked at last.
    seen_paused: Nanoseconds,
    /// From which client on those that were not chosen are looked at next.
    turn: usize,
    /// Whose state has changed since all stood where they belong.
    changed: Vec<ClientId>,
    /// Those that turned out not to be pausable, and are clients no more.
    pub refused: Vec<ClientId>,
    /// What each domain's clients have used.
    pub used: Vec<Nanoseconds>,
    pub counts: Counts,
}

impl<W: Processes> Manager<W> {
    /// With a policy that knows this number of domains below its root.
    pub fn new(
        policy: Box<dyn Policy + Send>,
        processes: W,
        (domains, processors): (usize, usize),
        quantum: Nanoseconds,
    ) -> Manager<W> {
        Manager {
            processes,
            policy,
            clients: Clients::new(),
            slots: vec![None; processors],
            processors: u64::MAX,
            period: (quantum / LOOKS_IN_QUANTUM).max(Nanoseconds::new(1)),
            are_busy: false,
            calm_looks: 0,
            left: Nanoseconds::ZERO,
            last_look: None,
            next_tick: None,
            seen_paused: Nanoseconds::ZERO,
            turn: 0,
            changed: Vec::new(),
            refused: Vec::new(),
            used: vec![Nanoseconds::ZERO; domains + 1],
            counts: Counts::default(),
        }
    }

    /// How long it is until the next look.
    pub fn next(&self) -> Nanoseconds {
        // Where nobody is to wait, those that wake do no harm until then.
        let is_idle = self.slots.iter().all(Option::is_none);
        let quantum = self.period * LOOKS_IN_QUANTUM;
        match (is_idle, self.are_busy) {
            (true, _) => quantum,
            (false, true) if self.calm_looks >= LOOKS_UNTIL_CALM => self.left.clamp(self.period, quantum),
            (false, true) => self.period * 2,
            (false, false) => self.period,
        }
    }

    pub fn tell(&mut self, message: Message<W::Process>, now: Nanoseconds) -> Result<(), ActuatorError> {
        match message {
            Message::Join { number, process, domain, share, allowed } => {
                self.join(number, process, (domain, share, allowed), now);
            }
            Message::Leave(number) => {
                self.leave(number, now);
                self.processes.settle()?;
            }
            Message::Allowed { number, allowed } => self.policy.set_allowed(number, allowed),
            Message::Shares { domain, share, clients } => {
                self.policy.set_domain_share(domain, share, now);
                clients.into_iter().for_each(|(number, share)| self.policy.set_share(number, share, now));
            }
            Message::Processors(processors) => self.use_processors(processors, now),
        }
        Ok(())
    }

    /// There is always one: those beyond the policy's are all one to it.
    fn use_processors(&mut self, processors: u64, now: Nanoseconds) {
        let there = u64::MAX >> (64 - self.slots.len().clamp(1, 64));
        self.processors = if processors & there == 0 { 1 } else { processors & there };
        for slot in 0..self.slots.len() {
            if !self.is_used(slot) {
                self.stop(slot, Stop::Preempted, now);
            }
        }
    }

    fn is_used(&self, slot: usize) -> bool {
        self.processors >> (slot & 63) & 1 == 1
    }

    fn join(
        &mut self,
        number: ClientId,
        process: W::Process,
        (domain, share, allowed): (DomainIndex, Share, u64),
        now: Nanoseconds,
    ) {
        let Some(used) = self.processes.used(&process) else { return };
        let can_run = self.processes.can_run(&process);
        let client = Client {
            process,
            domain,
            state: State::Away,
            is_paused: false,
            paused_at: used,
            used,
            told: used,
        };
        self.clients.put(number, client);
        self.policy.add(number, domain, share, now);
        self.policy.set_allowed(number, allowed);
        if can_run {
            self.wake(number, now);
        }
    }

    /// A client is none any more: it goes on.
    fn leave(&mut self, number: ClientId, now: Nanoseconds) {
        self.see(number);
        let Some(client) = self.clients.take(number) else { return };
        self.policy.remove(number, now);
        if let State::Chosen(slot) = client.state {
            self.slots[slot] = None;
        }
        if client.is_paused {
            self.processes.resume(&client.process);
        }
    }

    /// One look at the processes.
    pub fn look(&mut self, now: Nanoseconds) -> Result<(), ActuatorError> {
        let passed = now.saturating_sub(self.last_look.replace(now).unwrap_or(now));
        self.counts.late_ns = self.counts.late_ns.max(passed.saturating_sub(self.next()));
        self.are_busy = true;
        self.tick(now);
        for slot in 0..self.slots.len() {
            self.look_at_chosen(slot, passed, now);
        }
        let others_slept = self.look_at_others(now);
        self.calm_looks = if self.are_busy && others_slept { self.calm_looks + 1 } else { 0 };
        for slot in 0..self.slots.len() {
            self.fill(slot, now);
        }
        let until_tick = self.next_tick.map(|tick| tick.saturating_sub(now));
        self.left = until_tick.unwrap_or(Nanoseconds::MAX).min(self.shortest_left());
        self.stand(now)
    }

    /// What is left of the slice of a chosen client that ends first.
    fn shortest_left(&mut self) -> Nanoseconds {
        let clients = &mut self.clients;
        let left = self.slots.iter().flatten().filter_map(|chosen| {
            let used = clients.get(chosen.client)?.used.saturating_sub(chosen.before);
            Some(chosen.slice.saturating_sub(used))
        });
        left.min().unwrap_or_default()
    }

    /// What a client has used up to now; nothing if it has ended. Of one that has ended, what it had used at the last look is
    /// all that is known.
    fn see(&mut self, number: ClientId) -> Option<Nanoseconds> {
        let client = self.clients.get(number)?;
        let used = self.processes.used(&client.process)?;
        let ran = used.saturating_sub(client.used);
        if ran >= MUCH && !self.processes.is_there(&client.process) {
            return None;
        }
        client.used = client.used.max(used);
        self.used[client.domain.index()] += ran;
        Some(ran)
    }

    fn can_run(&mut self, number: ClientId) -> bool {
        self.clients.get(number).is_some_and(|client| self.processes.can_run(&client.process))
    }

    fn look_at_chosen(&mut self, slot: usize, passed: Nanoseconds, now: Nanoseconds) {
        let Some(Chosen { client: number, slice, before, since }) = self.slots[slot] else { return };
        let Some(ran) = self.see(number) else {
            self.are_busy = false;
            return self.stop(slot, Stop::Blocked, now);
        };
        let used =
            self.clients.get(number).map_or(Nanoseconds::ZERO, |client| client.used.saturating_sub(before));
        // The end of a slice is seen at the look that is next to it. Whether it sleeps now is seen when it is to be paused.
        if used + self.period / 2 >= slice {
            return self.stop(slot, Stop::Expired, now);
        }
        // Where it has run nearly all the time, nothing more has to be asked. It has not where one that was just paused runs up to the
        // kernel's next tick.
        let is_busy = !passed.is_zero() && ran.get() * 1000 >= passed.get() * BUSY_PERMILLE;
        if !is_busy && !self.can_run(number) {
            self.are_busy = false;
            return self.stop(slot, Stop::Blocked, now);
        }
        if now.saturating_sub(since) >= slice.saturating_mul(MOST_SLICES) {
            self.stop(slot, Stop::Preempted, now);
        }
    }

    /// Those that are taken for blocked may have woken, and one that waits may have been continued by another program. Whether none of
    /// them has run, as far as they are looked at.
    fn look_at_others(&mut self, now: Nanoseconds) -> bool {
        let with_paused =
            now.saturating_sub(self.seen_paused) >= self.period * (LOOKS_IN_QUANTUM * LOOKS_AT_PAUSED);
        if with_paused {
            self.seen_paused = now;
        }
        let numbers = self.clients.numbers_that(|client| match client.state {
            State::Away => true,
            State::Ready => with_paused || !client.is_paused,
            State::Chosen(_) => false,
        });
        let many = numbers.len();
        let mut have_slept = true;
        for nth in 0..many.min(MOST_LOOKED_AT) {
            let number = numbers[(self.turn + nth) % many];
            let ran = self.see(number).unwrap_or_default();
            let Some(client) = self.clients.get(number) else { continue };
            have_slept &= client.is_paused || ran.is_zero();
            match client.state {
                // Nothing is asked about one that has not run. What it used while it went to sleep again and again is charged
                // when it has come to a quantum.
                State::Away if !ran.is_zero() => {
                    let is_due = client.untold() >= self.period * LOOKS_IN_QUANTUM;
                    if is_due || self.can_run(number) {
                        self.wake(number, now);
                    }
                }
                // It is paused below, unless it sleeps.
                State::Ready if !client.is_paused && !ran.is_zero() => self.changed.push(number),
                // A signal may reach a process that computes with the kernel's next tick only.
                State::Ready
                    if client.is_paused
                        && client.used.saturating_sub(client.paused_at) > self.period * LOOKS_IN_QUANTUM =>
                {
                    self.counts.found_running += 1;
                    client.is_paused = false;
                    self.processes.resume(&client.process);
                    self.changed.push(number);
                }
                State::Away | State::Ready | State::Chosen(_) => {}
            }
        }
        self.turn = (self.turn + MOST_LOOKED_AT).checked_rem(many).unwrap_or(0);
        have_slept
    }

    /// The policy's periodic interrupt, for each processor.
    fn tick(&mut self, now: Nanoseconds) {
        let Some(period) = self.policy.tick_ns().filter(|period| !period.is_zero()) else { return };
        if *self.next_tick.get_or_insert(now) > now {
            return;
        }
        // Those that were missed are not made up for.
        self.next_tick = Some(now + period);
        for slot in 0..self.slots.len() {
            if self.policy.tick(ProcessorId::at(slot), now) {
                self.stop(slot, Stop::Preempted, now);
            }
        }
    }

    fn wake(&mut self, number: ClientId, now: Nanoseconds) {
        self.set_state(number, State::Ready);
        if let Some(processor) = self.policy.wake(number, now) {
            self.stop(processor.index(), Stop::Preempted, now);
        }
    }

    /// The client of a processor has it no longer.
    fn stop(&mut self, slot: usize, stop: Stop, now: Nanoseconds) {
        let Some(chosen) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        let Some(client) = self.clients.get(chosen.client) else { return };
        let ran = client.charge();
        self.policy.ran(chosen.client, ran, stop, now);
        self.set_state(chosen.client, if stop == Stop::Blocked { State::Away } else { State::Ready });
    }

    fn set_state(&mut self, number: ClientId, state: State) {
        if let Some(client) = self.clients.get(number) {
            client.state = state;
            self.changed.push(number);
        }
    }

    /// Asks the policy for the client of a processor that has none.
    fn fill(&mut self, slot: usize, now: Nanoseconds) {
        while self.is_used(slot) && self.slots[slot].is_none() {
            let Some(decision) = self.policy.pick(ProcessorId::at(slot), now) else { return };
            self.counts.decisions += 1;
            let number = decision.client;
            let Some(client) = self.clients.get(number) else {
                self.policy.remove(number, now);
                continue;
            };
            let (before, is_paused) = (client.used, client.is_paused);
            let chosen = Chosen { client: number, slice: decision.slice_ns, before, since: now };
            self.slots[slot] = Some(chosen);
            self.set_state(number, State::Chosen(slot));
            // One that is paused could run when it was. Another one may have gone to sleep since it was seen to run.
            if !is_paused && !self.can_run(number) {
                self.stop(slot, Stop::Blocked, now);
            }
        }
    }

    /// Has those go on that are chosen, and the others wait that compute.
    fn stand(&mut self, now: Nanoseconds) -> Result<(), ActuatorError> {
        let changed = std::mem::take(&mut self.changed);
        // First those that go on: no processor is without one meanwhile.
        for &number in &changed {
            let Some(client) = self.clients.get(number) else { continue };
            if client.state != State::Ready && std::mem::take(&mut client.is_paused) {
                self.processes.resume(&client.process);
            }
        }
        for number in changed {
            let Some(client) = self.clients.get(number) else { continue };
            if client.state != State::Ready || client.is_paused {
                continue;
            }
            // Looked at in this very moment: one that sleeps, or that its user has stopped, is not to be paused.
            if !self.processes.can_run(&client.process) {
                continue;
            }
            client.paused_at = client.used;
            client.is_paused = self.processes.pause(&client.process)?;
            self.counts.pauses += 1;
            if !client.is_paused {
                self.leave(number, now);
                self.refused.push(number);
            }
        }
        self.processes.settle()
    }

    /// Gives back by what processes were paused, with what is to go on.
    pub fn end(self) -> W {
        self.processes
    }
}
