//! Virtual time: service divided by share (VTRR paper, §2.3), and each client's account of it.
//!
//! # Range and rounding
//!
//! A unit is 2⁻²⁴ ns of service to a client of share one. Times are 96 bits wide and start at 2⁶⁴, so
//! that a policy may look a quantum back from the first. They last for 149,000 years of processor time at
//! share one, saturate there, and never wrap or need a new origin.
//!
//! Every account carries the remainder of its divisions on. So a client's virtual time is less than one
//! unit below the exact quotient, however long it has run. Each change of its share adds at most one
//! unit. Two times that are exactly equal compare as equal; two that differ by less than a unit may, too.

use alloc::vec::Vec;

use crate::{Nanoseconds, Setup, Share};

/// A point in virtual time, in the units above.
pub(crate) type VirtualTime = u128;

/// Binary digits of a nanosecond.
const FRACTION: u32 = 24;
/// The start of every system's virtual time.
pub(crate) const ORIGIN: VirtualTime = 1 << 64;
/// The last point in virtual time: keys of heaps have 96 bits for it.
pub(crate) const END: VirtualTime = (1 << 96) - 1;
/// The longest quantum, 9 minutes: its units fit 64 bits.
const MAX_QUANTUM_NS: Nanoseconds = Nanoseconds::new((1 << 39) - 1);

/// Service in units: virtual time times share.
pub(crate) fn service(ran_ns: Nanoseconds) -> i128 {
    units(ran_ns).cast_signed()
}

/// The set-up's quantum, at most 9 minutes.
pub(crate) fn quantum_ns(setup: &Setup) -> Nanoseconds {
    setup.quantum_ns.clamp(Nanoseconds::new(1), MAX_QUANTUM_NS)
}

/// `time` moved by `by`, kept within the range.
pub(crate) fn shifted(time: VirtualTime, by: i128) -> VirtualTime {
    time.saturating_add_signed(by).min(END)
}

/// How far `time` is ahead of `of`; negative when behind.
pub(crate) fn lead(time: VirtualTime, of: VirtualTime) -> i128 {
    // Both are below 2⁹⁶, so neither the casts nor the difference can wrap.
    time.cast_signed().wrapping_sub(of.cast_signed())
}

/// A distance in virtual time after a change of share: the same service, at another rate.
pub(crate) fn rescaled(lead: i128, from: Share, to: Share) -> i128 {
    lead.saturating_mul(i128::from(from.get())) / i128::from(to.get())
}

/// One client's progress in virtual time.
#[derive(Clone, Copy)]
pub struct Account {
    time: VirtualTime,
    /// A quantum in virtual time, and the remainder of that division.
    step: u64,
    step_rest: u32,
    /// The remainder of all divisions so far, below the share.
    rest: u32,
    share: Share,
}

impl Account {
    /// An account at `time`.
    pub(crate) fn new(share: Share, quantum_ns: Nanoseconds, time: VirtualTime) -> Account {
        let (step, step_rest) = divided(units(quantum_ns.min(MAX_QUANTUM_NS)), share);
        // At most 2³⁹ − 1 ns in units of 2⁻²⁴ ns: the quotient fits 64 bits.
        Account { time, step: step as u64, step_rest, rest: 0, share }
    }

    /// An account for each client of a set-up; adding the client overwrites it.
    pub(crate) fn all(setup: &Setup) -> Vec<Account> {
        alloc::vec![Account::new(Share::ONE, quantum_ns(setup), ORIGIN); setup.clients as usize]
    }

    /// The client's virtual time: where its next quantum starts.
    pub(crate) fn time(&self) -> VirtualTime {
        self.time
    }

    /// Its virtual finishing time: where its next quantum would end.
    pub(crate) fn finish(&self) -> VirtualTime {
        // Both remainders are below the share, so they carry one unit at most.
        let carry = u64::from(self.rest + self.step_rest >= self.share.get());
        (self.time + u128::from(self.step) + u128::from(carry)).min(END)
    }

    /// A quantum of this client's in virtual time.
    pub(crate) fn step(&self) -> i128 {
        i128::from(self.step)
    }

    pub(crate) fn share(&self) -> Share {
        self.share
    }

    /// Charges service.
    pub(crate) fn charge(&mut self, ran_ns: Nanoseconds) {
        let (quotient, rest) = divided(units(ran_ns) + u128::from(self.rest), self.share);
        self.time = (self.time + quotient).min(END);
        self.rest = rest;
    }

    /// Moves the account forward to `time`, if it is behind.
    pub(crate) fn not_before(&mut self, time: VirtualTime) {
        if self.time < time {
            self.move_to(time);
        }
    }

    /// Moves the account to `time`, exactly.
    pub(crate) fn move_to(&mut self, time: VirtualTime) {
        self.time = time.min(END);
        self.rest = 0;
    }

    /// Changes the share, and with it the distance from `now`, so that the distance stays the same service.
    pub(crate) fn set_share(&mut self, share: Share, quantum_ns: Nanoseconds, now: VirtualTime) {
        let distance = rescaled(lead(self.time, now), self.share, share);
        *self = Account::new(share, quantum_ns, shifted(now, distance));
    }
}

fn units(service_ns: Nanoseconds) -> u128 {
    u128::from(service_ns) << FRACTION
}

/// Quotient and remainder. Small numbers use the processor's own division, which is faster.
fn divided(units: u128, share: Share) -> (u128, u32) {
    let share = u64::from(share.get());
    // The cast keeps all of a remainder: it is below the share, which is at most 2²⁰.
    match u64::try_from(units) {
        Ok(small) => (u128::from(small / share), (small % share) as u32),
        Err(_) => (units / u128::from(share), (units % u128::from(share)) as u32),
    }
}
