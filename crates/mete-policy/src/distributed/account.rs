//! What a client or a domain has had, as virtual time: time used, divided by its share.

use crate::{Nanoseconds, Share};

/// Virtual time in parts of a nanosecond for each unit of share. It wraps around, so only differences mean
/// something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Virtual(u64);

/// The parts of a nanosecond.
pub(super) const SCALE: u32 = 12;
/// More time than any run takes, and little enough for the arithmetic.
pub(super) const MOST_NS: u64 = 1 << 40;
/// More virtual time than any member has had too much: a difference beyond it has wrapped around.
pub(super) const MOST: i64 = 1 << 56;
/// The most virtual time that a member keeps as due or owed when its share changes: times any share, it fits
/// 64 bits.
pub(super) const MOST_KEPT: i64 = 1 << 42;

impl Virtual {
    pub(super) const ZERO: Virtual = Virtual(0);
    /// The shortest difference.
    pub(super) const SHORTEST: Virtual = Virtual(1);

    /// The virtual time that passes for a share while it uses this time.
    pub(super) fn of(used: Nanoseconds, share: u64) -> Virtual {
        Virtual((used.get().min(MOST_NS) << SCALE) / share.max(1))
    }

    pub(super) fn plus(self, passed: Virtual) -> Virtual {
        Virtual(self.0.wrapping_add(passed.0))
    }

    pub(super) fn minus(self, passed: Virtual) -> Virtual {
        Virtual(self.0.wrapping_sub(passed.0))
    }

    pub(super) fn is_before(self, other: Virtual) -> bool {
        self.until(other) > 0
    }

    pub(super) fn earlier(self, other: Virtual) -> Virtual {
        if self.is_before(other) { self } else { other }
    }

    pub(super) fn later(self, other: Virtual) -> Virtual {
        if self.is_before(other) { other } else { self }
    }

    fn until(self, other: Virtual) -> i64 {
        other.0.wrapping_sub(self.0).cast_signed()
    }

    /// The virtual time that is as far from `now` for a share as this one is for another share, in time used.
    fn rescaled(self, now: Virtual, from: Share, to: Share) -> Virtual {
        let lag = self.until(now).clamp(-MOST_KEPT, MOST_KEPT) * i64::from(from.get()) / i64::from(to.get());
        Virtual(now.0.wrapping_sub(lag.cast_unsigned()))
    }
}

/// The account of a client or a domain, which all processors charge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) share: Share,
    pub(super) used: Virtual,
    /// In how many processors' queues it stands. A client stands in one at most.
    pub(super) places: u32,
}

impl Account {
    pub(super) const NEW: Account = Account { share: Share::ONE, used: Virtual::ZERO, places: 0 };

    /// Virtual time for this time used.
    pub(super) fn virtually(&self, used: Nanoseconds) -> Virtual {
        Virtual::of(used, self.share.get().into())
    }

    /// Forgets what is due beyond this time: a member that could not use it, or was away, has no claim to it.
    pub(super) fn forfeit(&mut self, limit: Virtual, most: Nanoseconds) {
        let least = limit.minus(self.virtually(most));
        // A member that was away for very long has had nothing, however the difference looks.
        let has_wrapped = limit.until(self.used) > MOST;
        self.used = if has_wrapped { least } else { self.used.later(least) };
    }

    /// Forgets what was used too much beyond this time: that was no choice of the policy.
    pub(super) fn forgive(&mut self, limit: Virtual, most: Nanoseconds) {
        self.used = self.used.earlier(limit.plus(self.virtually(most)));
    }

    /// Another share; what is due to it, as time, stays.
    pub(super) fn set_share(&mut self, share: Share, limit: Virtual) {
        self.used = self.used.rescaled(limit, self.share, share);
        self.share = share;
    }
}
