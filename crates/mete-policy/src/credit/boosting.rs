//! TAVS-4: how much partial boosting a virtual processor may have (§3.4).
//!
//! PBratio bounds the time spent boosted by a part of all processor time that the virtual processor has
//! had. The paper leaves open when a boost is worth beginning. Here the allowance must reach IOthreshold,
//! which is the time that an I/O-bound task may take.

use alloc::vec;
use alloc::vec::Vec;

use super::settings::TavsSettings;
use crate::{ClientId, Nanoseconds, Permille};

/// The course of a virtual processor's slice, as far as boosting is concerned.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum BoostSlice {
    #[default]
    Plain,
    Boosted,
    /// Boosted, and an I/O-bound task was switched in.
    Hit,
}

#[derive(Clone, Copy, Default)]
struct BoostUse {
    total_ns: Nanoseconds,
    boosted_ns: Nanoseconds,
    slice: BoostSlice,
    /// A boost is due when the virtual processor wakes.
    on_wake: bool,
}

/// All tracked virtual processors' allowances.
pub(super) struct Boosting {
    uses: Vec<BoostUse>,
    ratio: Permille,
    longest_ns: Nanoseconds,
}

impl Boosting {
    pub(super) fn new(clients: u32, settings: &TavsSettings) -> Boosting {
        Boosting {
            uses: vec![BoostUse::default(); clients as usize],
            ratio: settings.boost_ratio,
            longest_ns: settings.boost_max_ns.max(Nanoseconds::new(1)),
        }
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        if let Some(entry) = self.uses.get_mut(client.index()) {
            *entry = BoostUse::default();
        }
    }

    /// The time that the client may still spend boosted.
    pub(super) fn allowance_ns(&self, client: ClientId) -> Nanoseconds {
        self.uses.get(client.index()).map_or(Nanoseconds::ZERO, |entry| {
            Nanoseconds::new(self.ratio.part_of(entry.total_ns.get())).saturating_sub(entry.boosted_ns)
        })
    }

    /// The length of a boosted slice of the client's.
    pub(super) fn slice_ns(&self, client: ClientId) -> Nanoseconds {
        // At least 1 ns: no slice is empty, even where the allowance was used up after the boost was granted.
        self.allowance_ns(client).clamp(Nanoseconds::new(1), self.longest_ns)
    }

    pub(super) fn set_on_wake(&mut self, client: ClientId) {
        if let Some(entry) = self.uses.get_mut(client.index()) {
            entry.on_wake = true;
        }
    }

    /// Whether a boost was due; it no longer is.
    pub(super) fn take_on_wake(&mut self, client: ClientId) -> bool {
        self.uses.get_mut(client.index()).is_some_and(|entry| core::mem::take(&mut entry.on_wake))
    }

    pub(super) fn dispatched(&mut self, client: ClientId, boosted: bool) {
        if let Some(entry) = self.uses.get_mut(client.index()) {
            entry.slice = if boosted { BoostSlice::Boosted } else { BoostSlice::Plain };
        }
    }

    /// An I/O-bound task was switched in. `true`: it is the first in a boosted slice.
    pub(super) fn hit(&mut self, client: ClientId) -> bool {
        match self.uses.get_mut(client.index()) {
            Some(entry) if entry.slice == BoostSlice::Boosted => {
                entry.slice = BoostSlice::Hit;
                true
            }
            _ => false,
        }
    }

    /// Counts a slice, and answers its length if it was boosted.
    pub(super) fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds) -> Option<Nanoseconds> {
        let entry = self.uses.get_mut(client.index())?;
        // All time widens the allowance, boosted time too: PBratio is a part of the whole (§5.1).
        entry.total_ns = entry.total_ns.saturating_add(ran_ns);
        if core::mem::take(&mut entry.slice) == BoostSlice::Plain {
            return None;
        }
        entry.boosted_ns = entry.boosted_ns.saturating_add(ran_ns);
        Some(ran_ns)
    }
}
