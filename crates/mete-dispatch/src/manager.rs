//! The manager: the thread that asks the policy, and has the kernel carry out what it answers.
//!
//! Each processor is a slot. The policy names a client for each, one that may run there if the policy knows
//! bounds. The client is put in front of all ordinary threads, and the kernel finds it a processor. All other
//! clients stand behind all ordinary threads: what those leave, the kernel gives to them, and they are
//! charged for it.
//!
//! ```text
//!   real time, 50   the manager, when a quantum ends, a client wakes, or a chosen one blocks
//!   real time, 1    a chosen client for each processor
//!   ordinary        everything that is no client; a chosen client that has stepped back for it (step_back.rs)
//!   idle            the other clients
//! ```

mod steps_back;

use std::collections::VecDeque;
use std::time::Duration;

use mete_policy::{ClientId, Nanoseconds, Policy, ProcessorId, Stop};
use mete_sched::actuator::Mask;
use rustix::io::Errno;

use crate::channels::Channels;
use crate::clients::{Client, Clients};
use crate::counts::Counts;
use crate::dues::Dues;
use crate::error::DispatchError;
use crate::memory::{Birth, MOST_CLIENTS, Memory, Row, What};
use crate::message::Message;
use crate::slot::{Chosen, Place, Slot, Why};
use crate::step_back::StepBack;
use crate::threads::{Standing, Threads};

/// How long the manager sleeps at most.
const LONGEST: Duration = Duration::from_millis(100);
/// How often all clients are looked at.
const BETWEEN_LOOKS: Nanoseconds = Nanoseconds::from_secs(1);
/// If the manager comes later than that, its process was stopped, or the machine.
const LONGEST_ABSENCE: Nanoseconds = Nanoseconds::from_millis(30);
/// A slice of which less is left is used up.
const LEAST_LEFT: Nanoseconds = Nanoseconds::from_micros(50);
/// The least slice. What a policy leaves over may be less than it takes to carry out a decision.
const LEAST_SLICE: Nanoseconds = Nanoseconds::from_micros(200);
/// How long the manager sleeps at least: it runs before its clients, and would leave them nothing.
const SHORTEST: Duration = Duration::from_micros(20);
/// For how long a processor is kept free at most for a thread that the client on it has started. The thread
/// runs meanwhile, among ordinary tasks, and becomes a client.
const LONGEST_BIRTH: Nanoseconds = Nanoseconds::from_millis(1);
/// A client gives the processor up if it cannot use its slice within this number of times the slice's length.
const MOST_SLICES: u64 = 8;

/// See the [module](self).
pub(crate) struct Manager<T: Threads> {
    policy: Box<dyn Policy + Send>,
    memory: Memory,
    threads: T,
    channels: Channels<T::Thread>,
    clients: Clients<T::Thread>,
    slots: Vec<Slot>,
    /// The processors as the kernel has them: the same number.
    places: Vec<Place>,
    /// What the tasks are due that are no clients.
    dues: Dues,
    /// The period of the policy's interrupt, if it wants one, and when that is next.
    tick_period: Option<Nanoseconds>,
    next_tick: Option<Nanoseconds>,
    /// When the next step is due at the latest.
    expected: Nanoseconds,
    /// When all clients are looked at next.
    next_look: Nanoseconds,
    pub counts: Counts,
    lost: u64,
    /// A client was found to have ended, or was refused, when it was chosen already.
    has_missed_end: bool,
    /// Any client has stood in front.
    has_stood: bool,
    /// The processors on which the manager runs, if not on all.
    runs_on: Option<Mask>,
    /// The one on which it stays meanwhile.
    stays_on: Option<usize>,
    /// The one from which it is to displace the client now: that has an idle one to go to.
    displaces: Option<usize>,
    /// It may not run where it has to, to displace one.
    cannot_move: bool,
    /// A step back has ended just now.
    has_returned: bool,
    error: Option<DispatchError>,
}

impl<T: Threads> Manager<T> {
    /// For this number of processors, with what the rest is due, and how a client steps back for it.
    pub fn new(
        policy: Box<dyn Policy + Send>,
        memory: Memory,
        threads: T,
        channels: Channels<T::Thread>,
        processors: usize,
        (step_back, dues): (StepBack, Dues),
        now: Nanoseconds,
    ) -> Manager<T> {
        Manager {
            // What a policy says once: it is asked for before each row.
            tick_period: policy.tick_ns().filter(|period| !period.is_zero()),
            policy,
            memory,
            threads,
            channels,
            clients: Clients::with_room(MOST_CLIENTS),
            slots: vec![Slot::new(); processors],
            places: vec![Place { step_back, slot: None, had: None }; processors],
            dues,
            next_tick: None,
            expected: now,
            next_look: now,
            counts: Counts::default(),
            lost: 0,
            has_missed_end: false,
            has_stood: false,
            runs_on: None,
            stays_on: None,
            displaces: None,
            cannot_move: false,
            has_returned: false,
            error: None,
        }
    }

    /// Does what is due, and says for how long nothing will be due then; an error if the kernel refuses to do
    /// what it is told.
    pub fn step(&mut self, now: Nanoseconds, rows: &mut VecDeque<Row>) -> Result<Duration, DispatchError> {
        // First: what is chosen below was not in front until now.
        self.pass(now);
        while let Some(message) = self.channels.messages.try_take() {
            self.hear(message, now);
        }
        while let Some(row) = rows.pop_front() {
            // In the order of time: after the row, the client that ran at the tick may have left.
            self.tick(row.time);
            self.see(row);
        }
        self.look_at_lost(now);
        if now.saturating_sub(self.expected) > LONGEST_ABSENCE {
            self.come_back(now);
        }
        if now >= self.next_look {
            self.next_look = now.saturating_add(BETWEEN_LOOKS);
            self.look_at_all(now);
        }
        self.tick(now);
        for slot in 0..self.slots.len() {
            self.end_slice(slot, now);
        }
        for slot in 0..self.slots.len() {
            self.fill(slot, now);
        }
        self.count_rest(now);
        self.step_back(now);
        self.stand(now);
        // Then its slot is filled again at once.
        let sleep = if std::mem::take(&mut self.has_missed_end) { SHORTEST } else { self.sleep(now) };
        self.expected = now.saturating_add(Nanoseconds::new(sleep.as_nanos() as u64));
        self.error.take().map_or(Ok(sleep), Err)
    }

    fn hear(&mut self, message: Message<T::Thread>, now: Nanoseconds) {
        match message {
            Message::Join { number, thread, domain, share, allowed } => {
                self.policy.add(number, domain, share, now);
                self.policy.set_allowed(number, allowed);
                self.join(number, Client::new(thread, domain, allowed), now);
            }
            Message::Leave { number } => self.end(number, now),
            Message::Allowed { number, allowed } => {
                self.policy.set_allowed(number, allowed);
                self.bind(number, allowed);
            }
            Message::Awake { number } => self.is_awake(number, now),
            Message::Processors(mask) => self.use_processors(&mask, now),
            Message::Shares { domain, share, clients } => {
                self.policy.set_domain_share(domain, share, now);
                clients.into_iter().for_each(|(client, share)| self.policy.set_share(client, share, now));
                self.dues.set_share(domain, share);
            }
        }
    }

    /// The policy knows this client; now its thread is one.
    fn join(&mut self, number: ClientId, mut client: Client<T::Thread>, now: Nanoseconds) {
        let born = T::number(&client.thread);
        for slot in &mut self.slots {
            slot.birth = slot.birth.filter(|(awaited, _)| *awaited != born);
        }
        // Only now: what happens after this is told by a row.
        let can_run = self.memory.can_run(number);
        client.can_run = can_run;
        let stands = client.stand(&mut self.threads, Standing::Behind);
        self.clients.put(number, client);
        if let Err(source) = stands {
            return self.refuse(number, source, now);
        }
        if can_run {
            self.wake(number, now);
        }
    }

    /// A client is chosen for each processor that any may run on. Where it is one, the manager runs there,
    /// too: to wake a processor from another one costs more than all else that it does.
    fn use_processors(&mut self, mask: &Mask, now: Nanoseconds) {
        // Without clients no processor is used, and one does no harm.
        let is_none = mask.processors().next().is_none_or(|first| first >= self.slots.len());
        for at in 0..self.slots.len() {
            self.slots[at].is_used = mask.has(at) || is_none && at == 0;
            if !self.slots[at].is_used {
                self.stop(at, Stop::Preempted, now);
            }
        }
        self.dues.set_processors((0..self.slots.len()).filter(|&at| self.slots[at].is_used));
        self.runs_on = (mask.processors().count() == 1).then_some(*mask);
        self.stays_on = None;
        let _ = self.threads.run_on(self.runs_on.as_ref());
        self.cannot_move = false;
    }

    fn see(&mut self, row: Row) {
        let Row { number, time, .. } = row;
        match row.what {
            What::Waited { has_woken } => self.rest_waits(has_woken, row.processor, time),
            What::Served => self.rest_is_served(row.processor, time),
            What::Renumbered(birth) => self.follow(birth, time),
            // The number has another client meanwhile.
            _ if !self.is_of(number, row.thread) => {}
            What::Ended => self.end(number, time),
            What::Born(birth) => self.expect(number, birth, time),
            What::Woke => self.has_woken(number, time),
            What::Blocked => self.has_blocked(number, time),
        }
    }

    fn has_woken(&mut self, number: ClientId, time: Nanoseconds) {
        let Some(client) = self.clients.get(number) else { return };
        client.can_run = true;
        if client.is_away && !client.is_refused {
            self.wake(number, time);
        }
    }

    /// A client was found awake, of which no row has told.
    fn is_awake(&mut self, number: ClientId, now: Nanoseconds) {
        if let Some(client) = self.clients.get(number).filter(|client| client.is_away && !client.is_refused) {
            client.can_run = true;
            self.wake(number, now);
        }
    }

    fn has_blocked(&mut self, number: ClientId, time: Nanoseconds) {
        let Some(client) = self.clients.get(number) else { return };
        client.can_run = false;
        if let Some(slot) = self.slot_of(number) {
            self.stop(slot, Stop::Blocked, time);
        }
    }

    /// A client has started a thread.
    fn expect(&mut self, number: ClientId, birth: Birth, time: Nanoseconds) {
        if self.channels.births.tell(birth)
            && let Some(slot) = self.slot_of(number)
        {
            self.slots[slot].birth = Some((birth.thread, time.saturating_add(LONGEST_BIRTH)));
        }
    }

    /// A thread has another number, that of the first one of its process. What both were as clients they are no longer. The thread stands
    /// where its owner put it, until it is a client again.
    fn follow(&mut self, birth: Birth, time: Nanoseconds) {
        let former = self.clients.of_thread(|thread| T::number(thread) == birth.parent);
        let first = self.clients.of_thread(|thread| T::number(thread) == birth.thread);
        if let Some(client) = former.and_then(|number| self.forget(number, time)) {
            // An error means that it has ended.
            let _ = self.threads.stand(&T::renumbered(&client.thread, birth.thread), Standing::Own);
        }
        if let Some(number) = first {
            self.forget(number, time);
        }
        self.channels.births.tell(birth);
    }

    /// Whether the client that had the processor has started a thread that is to be a client soon.
    fn awaits_birth(&self, slot: usize, now: Nanoseconds) -> bool {
        self.slots[slot].birth.is_some_and(|(_, until)| until > now)
    }

    /// Whether the client of this number is still this thread.
    fn is_of(&mut self, number: ClientId, thread: u32) -> bool {
        self.clients.get(number).is_some_and(|client| T::number(&client.thread) == thread)
    }

    /// After rows were lost, every client may have woken or blocked.
    fn look_at_lost(&mut self, now: Nanoseconds) {
        let lost = self.memory.lost();
        if lost == self.lost {
            return;
        }
        self.counts.lost += lost - self.lost;
        self.lost = lost;
        self.memory.ask_about_all();
        for number in self.clients.numbers() {
            let Some(client) = self.clients.get(number) else { continue };
            // One that cannot run is found out when it is chosen and uses nothing.
            client.can_run = true;
            if client.is_away {
                self.wake(number, now);
            }
        }
    }

    /// Sets right what no row has told: a client that is taken for blocked and has used time is awake; and
    /// all stand where they belong, also if they were given their own classes while this process was stopped
    /// for a moment.
    fn look_at_all(&mut self, now: Nanoseconds) {
        self.counts.refused = 0;
        for number in self.clients.numbers() {
            let used = self.memory.used(number, now);
            let Some(client) = self.clients.get(number) else { continue };
            client.forget_standing();
            let has_run = client.is_away && used > client.charged;
            // Where the kernel has refused it, that may be different now.
            let was_refused = std::mem::take(&mut client.is_refused);
            let is_missed = (has_run || was_refused) && self.memory.can_run(number);
            if is_missed {
                client.can_run = true;
                self.wake(number, now);
            }
            if self.slot_of(number).is_none() && !was_refused {
                self.have_stand(number, Standing::Behind, now);
            }
        }
    }

    /// Whether the policy takes a client for blocked, from now on.
    fn set_away(&mut self, number: ClientId, is_away: bool) {
        let Some(client) = self.clients.get(number) else { return };
        if std::mem::replace(&mut client.is_away, is_away) != is_away {
            self.dues.set_ready(client.domain, client.allowed, !is_away);
        }
    }

    /// A client may run on other processors from now on.
    fn bind(&mut self, number: ClientId, allowed: u64) {
        let Some(client) = self.clients.get(number) else { return };
        let before = std::mem::replace(&mut client.allowed, allowed);
        if !client.is_away {
            self.dues.set_ready(client.domain, before, false);
            self.dues.set_ready(client.domain, allowed, true);
        }
    }

    fn wake(&mut self, number: ClientId, now: Nanoseconds) {
        self.set_away(number, false);
        if let Some(processor) = self.policy.wake(number, now) {
            self.counts.preempted += 1;
            self.stop(processor.index(), Stop::Preempted, now);
        }
    }

    /// The client has ended, or is none any more.
    fn end(&mut self, number: ClientId, now: Nanoseconds) {
        if let Some(client) = self.forget(number, now) {
            // An error means that it has ended.
            let _ = self.threads.stand(&client.thread, Standing::Own);
        }
    }

    /// There is no client of this number any more. Where its thread stands, it stays.
    fn forget(&mut self, number: ClientId, now: Nanoseconds) -> Option<Client<T::Thread>> {
        if let Some(slot) = self.slot_of(number) {
            self.stop(slot, Stop::Blocked, now);
        }
        self.set_away(number, true);
        let client = self.clients.take(number)?;
        self.policy.remove(number, now);
        self.slots.iter_mut().filter(|slot| slot.held == Some(number)).for_each(|slot| slot.held = None);
        Some(client)
    }

    fn slot_of(&self, number: ClientId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.chosen.is_some_and(|chosen| chosen.client == number))
    }

    /// The client of a slot gives way. It stands in front until another one does.
    fn stop(&mut self, slot: usize, stop: Stop, now: Nanoseconds) {
        let Some(chosen) = self.slots.get_mut(slot).and_then(|slot| slot.chosen.take()) else { return };
        self.memory.choose(chosen.client, false);
        let Some(client) = self.clients.get(chosen.client) else { return };
        let ran = client.charge(&self.memory, chosen.client, now);
        self.dues.used(client.domain, ran);
        self.set_away(chosen.client, stop == Stop::Blocked);
        self.policy.ran(chosen.client, ran, stop, now);
    }

    /// Has all clients stand where they belong, after the processes that put classes back may have done so:
    /// they do while this process is stopped.
    fn come_back(&mut self, now: Nanoseconds) {
        self.counts.absences += 1;
        for number in self.clients.numbers() {
            self.clients.get(number).into_iter().for_each(|client| client.forget_standing());
            self.have_stand(number, Standing::Behind, now);
        }
    }

    /// The policy's periodic interrupt, for each processor.
    fn tick(&mut self, now: Nanoseconds) {
        let Some(period) = self.tick_period else { return };
        let next = *self.next_tick.get_or_insert(now);
        if next > now {
            return;
        }
        // One that was missed is not made up for.
        let since = now.saturating_sub(next).get() % period.get();
        self.next_tick = Some(now.saturating_add(period).saturating_sub(Nanoseconds::new(since)));
        for slot in 0..self.slots.len() {
            if self.slots[slot].is_used && self.policy.tick(ProcessorId::at(slot), now) {
                self.stop(slot, Stop::Preempted, now);
            }
        }
    }

    /// Ends a slice that is used up. A slice is time that the client has used: others may have had the
    /// processor.
    fn end_slice(&mut self, slot: usize, now: Nanoseconds) {
        let Some(mut chosen) = self.slots[slot].chosen.filter(|chosen| chosen.ends <= now) else { return };
        let Some(client) = self.clients.get(chosen.client) else { return };
        let used = self.memory.used(chosen.client, now).saturating_sub(chosen.before);
        // One that has used nothing is looked at: its row may be among those that were lost.
        client.can_run = !used.is_zero() || self.memory.can_run(chosen.client);
        let left = chosen.slice.saturating_sub(used);
        if client.can_run && left >= LEAST_LEFT && now < chosen.last {
            chosen.ends = now.saturating_add(left);
            self.slots[slot].chosen = Some(chosen);
            return;
        }
        let stop = match client.can_run {
            false => Stop::Blocked,
            true if left >= LEAST_LEFT => Stop::Preempted,
            true => Stop::Expired,
        };
        self.stop(slot, stop, now);
        self.counts.late_ns = self.counts.late_ns.max(now.saturating_sub(chosen.ends));
    }

    /// Asks the policy for the client of an empty slot.
    fn fill(&mut self, slot: usize, now: Nanoseconds) {
        if self.awaits_birth(slot, now) {
            return;
        }
        // Each client that turns out to have blocked is told, and is not named again.
        while self.slots[slot].is_used && self.slots[slot].chosen.is_none() {
            let Some(decision) = self.policy.pick(ProcessorId::at(slot), now) else { return };
            self.counts.decisions += 1;
            let number = decision.client;
            let Some(client) = self.clients.get(number) else {
                self.policy.ran(number, Nanoseconds::ZERO, Stop::Blocked, now);
                continue;
            };
            if !client.can_run || client.is_refused {
                let ran = client.charge(&self.memory, number, now);
                self.dues.used(client.domain, ran);
                self.set_away(number, true);
                self.policy.ran(number, ran, Stop::Blocked, now);
                continue;
            }
            self.memory.choose(number, true);
            self.slots[slot].returns = None;
            self.hear_untold(slot, number);
            let (slice, before) = (decision.slice_ns.max(LEAST_SLICE), self.memory.used(number, now));
            let ends = now.saturating_add(slice);
            let last = now.saturating_add(slice.saturating_mul(MOST_SLICES));
            self.slots[slot].chosen = Some(Chosen { client: number, slice, before, ends, last });
        }
    }

    /// Has all clients stand where they belong.
    fn stand(&mut self, now: Nanoseconds) {
        self.be_where_there_is_none_in_front();
        for at in 0..self.slots.len() {
            let Slot { chosen, held, pause, .. } = self.slots[at];
            let Some(Chosen { client, .. }) = chosen else { continue };
            let standing = match pause.map(|pause| pause.why) {
                None => Standing::Front,
                Some(Why::Wanted(_)) => Standing::After,
                Some(Why::NoneWaits) => Standing::Aside,
            };
            self.have_stand(client, standing, now);
            if held != Some(client) {
                self.slots[at].held = Some(client);
                self.give_up(held, now);
            }
        }
        for at in 0..self.slots.len() {
            if self.slots[at].chosen.is_none() {
                let held = self.slots[at].held.take();
                self.give_up(held, now);
            }
        }
    }

    /// A client stands in front for a slot no longer.
    fn give_up(&mut self, held: Option<ClientId>, now: Nanoseconds) {
        let Some(client) = held else { return };
        // It may have been chosen for another slot meanwhile.
        if self.slot_of(client).is_none() {
            self.have_stand(client, Standing::Behind, now);
        }
    }

    fn have_stand(&mut self, number: ClientId, standing: Standing, now: Nanoseconds) {
        let Some(client) = self.clients.get(number).filter(|client| !client.is_refused) else { return };
        match client.stand(&mut self.threads, standing) {
            Ok(()) => self.has_stood |= standing == Standing::Front,
            Err(source) => self.refuse(number, source, now),
        }
    }

    /// A client does not stand where it should. Either it has ended, or the kernel refuses, as it does where
    /// a control group has no real time: then the client runs as it did before, and is tried again at the
    /// next look at all. If none has ever stood in front, it is no matter of single threads, and the
    /// dispatcher ends.
    fn refuse(&mut self, number: ClientId, source: Errno, now: Nanoseconds) {
        let slot = self.slot_of(number);
        self.has_missed_end |= slot.is_some();
        if source == Errno::SRCH {
            return self.end(number, now);
        }
        if let Some(slot) = slot {
            self.stop(slot, Stop::Blocked, now);
        }
        let Some(client) = self.clients.get(number) else { return };
        self.counts.refused += u64::from(!client.is_refused);
        client.is_refused = true;
        // An error is of no consequence: as a rule it stands there.
        let _ = client.stand(&mut self.threads, Standing::Own);
        if !self.has_stood {
            let thread = T::number(&client.thread);
            self.error.get_or_insert(DispatchError::Refused { thread, source });
        }
    }

    /// How long nothing is to be done, if nothing happens.
    fn sleep(&self, now: Nanoseconds) -> Duration {
        let of_slot = |slot: &Slot| {
            let birth = slot.birth.map(|(_, until)| until).filter(|until| *until > now);
            let Some(Chosen { ends, .. }) = slot.chosen else { return birth };
            Some(slot.pause.map_or(ends, |pause| pause.until.min(ends)))
        };
        let slots = self.slots.iter().filter_map(of_slot);
        let places = (0..self.places.len()).filter_map(|place| self.next_pause(place, now));
        let slots = slots.chain(places).min();
        // Without a chosen client nothing is to be counted, and the processor may sleep.
        let next = slots.map(|slots| self.next_tick.map_or(slots, |tick| tick.min(slots)));
        next.map_or(LONGEST, |next| {
            Duration::from_nanos(next.saturating_sub(now).get()).clamp(SHORTEST, LONGEST)
        })
    }
}
