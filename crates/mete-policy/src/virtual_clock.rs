//! The system's virtual time: it goes on by the service given, divided by the shares of all who compete.
//!
//! It carries the remainder of its divisions on, so that it is less than one unit of
//! [`virtual_time`](crate::virtual_time) below the exact value; each `join` and `leave` adds one at most.
//! Used with `join_at` and `leave_at` it is the weighted mean of its members' virtual times, rounded
//! down, and nothing adds up.

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
            let (quotient, rest) = divided(self.rest, self.shares);
            self.time = shifted(self.time, quotient);
            self.rest = rest;
        }
        self.time
    }

    /// A share begins to compete; the time stays.
    pub(crate) fn join(&mut self, share: Share) {
        self.now();
        self.shares = self.shares.saturating_add(u64::from(share.get()));
    }

    /// A share no longer competes; the time stays.
    pub(crate) fn leave(&mut self, share: Share) {
        self.now();
        self.shares = self.shares.saturating_sub(u64::from(share.get()));
        if self.shares == 0 {
            self.rest = 0;
        }
    }

    /// A member joins at a time of its own; the mean moves towards it.
    pub(crate) fn join_at(&mut self, time: VirtualTime, share: Share) {
        self.join(share);
        self.advance(self.weight_of(time, share));
    }

    /// A member leaves from a time of its own; the mean moves away from it.
    pub(crate) fn leave_at(&mut self, time: VirtualTime, share: Share) {
        self.now();
        self.advance(-self.weight_of(time, share));
        self.shares = self.shares.saturating_sub(u64::from(share.get()));
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

/// Euclidean quotient and remainder, by the processor's own division where the numbers are small.
fn divided(service: i128, shares: u64) -> (i128, i128) {
    if let Ok(small) = u64::try_from(service) {
        return (i128::from(small / shares), i128::from(small % shares));
    }
    let shares = i128::from(shares);
    (service.div_euclid(shares), service.rem_euclid(shares))
}
