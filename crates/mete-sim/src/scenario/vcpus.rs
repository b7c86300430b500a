//! Guests with several virtual processors: each is a client with its part of the guest's share.
//!
//! A guest's share does not grow with its virtual processors, as a domain's weight does not under Xen's
//! credit scheduler. Shares are whole numbers. So if a guest has several virtual processors, all shares of a
//! scenario are multiplied by the least number that makes every part a whole one.

use mete_policy::{ClientId, Share};
use toml::Spanned;

use super::error::Fault;
use super::table::GuestTable;
use super::{Client, ClientPlan};

/// The most that Xen 3 gives to a paravirtual guest.
const MOST_VCPUS: u32 = 32;

/// What a share of 1 is multiplied by: the least common multiple of the guests' numbers of virtual
/// processors.
pub(super) fn unit(guests: &[GuestTable]) -> Result<u32, Fault> {
    let mut unit = 1u32;
    for guest in guests {
        let vcpus = *guest.vcpus.get_ref();
        if !(1..=MOST_VCPUS).contains(&vcpus) {
            let what = format!("vcpus: 1 to {MOST_VCPUS}, not {vcpus}");
            return Err(Fault::new(guest.vcpus.span(), what));
        }
        // Divided first, because the product of the two may not fit.
        unit = (unit / divisor(unit, vcpus)).saturating_mul(vcpus);
        if unit > Share::MAX.get() {
            let what = "vcpus: no share can be divided by all guests' numbers of them; take numbers that divide \
                        each other";
            return Err(Fault::new(guest.vcpus.span(), what));
        }
    }
    Ok(unit)
}

/// The greatest common divisor (Euclid).
fn divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { divisor(other, one % other) }
}

/// A share in the units that policies are given.
pub(super) fn share(share: &Spanned<u32>, unit: u32) -> Result<Share, Fault> {
    let (written, most) = (*share.get_ref(), Share::MAX.get() / unit);
    let found = written.checked_mul(unit).and_then(Share::new);
    found.ok_or_else(|| {
        let why = if unit == 1 { "" } else { ", where guests have several virtual processors" };
        Fault::new(share.span(), format!("share: 1 to {most}{why}, not {written}"))
    })
}

/// The part of a share that each of `vcpus` virtual processors has.
pub(super) fn part(share: Share, vcpus: u32) -> Share {
    // Shares are multiples of every guest's number of virtual processors, so nothing is lost.
    Share::new(share.get() / vcpus).unwrap_or(Share::ONE)
}

impl Client {
    /// How many virtual processors it has.
    pub(super) fn vcpus(&self) -> u32 {
        match &self.body {
            ClientPlan::Guest(plan) => plan.vcpus,
            _ => 1,
        }
    }
}

/// The clients of a guest whose first client has the number `first`: `name` alone, or `name:0`, `name:1`, …
pub(super) fn spread(guest: Client, first: ClientId) -> Vec<Client> {
    let vcpus = guest.vcpus();
    if vcpus == 1 {
        return vec![guest];
    }
    let share = part(guest.share, vcpus);
    let clients = (0..vcpus).map(|vcpu| Client {
        name: format!("{}:{vcpu}", guest.name),
        share,
        body: if vcpu == 0 { guest.body.clone() } else { ClientPlan::Vcpu { of: first } },
        ..guest
    });
    clients.collect()
}
