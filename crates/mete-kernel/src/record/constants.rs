//! What is decided between opening and loading: sizes, and which programs and events there are.

use std::ffi::OsStr;

use libbpf_rs::OpenObject;
use mete_schema::layout::FIRST_EVENT;
use mete_trace::layout;

use super::{counters, maps};
use crate::DomainTable;
use crate::plain::bytes;
use crate::skeleton::numbers::{mete_recording, mete_recording_limit, mete_switches};

const _: () = assert!(mete_recording_limit::METE_FIRST_EVENT.0 == FIRST_EVENT as u32);

/// The values of `recording` in `bpf/record.bpf.h`, which are constants for the verifier.
pub(super) struct Constants<'a> {
    pub buffer_bytes: u64,
    pub processors: usize,
    /// The events that are to have code. The verifier removes the code of the others.
    pub events: &'a [usize],
    /// The table from task to domain, if any task is bound.
    pub domains: Option<&'a DomainTable>,
}

impl Constants<'_> {
    /// Sets the sizes of maps and the constants. Of the programs, only the wanted ones will be loaded.
    pub fn configure(
        &self,
        open: &mut OpenObject,
        is_wanted: impl Fn(&OsStr) -> bool,
    ) -> libbpf_rs::Result<()> {
        let area_bytes = (layout::HEADER_BYTES + layout::SLACK_BYTES) as u32 + self.buffer_bytes as u32;
        for mut map in open.maps_mut() {
            match map.name().to_str() {
                Some(maps::BUFFERS) => {
                    map.set_max_entries(self.processors as u32)?;
                    map.set_value_size(area_bytes)?;
                }
                Some(maps::COUNTERS) => map.set_max_entries((counters::MOST * self.processors) as u32)?,
                Some(maps::DOMAIN_OF_PID) => {
                    self.domains.map_or(Ok(()), |domains| map.reuse_fd(domains.file()))?
                }
                Some(maps::RECORDING) => map.set_initial_value(bytes(&self.recording()))?,
                _ => {}
            }
        }
        for mut program in open.progs_mut() {
            let is_wanted = is_wanted(program.name());
            program.set_autoload(is_wanted);
        }
        Ok(())
    }

    fn recording(&self) -> mete_recording {
        // Both 0 without a table: then programs do not look into it.
        let [pid_mask, domain_mask] = self.domains.map_or([0, 0], DomainTable::masks);
        mete_recording {
            data_bytes: self.buffer_bytes as u32,
            processors: self.processors as u32,
            events: words(self.events),
            pid_mask,
            domain_mask,
        }
    }
}

/// The number of words that have a bit for each event that a schema may have.
pub(super) const WORDS: usize = mete_recording_limit::METE_EVENT_WORDS.0 as usize;

/// A bit for each event, as programs read them.
pub(super) fn words(events: &[usize]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for event in events {
        words[event / 64 % WORDS] |= 1 << (event % 64);
    }
    words
}

/// The switches with which these events are on, and no others.
pub(super) fn switched_on(events: &[usize]) -> mete_switches {
    mete_switches { events: words(events) }
}
