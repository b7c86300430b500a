//! Events switched on and off while recording (paper §4.3).
//!
//! A place none of whose events is on has no program attached, so what is off costs nothing. Where one program serves
//! several events of which some are on, those that are off cost it a load and a branch each: the call into the program,
//! which is dearer by far, is made for the others anyhow. A second program for each set of events would have to be put
//! in the first one's place, and what happens meanwhile would be missed without a gap.

use std::iter::zip;

use mete_schema::program::Programs;
use mete_schema::{Checked, Schema};

use super::constants::mask;
use super::{Cache, Recording, Settings, attach};
use crate::{KernelError, map};

impl Recording {
    /// As [`Recording::load`], for events that can be switched while they are recorded: there are programs for all of
    /// the schema, and `settings` has those that are on first.
    ///
    /// # Errors
    ///
    /// As [`Recording::load`].
    pub fn load_switchable(
        schema: &Schema,
        checked: &Checked,
        text: &str,
        settings: &Settings,
        cache: &Cache,
    ) -> Result<Recording, KernelError> {
        Recording::load_that(true, schema, checked, text, settings, cache)
    }

    /// From now on these events are recorded, and of what was [loaded to be switched](Recording::load_switchable), no
    /// others. A program that runs on another processor at this moment may still record one that is off now.
    ///
    /// # Errors
    ///
    /// [`KernelError::Point`] for the first place that refuses; then what was recorded still is.
    pub fn switch(&mut self, events: &[usize]) -> Result<(), KernelError> {
        self.tell_switches(events)?;
        match self.attach_missing(events) {
            Ok(()) => {
                let is_needed =
                    |point: &super::Point| point.events.iter().any(|event| events.contains(event));
                zip(&mut self.links, &self.points)
                    .filter(|(_, point)| !is_needed(point))
                    .for_each(|(link, _)| *link = None);
                self.on = events.to_vec();
                Ok(())
            }
            Err(error) => {
                self.tell_switches(&self.on.clone())?;
                Err(error)
            }
        }
    }

    /// All that are missing, or none of them.
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

    /// Programs look here once they are attached, if they were loaded to be switched.
    fn tell_switches(&self, events: &[usize]) -> Result<(), KernelError> {
        map::write_global(&self.object, ".bss.switches", &mask(events))
    }
}
