//! Clients that go ahead of all others when they wake: those that run briefly each time (TAVS-3, TAVS-4).
//!
//! A client gives evidence for itself when it blocks after a short run, and against itself when a run is long
//! (TAVS paper, §3.3). What woke it matters, too (§3.5): the evidence is about runs after events of one kind, for packets after those
//! to some ports, see [`Causes`]. So a server that answers requests briefly, and computes for long when a timer wakes it, goes ahead for
//! the requests alone.
//!
//! With enough of it, the client goes ahead when such an event wakes it, within two bounds:
//!
//! * Its domain may spend a part of its own processor time on that (PBratio, §3.4). So the other members of
//!   the domain have the rest, and it is they that pay: such time is charged to the domain, and not to the
//!   client.
//! * No domain on the way to the root may have had more than four quanta too much. So shares of domains hold:
//!   a slice that ends only at the next tick of the clock takes two quanta.

use super::{DistributedVtrr, Member, ROOT};
use crate::observation::Cause;
use crate::{Causes, ClientId, Nanoseconds, ProcessorId, Stop};

/// What a short run and a long run add to the belief that a client runs briefly, and what it has to exceed
/// (§5).
pub(super) const POSITIVE: i16 = 5;
pub(super) const NEGATIVE: i16 = 20;
pub(super) const THRESHOLD: i16 = 20;
/// The belief stays between these.
pub(super) const RANGE: (i16, i16) = (-100, 300);
/// A run is long when it takes more than this part of a quantum.
pub(super) const LONG_RUN: u64 = 2;
/// The part of its domain's time that clients may use ahead of their turn. The paper has an eighth, for which
/// its domains' shares pay; here the domain itself does.
pub(super) const RATIO: i64 = 2;
/// How many quanta a domain can save up for that, or be in arrears with.
pub(super) const SAVED: u64 = 10;
/// How many quanta a member may have had too much while its clients go ahead.
pub(super) const MOST_DEBT: u64 = 4;
/// More time than any run takes, and little enough for the sums.
pub(super) const MOST_NS: u64 = 1 << 40;
/// How a client runs when it wakes, as far as it was seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habit {
    /// That it runs briefly, for each cause.
    beliefs: [i16; Cause::COUNT],
    /// What woke it last, or will wake it.
    cause: Cause,
    /// The time that it has run since it woke.
    ran_ns: u64,
    /// It runs ahead of its turn, or waits for that.
    is_ahead: bool,
}

impl Habit {
    fn is_brief(&self) -> bool {
        self.beliefs[self.cause.index()] > THRESHOLD
    }

    /// Whatever wakes it for which it is believed to run briefly.
    fn brief_causes(&self) -> Causes {
        let brief = self.beliefs.iter().enumerate().filter(|(_, belief)| **belief > THRESHOLD);
        Causes::from_bits(brief.fold(0, |bits, (cause, _)| bits | 1 << cause))
    }

    /// An event is about to wake it.
    pub(super) fn expect(&mut self, cause: Cause) {
        self.cause = cause;
    }

    pub(super) fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    pub(super) fn set_ahead(&mut self, is_ahead: bool) {
        self.is_ahead = is_ahead;
    }

    /// Judges a run, and the one ahead of its turn ends unless it was only interrupted.
    pub(super) fn ran(&mut self, ran_ns: Nanoseconds, quantum_ns: Nanoseconds, stop: Stop) {
        self.ran_ns = self.ran_ns.saturating_add(ran_ns.get());
        let is_long = self.ran_ns > quantum_ns.get() / LONG_RUN;
        let evidence = match stop {
            Stop::Blocked if !is_long => POSITIVE,
            Stop::Blocked | Stop::Expired => -NEGATIVE,
            Stop::Preempted | Stop::Yielded => 0,
        };
        let belief = &mut self.beliefs[self.cause.index()];
        *belief = (*belief + evidence).clamp(RANGE.0, RANGE.1);
        self.is_ahead &= stop == Stop::Preempted && !is_long;
        if stop == Stop::Blocked {
            (self.ran_ns, self.cause) = (0, Cause::default());
        }
    }
}

/// The time that clients of a domain may still use ahead of their turn; in arrears if it is negative.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowance(i64);

impl Allowance {
    fn is_left(self) -> bool {
        self.0 > 0
    }

    /// All time that a domain uses widens its allowance, and what is used ahead takes it up.
    pub(super) fn ran(&mut self, ran_ns: Nanoseconds, quantum_ns: Nanoseconds, is_ahead: bool) {
        let ran = ran_ns.get().min(MOST_NS).cast_signed();
        let most = (quantum_ns.get() * SAVED).cast_signed();
        let used = if is_ahead { ran } else { 0 };
        self.0 = (self.0 + ran / RATIO - used).clamp(-most, most);
    }
}

impl DistributedVtrr {
    /// The lowest account that pays for what a client uses: its own, but of time ahead of its turn its
    /// domain's, if it has one below the root.
    pub(super) fn payer(&self, client: ClientId, processor: ProcessorId, is_ahead: bool) -> Member {
        let domain = self.above(client.get(), processor).filter(|_| is_ahead);
        domain.unwrap_or(client.get())
    }

    /// Whether a client that wakes goes ahead of all others; it may be the only member of its domain.
    pub(super) fn is_to_go_ahead(&self, client: ClientId, processor: ProcessorId, is_alone: bool) -> bool {
        self.habits[client.index()].is_brief() && self.may_go_ahead(client, processor, is_alone)
    }

    /// Whatever wakes a blocked client for which it would go ahead.
    pub(super) fn causes_to_go_ahead(
        &self,
        client: ClientId,
        processor: ProcessorId,
        is_alone: bool,
    ) -> Causes {
        let may = self.may_go_ahead(client, processor, is_alone);
        if may { self.habits[client.index()].brief_causes() } else { Causes::NONE }
    }

    /// Whether it may, if it is believed to run briefly.
    fn may_go_ahead(&self, client: ClientId, processor: ProcessorId, is_alone: bool) -> bool {
        let home = self.roster.domain(client);
        let domain = &self.domains[home.index()];
        let is_allowed = home == ROOT || is_alone || domain.allowance.is_left();
        let first = Some(self.payer(client, processor, true));
        let mut above = core::iter::successors(first, |&member| self.above(member, processor));
        is_allowed && above.all(|member| self.has_little_debt(member))
    }

    /// Whether a member has not had too much for its clients to go ahead.
    fn has_little_debt(&self, member: Member) -> bool {
        let account = &self.accounts[self.account_number(member)];
        let limit = self.domains[self.home(member).index()].limit;
        let most = Nanoseconds::new(self.quantum_ns.get() * MOST_DEBT);
        account.used.is_before(limit.plus(account.virtually(most)))
    }
}
