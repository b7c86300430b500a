//! Xen's credit scheduler, and TAVS on top of it: virtual processors scheduled by what their tasks do.
//!
//! Source: H. Kim, H. Lim, J. Jeong, H. Jo, J. Lee, S. Maeng, *Transparently bridging semantic gap in CPU
//! management for virtualized environments*, Journal of Parallel and Distributed Computing 71 (2011);
//! sections are cited as "TAVS paper" or by number alone in this module. Where the paper's §2.2 leaves the
//! credit scheduler open, the facts are taken from Xen 3.3's (the paper's is Xen 3.2.1's), and each file says
//! which.
//!
//! | | |
//! |---|---|
//! | selection | constant time |
//! | insertion | constant time, apart from preemption and partial boosts |
//! | accounting (every third tick of processor 0) | as many steps as there are active and ready clients and domains |
//! | a task switch, an event, a request | constant time; when a driver is descheduled, up to 16 packets' worth |
//! | removal | constant time, and clearing what was tracked: N × 8 KiB for an N-bit portmap |
//! | a decision that is given back | its client is at the head again, with its boost and the slice that it had |
//! | fairness | by weight over accounting periods as long as nothing is clipped (see below) |
//! | memory | fixed in the constructor, see [`TavsSettings::tracked_clients`] |
//! | several processors | one queue serves all; a client that wakes preempts the lowest priority |
//!
//! An insertion that may preempt takes as many steps as there are processors. One that revokes a partial
//! boost takes as many as there are clients before its place. Within one priority, clients run first in first
//! out. The file `run_queue` says why one queue serves all processors.
//!
//! # What weights are worth
//!
//! Clients that compute all the time have what their weights say, within two slices each, as long as every
//! client's credit stays within a slice either way. Where it does not, Xen clips it. Debt beyond a slice is
//! forgiven. A client that has saved up more than a slice loses all of it, and earns nothing until a tick
//! finds it running. These cuts never end: a client whose income reaches a slice while the others have their
//! turns before it loses each time what it was given. Of weights of 1024, 256, 64, 256 and 64 the first has
//! 37.5 % instead of 61.5 %: two accountings bring it 37 ms, and it waits for more than two. Two clients
//! whose slices end with accountings clip nothing, whatever their weights. The counters `credit_cut_ns` and
//! `debt_forgiven_ns` say how much was clipped.
//!
//! A client is a virtual processor. Its domain's share is its weight, split among the domain's active
//! clients by their own shares; clients of the root (domain 0) are domains by themselves. Domains do not
//! nest in Xen, so parents are ignored.
//!
//! # The parts, one file each, switched on by [`TavsSettings`]
//!
//! ```text
//!   TaskSwitch ──▶ tracking ──▶ inference ──▶ boosting ──▶ BOOST, 10 ms at most, within PBratio
//!   BlockRead ───▶ block ──────────┐             ▲
//!   EventPending ▶ network, portmap┴─────────────┘
//!   Notify ──────▶ priority           wake of a driver ──▶ keep        DriverTime ──▶ account
//! ```
//!
//! # Where this deviates
//!
//! * §2.2 says credit above zero is `UNDER`; here zero is, too, as in Xen, whose idle clients have zero
//!   credit.
//! * A partial boost is not demoted at a tick; instead its slice, which is as long as a tick, bounds it.
//! * A partial boost of a blocked client takes effect when it wakes, unless the wake-up itself boosts it.
//! * A packet boosts when the driver is descheduled (§3.5.3). Where no driver runs (an owner whose drivers
//!   are no clients), it boosts at once.
//! * A client that gives way before it ran at all goes back to the head, where Xen sends it to the tail: to
//!   the policy this is a decision that could not be carried out.
//! * A client whose partial boost is revoked goes back to its place, not to the tail, where KeepOnRunQ is on.
//!   It goes to the head, if the boost came in its own turn, which the driver had interrupted (`keep`).
//! * Algorithm 1's `after_event` belongs to the slice. A preempted task's run goes on when the task is
//!   resumed and no event came in between (`inference` gives the reasons for both). KeepOnRunQ keeps the rest
//!   of the slice (`keep`). A boost begins only where IOthreshold's worth of it is allowed (`boosting`).
//!
//! ```
//! use mete_policy::credit::{Credit, CreditSettings, TavsSettings};
//! use mete_policy::{Policy, Setup};
//!
//! let tavs = TavsSettings { priority_inheritance: true, ..TavsSettings::OFF };
//! let policy = Credit::new(&Setup::for_clients(7), CreditSettings { tavs, ..CreditSettings::BASELINE });
//! assert_eq!(policy.name(), "credit-tavs");
//! ```

mod account;
mod block;
mod boosting;
mod counters;
mod inference;
mod keep;
mod network;
mod portmap;
mod priority;
mod run_queue;
mod settings;
mod tavs;
mod tracking;

use alloc::vec;
use alloc::vec::Vec;

use self::account::Accounts;
use self::counters::Counters;
use self::priority::{Boost, Standing};
use self::run_queue::RunQueue;
use self::tavs::Tavs;
use crate::occupancy::Occupancy;
use crate::roster::{ClientState, Roster};
use crate::{
    ClientId, Decision, DomainIndex, Event, Grant, Nanoseconds, Observation, Policy, ProcessorId, Setup,
    Share, Stop, TaskId,
};

pub use self::priority::Priority;
pub use self::settings::{CreditSettings, TavsSettings};

/// The credit scheduler, with the TAVS parts that are switched on.
pub struct Credit {
    settings: CreditSettings,
    roster: Roster,
    accounts: Accounts,
    standings: Vec<Standing>,
    run_queue: RunQueue,
    occupancy: Occupancy,
    /// The number of drivers that run.
    running_drivers: u32,
    /// Ticks of processor 0.
    ticks: u32,
    tavs: Tavs,
    counters: Counters,
}

impl Credit {
    /// A policy without clients. The slice is the settings', not [`Setup::quantum_ns`].
    pub fn new(setup: &Setup, settings: CreditSettings) -> Credit {
        let processors = setup.processors.max(1);
        let (tick_ns, slice_ns) =
            (settings.tick_ns.max(Nanoseconds::new(1)), settings.slice_ns.max(Nanoseconds::new(1)));
        let settings = CreditSettings { tick_ns, slice_ns, ..settings };
        Credit {
            settings,
            roster: Roster::new(setup),
            accounts: Accounts::new(setup.clients, setup.domains.max(1), processors, &settings),
            standings: vec![Standing::default(); setup.clients as usize],
            run_queue: RunQueue::new(setup.clients),
            occupancy: Occupancy::new(processors),
            running_drivers: 0,
            ticks: 0,
            tavs: Tavs::new(setup, settings.tavs),
            counters: Counters::default(),
        }
    }

    /// Changes IOthreshold for a domain's clients, from now on (§5.4, figure 18).
    pub fn set_io_threshold(&mut self, domain: DomainIndex, threshold_ns: Nanoseconds) {
        self.tavs.set_io_threshold(domain, threshold_ns);
    }

    /// The belief that a task is I/O-bound; `None` for one that is not tracked.
    pub fn belief(&self, client: ClientId, task: TaskId) -> Option<i16> {
        self.tavs.inference.belief(client, task)
    }

    /// The portmap counter of a client's port; `None` where there is no portmap. For tests of what the
    /// portmap learns.
    pub fn portmap_counter(&self, client: ClientId, port: u16) -> Option<u8> {
        self.tavs.network.counter(client, port)
    }

    /// A client's credit in nanoseconds of processor time; 100 credits of Xen's are a tick's.
    pub fn credit_ns(&self, client: ClientId) -> i64 {
        self.accounts.credit_ns(client)
    }

    /// A client's priority; that of a new client for one that does not exist.
    pub fn priority(&self, client: ClientId) -> Priority {
        self.standing(client).priority()
    }

    fn standing(&self, client: ClientId) -> Standing {
        self.standings.get(client.index()).copied().unwrap_or_default()
    }

    fn processor_of(&self, client: ClientId) -> Option<ProcessorId> {
        let processor = self.run_queue.processor(client);
        (self.roster.state(client) == ClientState::Running).then_some(processor)
    }

    /// Moves a ready client whose priority has changed to the list of the new one.
    fn requeue(&mut self, client: ClientId) {
        self.run_queue.remove(client);
        self.run_queue.push_back(client, self.priority(client));
    }

    /// Puts a client that has stopped and is ready into the queue. `preempted`: what it had run, if it was.
    fn queue_up(&mut self, client: ClientId, preempted: Option<Nanoseconds>, boosted: bool) {
        let priority = self.priority(client);
        // KeepOnRunQ: a client that its driver preempted keeps its turn (§4.2).
        if preempted.is_some_and(|ran_ns| self.tavs.keep.preempted(client, ran_ns)) {
            self.counters.kept_on_run_queue += 1;
            self.run_queue.push_front(client, priority);
        } else if preempted.is_some() && boosted && self.tavs.keep.has_left(client) {
            // Boosted in its own turn, which a driver had interrupted: that turn goes on.
            self.run_queue.push_front(client, priority);
        } else if preempted.is_some() && boosted && self.settings.tavs.keep_on_run_queue {
            // Boosted ahead of its turn: it goes back to its place (`keep` says why).
            self.run_queue.put_back(client, priority);
        } else {
            self.run_queue.push_back(client, priority);
        }
    }

    /// The processor that a ready client may take from the client that runs there: its own if it can, or that
    /// of the lowest priority. Where a processor is idle, the owner lets that one choose.
    fn preempts(&mut self, client: ClientId) -> Option<ProcessorId> {
        if self.occupancy.any_idle() {
            return None;
        }
        let own = self.run_queue.processor(client);
        // A processor that is promised to another client is defended by that one.
        let held = self.occupancy.all().map(|(at, occupant)| {
            (at, self.occupancy.asking(at, client, &self.roster).unwrap_or(occupant.client))
        });
        // Of equal priorities the client's own processor is the least: its caches are warm there.
        let (processor, victim) = held.min_by_key(|&(at, holds)| (self.priority(holds), at != own))?;
        if self.priority(client) <= self.priority(victim) {
            return None;
        }
        // A victim that is ready has only been promised the processor: no slice of it is interrupted.
        if self.tavs.is_driver(client) && self.roster.state(victim) == ClientState::Running {
            self.tavs.keep.interrupted(victim);
        }
        self.counters.preemptions += 1;
        self.occupancy.ask(processor, client);
        Some(processor)
    }

    /// Hands out credit, sets priorities by it, and sorts the queue.
    fn account(&mut self, now: Nanoseconds) {
        if self.settings.precise_accounting {
            // The ticks of other processors may come later in this instant; their clients' use counts now.
            for (_, occupant) in self.occupancy.all() {
                self.accounts.charge_so_far(occupant.client, now);
            }
        }
        let standings = &mut self.standings;
        let clipped = self.accounts.settle(&self.roster, |client, priority| {
            let Some(standing) = standings.get_mut(client.index()) else { return };
            standing.credit = priority;
            // A wake-up's boost lasts until credit decides anew; a partial boost is bounded by its slice
            // (§3.4).
            if standing.boost == Boost::Wake {
                standing.boost = Boost::None;
            }
        });
        self.counters.clipped(clipped);
        let standings = &self.standings;
        self.run_queue
            .sort(|client| standings.get(client.index()).map_or(Priority::Under, Standing::priority));
    }

    /// A tick found this client running.
    fn charge_tick(&mut self, client: ClientId, now: Nanoseconds) {
        if let Some(standing) = self.standings.get_mut(client.index()) {
            standing.demote();
        }
        if self.settings.precise_accounting {
            self.accounts.charge_so_far(client, now);
        } else {
            self.accounts.debit(client, self.settings.tick_ns);
        }
        // Also with precise charges: activity is a matter of ticks, as in Xen (`account`).
        self.accounts.activate(client);
    }

    fn switched(&mut self, client: ClientId, task: TaskId, now: Nanoseconds) -> Option<ProcessorId> {
        let processor = self.processor_of(client)?;
        let threshold_ns = self.tavs.io_threshold_ns(self.roster.domain(client));
        let io_bound = self.tavs.switched(client, task, threshold_ns, now, &mut self.counters);
        let standing = self.standings.get_mut(client.index())?;
        // A boost is for I/O-bound tasks: another task ends it, and the processor chooses anew (§3.4).
        if io_bound || standing.boost != Boost::Partial {
            return None;
        }
        standing.boost = Boost::None;
        self.counters.revocations += 1;
        Some(processor)
    }

    /// An event is pending for a client. Packets are noted while a driver runs, and read afterwards.
    fn event(&mut self, client: ClientId, event: Event) -> Option<ProcessorId> {
        // A client that runs takes the event at once: its next slice does not begin with it.
        if self.roster.state(client) != ClientState::Running {
            self.tavs.inference.event(client, event);
        }
        let is_for_a_task = event != Event::Other;
        if self.tavs.settings.aggressive_boosting
            && is_for_a_task
            && self.roster.state(client) == ClientState::Ready
        {
            return self.boost_as_if_woken(client);
        }
        match event {
            Event::Packet { port } if self.tavs.settings.network_correlation && self.running_drivers > 0 => {
                self.counters.ports_missed += u64::from(!self.tavs.network.note(client, port));
                None
            }
            _ => self.boost_for(client, event),
        }
    }

    /// A driver is descheduled: its notes are read. Its processor picks next in any case.
    fn read_notes(&mut self) {
        while let Some((client, port)) = self.tavs.network.take_note() {
            // The answer can be dropped: the processor that is being left picks by the new priorities.
            let _ = self.boost_for(client, Event::Packet { port });
        }
    }

    /// Boosts a client for an event, if the event is for an I/O-bound task and the client may be boosted. A
    /// client that runs has taken the event already.
    fn boost_for(&mut self, client: ClientId, event: Event) -> Option<ProcessorId> {
        let state = self.roster.state(client);
        // Asked in any case: the correlations learn from every event, also where no boost follows.
        let wanted = self.tavs.is_for_io_bound(client, event, state == ClientState::Running);
        if !self.tavs.settings.partial_boosting || !self.tavs.inference.has_io_bound(client) {
            return None;
        }
        if !wanted {
            self.counters.refused_by_correlation += u64::from(state != ClientState::Running);
            return None;
        }
        self.boost(client, state)
    }

    fn boost(&mut self, client: ClientId, state: ClientState) -> Option<ProcessorId> {
        if self.priority(client) == Priority::Boost {
            return None;
        }
        // The least that is worth a boost: the time that an I/O-bound task may take (see `boosting`).
        let least_ns = self.tavs.io_threshold_ns(self.roster.domain(client)).max(Nanoseconds::new(1));
        if self.tavs.boosting.allowance_ns(client) < least_ns {
            self.counters.refused_by_ratio += 1;
            return None;
        }
        match state {
            ClientState::Blocked => self.tavs.boosting.set_on_wake(client),
            ClientState::Ready if self.tavs.settings.skip_needless_boosts && self.is_next(client) => {
                self.counters.needless_boosts += 1;
            }
            ClientState::Ready => return self.boost_ready(client),
            ClientState::Absent | ClientState::Running => {}
        }
        None
    }

    /// Whether a ready client is next as soon as its driver is done, without a boost.
    fn is_next(&self, client: ClientId) -> bool {
        let is_served = self.occupancy.all().all(|(_, occupant)| self.tavs.is_driver(occupant.client));
        is_served && self.run_queue.first() == Some(client)
    }

    /// Figure 1(b): whatever its priority, the client preempts and has a whole slice.
    fn boost_as_if_woken(&mut self, client: ClientId) -> Option<ProcessorId> {
        if self.priority(client) == Priority::Boost {
            return None;
        }
        self.standings.get_mut(client.index())?.boost = Boost::Wake;
        self.counters.wake_boosts += 1;
        self.requeue(client);
        self.preempts(client)
    }

    fn boost_ready(&mut self, client: ClientId) -> Option<ProcessorId> {
        self.standings.get_mut(client.index())?.boost = Boost::Partial;
        self.counters.partial_boosts += 1;
        // Ahead of its turn, with the ticket of its place, so that it can be put back there.
        self.run_queue.advance(client, Priority::Boost);
        self.preempts(client)
    }

    /// TAVS-6: one virtual processor sent an event to another. A driver inherits the priority of a client
    /// that asks it for something.
    fn notified(&mut self, from: ClientId, to: ClientId) -> Option<ProcessorId> {
        let concerned = self.tavs.settings.priority_inheritance
            && self.tavs.is_driver(to)
            && !self.tavs.is_driver(from)
            && self.roster.state(from) != ClientState::Absent;
        let requester = self.priority(from);
        if !concerned || !self.standings.get_mut(to.index())?.inherit(requester) {
            return None;
        }
        self.counters.inheritances += 1;
        // A running driver defends its processor by the new priority; a blocked one uses it when the event
        // wakes it.
        if self.roster.state(to) != ClientState::Ready {
            return None;
        }
        self.requeue(to);
        self.preempts(to)
    }

    /// TAVS-7: the driver worked for a client: that much credit goes from the client to the driver.
    fn driver_time(&mut self, driver: ClientId, client: ClientId, used_ns: Nanoseconds) {
        let concerned = self.tavs.settings.charge_driver_time
            && self.tavs.is_driver(driver)
            && driver != client
            && self.roster.state(client) != ClientState::Absent;
        if concerned {
            // In sum the driver pays only for work that belongs to no client (§4.2, future work there).
            self.accounts.debit(client, used_ns);
            self.accounts.credit(driver, used_ns);
            self.counters.driver_charged_ns = self.counters.driver_charged_ns.saturating_add(used_ns.get());
        }
    }

    /// A client left its processor: the client that was picked before it or after it may run there. `true`:
    /// the client that left is a driver.
    fn vacate(&mut self, client: ClientId) -> bool {
        self.occupancy.leave_from(self.run_queue.processor(client), client);
        let is_driver = self.tavs.is_driver(client);
        self.running_drivers = self.running_drivers.saturating_sub(u32::from(is_driver));
        is_driver
    }

    /// A decision was not carried out: everything about the client is as before it. What a driver would
    /// have noted meanwhile is read, unless another driver runs, which reads it when it is descheduled.
    fn give_back(&mut self, client: ClientId, boosted: bool, now: Nanoseconds) {
        // A boosted dispatch did not touch the turn that is kept.
        if !boosted {
            self.tavs.keep.given_back(client, self.settings.slice_ns);
        }
        self.tavs.given_back(client, now);
        let is_driver = self.vacate(client);
        self.run_queue.give_back(client, self.priority(client));
        if is_driver && self.running_drivers == 0 {
            self.read_notes();
        }
    }

    fn became_driver(&mut self, client: ClientId) {
        let state = self.roster.state(client);
        if state != ClientState::Absent && !self.tavs.is_driver(client) {
            self.tavs.set_driver(client, true);
            // `running_drivers` is counted at dispatch: a client that runs already is counted here.
            let runs = state == ClientState::Running && self.tavs.is_driver(client);
            self.running_drivers += u32::from(runs);
        }
    }

    fn slice_ns(&mut self, client: ClientId, boosted: bool) -> Nanoseconds {
        if boosted {
            // Out of its turn, and bounded by PBratio's allowance; the turn that is kept stays as it is.
            self.tavs.keep.boosted(client);
            return self.tavs.boosting.slice_ns(client);
        }
        self.tavs.keep.slice_ns(client, self.settings.slice_ns)
    }
}

impl Policy for Credit {
    fn name(&self) -> &'static str {
        if self.settings.tavs.is_off() { "credit" } else { "credit-tavs" }
    }

    fn add_domain(&mut self, domain: DomainIndex, _parent: DomainIndex, share: Share) {
        self.accounts.set_weight(domain, share);
    }

    fn set_domain_share(&mut self, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        self.accounts.set_weight(domain, share);
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        self.roster.add(client, domain, share);
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        match self.roster.remove(client) {
            ClientState::Absent => return,
            ClientState::Ready => self.run_queue.remove(client),
            ClientState::Running => {
                // A driver that is gone cannot be descheduled: its notes are read now.
                if self.vacate(client) {
                    self.read_notes();
                }
            }
            ClientState::Blocked => {}
        }
        if let Some(standing) = self.standings.get_mut(client.index()) {
            *standing = Standing::default();
        }
        self.accounts.forget(client);
        self.tavs.forget(client);
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        self.roster.set_share(client, share);
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        if !self.roster.wake(client) {
            return None;
        }
        // Taken in any case: a boost for an event that came before this wake-up is not for the next one.
        let partial = self.tavs.boosting.take_on_wake(client);
        let standing = self.standings.get_mut(client.index())?;
        // Xen boosts a client that wakes with credit (§2.2); a partial boost is for the others.
        if standing.priority() == Priority::Under {
            standing.boost = Boost::Wake;
            self.counters.wake_boosts += 1;
        } else if partial {
            standing.boost = Boost::Partial;
            self.counters.partial_boosts += 1;
        }
        let priority = standing.priority();
        self.run_queue.push_back(client, priority);
        self.preempts(client)
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        let client = self.run_queue.take(processor)?;
        self.roster.run(client);
        let boost = self.standing(client).boost;
        let boosted = boost == Boost::Partial;
        self.accounts.start(client, now);
        // Before the slice is computed: parts of TAVS note whether it is boosted.
        self.tavs.dispatched(client, boosted, now);
        self.running_drivers += u32::from(self.tavs.is_driver(client));
        self.occupancy.enter(processor, client, now);
        let grant = match boost {
            Boost::None => Grant::Share,
            Boost::Wake => Grant::WakeBoost,
            Boost::Partial => Grant::PartialBoost,
        };
        Some(Decision { client, slice_ns: self.slice_ns(client, boosted), grant })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        // Without it, ticks alone charge (§2.2), and a client that hides from them pays nothing.
        if self.settings.precise_accounting {
            self.accounts.charge_rest(client, ran_ns);
        }
        let boosted_ns = self.tavs.boosting.ran(client, ran_ns);
        let all_boosted_ns =
            self.counters.partial_boost_ns.saturating_add(boosted_ns.unwrap_or_default().get());
        self.counters.partial_boost_ns = all_boosted_ns;
        // Preempted without having run: the decision was given back.
        if stop == Stop::Preempted && ran_ns.is_zero() {
            self.give_back(client, boosted_ns.is_some(), now);
            return;
        }
        self.tavs.stopped(client, stop == Stop::Preempted, now);
        // Before it is queued: the priority without its boost or what it inherited decides its list.
        if let Some(standing) = self.standings.get_mut(client.index()) {
            standing.leave(state == ClientState::Blocked);
        }
        if state == ClientState::Ready {
            let preempted = (stop == Stop::Preempted).then_some(ran_ns);
            self.queue_up(client, preempted, boosted_ns.is_some());
        }
        // After it is queued: a packet may be for this very client.
        if self.vacate(client) {
            self.read_notes();
        }
    }

    fn tick_ns(&self) -> Option<Nanoseconds> {
        Some(self.settings.tick_ns)
    }

    fn tick(&mut self, processor: ProcessorId, now: Nanoseconds) -> bool {
        if let Some(occupant) = self.occupancy.on(processor) {
            self.charge_tick(occupant.client, now);
        }
        // One processor's ticks are the clock of accounting, as in Xen.
        if processor.get() == 0 {
            self.ticks = self.ticks.wrapping_add(1);
            if self.ticks.is_multiple_of(self.settings.accounting_ticks.max(1)) {
                self.account(now);
            }
        }
        // A tick never preempts: slices end by themselves.
        false
    }

    fn observe(&mut self, observation: Observation, now: Nanoseconds) -> Option<ProcessorId> {
        match observation {
            Observation::TaskSwitch { client, task } => return self.switched(client, task, now),
            Observation::EventPending { client, event } => return self.event(client, event),
            Observation::Notify { from, to } => return self.notified(from, to),
            Observation::TaskExit { client, task } => self.tavs.task_exited(client, task),
            Observation::BlockRead { client, request } => self.tavs.block_requested(client, request),
            Observation::DriverTime { driver, client, used_ns } => self.driver_time(driver, client, used_ns),
            Observation::Driver { client } => self.became_driver(client),
        }
        None
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.counters.each(each);
    }
}
