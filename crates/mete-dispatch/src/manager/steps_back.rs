//! The manager's part in steps back (step_back.rs): which client steps back for whom, until when, and where the manager is meanwhile.
//!
//! ```text
//!   tasks wait on a processor
//!     the client there gives what they are due:  it steps back there
//!     it gives moments only:                     it steps back there for those that have woken
//!     another one is to give, and gives already: they wait for that, 20 ms at most
//!     another one is to give, and can come:      it steps back for them; the client there goes to its processor
//!     another one is to give, but is bound:      both step back where they are
//! ```

use std::cmp::Reverse;

use mete_policy::{ClientId, DomainIndex, Nanoseconds};
use mete_sched::actuator::Mask;

use super::Manager;
use crate::clients::Client;
use crate::slot::{Pause, Place, Return, Slot, Why};
use crate::step_back::{Giving, LEAST_PAUSE, SOONEST};
use crate::threads::Threads;

/// A step back for tasks that wait is looked at after this time, as long as they have had nothing, then after twice that, and so on.
const FIRST_LOOK: Nanoseconds = Nanoseconds::from_micros(120);
const BETWEEN_LOOKS_IN_PAUSE: Nanoseconds = Nanoseconds::from_millis(2);
/// And after at least this, once they have had something.
const LEAST_LOOK: Nanoseconds = Nanoseconds::from_micros(100);
/// How much longer it may take until they have had it.
const MOST_MORE: Nanoseconds = Nanoseconds::from_millis(6);
/// A domain is ahead of another one if it is by more than this: a quantum, as a rule.
const AHEAD: i64 = 4_000_000;
/// For how long tasks wait until a client that is elsewhere gives them a processor, or this one does all the same.
const LONGEST_WAIT: Nanoseconds = Nanoseconds::from_millis(20);
/// For how long a client is tried to be moved to an idle processor.
const DISPLACING: Nanoseconds = Nanoseconds::from_millis(2);

impl<T: Threads> Manager<T> {
    /// A task that is no client waits on a processor behind a client.
    pub(super) fn rest_waits(&mut self, has_woken: bool, processor: usize, time: Nanoseconds) {
        let Some(place) = self.places.get_mut(processor) else { return };
        place.step_back.wait(has_woken);
        self.counts.waited += 1;
        self.memory.ask_about_rest(processor);
        let Some(at) = self.slots.iter().position(|slot| slot.steps_back_at(processor)) else { return };
        let giving = self.giving(at, processor, time);
        let is_wanted = self.places[processor].step_back.wanted_pause(&self.dues, giving).is_some();
        // It need not wait for the end of a step back in which the client is to run.
        if let Some(pause) =
            self.slots[at].pause.as_mut().filter(|pause| is_wanted && pause.why == Why::NoneWaits)
        {
            pause.until = pause.until.min(time);
        }
    }

    /// The client that is in front for a slot is chosen again: of tasks that began to wait since it was not chosen any more, the programs have not told,
    /// and tell with the next switch only.
    pub(super) fn hear_untold(&mut self, at: usize, chosen: ClientId) {
        let processor = self.memory.place(chosen);
        if self.slots[at].held != Some(chosen) || self.is_given(processor) {
            return;
        }
        self.take_untold(processor);
    }

    /// Notes tasks that wait on a processor of which the programs have not told, and tell no more.
    fn take_untold(&mut self, processor: usize) {
        let Some(place) = self.places.get_mut(processor) else { return };
        let (was_left, has_woken) = self.memory.take_untold(processor);
        if was_left {
            place.step_back.wait(false);
        }
        if has_woken {
            place.step_back.wait(true);
        }
    }

    /// One for which a client has stepped back there needs the processor no more.
    pub(super) fn rest_is_served(&mut self, processor: usize, time: Nanoseconds) {
        let rest = self.memory.rest(processor, time);
        let pauses = self.slots.iter_mut().filter_map(|slot| slot.pause.as_mut());
        for pause in pauses.filter(|pause| pause.place == processor) {
            pause.why = match pause.why {
                Why::Wanted(waiting) if waiting > 1 => Why::Wanted(waiting - 1),
                Why::Wanted(_) => {
                    // The kernel owes the client as much, and would let the next one that wakes wait for it.
                    let had = rest.saturating_sub(pause.had);
                    pause.until = time.saturating_add(had).min(pause.latest);
                    Why::Wanted(0)
                }
                Why::NoneWaits => Why::NoneWaits,
            };
        }
    }

    /// Time has passed on each processor.
    pub(super) fn pass(&mut self, now: Nanoseconds) {
        self.find_places();
        for at in 0..self.places.len() {
            let is_in_front = self.in_front_at(at).is_some();
            self.places[at].step_back.pass(now, is_in_front);
        }
    }

    /// What tasks that are no clients had since the last step, where clients may run.
    pub(super) fn count_rest(&mut self, now: Nanoseconds) {
        let mut had = Nanoseconds::ZERO;
        for (at, place) in self.places.iter_mut().enumerate() {
            let until = self.memory.rest(at, now);
            // What was had before the first step is of no account; and the clock may have been read in the midst of a switch.
            let before = place.had.unwrap_or(until);
            let since = until.saturating_sub(before);
            place.had = Some(before.max(until));
            if self.slots[at].is_used && self.dues.counts(at) {
                had = had.saturating_add(since);
            }
        }
        self.dues.pass(now, had);
    }

    /// Ends the steps back that are over, and begins others. First those of clients that come for that.
    pub(super) fn step_back(&mut self, now: Nanoseconds) {
        for at in 0..self.slots.len() {
            self.go_on(at, now);
        }
        self.find_places();
        self.compare(now);
        for place in 0..self.places.len() {
            self.have_another_step_back(place, now);
        }
        for place in 0..self.places.len() {
            self.begin_pause(place, now);
        }
    }

    /// Has the client of a slot come to the front again when its step back is over.
    fn go_on(&mut self, at: usize, now: Nanoseconds) {
        let slot = &mut self.slots[at];
        // Another client in its place does not come for those tasks.
        let is_of = |pause: &Pause| {
            slot.chosen.is_some_and(|chosen| pause.place == pause.left || pause.client == chosen.client)
        };
        let going_on = slot.pause.filter(is_of);
        match going_on.and_then(|pause| self.going_on(pause, now)) {
            Some(pause) => self.slots[at].pause = Some(pause),
            None => self.end_pause(at, now),
        }
    }

    /// Finds where the clients in front are, and those that are to be. Of two on one processor, that is the one in front already; and one that
    /// has stepped back may be where another one is.
    fn find_places(&mut self) {
        self.places.iter_mut().for_each(|place| place.slot = None);
        for at in (0..self.slots.len()).filter(|at| self.slots[*at].pause.is_none()) {
            let has_front = self.has_front(at);
            if let Some(place) = self.place_of(at).and_then(|place| self.places.get_mut(place))
                && (place.slot.is_none() || has_front)
            {
                place.slot = Some(at);
            }
        }
    }

    /// Whether the client of a slot is in front, or the one is that it has until then.
    fn has_front(&self, at: usize) -> bool {
        let Slot { chosen, held, .. } = self.slots[at];
        let is_in_front = |number| self.clients.look_at(number).is_some_and(Client::is_in_front);
        chosen.is_some_and(|chosen| is_in_front(chosen.client)) || held.is_some_and(is_in_front)
    }

    /// The slot whose client is in front on a processor, or is to be, as it was found.
    fn in_front_at(&self, place: usize) -> Option<usize> {
        self.places[place].slot.filter(|at| self.slots[*at].pause.is_none())
    }

    /// Has the client on a processor step back for those that wait there, if it has to.
    fn begin_pause(&mut self, place: usize, now: Nanoseconds) {
        if self.is_given(place) || self.displaces == Some(place) {
            return;
        }
        let Some(at) = self.in_front_at(place) else {
            // What waits has the processor; unless its client has left it to another one, which is about to come.
            let is_awaited =
                self.slots.iter().any(|slot| slot.pause.is_some_and(|pause| pause.left == place));
            if !is_awaited {
                self.places[place].step_back.forget();
            }
            return;
        };
        let giving = self.giving(at, place, now);
        // Those that have woken need little, and have it here.
        let are_left = self.places[place].step_back.are_left();
        let is_due = giving == Giving::Due && are_left && self.dues.saved() >= LEAST_PAUSE;
        self.step_back_for((at, place), giving, now);
        if let Some(Pause { why: Why::Wanted(_), length, .. }) = self.slots[at].pause
            && is_due
        {
            self.offer_beside(at, length, now);
        }
    }

    /// Whether a client has stepped back on a processor.
    fn is_given(&self, place: usize) -> bool {
        self.slots.iter().any(|slot| slot.steps_back_at(place))
    }

    /// A client gives, and on the processors of others that are to give no task waits: they are bound, or it takes more than one. They
    /// step back as well, and the kernel may move tasks there.
    fn offer_beside(&mut self, at: usize, length: Nanoseconds, now: Nanoseconds) {
        for other in (0..self.slots.len()).filter(|other| *other != at) {
            let is_free = self.slots[other].pause.is_none() && !self.is_giving(other) && !self.keeps(other);
            let is_to_give = is_free && (self.dues.is_much_saved() || self.gives_before(other, at));
            let is_here = |place: &usize| *place < self.places.len() && !self.is_given(*place);
            if let Some(place) = self.place_of(other).filter(|place| is_to_give && is_here(place)) {
                self.set_pause((other, place), (length, 0), now);
            }
        }
    }

    /// Has a client that is elsewhere step back for those that wait on a processor, if it is to. The one that is here goes there: the manager comes
    /// here, where it displaces that one, and the kernel moves it to the processor on which none is in front now.
    fn have_another_step_back(&mut self, place: usize, now: Nanoseconds) {
        let step_back = &self.places[place].step_back;
        if !step_back.is_waited_for() || self.dues.saved() < LEAST_PAUSE || self.is_given(place) {
            return;
        }
        let Some(at) = self.in_front_at(place) else { return };
        // For a moment only: the kernel may not move it, as where a real-time task of others runs there.
        let is_time = (LONGEST_WAIT..LONGEST_WAIT + DISPLACING).contains(&step_back.waits_for(now));
        if is_time && self.has_idle_place(at) {
            self.displaces = Some(place);
            return;
        }
        // What it does by itself costs less.
        if step_back.wanted_pause(&self.dues, self.giving(at, place, now)).is_some() {
            return;
        }
        if let Some(other) = self.giver_beside(at, place, now) {
            self.step_back_for((other, place), Giving::Due, now);
        }
    }

    /// Whether there is a processor on which none is in front and nothing else runs, and the client of a slot may.
    fn has_idle_place(&self, at: usize) -> bool {
        let is_idle = |place: usize| {
            let is_free = self.places[place].slot.is_none() && !self.is_given(place);
            is_free && self.slots[place].is_used && self.may_run(at, place) && !self.memory.has_rest(place)
        };
        !self.cannot_move && (0..self.places.len()).any(is_idle)
    }

    /// The client of a slot steps back for those that wait on a processor, if it has to.
    fn step_back_for(&mut self, (at, place): (usize, usize), giving: Giving, now: Nanoseconds) {
        let had = self.memory.rest(place, now);
        if let Some(pause) = self.places[place].step_back.pause(had, &self.dues, giving) {
            self.set_pause((at, place), pause, now);
        }
    }

    /// The client of a slot steps back on a processor: for how long, and for how many that wait.
    fn set_pause(
        &mut self,
        (at, place): (usize, usize),
        (length, waiting): (Nanoseconds, u32),
        now: Nanoseconds,
    ) {
        let (Some(chosen), Some(left)) = (self.slots[at].chosen, self.place_of(at)) else { return };
        let had = self.memory.rest(place, now);
        let why = if waiting > 0 { Why::Wanted(waiting) } else { Why::NoneWaits };
        if waiting > 0 {
            self.memory.give_way(place, true);
        }
        let until = now.saturating_add(if waiting > 0 { FIRST_LOOK } else { length });
        let latest = now.saturating_add(length).saturating_add(MOST_MORE);
        let (client, interval) = (chosen.client, FIRST_LOOK);
        let pause = Pause { client, until, place, left, why, had, length, latest, interval };
        self.slots[at].pause = Some(pause);
    }

    /// Whether the client of a slot is due a whole processor, and gives nothing of it.
    fn keeps(&self, at: usize) -> bool {
        let domain = self.domain_of(at);
        // The kernel asks for the same on each processor.
        self.places[at].step_back.may_keep() && domain.is_some_and(|domain| self.dues.has_all(domain))
    }

    /// The domain of a slot's client.
    fn domain_of(&self, at: usize) -> Option<DomainIndex> {
        self.clients.domain_of(self.slots[at].chosen?.client)
    }

    /// Compares by how much the domains are ahead, with what the policy was not told yet that its clients have used.
    fn compare(&mut self, now: Nanoseconds) {
        if !self.places.iter().any(|place| place.step_back.is_waited_for()) {
            return;
        }
        self.dues.compare();
        for at in 0..self.slots.len() {
            if let (Some(domain), Some(more)) = (self.domain_of(at), self.not_charged(at, now)) {
                self.dues.add_to_comparison(domain, more);
            }
        }
    }

    /// What the client of a slot has used of which the policy was not told yet.
    fn not_charged(&self, at: usize, now: Nanoseconds) -> Option<Nanoseconds> {
        let number = self.slots[at].chosen?.client;
        let client = self.clients.look_at(number)?;
        Some(self.memory.used(number, now).saturating_sub(client.charged))
    }

    /// By how much the domain of a slot's client is ahead, as it was compared last.
    fn ahead(&self, at: usize) -> i64 {
        self.domain_of(at).map_or(0, |domain| self.dues.ahead(domain))
    }

    /// What the client of a slot gave.
    fn gave(&self, at: usize) -> Nanoseconds {
        let client = self.slots[at].chosen.and_then(|chosen| self.clients.look_at(chosen.client));
        client.map_or(Nanoseconds::ZERO, |client| client.gave.max(self.dues.least_given(client.domain)))
    }

    /// Whether the client of one slot is to give what the rest is due before that of another one: that of the domain that is further ahead, and
    /// within one domain, the one that has given less.
    fn gives_before(&self, one: usize, other: usize) -> bool {
        let domains = (self.domain_of(one), self.domain_of(other));
        if one == other || domains.0.is_none() || self.keeps(one) {
            return false;
        }
        let (more, less) = if domains.0 == domains.1 {
            (self.gave(other).get().cast_signed(), self.gave(one).get().cast_signed())
        } else {
            (self.ahead(one), self.ahead(other))
        };
        // Where all have to give, to change places costs more than it evens out.
        let least = if self.dues.is_much_saved() { 4 * AHEAD } else { AHEAD };
        more > less.saturating_add(least)
    }

    /// A client has given this, on top of what it gave before.
    fn has_given(&mut self, number: ClientId, had: Nanoseconds) {
        let Some(client) = self.clients.get(number) else { return };
        client.gave = client.gave.max(self.dues.least_given(client.domain)).saturating_add(had);
        self.dues.has_given(client.domain, client.gave);
    }

    /// What the client of a slot gives of what the rest is due, on the processor on which it is.
    fn giving(&self, at: usize, place: usize, now: Nanoseconds) -> Giving {
        let step_back = &self.places[place].step_back;
        if !step_back.is_waited_for() {
            return Giving::Due;
        }
        let has_long_waited = step_back.waits_for(now) >= LONGEST_WAIT;
        if self.keeps(at) {
            // Tasks that are bound to this processor have what they are due from this client or not at all.
            let is_last =
                has_long_waited && self.dues.is_much_saved() && self.giver_beside(at, place, now).is_none();
            return if is_last { Giving::Due } else { Giving::Nothing };
        }
        // If much is saved, it takes more than one at a time.
        let waits = !has_long_waited && !self.dues.is_much_saved();
        let gives = |other: usize| self.gives_before(other, at) && self.is_giving(other);
        let is_waited_for = waits && (0..self.slots.len()).any(gives);
        let is_other = is_waited_for || self.giver_beside(at, place, now).is_some();
        if is_other { Giving::Moments } else { Giving::Due }
    }

    /// Whether tasks wait where the client of a slot runs, or it has stepped back for them.
    fn is_giving(&self, at: usize) -> bool {
        let place = self.place_of(at).and_then(|place| self.places.get(place));
        self.slots[at].pause.is_some() || place.is_some_and(|place| place.step_back.is_waited_for())
    }

    /// The slot whose client is to step back in the place of this one's, if any: the one that is ahead most. One that gives where it is goes
    /// on with that, until tasks here have waited for long.
    fn giver_beside(&self, at: usize, place: usize, now: Nanoseconds) -> Option<usize> {
        let has_long_waited = self.places[place].step_back.waits_for(now) >= LONGEST_WAIT;
        let gives = |other: &usize| {
            let is_before = self.gives_before(*other, at) || self.keeps(at) && !self.keeps(*other);
            let is_free = self.slots[*other].pause.is_none() && (has_long_waited || !self.is_giving(*other));
            is_before && is_free && self.may_change_places(at, *other)
        };
        let first = |other: &usize| (self.ahead(*other), Reverse(self.gave(*other)));
        (0..self.slots.len()).filter(gives).max_by_key(first)
    }

    /// Whether the clients of two slots may each run where the other one does.
    fn may_change_places(&self, one: usize, other: usize) -> bool {
        let places = (self.place_of(one), self.place_of(other));
        let (Some(here), Some(there)) = places else { return false };
        let can = here != there && !self.cannot_move;
        can && self.may_run(one, there) && self.may_run(other, here)
    }

    /// Whether the client of a slot may run on a processor. One beyond the first 64 is in the mask of all only.
    fn may_run(&self, at: usize, processor: usize) -> bool {
        let client = self.slots[at].chosen.and_then(|chosen| self.clients.look_at(chosen.client));
        let has = |allowed: u64| allowed == u64::MAX || processor < 64 && allowed >> processor & 1 == 1;
        client.is_some_and(|client| has(client.allowed))
    }

    /// When a client is to step back on a processor, if nothing happens; `None` if none is in front there.
    pub(super) fn next_pause(&self, place: usize, now: Nanoseconds) -> Option<Nanoseconds> {
        let at = self.in_front_at(place)?;
        let step_back = &self.places[place].step_back;
        let next = step_back.next(&self.dues, self.giving(at, place, now));
        let mut of_another = Nanoseconds::MAX;
        if step_back.is_waited_for() {
            // Then another one gives, or this one does.
            let until_then = LONGEST_WAIT.saturating_sub(step_back.waits_for(now));
            let is_other = self.giver_beside(at, place, now).is_some();
            if is_other || !until_then.is_zero() {
                let least = if is_other { Nanoseconds::ZERO } else { until_then };
                of_another = least.max(self.dues.until(LEAST_PAUSE));
            }
        }
        Some(now.saturating_add(next.min(of_another).max(SOONEST)))
    }

    /// The step back as it goes on; `None` if it is over. The tasks for which it is may get the processor late: the kernel may owe the
    /// client time from earlier ones, and looks only with its next tick whether another one is to run. Where the manager runs for a
    /// moment, it looks.
    fn going_on(&self, pause: Pause, now: Nanoseconds) -> Option<Pause> {
        if pause.until > now {
            return Some(pause);
        }
        let had = self.memory.rest(pause.place, now).saturating_sub(pause.had);
        if !matches!(pause.why, Why::Wanted(1..)) || had >= pause.length || now >= pause.latest {
            return None;
        }
        let left = pause.length.saturating_sub(had).max(LEAST_LOOK);
        let next = if had.is_zero() { pause.interval } else { left };
        let interval = pause.interval.saturating_mul(2).min(BETWEEN_LOOKS_IN_PAUSE);
        Some(Pause { until: now.saturating_add(next).min(pause.latest), interval, ..pause })
    }

    fn end_pause(&mut self, at: usize, now: Nanoseconds) {
        let Some(Pause { client, place, left, had: before, .. }) = self.slots[at].pause.take() else {
            return;
        };
        // The client there was not moved, so that tasks had nothing.
        let has_stayed = self.places.get(place).is_some_and(|it| it.slot.is_some_and(|slot| slot != at));
        let returns = Return { client, place, account: self.memory.account(client) };
        self.slots[at].returns = Some(returns);
        self.has_returned = true;
        let had = self.memory.rest(place, now);
        self.has_given(client, had.saturating_sub(before));
        self.memory.ask_about_rest(place);
        self.memory.give_way(place, false);
        let Some(Place { step_back, .. }) = self.places.get_mut(place) else { return };
        step_back.resume(had, &mut self.dues);
        if place != left && has_stayed {
            step_back.forgive();
        }
        // What the programs withheld meanwhile they would tell with the next switch to a client there only.
        self.take_untold(place);
    }

    /// The processor that a slot has: a client that is chosen for it and not in front yet was last on any. One that has stepped back and has not
    /// run since comes back where it was.
    fn place_of(&self, at: usize) -> Option<usize> {
        let Slot { chosen, held, returns, .. } = self.slots[at];
        let chosen = chosen?.client;
        if let Some(place) = returns.and_then(|it| it.place_of(chosen, self.memory.account(chosen))) {
            return Some(place);
        }
        let is_in_front = self.clients.look_at(chosen).is_some_and(Client::is_in_front);
        let has_it = held.filter(|_| !is_in_front).unwrap_or(chosen);
        Some(self.memory.place(has_it))
    }

    /// Has the manager be where a client has stepped back, as long as one has. On another processor it takes that from a client in front, which
    /// the kernel moves at once to a processor that has none in front: where another one has stepped back, for tasks that are bound to that
    /// processor, too. First comes a processor where one is in front that is to be displaced: to one that is idle, or where the one is that steps back here; then one where one has stepped back already, then one where one
    /// is about to.
    pub(super) fn be_where_there_is_none_in_front(&mut self) {
        if self.slots.len() == 1 {
            return;
        }
        let mut best = None;
        for at in 0..self.slots.len() {
            let Slot { pause: Some(Pause { place, .. }), chosen: Some(chosen), .. } = self.slots[at] else {
                continue;
            };
            let is_in_front = self.clients.look_at(chosen.client).is_some_and(Client::is_in_front);
            let is_taken = self.places.get(place).is_some_and(|_| self.in_front_at(place).is_some());
            let rank = (!is_taken, is_in_front, self.stays_on != Some(place));
            if best.is_none_or(|(found, _)| rank < found) {
                best = Some((rank, place));
            }
        }
        let place = self.displaces.take().or(best.map(|(_, place)| place)).or(self.free_place());
        if self.stays_on != place {
            let mask = place.and_then(Mask::single).or(self.runs_on);
            let goes = self.threads.run_on(mask.as_ref());
            self.stays_on = place.filter(|_| goes);
            // It may be bound itself, to processors of which this is none.
            self.cannot_move |= !goes;
        }
    }

    /// A processor on which none is in front, while one is elsewhere, which has come to the front just now: from where the manager is, the kernel would move
    /// it to the one that is free, whatever waits there. The manager stays there meanwhile.
    fn free_place(&mut self) -> Option<usize> {
        let has_returned = std::mem::take(&mut self.has_returned);
        let is_free = |place: usize| {
            let is_used = self.slots.get(place).is_some_and(|slot| slot.is_used);
            is_used && self.places[place].slot.is_none()
        };
        let stays = self.stays_on.filter(|place| is_free(*place));
        let first = || (0..self.places.len()).find(|place| is_free(*place)).filter(|_| has_returned);
        stays.or_else(first).filter(|_| self.places.iter().any(|place| place.slot.is_some()))
    }
}
