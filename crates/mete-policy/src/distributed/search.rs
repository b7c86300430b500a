//! What one processor needs of others: a client to take when it has nothing due, and a limit that goes up.

use super::account::Virtual;
use super::line::Line;
use super::passing::Pass;
use super::processor_set::may_run;
use super::queue::Found;
use super::{DistributedVtrr, Domain, Member, Queue, ROOT, Standing};
use crate::{ClientId, DomainIndex, Nanoseconds, ProcessorId};

/// How many members of another queue are looked at without its processor's lock: the first ones are due if any
/// are, as a rule.
pub(super) const LOOKED_AT: usize = 4;
/// How many members of a queue divide what those who are due cannot use.
pub(super) const LENT_TO: usize = 16;
/// A round brings an average member this part of a quantum. The shorter the rounds, the more evenly those with
/// large shares have their turns among the others, and the more often one that is not due is looked at.
pub(super) const PARTS: u64 = 3;
/// But where there are other processors to look at, it brings each of them this number of quanta, as long as that
/// is no more than one for each member: they look at each other once in a round.
pub(super) const BETWEEN_LOOKS: u64 = 24;

/// How many quanta of an average member those owe at most that were lent what others could not use.
pub(super) const MOST_LENT: u64 = 16;

/// How many steps a processor that is idle takes through another one's queues, to find a client that may run
/// here.
pub(super) const SEARCHED: usize = 256;

/// What came of looking for a client to take from another processor.
pub(super) enum Search {
    Taken,
    NoneDue,
    /// Members elsewhere are due, and no client that would help them may run here.
    Barred,
}

/// What is due and waits at another processor.
enum Due {
    None,
    /// Members none of whose clients may run here, as far as they were looked at.
    Barred,
    Client(ClientId),
}

impl DistributedVtrr {
    /// Raises the limit of a domain so far that its members are due a part of a quantum each on average, and at
    /// least one that waits is due, here or elsewhere.
    pub(super) fn raise(&mut self, processor: ProcessorId, domain: DomainIndex) {
        let Domain { limit, members, total, .. } = self.domains[domain.index()];
        // With a quantum for each processor at least, they look at each other once in a round and not at each
        // decision.
        let (quantum_ns, processors) = (self.quantum_ns.get(), u64::from(self.processors));
        let quanta = members.min(BETWEEN_LOOKS * (processors - 1)).max(processors);
        let least_ns = quantum_ns.saturating_mul(quanta);
        let round_ns = (quantum_ns / PARTS).saturating_mul(members).max(least_ns);
        let raised = limit.plus(Virtual::of(Nanoseconds::new(round_ns), total));
        // Those that wait may have had more than others: then more than one round is over. One that is due is
        // passed over.
        let all = core::iter::once(processor).chain(self.others(processor));
        let used = all.filter_map(|processor| self.least_used(processor, domain));
        // Under the same limit, no member would be looked at again.
        let least = used.reduce(Virtual::earlier).unwrap_or(limit);
        let raised = raised.later(least.plus(Virtual::SHORTEST));
        let domain = &mut self.domains[domain.index()];
        domain.round = raised.minus(limit);
        domain.limit = raised;
        self.raises += 1;
    }

    /// The least that a member has used that waits in a queue and is not due.
    fn least_used(&self, processor: ProcessorId, domain: DomainIndex) -> Option<Virtual> {
        let queue = &self.queues[self.queue_number(processor, domain)];
        let limit = self.domains[domain.index()].limit;
        // Those in the other line have not been looked at since they came, or since the limit was raised.
        let others = self.first_of(&queue.lines[queue.due]);
        let used = others.map(|member| self.accounts[self.account_number(member)].used);
        used.chain([queue.least]).filter(|used| !used.is_before(limit)).reduce(Virtual::earlier)
    }

    /// The members at the head of a line.
    fn first_of(&self, line: &Line) -> impl Iterator<Item = Member> {
        core::iter::successors(line.first(), |&member| self.links.next(member)).take(LOOKED_AT)
    }

    /// The other processors, from the next one on.
    pub(super) fn others(&self, processor: ProcessorId) -> impl Iterator<Item = ProcessorId> + use<> {
        let (own, all) = (u32::from(processor.get()), u32::from(self.processors));
        (1..all).map(move |nth| ProcessorId::new(((own + nth) % all) as u16))
    }

    /// Takes a client from another processor: one of a member of this domain that is due and waits there. At
    /// the end of the root's round also one that goes ahead there and waits still: something else has its
    /// processor.
    pub(super) fn take_due(&mut self, processor: ProcessorId, domain: DomainIndex) -> Search {
        let mut search = Search::NoneDue;
        for other in self.others(processor) {
            let ahead = self.ahead_at(other, processor).filter(|_| domain == ROOT);
            match ahead.map_or_else(|| self.due_at(other, domain, processor), Due::Client) {
                Due::Client(client) => {
                    self.take(client, other, processor);
                    return Search::Taken;
                }
                Due::Barred => search = Search::Barred,
                Due::None => {}
            }
        }
        search
    }

    /// Takes a client from a processor on which a member of this domain runs that is due more than its
    /// quantum: it has to go on there, and those that wait beside it take its turns.
    fn relieve(&mut self, processor: ProcessorId, domain: DomainIndex) -> Search {
        let mut search = Search::NoneDue;
        for other in self.others(processor) {
            let queue = &self.queues[self.queue_number(other, domain)];
            let waits = queue.lines[queue.waiting()].first().or(queue.lines[queue.due].first());
            let Some(waits) = waits.filter(|_| self.has_to_go_on(other, domain, 1)) else { continue };
            if let Some(client) = self.client_under(other, waits, processor) {
                self.take(client, other, processor);
                return Search::Taken;
            }
            search = Search::Barred;
        }
        search
    }

    /// Whether the member of a domain that runs on another processor is due more quanta than that.
    pub(super) fn has_to_go_on(&self, other: ProcessorId, domain: DomainIndex, quanta: u64) -> bool {
        let Some(runs) = self.running_in(other, domain) else { return false };
        let account = &self.accounts[self.account_number(runs)];
        let due = Nanoseconds::new(self.quantum_ns.get().saturating_mul(quanta));
        let then = account.used.plus(account.virtually(due));
        then.is_before(self.domains[domain.index()].limit)
    }

    /// The member of a domain's queue on another processor that runs there, or has the client that runs.
    pub(super) fn running_in(&self, other: ProcessorId, domain: DomainIndex) -> Option<Member> {
        let runs = self.running[other.index()]?;
        let mut above = core::iter::successors(Some(runs.get()), |&member| self.above(member, other));
        above.find(|&member| self.home(member) == domain)
    }

    /// What is due in another processor's queue of a domain. Where none of the first ones is, all that stand
    /// in front of one that is are looked at, and stand behind after that, so that no processor looks at them
    /// again in this round. One that is due by what was lent there alone ends that.
    fn due_at(&mut self, other: ProcessorId, domain: DomainIndex, here: ProcessorId) -> Due {
        let number = self.queue_number(other, domain);
        match self.due_among_first(other, domain, here) {
            Due::None if self.has_more(number, domain) => {
                let _ = self.turn(other, domain);
                self.due_among_first(other, domain, here)
            }
            found => found,
        }
    }

    /// What is due among the first members of the lines of another processor's queue.
    fn due_among_first(&self, other: ProcessorId, domain: DomainIndex, here: ProcessorId) -> Due {
        let queue = &self.queues[self.queue_number(other, domain)];
        let limit = self.domains[domain.index()].limit;
        let candidates =
            self.first_of(&queue.lines[queue.due]).chain(self.first_of(&queue.lines[queue.waiting()]));
        let mut due = candidates.filter(|&member| self.is_due(member, limit)).peekable();
        let none = if due.peek().is_some() { Due::Barred } else { Due::None };
        due.find_map(|member| self.client_under(other, member, here)).map_or(none, Due::Client)
    }

    /// Whether more members stand in a queue than the first of its lines, and not all of them were looked at.
    fn has_more(&self, number: usize, domain: DomainIndex) -> bool {
        let queue = &self.queues[number];
        let limit = self.domains[domain.index()].limit;
        let is_searched = !queue.seen.is_before(limit) && queue.lines[queue.due].is_empty();
        !is_searched && queue.lines.iter().any(|line| self.is_long(line))
    }

    /// Whether more members stand in a line than its first ones.
    fn is_long(&self, line: &Line) -> bool {
        core::iter::successors(line.first(), |&member| self.links.next(member)).nth(LOOKED_AT).is_some()
    }

    /// A client that waits under a member of another processor's queue and may run here, if there is one among
    /// the first.
    fn client_under(&self, other: ProcessorId, member: Member, here: ProcessorId) -> Option<ClientId> {
        let mut member = member;
        while let Some(domain) = self.domain_of(member) {
            let queue = &self.queues[self.queue_number(other, domain)];
            let may = |member: &Member| self.domain_of(*member).is_some() || self.is_allowed(*member, here);
            let lines = [queue.due, queue.waiting()].into_iter();
            member = lines.flat_map(|line| self.first_of(&queue.lines[line])).find(may)?;
        }
        Some(ClientId::new(member)).filter(|_| self.is_allowed(member, here))
    }

    /// The first client that goes ahead on another processor, if it may run here.
    fn ahead_at(&self, other: ProcessorId, here: ProcessorId) -> Option<ClientId> {
        self.client_under(other, self.ahead[other.index()].first()?, here)
    }

    fn take(&mut self, client: ClientId, from: ProcessorId, to: ProcessorId) {
        self.hide(client.get(), from);
        // First in, then out: accounts of domains that have clients here are not taken for those of domains
        // that return.
        self.enter(client, to);
        self.leave(client, from);
        self.put(client, to, true);
        self.moves += 1;
    }

    /// Takes any client that waits at another processor.
    fn take_any(&mut self, processor: ProcessorId) -> bool {
        let found = self.others(processor).find_map(|other| {
            let client = self.ahead_at(other, processor).or_else(|| self.any_at(other, processor));
            client.map(|client| (other, client))
        });
        found.map(|(other, client)| self.take(client, other, processor)).is_some()
    }

    /// A client that waits in another processor's queues and may run here, among those that stand in front.
    fn any_at(&self, other: ProcessorId, here: ProcessorId) -> Option<ClientId> {
        let mut next = first_in(&self.queues[self.queue_number(other, ROOT)]);
        let mut is_searched = false;
        for _ in 0..SEARCHED {
            let member = next?;
            let domain = self.domain_of(member).filter(|_| !is_searched);
            if self.domain_of(member).is_none() && self.is_allowed(member, here) {
                return Some(ClientId::new(member));
            }
            let inner = domain.and_then(|domain| first_in(&self.queues[self.queue_number(other, domain)]));
            next = inner.or_else(|| self.behind(other, member));
            is_searched = next.is_none();
            next = next.or_else(|| self.above(member, other));
        }
        None
    }

    /// The member that stands behind one in its queue.
    fn behind(&self, processor: ProcessorId, member: Member) -> Option<Member> {
        let queue = &self.queues[self.queue_number(processor, self.home(member))];
        let stands_in_front = self.standing[member as usize] == Standing::Queued(queue.due);
        let waits = queue.lines[queue.waiting()].first().filter(|_| stands_in_front);
        self.links.next(member).or(waits)
    }

    fn is_allowed(&self, client: Member, here: ProcessorId) -> bool {
        may_run(self.allowed[client as usize], here)
    }

    /// Has a processor go on whose members of this domain have all had what they were due.
    fn go_on(&mut self, processor: ProcessorId, domain: DomainIndex, tries: usize) {
        let search = match self.take_due(processor, domain) {
            Search::NoneDue => self.relieve(processor, domain),
            search => search,
        };
        match search {
            Search::Taken => {}
            Search::Barred => self.lend(processor, domain),
            Search::NoneDue => match self.pass(processor, domain, tries) {
                Pass::Lags => self.raise(processor, domain),
                Pass::Passed => {}
                // Others may wait elsewhere, and if they have had what they were due, a new round is due.
                Pass::Alone if matches!(self.take_due(processor, ROOT), Search::Taken) => {}
                Pass::Alone => self.raise(processor, ROOT),
            },
        }
    }

    /// Those that are due may not run here, so those that wait here divide this processor: the one that has
    /// used the least becomes due, here alone. Elsewhere it has had more than the others, and owes them some
    /// quanta for that at most.
    fn lend(&mut self, processor: ProcessorId, domain: DomainIndex) {
        let Domain { limit, members, total, .. } = self.domains[domain.index()];
        let number = self.queue_number(processor, domain);
        let waiting = self.queues[number].lines[self.queues[number].waiting()].first();
        let least =
            self.accounts_of(waiting).map(|number| self.accounts[number].used).reduce(Virtual::earlier);
        // They are looked at again.
        self.queues[number].seen = limit.minus(Virtual::SHORTEST);
        let Some(least) = least.filter(|least| !least.is_before(limit)) else { return };
        let most_ns = self.quantum_ns.saturating_mul(MOST_LENT);
        let most = limit.plus(Virtual::of(most_ns, total / members.max(1)));
        self.queues[number].lent = least.earlier(most).plus(Virtual::SHORTEST);
        if !most.is_before(least) {
            return;
        }
        let forgiven = least.minus(most);
        let mut next = waiting;
        for _ in 0..LENT_TO {
            let Some(member) = next else { break };
            let account = self.account_number(member);
            self.accounts[account].used = self.accounts[account].used.minus(forgiven);
            next = self.links.next(member);
        }
    }

    /// The accounts of members that divide what those who are due cannot use.
    fn accounts_of(&self, first: Option<Member>) -> impl Iterator<Item = usize> {
        let members = core::iter::successors(first, |&member| self.links.next(member));
        members.take(LENT_TO).map(|member| self.account_number(member))
    }

    /// The next client on a processor.
    pub(super) fn choose(&mut self, processor: ProcessorId) -> Option<ClientId> {
        let mut tries = 0;
        loop {
            match self.look(processor) {
                Found::Client(client) => return Some(client),
                Found::Nothing if self.take_any(processor) => {}
                Found::Nothing => return None,
                Found::Over(domain) => self.go_on(processor, domain, tries),
            }
            tries += 1;
        }
    }
}

/// The first member of a queue, due or not.
fn first_in(queue: &Queue) -> Option<Member> {
    queue.lines[queue.due].first().or(queue.lines[queue.waiting()].first())
}
