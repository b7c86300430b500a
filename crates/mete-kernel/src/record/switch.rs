//! Events switched on and off while recording (paper §4.3).
//!
//! Programs are attached and detached one by one, which takes up to hundreds of milliseconds. So what is to be recorded
//! is attached first and switched on then, all of it at once, by a word that programs ask; and it is switched off before
//! any program goes. A word has 64 events, in the order of the schema; of a larger schema, one word is stored after the
//! other, for a word that says which words hold would be one more load in every event. Otherwise events of some kinds would be missing at the beginning and at the end, without a gap.
//!
//! A place none of whose events is on has no program attached, so what is off costs nothing. Where one program serves
//! several events, each costs it a load and a branch, on or off. A second program for each set of events would have to
//! be put in the first one's place, and what happens meanwhile would be missed.

use std::iter::zip;
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::Object;
use mete_schema::program::Programs;

use super::constants::{WORDS, words};
use super::{Recording, attach};
use crate::KernelError;
use crate::map::Mapping;

/// What programs ask before they record anything: `switches` of `bpf/record.h`.
///
/// Invariant: the mapping has [`WORDS`] words.
pub(super) struct Switches(Mapping);

impl Switches {
    pub(super) fn of(object: &Object) -> Result<Switches, KernelError> {
        Mapping::of_map(object, ".bss.switches", WORDS * size_of::<u64>()).map(Switches)
    }

    /// From now on these events are on, and no others: each 64 of them by one store, which a system call that copies
    /// the words would not promise.
    pub(super) fn tell(&self, events: &[usize]) {
        let base = self.0.base().cast::<AtomicU64>();
        for (nth, word) in words(events).into_iter().enumerate() {
            // SAFETY: within the mapping, which begins on a page, and touched by atomics only.
            let switch = unsafe { base.add(nth).as_ref() };
            // Programs look at nothing else that is stored before.
            switch.store(word, Ordering::Relaxed);
        }
    }
}

impl Recording {
    /// From now on these of [`Settings::events`](super::Settings::events) are recorded, and no others. A program
    /// that runs on another processor at this moment may still record one that is off now.
    ///
    /// # Errors
    ///
    /// [`KernelError::Point`] for the first place that refuses; then what was recorded still is.
    pub fn switch(&mut self, events: &[usize]) -> Result<(), KernelError> {
        self.attach_missing(events)?;
        self.switches.tell(events);
        let is_needed = |point: &super::Point| point.events.iter().any(|event| events.contains(event));
        zip(&mut self.links, &self.points)
            .filter(|(_, point)| !is_needed(point))
            .for_each(|(link, _)| *link = None);
        Ok(())
    }

    /// All that are missing, or none of them. They record nothing yet.
    fn attach_missing(&mut self, events: &[usize]) -> Result<(), KernelError> {
        let (mut new, programs) = (Vec::new(), Programs::default());
        for (nth, point) in self.points.iter().enumerate() {
            let is_needed = point.events.iter().any(|event| events.contains(event));
            if is_needed && self.links[nth].is_none() {
                new.push((nth, attach(&self.object, point, &programs)?));
            }
        }
        new.into_iter().for_each(|(nth, link)| self.links[nth] = Some(link));
        Ok(())
    }
}
