//! Distributed group virtual-time round robin: a queue for each processor and domain, and shares that hold across all
//! processors. No decision needs what another processor writes, but for one number in each domain on its way.
//!
//! Each client and each domain has an account of virtual time: the time that it has used, on all processors, divided by
//! its share. Each domain has a *limit*: members whose virtual time is before it are due. A processor gives its due
//! members a quantum each, in turn. When a processor has none left in a domain, it takes one from another processor's
//! queue of the same domain; and when no processor has one that waits, it raises the limit, for all processors, so far
//! that the members get a quantum each on average. So a limit goes up only when all members have had what is theirs, up
//! to a quantum, or run, or cannot use it.
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
//! | selection | constant time on average for each level: a raised limit makes as many quanta due as members are looked at |
//! | insertion, removal | constant time for each level |
//! | fairness | in each domain all members' virtual times stay within some quanta of each other |
//! | several processors | a queue for each; a processor looks at others' only where it has nothing due |
//!
//! What a member cannot use, because it has too few clients for its share, is forfeit, and the others divide it by their
//! shares: the limit goes up without it. A member that was away comes back with a quantum due at most.
//!
//! Where this comes from: due members in turn, and rounds that end on all processors together, are those of distributed
//! weighted round robin (Li, Baumberger, Hahn: *Efficient and scalable multiprocessor fair scheduling using distributed
//! weighted round-robin*, PPoPP 2009). New are domains whose account all processors charge, and rounds that are as long
//! as the members are many.

mod account;
mod line;

use alloc::vec;
use alloc::vec::Vec;

use self::account::{Account, Virtual};
use self::line::{Line, Links};
use crate::roster::{ClientState, Roster};
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

const ROOT: DomainIndex = DomainIndex::ROOT;
/// How many members of another queue are looked at before the next queue is: the first ones are due if any are, but for
/// those that are in its processor's way just now.
const LOOKED_AT: usize = 4;
/// How many members of a queue divide what those who are due cannot use.
const LENT_TO: usize = 16;

/// A domain, for all processors.
#[derive(Clone, Copy)]
struct Domain {
    parent: DomainIndex,
    is_known: bool,
    /// Members are due as long as their virtual time is before it.
    limit: Virtual,
    /// By how much it was raised last.
    round: Virtual,
    /// The members that stand in any processor's queue: how many, and the sum of their shares.
    members: u64,
    total: u64,
}

/// The queue of one domain on one processor. Members that cannot be selected, because they run, stand in no line.
#[derive(Clone, Copy)]
struct Queue {
    /// Members that may be due, in their turn, and those that were not due under the limit `seen`.
    lines: [Line; 2],
    /// Which line is the first of these.
    due: usize,
    seen: Virtual,
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
}

/// What a processor finds in a domain's queue.
enum Turn {
    /// The member that is next.
    Of(Member),
    /// All members that can be selected have had what they were due.
    Over,
    /// No member can be selected.
    OfNone,
}

/// What came of looking for a client to take from another processor.
enum Search {
    Taken,
    NoneDue,
    /// Members elsewhere are due, and no client that would help them may run here.
    Barred,
}

/// What a processor finds in its queues.
enum Found {
    Client(ClientId),
    /// A domain all of whose members have had what they were due.
    Over(DomainIndex),
    Nothing,
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
    /// Which of the two lines of its queue a member stands in, if any: of clients, and behind them of domains on processors,
    /// in the order of `queues`.
    line_of: Vec<Option<usize>>,
    links: Links,
    /// The processor in whose queue each client stands.
    placed: Vec<ProcessorId>,
    /// The processors that each client may be taken to, a bit each.
    allowed: Vec<u64>,
    /// The client that was picked last for each processor, while it runs.
    running: Vec<Option<ClientId>>,
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
            limit: Virtual::ZERO,
            round: Virtual::ZERO,
            members: 0,
            total: 0,
        };
        let empty = Queue { lines: [Line::EMPTY; 2], due: 0, seen: Virtual::ZERO, members: 0 };
        let mut policy = DistributedVtrr {
            roster: Roster::new(setup),
            quantum_ns: setup.quantum_ns.clamp(Nanoseconds::new(1), crate::vtrr::MAX_QUANTUM_NS),
            processors,
            accounts: vec![Account::NEW; clients + domains],
            domains: vec![new; domains],
            queues: vec![empty; queues],
            line_of: vec![None; clients + queues],
            links: Links::new(clients + queues),
            placed: vec![ProcessorId::new(0); clients],
            allowed: vec![u64::MAX; clients],
            running: vec![None; usize::from(processors)],
            moves: 0,
            raises: 0,
        };
        policy.domains[ROOT.index()].is_known = true;
        policy
    }

    /// Says which of the first 64 processors a client may run on, a bit each. One that waits at another processor stays
    /// there, until its owner has it block and wake.
    pub fn set_allowed(&mut self, client: ClientId, processors: u64) {
        if let Some(allowed) = self.allowed.get_mut(client.index()) {
            *allowed = processors;
        }
    }

    /// Where a client wakes: where it was, or on the first processor that it may run on.
    fn place(&self, client: ClientId) -> ProcessorId {
        let (placed, allowed) = (self.placed[client.index()], self.allowed[client.index()]);
        let first = ProcessorId::new(allowed.trailing_zeros() as u16);
        let may_stay = allowed >> (placed.get() & 63) & 1 == 1 || first.get() >= self.processors;
        if may_stay { placed } else { first }
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

    /// The members from a client up to the one that stands in the root's queue.
    fn above(&self, member: Member, processor: ProcessorId) -> Option<Member> {
        let home = self.home(member);
        (home != ROOT).then(|| self.local(processor, home))
    }

    /// Puts a member into a line of its queue; with the first member that can be selected, the domain itself can be
    /// selected in its parent's queue.
    fn show(&mut self, member: Member, processor: ProcessorId, is_first: bool) {
        let mut next = Some(member);
        while let Some(member) = next {
            let number = self.queue_number(processor, self.home(member));
            let queue = &mut self.queues[number];
            let (was_empty, due) = (queue.is_empty(), queue.due);
            match is_first {
                true => self.links.push_front(&mut queue.lines[due], member),
                false => self.links.push_back(&mut queue.lines[due], member),
            }
            self.line_of[member as usize] = Some(due);
            next = self.above(member, processor).filter(|_| was_empty);
        }
    }

    /// Takes a member out of its line, and each domain above that has no other member to select.
    fn hide(&mut self, member: Member, processor: ProcessorId) {
        let mut next = Some(member);
        while let Some(member) = next {
            let number = self.queue_number(processor, self.home(member));
            let queue = &mut self.queues[number];
            if let Some(line) = self.line_of[member as usize].take() {
                self.links.remove(&mut queue.lines[line], member);
            }
            let is_empty = queue.is_empty();
            next = self.above(member, processor).filter(|_| is_empty);
        }
    }

    /// Puts a member of a queue behind all others of a line.
    fn stand_behind(&mut self, member: Member, number: usize, line: usize) {
        let queue = &mut self.queues[number];
        if let Some(before) = self.line_of[member as usize].replace(line) {
            self.links.remove(&mut queue.lines[before], member);
        }
        self.links.push_back(&mut queue.lines[line], member);
    }

    /// Counts a client, and each domain above whose first client here it is, as members of their queues.
    fn enter(&mut self, client: ClientId, processor: ProcessorId) {
        self.placed[client.index()] = processor;
        let mut next = Some(client.get());
        while let Some(member) = next {
            let home = self.home(member);
            let number = self.account_number(member);
            let account = &mut self.accounts[number];
            let domain = &mut self.domains[home.index()];
            if account.places == 0 {
                account.forfeit(domain.limit, self.quantum_ns);
                domain.members += 1;
                domain.total += u64::from(account.share.get());
            }
            account.places += 1;
            let number = self.queue_number(processor, home);
            self.queues[number].members += 1;
            let was_empty = self.queues[number].members == 1;
            next = self.above(member, processor).filter(|_| was_empty);
        }
    }

    /// Undoes `enter`. The client stands in no line any more.
    fn leave(&mut self, client: ClientId, processor: ProcessorId) {
        let mut next = Some(client.get());
        while let Some(member) = next {
            let home = self.home(member);
            let number = self.account_number(member);
            let account = &mut self.accounts[number];
            account.places -= 1;
            if account.places == 0 {
                let domain = &mut self.domains[home.index()];
                domain.members -= 1;
                domain.total -= u64::from(account.share.get());
            }
            let number = self.queue_number(processor, home);
            self.queues[number].members -= 1;
            let is_empty = self.queues[number].members == 0;
            next = self.above(member, processor).filter(|_| is_empty);
        }
    }

    /// The member whose turn it is in a domain's queue.
    fn turn(&mut self, processor: ProcessorId, domain: DomainIndex) -> Turn {
        let (number, limit) = (self.queue_number(processor, domain), self.domains[domain.index()].limit);
        loop {
            let queue = &mut self.queues[number];
            let waiting = queue.waiting();
            if let Some(member) = queue.lines[queue.due].first() {
                if self.is_due(member, limit) {
                    return Turn::Of(member);
                }
                self.stand_behind(member, number, waiting);
            } else if queue.lines[waiting].is_empty() {
                return Turn::OfNone;
            } else if queue.seen == limit {
                return Turn::Over;
            } else {
                // Under another limit, members that waited may be due.
                (queue.seen, queue.due) = (limit, waiting);
            }
        }
    }

    /// Looks for the client that is next in a processor's own queues.
    fn look(&mut self, processor: ProcessorId) -> Found {
        let mut domain = ROOT;
        loop {
            match self.turn(processor, domain) {
                Turn::OfNone => return Found::Nothing,
                Turn::Over => return Found::Over(domain),
                Turn::Of(member) => match self.domain_of(member) {
                    Some(inner) => domain = inner,
                    None => return Found::Client(ClientId::new(member)),
                },
            }
        }
    }

    /// Raises the limit of a domain so far that its members are due a quantum each on average, and at least one that
    /// waits is due, here or elsewhere.
    fn raise(&mut self, processor: ProcessorId, domain: DomainIndex) {
        let Domain { limit, members, total, .. } = self.domains[domain.index()];
        let mut raised = limit.plus(Virtual::of(self.quantum_ns, total / members.max(1)));
        // Those that wait may have had more than others: then more than one round is over.
        let all = core::iter::once(processor).chain(self.others(processor));
        let used = all.filter_map(|processor| self.least_used(processor, domain));
        if let Some(least) = used.reduce(Virtual::earlier) {
            raised = raised.later(least.plus(Virtual::SHORTEST));
        }
        let domain = &mut self.domains[domain.index()];
        domain.round = raised.minus(limit);
        domain.limit = raised;
        self.raises += 1;
    }

    /// The least that a member has used that waits in a queue.
    fn least_used(&self, processor: ProcessorId, domain: DomainIndex) -> Option<Virtual> {
        let queue = &self.queues[self.queue_number(processor, domain)];
        let used = self
            .first_of(&queue.lines[queue.waiting()])
            .map(|member| self.accounts[self.account_number(member)].used);
        used.reduce(Virtual::earlier)
    }

    /// The members at the head of a line.
    fn first_of(&self, line: &Line) -> impl Iterator<Item = Member> {
        core::iter::successors(line.first(), |&member| self.links.next(member)).take(LOOKED_AT)
    }

    /// The other processors, from the next one on.
    fn others(&self, processor: ProcessorId) -> impl Iterator<Item = ProcessorId> + use<> {
        let (own, all) = (u32::from(processor.get()), u32::from(self.processors));
        (1..all).map(move |nth| ProcessorId::new(((own + nth) % all) as u16))
    }

    /// Takes a client from another processor: one of a member of this domain that is due and waits there.
    fn take_due(&mut self, processor: ProcessorId, domain: DomainIndex) -> Search {
        let mut search = Search::NoneDue;
        for other in self.others(processor) {
            match self.due_at(other, domain, processor) {
                Some(Some(client)) => {
                    self.take(client, other, processor);
                    return Search::Taken;
                }
                Some(None) => search = Search::Barred,
                None => {}
            }
        }
        search
    }

    /// Takes a client from a processor on which a member of this domain runs that is due more than its quantum: it has
    /// to go on there, and those that wait beside it take its turns.
    fn relieve(&mut self, processor: ProcessorId, domain: DomainIndex) -> Search {
        let mut search = Search::NoneDue;
        for other in self.others(processor) {
            let queue = &self.queues[self.queue_number(other, domain)];
            let waits = queue.lines[queue.waiting()].first().or(queue.lines[queue.due].first());
            let Some(waits) = waits.filter(|_| self.has_to_go_on(other, domain)) else { continue };
            if let Some(client) = self.client_under(other, waits, processor) {
                self.take(client, other, processor);
                return Search::Taken;
            }
            search = Search::Barred;
        }
        search
    }

    /// Whether the member of a domain that runs on another processor is due more than a quantum.
    fn has_to_go_on(&self, other: ProcessorId, domain: DomainIndex) -> bool {
        let Some(runs) = self.running_in(other, domain) else { return false };
        let account = &self.accounts[self.account_number(runs)];
        let then = account.used.plus(account.virtually(self.quantum_ns));
        then.is_before(self.domains[domain.index()].limit)
    }

    /// The member of a domain's queue on another processor that runs there, or has the client that runs.
    fn running_in(&self, other: ProcessorId, domain: DomainIndex) -> Option<Member> {
        let runs = self.running[other.index()]?;
        let mut above = core::iter::successors(Some(runs.get()), |&member| self.above(member, other));
        above.find(|&member| self.home(member) == domain)
    }

    /// A client of a member that is due and waits in another processor's queue of a domain, and that may run here;
    /// `Some(None)` if there are only others.
    fn due_at(&self, other: ProcessorId, domain: DomainIndex, here: ProcessorId) -> Option<Option<ClientId>> {
        let queue = &self.queues[self.queue_number(other, domain)];
        let limit = self.domains[domain.index()].limit;
        let candidates =
            self.first_of(&queue.lines[queue.due]).chain(self.first_of(&queue.lines[queue.waiting()]));
        let mut due = candidates.filter(|&member| self.is_due(member, limit)).peekable();
        due.peek()?;
        Some(due.find_map(|member| self.client_under(other, member, here)))
    }

    /// A client that waits under a member of another processor's queue, if it may run here.
    fn client_under(&self, other: ProcessorId, member: Member, here: ProcessorId) -> Option<ClientId> {
        let mut member = member;
        while let Some(domain) = self.domain_of(member) {
            let queue = &self.queues[self.queue_number(other, domain)];
            member = first_in(queue)?;
        }
        let is_allowed = self.allowed[member as usize] >> (here.get() & 63) & 1 == 1;
        Some(ClientId::new(member)).filter(|_| is_allowed)
    }

    fn take(&mut self, client: ClientId, from: ProcessorId, to: ProcessorId) {
        self.hide(client.get(), from);
        // First in, then out: accounts of domains that have clients here are not taken for those of domains that return.
        self.enter(client, to);
        self.leave(client, from);
        self.show(client.get(), to, true);
        self.moves += 1;
    }

    /// Takes any client that waits at another processor.
    fn take_any(&mut self, processor: ProcessorId) -> bool {
        let found = self.others(processor).find_map(|other| {
            let queue = &self.queues[self.queue_number(other, ROOT)];
            let member = first_in(queue)?;
            Some((other, self.client_under(other, member, processor)?))
        });
        found.map(|(other, client)| self.take(client, other, processor)).is_some()
    }

    /// Has a processor go on whose members of this domain have all had what they were due.
    fn go_on(&mut self, processor: ProcessorId, domain: DomainIndex) {
        let search = match self.take_due(processor, domain) {
            Search::NoneDue => self.relieve(processor, domain),
            search => search,
        };
        match search {
            Search::Taken => {}
            Search::Barred => self.lend(processor, domain),
            Search::NoneDue => self.raise(processor, domain),
        }
    }

    /// Those that are due may not run here, so those that wait here divide this processor as if that were theirs: the
    /// one that has used the least becomes due, and the others come as much nearer to it.
    fn lend(&mut self, processor: ProcessorId, domain: DomainIndex) {
        let limit = self.domains[domain.index()].limit;
        let number = self.queue_number(processor, domain);
        let waiting = self.queues[number].lines[self.queues[number].waiting()].first();
        let least =
            self.accounts_of(waiting).map(|number| self.accounts[number].used).reduce(Virtual::earlier);
        // They are looked at again.
        self.queues[number].seen = limit.minus(Virtual::SHORTEST);
        let Some(least) = least.filter(|least| !least.is_before(limit)) else { return };
        let lent = least.plus(Virtual::SHORTEST).minus(limit);
        let mut next = waiting;
        for _ in 0..LENT_TO {
            let Some(member) = next else { break };
            let account = self.account_number(member);
            self.accounts[account].used = self.accounts[account].used.minus(lent);
            next = self.links.next(member);
        }
    }

    /// The accounts of members that divide what those who are due cannot use.
    fn accounts_of(&self, first: Option<Member>) -> impl Iterator<Item = usize> {
        let members = core::iter::successors(first, |&member| self.links.next(member));
        members.take(LENT_TO).map(|member| self.account_number(member))
    }

    /// The next client on a processor.
    fn choose(&mut self, processor: ProcessorId) -> Option<ClientId> {
        loop {
            match self.look(processor) {
                Found::Client(client) => return Some(client),
                Found::Nothing if self.take_any(processor) => {}
                Found::Nothing => return None,
                Found::Over(domain) => self.go_on(processor, domain),
            }
        }
    }

    fn end_run(&mut self, client: ClientId, processor: ProcessorId) {
        let runs = &mut self.running[processor.index()];
        *runs = runs.filter(|&runs| runs != client);
    }

    /// Charges a client and the domains above it for time used.
    fn charge(&mut self, client: ClientId, processor: ProcessorId, used: Nanoseconds) {
        let mut next = Some(client.get());
        while let Some(member) = next {
            let Domain { limit, round, .. } = self.domains[self.home(member).index()];
            let number = self.account_number(member);
            let account = &mut self.accounts[number];
            account.used = account.used.plus(account.virtually(used));
            // A member that can use what it is due is never further behind.
            let least = limit.minus(round).minus(round);
            account.forfeit(least, self.quantum_ns + self.quantum_ns);
            next = self.above(member, processor);
        }
    }

    /// Gives the domains above a client's queue their turn: the others are next.
    fn end_turns(&mut self, client: ClientId, processor: ProcessorId) {
        let mut next = self.above(client.get(), processor);
        while let Some(member) = next {
            let number = self.queue_number(processor, self.home(member));
            let due = self.queues[number].due;
            if self.line_of[member as usize] == Some(due) {
                self.stand_behind(member, number, due);
            }
            next = self.above(member, processor);
        }
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

/// The first member of a queue, due or not.
fn first_in(queue: &Queue) -> Option<Member> {
    queue.lines[queue.due].first().or(queue.lines[queue.waiting()].first())
}

impl Policy for DistributedVtrr {
    fn name(&self) -> &'static str {
        "distributed-vtrr"
    }

    fn add_domain(&mut self, domain: DomainIndex, parent: DomainIndex, share: Share) {
        let parent = if self.is_known(parent) { parent } else { ROOT };
        let clients = self.placed.len();
        match self.domains.get_mut(domain.index()) {
            Some(entry) if !entry.is_known => (entry.parent, entry.is_known) = (parent, true),
            _ => return,
        }
        self.accounts[clients + domain.index()] = Account { share, ..Account::NEW };
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

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            let processor = self.place(client);
            self.enter(client, processor);
            self.show(client.get(), processor, false);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        let client = self.choose(processor)?;
        self.roster.run(client);
        self.hide(client.get(), processor);
        self.running[processor.index()] = Some(client);
        Some(Decision::by_share(client, self.quantum_ns))
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        let processor = self.placed[client.index()];
        self.end_run(client, processor);
        self.charge(client, processor, ran_ns);
        if stop != Stop::Preempted {
            self.end_turns(client, processor);
        }
        match state {
            ClientState::Ready => self.show(client.get(), processor, stop == Stop::Preempted),
            _ => self.leave(client, processor),
        }
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("clients taken from other processors", self.moves);
        each("limits raised", self.raises);
    }
}
