//! Events switched on and off while recording (paper §4.3).
//!
//! Programs are attached and detached one by one, which takes up to hundreds of milliseconds. So what is to be recorded
//! is attached first and switched on then, all of it at once, by a word that programs ask; and it is switched off before
//! any program goes. Otherwise events of some kinds would be missing at the beginning and at the end, without a gap.
//!
//! A place none of whose events is on has no program attached, so what is off costs nothing. Where one program serves
//! several events, each costs it a load and a branch, on or off. A second program for each set of events would have to
//! be put in the first one's place, and what happens meanwhile would be missed.

use std::iter::zip;

use mete_schema::program::Programs;

use super::constants::mask;
use super::{Recording, attach};
use crate::{KernelError, map};

impl Recording {
    /// From now on these of [`Settings::events`](super::Settings::events) are recorded, and no others. A program
    /// that runs on another processor at this moment may still record one that is off now.
    ///
    /// # Errors
    ///
    /// [`KernelError::Point`] for the first place that refuses; then what was recorded still is.
    pub fn switch(&mut self, events: &[usize]) -> Result<(), KernelError> {
        self.attach_missing(events)?;
        self.tell_switches(events)?;
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

    /// Programs look here before they record anything.
    pub(super) fn tell_switches(&self, events: &[usize]) -> Result<(), KernelError> {
        map::write_global(&self.object, ".bss.switches", &mask(events))
    }
}
