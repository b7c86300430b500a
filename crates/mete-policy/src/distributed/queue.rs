//! The queues of one processor: who stands in them, and whose turn it is.

use super::processor_set::bit;
use super::{DistributedVtrr, Domain, Member, ROOT, Standing};
use crate::{ClientId, DomainIndex, Nanoseconds, ProcessorId};

/// How many quanta a member has to make up for at most. Where a kernel lets a client run on for seconds,
/// because its processor is being taken away or stood still, the other members of its domain would wait for
/// as many.
pub(super) const MOST_OWED: u64 = 256;
/// How many quanta beyond two rounds a member may be behind. One that can use what it is due is never further
/// behind; what another one is due beyond that is forfeited.
pub(super) const MOST_BEHIND: u64 = 16;

/// What a processor finds in a domain's queue.
pub(super) enum Turn {
    /// The member that is next.
    Of(Member),
    /// All members that can be selected have had what they were due.
    Over,
    /// No member can be selected.
    OfNone,
}

/// What a processor finds in its queues.
pub(super) enum Found {
    Client(ClientId),
    /// A domain all of whose members have had what they were due.
    Over(DomainIndex),
    Nothing,
}

impl DistributedVtrr {
    /// Puts a member into a line of its queue; with the first member that can be selected, the domain itself
    /// can be selected in its parent's queue.
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
            self.standing[member as usize] = Standing::Queued(due);
            next = self.above(member, processor).filter(|_| was_empty);
        }
    }

    /// Lets a client wait where it stands in its turn, or ahead of all others.
    pub(super) fn put(&mut self, client: ClientId, processor: ProcessorId, is_first: bool) {
        if !self.habits[client.index()].is_ahead() {
            return self.show(client.get(), processor, is_first);
        }
        let line = &mut self.ahead[processor.index()];
        match is_first {
            true => self.links.push_front(line, client.get()),
            false => self.links.push_back(line, client.get()),
        }
        self.standing[client.index()] = Standing::Ahead;
    }

    /// Takes a member out of its line, and each domain above that has no other member to select.
    pub(super) fn hide(&mut self, member: Member, processor: ProcessorId) {
        if self.standing[member as usize] == Standing::Ahead {
            self.links.remove(&mut self.ahead[processor.index()], member);
            self.standing[member as usize] = Standing::Nowhere;
            return;
        }
        let mut next = Some(member);
        while let Some(member) = next {
            let number = self.queue_number(processor, self.home(member));
            let queue = &mut self.queues[number];
            if let Standing::Queued(line) = self.standing[member as usize] {
                self.links.remove(&mut queue.lines[line], member);
                self.standing[member as usize] = Standing::Nowhere;
            }
            let is_empty = queue.is_empty();
            next = self.above(member, processor).filter(|_| is_empty);
        }
    }

    /// Puts a member of a queue behind all others of a line.
    pub(super) fn stand_behind(&mut self, member: Member, number: usize, line: usize) {
        let queue = &mut self.queues[number];
        if let Standing::Queued(before) = self.standing[member as usize] {
            self.links.remove(&mut queue.lines[before], member);
        }
        self.standing[member as usize] = Standing::Queued(line);
        self.links.push_back(&mut queue.lines[line], member);
    }

    /// Counts a client, and each domain above whose first client here it is, as members of their queues.
    pub(super) fn enter(&mut self, client: ClientId, processor: ProcessorId) {
        self.placed[client.index()] = processor;
        self.vacant &= !bit(processor);
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
            if was_empty {
                self.queues[number].lent = self.domains[home.index()].limit;
            }
            next = self.above(member, processor).filter(|_| was_empty);
        }
    }

    /// Undoes `enter`. The client stands in no line any more.
    pub(super) fn leave(&mut self, client: ClientId, processor: ProcessorId) {
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
            if is_empty && home == ROOT {
                self.vacant |= bit(processor);
            }
            next = self.above(member, processor).filter(|_| is_empty);
        }
    }

    /// The member whose turn it is in a domain's queue.
    pub(super) fn turn(&mut self, processor: ProcessorId, domain: DomainIndex) -> Turn {
        let number = self.queue_number(processor, domain);
        let limit = self.domains[domain.index()].limit.later(self.queues[number].lent);
        self.queues[number].lent = limit;
        loop {
            let queue = &mut self.queues[number];
            let waiting = queue.waiting();
            if let Some(member) = queue.lines[queue.due].first() {
                let used = self.accounts[self.account_number(member)].used;
                if used.is_before(limit) {
                    return Turn::Of(member);
                }
                self.queues[number].note_waiting(used, limit);
                self.stand_behind(member, number, waiting);
            } else if queue.lines[waiting].is_empty() {
                return Turn::OfNone;
            } else if queue.seen == limit {
                return Turn::Over;
            } else {
                // Under another limit, members that waited may be due.
                queue.look_again(limit);
            }
        }
    }

    /// Looks for the client that is next in a processor's own queues.
    pub(super) fn look(&mut self, processor: ProcessorId) -> Found {
        if let Some(client) = self.ahead[processor.index()].first() {
            return Found::Client(ClientId::new(client));
        }
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

    /// Charges a client and the domains above it for time used.
    pub(super) fn charge(
        &mut self,
        client: ClientId,
        processor: ProcessorId,
        used: Nanoseconds,
        is_ahead: bool,
    ) {
        let home = &mut self.domains[self.roster.domain(client).index()];
        // One that is alone goes ahead of no other member.
        home.allowance.ran(used, self.quantum_ns, is_ahead && home.members > 1);
        let mut next = Some(self.payer(client, processor, is_ahead));
        while let Some(member) = next {
            let Domain { limit, round, .. } = self.domains[self.home(member).index()];
            let number = self.account_number(member);
            let account = &mut self.accounts[number];
            account.used = account.used.plus(account.virtually(used));
            let least = limit.minus(round).minus(round);
            account.forfeit(least, self.quantum_ns.saturating_mul(MOST_BEHIND));
            account.forgive(limit, self.quantum_ns.saturating_mul(MOST_OWED));
            next = self.above(member, processor);
        }
    }

    /// Whether a member is still due more than the last round gave it: it came too short before that.
    pub(super) fn is_late(&self, member: Member) -> bool {
        let Domain { limit, round, .. } = self.domains[self.home(member).index()];
        self.is_due(member, limit.minus(round))
    }

    /// Gives the domains above a client's queue their turn: the others are next.
    pub(super) fn end_turns(&mut self, client: ClientId, processor: ProcessorId) {
        let mut next = self.above(client.get(), processor);
        while let Some(member) = next {
            let number = self.queue_number(processor, self.home(member));
            let due = self.queues[number].due;
            if self.standing[member as usize] == Standing::Queued(due) {
                self.stand_behind(member, number, due);
            }
            next = self.above(member, processor);
        }
    }
}
