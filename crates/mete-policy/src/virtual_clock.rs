//! The system's virtual time: it goes on by the service given, divided by the sum of the shares that compete.
//!
//! The clock carries the remainder of its divisions on. So it is less than one unit of
//! [`virtual_time`](crate::virtual_time) below the exact value; each `join` and `leave` adds at most one
//! unit. Used with `join_at` and `leave_at`, the clock is the weighted mean of its members' virtual times,
//! rounded down, and these errors do not add up.

use crate::Share;
use crate::virtual_time::{ORIGIN, VirtualTime, lead, shifted};

/// A virtual clock and the shares that drive it.
pub struct VirtualClock {
    time: VirtualTime,
    /// Service beyond `time`, in units, not yet divided by the shares.
    rest: i128,
    /// The sum of the members' shares: below 2^52.
    shares: u64,
}

impl VirtualClock {
    pub(crate) fn new() -> VirtualClock {
        VirtualClock { time: ORIGIN, rest: 0, shares: 0 }
    }

    /// Counts service: see [`service`](crate::virtual_time::service).
    pub(crate) fn advance(&mut self, service: i128) {
        self.rest = self.rest.saturating_add(service);
    }

    /// The system's virtual time.
    pub(crate) fn now(&mut self) -> VirtualTime {
        if self.shares > 0 {
            // The remainder stays: dropping it would lose up to a unit at each reading.
            let (quotient, rest) = divided(self.rest, self.shares);
            self.time = shifted(self.time, quotient);
            self.rest = rest;
        }
        self.time
    }

    /// A share begins to compete; the time stays.
    pub(crate) fn join(&mut self, share: Share) {
        // What was given before is divided by the shares that competed then.
        self.now();
        self.shares = self.shares.saturating_add(u64::from(share.get()));
    }

    /// A share no longer competes; the time stays.
    pub(crate) fn leave(&mut self, share: Share) {
        self.now();
        self.subtract(share);
    }

    /// A member joins at a time of its own; the mean moves towards it.
    pub(crate) fn join_at(&mut self, time: VirtualTime, share: Share) {
        self.join(share);
        // With the new member in the sum: the clock moves by its weight over all shares.
        self.advance(self.weight_of(time, share));
    }

    /// A member leaves from a time of its own; the mean moves away from it.
    pub(crate) fn leave_at(&mut self, time: VirtualTime, share: Share) {
        self.now();
        // With the member still in the sum: `subtract` changes the divisor before the next reading.
        self.advance(-self.weight_of(time, share));
        self.subtract(share);
    }

    fn subtract(&mut self, share: Share) {
        self.shares = self.shares.saturating_sub(u64::from(share.get()));
        // Without members no time passes, and the next member must not inherit what is left.
        if self.shares == 0 {
            self.rest = 0;
        }
    }

    /// Puts the clock forward to `time`, if it is behind.
    pub(crate) fn raise_to(&mut self, time: VirtualTime) {
        if self.now() < time {
            self.time = time;
            self.rest = 0;
        }
    }

    fn weight_of(&self, time: VirtualTime, share: Share) -> i128 {
        lead(time, self.time).saturating_mul(i128::from(share.get()))
    }
}

/// Euclidean quotient and remainder. Small numbers use the processor's own division, which is faster.
fn divided(service: i128, shares: u64) -> (i128, i128) {
    if let Ok(small) = u64::try_from(service) {
        return (i128::from(small / shares), i128::from(small % shares));
    }
    let shares = i128::from(shares);
    // Rounded down, also below zero: the remainder stays positive.
    (service.div_euclid(shares), service.rem_euclid(shares))
}
