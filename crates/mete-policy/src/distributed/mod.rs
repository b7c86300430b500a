//! Distributed group virtual-time round robin: a queue for each processor and domain, and shares that hold
//! across all processors. What processors share are numbers: accounts, and for each domain how far its
//! members may go. A decision changes the queues of another processor only to take a client out of them, or
//! to look along them for one that is due.
//!
//! Each client and each domain has an account of virtual time: the time that it has used, on all processors,
//! divided by its share. Each domain has a *limit*: members whose virtual time is before it are due. A
//! processor gives its due members a quantum each, in turn. When a processor has none left in a domain, it
//! takes one from another processor's queue of the same domain; and when no processor has one that waits, it
//! raises the limit, for all processors, so far that the members get a third of a quantum each on average, or
//! a whole one where they are few for their processors. So a limit goes up only when all members have had what is
//! theirs, up to a quantum, or run, or cannot use it.
//!
//! ```text
//!   processor 0                    processor 1
//!   root: [web] [batch]            root: [batch]         accounts: web, batch, and each client
//!     web: [a] [b]                   batch: [e] [f]      limits:   of the root, of web, of batch
//!     batch: [c] [d]
//! ```
//!
//! | | |
//! |---|---|
//! | selection | constant time on average for each level: a raised limit makes a third as many quanta due as members are looked at |
//! | insertion, removal | constant time for each level |
//! | fairness | in each domain all members' virtual times stay within some quanta of each other |
//! | several processors | a queue for each; a processor looks at others' only where it has nothing due |
//!
//! A client that wakes goes to a processor on which no other one is, if there is one that it may run on, and
//! to where it was otherwise.
//!
//! What a member cannot use, because it has too few clients for its share, is forfeit, and the others divide
//! it by their shares: the limit goes up without it. A member that was away comes back with a quantum due at
//! most.
//!
//! Where a domain has few members, so that those that are due run on other processors, it leaves its turn to
//! others: see [`passing`].
//!
//! A client that runs briefly each time an event of one kind wakes it goes ahead of all others then, and displaces the one that runs:
//! within bounds that keep its domain's share, see [`boosting`].
//!
//! Where this comes from: due members in turn, and rounds that end on all processors together, are those of
//! distributed weighted round robin (Li, Baumberger, Hahn: *Efficient and scalable multiprocessor fair
//! scheduling using distributed weighted round-robin*, PPoPP 2009). Evidence and its bounds are those of the
//! TAVS paper (§3.3, §3.4), where a domain is a virtual machine. New are domains whose account all processors
//! charge, rounds that are as long as the members are many, and that a domain pays itself for what goes ahead
//! in it.

mod account;
mod boosting;
mod line;
mod passing;
mod processor_set;
mod queue;
mod search;

use alloc::vec;
use alloc::vec::Vec;

use self::account::{Account, Virtual};
use self::boosting::{Allowance, Habit};
use self::line::{Line, Links};
use self::processor_set::may_run;
use crate::observation::Cause;
use crate::roster::{ClientState, Roster};
use crate::{
    Causes, ClientId, Decision, DomainIndex, Grant, Nanoseconds, Observation, Policy, ProcessorId, Setup,
    Share, Stop,
};

const ROOT: DomainIndex = DomainIndex::ROOT;

/// A domain, for all processors.
#[derive(Clone, Copy)]
struct Domain {
    parent: DomainIndex,
    is_known: bool,
    /// The domains in it.
    children: u32,
    /// Members are due as long as their virtual time is before it.
    limit: Virtual,
    /// By how much it was raised last.
    round: Virtual,
    /// The members that stand in any processor's queue: how many, and the sum of their shares.
    members: u64,
    total: u64,
    /// What its own clients may use ahead of their turn.
    allowance: Allowance,
}

/// The queue of one domain on one processor. Members that cannot be selected, because they run, stand in no
/// line.
#[derive(Clone, Copy)]
struct Queue {
    /// Members that may be due, in their turn, and those that were not due under the limit `seen`.
    lines: [Line; 2],
    /// Which line is the first of these.
    due: usize,
    seen: Virtual,
    /// The least that these have used; none of them waits if that is before the limit.
    least: Virtual,
    /// Members are due here also as long as their virtual time is before this, if it is later than the limit:
    /// those that are due elsewhere may not run here.
    lent: Virtual,
    /// All members here, also those that run.
    members: u32,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.lines.iter().all(Line::is_empty)
    }

    fn waiting(&self) -> usize {
        1 - self.due
    }

    /// Makes the line of those that wait the one that is looked through, because the limit is another one.
    fn look_again(&mut self, limit: Virtual) {
        (self.seen, self.due) = (limit, self.waiting());
        self.least = limit.minus(Virtual::SHORTEST);
    }

    /// One that has used this time is not due under the limit.
    fn note_waiting(&mut self, used: Virtual, limit: Virtual) {
        let has_others = !self.least.is_before(limit);
        self.least = if has_others { self.least.earlier(used) } else { used };
    }
}

/// Where a member stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Nowhere,
    /// In one of the two lines of its queue.
    Queued(usize),
    /// In the processor's line of clients that go ahead.
    Ahead,
}

/// A member of a queue: the number of a client, or behind all clients that of a domain on a processor.
type Member = u32;

/// The distributed group virtual-time round-robin policy.
pub struct DistributedVtrr {
    roster: Roster,
    quantum_ns: Nanoseconds,
    processors: u16,
    /// Of clients, and behind them of domains.
    accounts: Vec<Account>,
    domains: Vec<Domain>,
    /// For each processor all domains.
    queues: Vec<Queue>,
    /// Of clients, and behind them of domains on processors, in the order of `queues`.
    standing: Vec<Standing>,
    links: Links,
    /// For each processor the clients that go ahead of all others, in the order in which they woke.
    ahead: Vec<Line>,
    habits: Vec<Habit>,
    /// The processor in whose queue each client stands.
    placed: Vec<ProcessorId>,
    /// The processors that each client may be taken to, a bit each.
    allowed: Vec<u64>,
    /// The client that was picked last for each processor, while it runs.
    running: Vec<Option<ClientId>>,
    /// The processors in whose queues no client stands, a bit each.
    vacant: u64,
    moves: u64,
    raises: u64,
}

impl DistributedVtrr {
    /// A policy without clients, and with no domain except the root.
    #[must_use]
    pub fn new(setup: &Setup) -> DistributedVtrr {
        let (domains, processors) = (setup.domains.max(1), setup.processors.max(1));
        let queues = usize::from(domains) * usize::from(processors);
        let (clients, domains) = (setup.clients as usize, usize::from(domains));
        let new = Domain {
            parent: ROOT,
            is_known: false,
            children: 0,
            limit: Virtual::ZERO,
            round: Virtual::ZERO,
            members: 0,
            total: 0,
            allowance: Allowance::default(),
        };
        let zero = Virtual::ZERO;
        let empty =
            Queue { lines: [Line::EMPTY; 2], due: 0, seen: zero, least: zero, lent: zero, members: 0 };
        let mut policy = DistributedVtrr {
            roster: Roster::new(setup),
            quantum_ns: setup.quantum_ns.clamp(Nanoseconds::new(1), crate::vtrr::MAX_QUANTUM_NS),
            processors,
            accounts: vec![Account::NEW; clients + domains],
            domains: vec![new; domains],
            queues: vec![empty; queues],
            standing: vec![Standing::Nowhere; clients + queues],
            links: Links::new(clients + queues),
            ahead: vec![Line::EMPTY; usize::from(processors)],
            habits: vec![Habit::default(); clients],
            placed: vec![ProcessorId::new(0); clients],
            allowed: vec![u64::MAX; clients],
            running: vec![None; usize::from(processors)],
            vacant: u64::MAX >> 64_u16.saturating_sub(processors),
            moves: 0,
            raises: 0,
        };
        policy.domains[ROOT.index()].is_known = true;
        policy
    }

    /// Has a client that waits for its turn go ahead of all others for a quantum, which its domain pays. This
    /// is for a client whose share is so small that the caller cannot let it wait for its turn. Whether it
    /// waited for that.
    pub fn hasten(&mut self, client: ClientId) -> bool {
        let waits = self.roster.state(client) == ClientState::Ready;
        let waits_for_its_turn = waits && !self.habits[client.index()].is_ahead();
        if waits_for_its_turn {
            let processor = self.placed[client.index()];
            self.hide(client.get(), processor);
            self.habits[client.index()].set_ahead(true);
            self.put(client, processor, false);
        }
        waits_for_its_turn
    }

    /// Where a client wakes: on a processor on which no client is, the one where it was or the next one; else
    /// where it was, or on the first processor that it may run on.
    fn place(&self, client: ClientId) -> ProcessorId {
        let (placed, allowed) = (self.placed[client.index()], self.allowed[client.index()]);
        let vacant = self.vacant & allowed;
        if vacant != 0 {
            let from = u32::from(placed.get() & 63);
            return ProcessorId::new(((from + vacant.rotate_right(from).trailing_zeros()) & 63) as u16);
        }
        let first = ProcessorId::new(allowed.trailing_zeros() as u16);
        let may_stay = may_run(allowed, placed) || first.get() >= self.processors;
        if may_stay { placed } else { first }
    }

    fn home_of(&self, client: ClientId) -> &Domain {
        &self.domains[self.roster.domain(client).index()]
    }

    fn queue_number(&self, processor: ProcessorId, domain: DomainIndex) -> usize {
        processor.index() * self.domains.len() + domain.index()
    }

    /// A domain on a processor, as a member of its parent's queue there.
    fn local(&self, processor: ProcessorId, domain: DomainIndex) -> Member {
        (self.placed.len() + self.queue_number(processor, domain)) as Member
    }

    /// The domain that a member is, if it is no client.
    fn domain_of(&self, member: Member) -> Option<DomainIndex> {
        let queue = (member as usize).checked_sub(self.placed.len())?;
        Some(DomainIndex::at(queue % self.domains.len()))
    }

    /// The domain in whose queue a member stands.
    fn home(&self, member: Member) -> DomainIndex {
        match self.domain_of(member) {
            Some(domain) => self.domains[domain.index()].parent,
            None => self.roster.domain(ClientId::new(member)),
        }
    }

    fn account_number(&self, member: Member) -> usize {
        match self.domain_of(member) {
            Some(domain) => self.placed.len() + domain.index(),
            None => member as usize,
        }
    }

    fn is_due(&self, member: Member, limit: Virtual) -> bool {
        self.accounts[self.account_number(member)].used.is_before(limit)
    }

    /// The member above another one: the domain in whose queue that one stands. None is above the root's
    /// members.
    fn above(&self, member: Member, processor: ProcessorId) -> Option<Member> {
        let home = self.home(member);
        (home != ROOT).then(|| self.local(processor, home))
    }

    fn end_run(&mut self, client: ClientId, processor: ProcessorId) {
        let runs = &mut self.running[processor.index()];
        *runs = runs.filter(|&runs| runs != client);
    }

    fn is_known(&self, domain: DomainIndex) -> bool {
        self.domains.get(domain.index()).is_some_and(|domain| domain.is_known)
    }

    /// Another share of an account, in the domain that its member stands in.
    fn change_share(&mut self, account: usize, home: DomainIndex, share: Share) {
        let domain = &mut self.domains[home.index()];
        let account = &mut self.accounts[account];
        if account.share == share {
            return;
        }
        if account.places > 0 {
            domain.total = domain.total - u64::from(account.share.get()) + u64::from(share.get());
        }
        account.set_share(share, domain.limit);
    }
}

impl Policy for DistributedVtrr {
    fn name(&self) -> &'static str {
        "distributed-vtrr"
    }

    fn add_domain(&mut self, domain: DomainIndex, parent: DomainIndex, share: Share) {
        let parent = if self.is_known(parent) { parent } else { ROOT };
        let clients = self.placed.len();
        match self.domains.get_mut(domain.index()) {
            // A client of one that was forgotten may have woken.
            Some(entry) if !entry.is_known && entry.members == 0 => {
                (entry.parent, entry.is_known) = (parent, true);
            }
            _ => return,
        }
        self.domains[parent.index()].children += 1;
        self.accounts[clients + domain.index()] = Account { share, ..Account::NEW };
    }

    fn remove_domain(&mut self, domain: DomainIndex) {
        let entry = self.domains.get_mut(domain.index()).filter(|_| domain != ROOT);
        let Some(entry) = entry.filter(|entry| entry.is_known && entry.members == 0 && entry.children == 0)
        else {
            return;
        };
        entry.is_known = false;
        let parent = entry.parent;
        self.domains[parent.index()].children -= 1;
    }

    fn set_domain_share(&mut self, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if domain != ROOT && self.is_known(domain) {
            let parent = self.domains[domain.index()].parent;
            self.change_share(self.placed.len() + domain.index(), parent, share);
        }
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        let domain = if self.is_known(domain) { domain } else { ROOT };
        if self.roster.add(client, domain, share) {
            // As one that was away: it has a quantum due when it comes.
            let used =
                self.domains[domain.index()].limit.minus(Virtual::of(self.quantum_ns, share.get().into()));
            self.accounts[client.index()] = Account { share, used, places: 0 };
            self.habits[client.index()] = Habit::default();
        }
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        let state = self.roster.remove(client);
        if matches!(state, ClientState::Ready | ClientState::Running) {
            let processor = self.placed[client.index()];
            self.end_run(client, processor);
            if state == ClientState::Ready {
                self.hide(client.get(), processor);
            }
            self.leave(client, processor);
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        if self.roster.set_share(client, share) != ClientState::Absent {
            self.change_share(client.index(), self.roster.domain(client), share);
        }
    }

    fn set_allowed(&mut self, client: ClientId, processors: u64) {
        if let Some(allowed) = self.allowed.get_mut(client.index()) {
            *allowed = processors;
        }
    }

    fn knows_bounds(&self) -> bool {
        true
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        if !self.roster.wake(client) {
            return None;
        }
        let processor = self.place(client);
        self.enter(client, processor);
        let is_alone = self.home_of(client).members == 1;
        let is_ahead = self.is_to_go_ahead(client, processor, is_alone);
        self.habits[client.index()].set_ahead(is_ahead);
        // One that is ahead has the processor already, or was promised it.
        let is_first = is_ahead && self.ahead[processor.index()].is_empty();
        self.put(client, processor, false);
        let runs = self.running[processor.index()].filter(|_| is_first)?;
        (!self.habits[runs.index()].is_ahead()).then_some(processor)
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        let client = self.choose(processor)?;
        self.roster.run(client);
        self.hide(client.get(), processor);
        self.running[processor.index()] = Some(client);
        let is_ahead = self.habits[client.index()].is_ahead();
        let grant = if is_ahead { Grant::PartialBoost } else { Grant::Share };
        Some(Decision { client, slice_ns: self.quantum_ns, grant })
    }

    /// One that goes ahead displaces those that wait for their turn, and no other one.
    fn keeps(&self, processor: ProcessorId) -> bool {
        let running = self.running.get(processor.index()).copied().flatten();
        running.is_some_and(|client| self.habits[client.index()].is_ahead())
    }

    fn goes_ahead(&self, client: ClientId) -> Causes {
        if self.roster.state(client) != ClientState::Blocked {
            return Causes::NONE;
        }
        let is_alone = self.home_of(client).members == 0;
        self.causes_to_go_ahead(client, self.placed[client.index()], is_alone)
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        let processor = self.placed[client.index()];
        self.end_run(client, processor);
        let habit = &mut self.habits[client.index()];
        let was_ahead = habit.is_ahead();
        habit.ran(ran_ns, self.quantum_ns, stop);
        self.charge(client, processor, ran_ns, was_ahead);
        // One that is late has its turn at once again, and so have the domains that it is in, as long as they
        // are due.
        let goes_on = stop == Stop::Preempted || self.is_late(client.get());
        if !goes_on && !was_ahead {
            self.end_turns(client, processor);
        }
        match state {
            ClientState::Ready => self.put(client, processor, goes_on),
            _ => self.leave(client, processor),
        }
    }

    /// An event that is pending for a blocked client will wake it.
    fn observe(&mut self, observation: Observation, _now: Nanoseconds) -> Option<ProcessorId> {
        if let Observation::EventPending { client, event } = observation
            && self.roster.state(client) == ClientState::Blocked
        {
            self.habits[client.index()].expect(Cause::of(Some(event)));
        }
        None
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("clients taken from other processors", self.moves);
        each("limits raised", self.raises);
    }
}

#[cfg(test)]
mod tests {
    use super::{account, boosting, passing, queue, search};
    use crate::observation::{Cause, PORTS};

    // SAFETY: it takes a number and answers one.
    unsafe extern "C" {
        safe fn mete_dvtrr_constant(nth: u32) -> i64;
    }

    /// Most of these would show in the decisions that the twins have to take alike, but not all.
    #[test]
    fn vtrr_6_the_constants_of_the_twin_in_c_are_the_same() {
        let (least, most) = boosting::RANGE;
        let own = [
            account::SCALE.into(),
            account::MOST_NS as i64,
            account::MOST,
            account::MOST_KEPT,
            queue::MOST_OWED as i64,
            queue::MOST_BEHIND as i64,
            search::LOOKED_AT as i64,
            search::LENT_TO as i64,
            search::PARTS as i64,
            search::BETWEEN_LOOKS as i64,
            search::MOST_LENT as i64,
            search::SEARCHED as i64,
            passing::LAG as i64,
            passing::PASSED_OVER.len() as i64,
            boosting::POSITIVE.into(),
            boosting::NEGATIVE.into(),
            boosting::THRESHOLD.into(),
            least.into(),
            most.into(),
            boosting::LONG_RUN as i64,
            boosting::RATIO,
            boosting::SAVED as i64,
            boosting::MOST_DEBT as i64,
            boosting::MOST_NS as i64,
            Cause::COUNT as i64,
            PORTS.into(),
            0,
        ];
        let theirs = (0..).map(|nth| mete_dvtrr_constant(nth));
        assert!(theirs.zip(own).all(|(theirs, own)| theirs == own), "{own:?}");
    }
}
