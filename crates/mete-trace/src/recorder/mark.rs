//! The recorder's own events among those of the producers: events that are switched, and runs that the kernel
//! left out.

use std::time::{Duration, Instant};

use mete_log::Ticks;

use super::Recorder;
use crate::buffer::Buffer;
use crate::description::EventLayout;
use crate::description::marks::{SWITCH_WORDS, switch_mark};
use crate::description::missed::MissedRuns;
use crate::description::switches::Switch;
use crate::memory::Buffers;
use crate::producer::{Outcome, Producer};
use crate::record::{HEADER_BYTES, MISSED_RUNS, SWITCHED_OFF};
use crate::thread;

/// How long a mark waits for room in a full buffer.
const PATIENCE: Duration = Duration::from_millis(100);

impl<B: Buffers> Recorder<B> {
    /// Marks on every processor that events, given by their numbers, are switched. Call this before they are
    /// switched off, and after they are switched on. Buffers in which
    /// [events are gathered](Buffers::is_gathered) get no mark.
    pub fn mark_switched(&mut self, events: &[u16], on: bool) {
        for event in events {
            let Some(layout) = self.layout(|layout| layout.id == *event).cloned() else { continue };
            self.mark_switch(&layout, on, |buffer| !self.buffers.is_gathered(buffer));
            let time = self.options.clock.now();
            let switch = Switch { time, event: layout.name, on };
            self.trace.circumstances.switches.note(switch);
        }
    }

    /// Marks the events that are off at first, if they may be switched on.
    pub(super) fn mark_off_at_first(&self) {
        if self.layout(|layout| layout.id == SWITCHED_OFF).is_none() {
            return;
        }
        for name in &self.trace.circumstances.switches.off_at_first {
            if let Some(layout) = self.layout(|layout| layout.name == *name) {
                // Gathered events are marked, too: nothing is in their buffers yet that a mark could be out
                // of order with.
                self.mark_switch(layout, false, |_| true);
            }
        }
    }

    fn mark_switch(&self, event: &EventLayout, on: bool, is_meant: impl Fn(usize) -> bool) {
        let (id, words) = switch_mark(event.id, &event.name, on);
        for buffer in (0..self.buffers.processors()).filter(|buffer| is_meant(*buffer)) {
            self.put(buffer, id, &words);
        }
    }

    /// Looks how often the kernel has left out programs so far. If that is more than at the look before, a
    /// mark says between which two moments the new runs were, and the description lists them. Returns the
    /// number of new runs.
    ///
    /// # Errors
    ///
    /// Those of `count`.
    pub fn look_for_missed_runs<E>(&mut self, count: impl FnOnce() -> Result<u64, E>) -> Result<u64, E> {
        // Read before counting: a run that is left out during the count is found by this look or by the next
        // one, and is not before the `since` of either.
        let before = self.options.clock.now();
        let runs = count()?.saturating_sub(self.trace.circumstances.missed_runs);
        let since = std::mem::replace(&mut self.looked, before);
        if runs > 0 {
            self.mark_missed(since, runs);
            let until = self.options.clock.now();
            self.trace.circumstances.miss(MissedRuns { since, until, runs });
        }
        Ok(runs)
    }

    /// Puts the mark into one of the kernel's buffers. On which processor the runs were is not known.
    fn mark_missed(&self, since: Ticks, runs: u64) {
        if self.layout(|layout| layout.id == MISSED_RUNS).is_none() {
            return;
        }
        let kernels = (0..self.buffers.processors())
            .find(|nth| self.buffers.programs_of(*nth).is_none() && !self.buffers.is_gathered(*nth));
        if let Some(buffer) = kernels {
            self.put(buffer, MISSED_RUNS, &[since.get(), runs]);
        }
    }

    /// The layout of the records of the first event for which `of` holds.
    fn layout(&self, of: impl Fn(&EventLayout) -> bool) -> Option<&EventLayout> {
        self.trace.description.events.iter().find(|layout| of(layout))
    }

    /// Puts a mark into a buffer. A mark that finds no room is a loss like any other, and the description
    /// still says what happened.
    fn put(&self, buffer: usize, id: u16, words: &[u64]) {
        let buffer = self.buffers.buffer(buffer);
        let producer = Producer::new(buffer);
        wait_for_room(buffer, producer);
        let (Outcome::Written | Outcome::WrittenAtMark | Outcome::Lost) =
            producer.record(id, words, || self.options.clock.now());
    }
}

/// Waits until a mark has room. A full buffer is emptied in a moment, unless the disk is stuck.
fn wait_for_room(buffer: Buffer<'_>, producer: Producer<'_>) {
    // Twice the largest mark: a record that does not fit before the end of the buffer needs padding there.
    const NEEDED: u32 = (HEADER_BYTES + SWITCH_WORDS * 8) as u32 * 2;
    let begun = Instant::now();
    // A garbled buffer may have more in use than it has room for.
    while buffer.capacity() - buffer.used().min(buffer.capacity()) < NEEDED && begun.elapsed() < PATIENCE {
        producer.call_flush();
        thread::pause();
    }
}
