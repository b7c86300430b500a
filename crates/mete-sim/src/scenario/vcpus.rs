//! Guests with several virtual processors: each is a client with its part of the guest's share.
//!
//! A guest's share does not grow with its virtual processors, as a domain's weight does not under Xen's
//! credit scheduler. Shares are whole numbers, so if some guest has several virtual processors, all shares
//! of a scenario are multiplied by the least number that makes every part a whole one.

use mete_policy::{ClientId, Share};
use toml::Spanned;

use super::error::Fault;
use super::table::GuestTable;
use super::{Body, Client};

/// As many as Xen 3 gives to a paravirtual guest.
const MOST_VCPUS: u32 = 32;

/// What a share of 1 is multiplied by.
pub(super) fn unit(guests: &[GuestTable]) -> Result<u32, Fault> {
    let mut unit = 1u32;
    for guest in guests {
        let vcpus = *guest.vcpus.get_ref();
        if !(1..=MOST_VCPUS).contains(&vcpus) {
            let what = format!("vcpus: 1 to {MOST_VCPUS}, not {vcpus}");
            return Err(Fault::new(guest.vcpus.span(), what));
        }
        unit = (unit / divisor(unit, vcpus)).saturating_mul(vcpus);
        if unit > Share::MAX.get() {
            let what = "vcpus: no share can be divided by all guests' numbers of them; take such as divide each other";
            return Err(Fault::new(guest.vcpus.span(), what));
        }
    }
    Ok(unit)
}

fn divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { divisor(other, one % other) }
}

/// A share in units.
pub(super) fn share(share: &Spanned<u32>, unit: u32) -> Result<Share, Fault> {
    let (written, most) = (*share.get_ref(), Share::MAX.get() / unit);
    let found = written.checked_mul(unit).and_then(Share::new);
    found.ok_or_else(|| {
        let why = if unit == 1 { "" } else { ", where guests have several virtual processors" };
        Fault::new(share.span(), format!("share: 1 to {most}{why}, not {written}"))
    })
}

/// The part of a share that one of so many virtual processors has.
pub(super) fn part(share: Share, vcpus: u32) -> Share {
    Share::new(share.get() / vcpus).unwrap_or(Share::ONE)
}

impl Client {
    /// How many virtual processors it has.
    pub(super) fn vcpus(&self) -> u32 {
        match &self.body {
            Body::Guest(plan) => plan.vcpus,
            _ => 1,
        }
    }
}

/// The clients that a guest is whose first has the number `first`: `name` alone, or `name:0`, `name:1`, …
pub(super) fn spread(guest: Client, first: ClientId) -> Vec<Client> {
    let vcpus = guest.vcpus();
    let share = part(guest.share, vcpus);
    let (name, domain, start_ns) = (guest.name.clone(), guest.domain, guest.start_ns);
    let body = |vcpu| if vcpu == 0 { guest.body.clone() } else { Body::Vcpu { of: first } };
    match vcpus {
        1 => vec![guest],
        _ => {
            let client =
                |vcpu| Client { name: format!("{name}:{vcpu}"), domain, share, start_ns, body: body(vcpu) };
            (0..vcpus).map(client).collect()
        }
    }
}
