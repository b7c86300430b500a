//! Events switched on and off while recording (paper §4.3).
//!
//! Programs are attached and detached one by one, which takes up to hundreds of milliseconds. So all programs
//! are attached first, and then their events are switched on at once, by a word that the programs read.
//! Before any program is detached, the events are switched off. Otherwise, events of some kinds would be
//! missing at the beginning and at the end, and no gap would show it. A word has 64 events, in the order of
//! the schema. The words of a larger schema are stored one after the other: a further word that says which
//! words are valid would be one more load in every event.
//!
//! A point none of whose events is on has no program attached, so what is off costs nothing. Where one
//! program serves several events, each costs a load and a branch, on or off. A second program for each set of
//! events would have to replace the first one, and what happens meanwhile would be missed.

use std::iter::zip;
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::Object;
use mete_schema::program::Programs;

use super::constants::{WORDS, words};
use super::maps::{SWITCHES, with_map};
use super::{Recording, attach};
use crate::KernelError;
use crate::map::Mapping;

/// The words that programs read before they record anything: `switches` of `bpf/record.bpf.h`.
///
/// Invariant: the mapping has [`WORDS`] words.
pub(super) struct Switches(Mapping);

impl Switches {
    pub(super) fn of(object: &Object) -> Result<Switches, KernelError> {
        with_map(object, SWITCHES, |map| map.mapped(WORDS * size_of::<u64>())).map(Switches)
    }

    /// From now on, these events are on, and no others. Each word of 64 events changes by one store; a system
    /// call that copies the words would not promise that.
    pub(super) fn write(&self, events: &[usize]) {
        let base = self.0.base().cast::<AtomicU64>();
        for (nth, word) in words(events).into_iter().enumerate() {
            // SAFETY: `words` are as many as the mapping has, which begins on a page and is accessed by
            // atomics only.
            let switch = unsafe { base.add(nth).as_ref() };
            // Relaxed: there is nothing else that programs must see before this.
            switch.store(word, Ordering::Relaxed);
        }
    }
}

impl Recording {
    /// From now on, these of [`Settings::events`](super::Settings::events) are recorded, and no others. A
    /// program that runs on another processor at this moment may still record one that is off now.
    ///
    /// # Errors
    ///
    /// [`KernelError::Point`] for the first point that is refused; then what was recorded before still is.
    pub fn switch(&mut self, events: &[usize]) -> Result<(), KernelError> {
        self.attach_missing(events)?;
        // Between the two: all programs that are needed run now, and none is detached while its events are
        // on.
        self.switches.write(events);
        zip(&mut self.links, &self.points)
            .filter(|(_, point)| !point.logs_any(events))
            .for_each(|(link, _)| *link = None);
        Ok(())
    }

    /// Attaches all programs that are missing, or none of them. They record nothing yet.
    fn attach_missing(&mut self, events: &[usize]) -> Result<(), KernelError> {
        // Kept apart until all are attached: if one is refused, those before it are dropped, and so detached.
        let (mut new, programs) = (Vec::new(), Programs::default());
        for (nth, point) in self.points.iter().enumerate() {
            if point.logs_any(events) && self.links[nth].is_none() {
                new.push((nth, attach(&self.object, point, &programs)?));
            }
        }
        new.into_iter().for_each(|(nth, link)| self.links[nth] = Some(link));
        Ok(())
    }
}
