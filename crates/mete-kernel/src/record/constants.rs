//! What is decided between opening and loading: sizes, and which programs and events there are.

use std::ffi::OsStr;

use libbpf_rs::OpenObject;
use mete_trace::layout;

use super::counters;
use crate::DomainTable;

/// `recording` of `bpf/record.h`, which the verifier takes for constants.
pub(super) struct Constants<'a> {
    pub buffer_bytes: u64,
    pub processors: usize,
    /// The events that there is code for; the verifier takes out what is for others.
    pub events: &'a [usize],
    /// Who is in which domain, if anybody is bound.
    pub domains: Option<&'a DomainTable>,
}

impl Constants<'_> {
    /// Sets the sizes of maps and the constants, and has no other programs loaded than these.
    pub fn configure(
        &self,
        open: &mut OpenObject,
        is_wanted: impl Fn(&OsStr) -> bool,
    ) -> libbpf_rs::Result<()> {
        let area_bytes = (layout::HEADER_BYTES + layout::SLACK_BYTES) as u32 + self.buffer_bytes as u32;
        for mut map in open.maps_mut() {
            match map.name().to_str() {
                Some("buffers") => {
                    map.set_max_entries(self.processors as u32)?;
                    map.set_value_size(area_bytes)?;
                }
                Some("counters") => map.set_max_entries((counters::MOST * self.processors) as u32)?,
                Some("domain_of_pid") => {
                    self.domains.map_or(Ok(()), |domains| map.reuse_fd(domains.file()))?
                }
                Some(".rodata.recording") => map.set_initial_value(&self.bytes())?,
                _ => {}
            }
        }
        for mut program in open.progs_mut() {
            let is_wanted = is_wanted(program.name());
            program.set_autoload(is_wanted);
        }
        Ok(())
    }

    fn bytes(&self) -> Vec<u8> {
        let sizes = [self.buffer_bytes as u32, self.processors as u32].map(u32::to_ne_bytes).concat();
        let masks = self.domains.map_or([0, 0], DomainTable::masks).map(u32::to_ne_bytes).concat();
        [sizes, mask(self.events), masks].concat()
    }
}

/// How many words have a bit for each event that a schema may have.
pub(super) const WORDS: usize = 16;

/// A bit for each event, as programs look at them.
pub(super) fn words(events: &[usize]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for event in events {
        words[event / 64 % WORDS] |= 1 << (event % 64);
    }
    words
}

/// The same as bytes.
pub(super) fn mask(events: &[usize]) -> Vec<u8> {
    words(events).map(u64::to_ne_bytes).concat()
}
