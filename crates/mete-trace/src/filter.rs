//! Which records of a trace are wanted.

use crate::reader::Gap;
use crate::record::Record;

/// Which records are wanted. The default is all. Gaps are shown whatever events are wanted,
/// because nobody knows which events are in them.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    events: Option<Vec<u16>>,
    processors: Option<Vec<u32>>,
    /// Not before this time stamp, in ticks.
    pub from: Option<u64>,
    /// Not after this time stamp, in ticks.
    pub until: Option<u64>,
    /// Leave out the recorder's own marks around flushes.
    pub without_marks: bool,
}

impl Filter {
    /// Only these events.
    pub fn events(mut self, events: impl IntoIterator<Item = u16>) -> Filter {
        self.events = Some(events.into_iter().collect());
        self
    }

    /// Only these processors.
    pub fn processors(mut self, processors: impl IntoIterator<Item = u32>) -> Filter {
        self.processors = Some(processors.into_iter().collect());
        self
    }

    /// Only from this time stamp on.
    pub fn from(mut self, ticks: u64) -> Filter {
        self.from = Some(ticks);
        self
    }

    /// Only up to this time stamp.
    pub fn until(mut self, ticks: u64) -> Filter {
        self.until = Some(ticks);
        self
    }

    /// Without the recorder's own marks.
    pub fn without_marks(mut self) -> Filter {
        self.without_marks = true;
        self
    }

    pub(crate) fn has_processor(&self, processor: u32) -> bool {
        self.processors.as_ref().is_none_or(|wanted| wanted.contains(&processor))
    }

    /// Whether this record is wanted.
    pub fn has(&self, record: &Record<'_>) -> bool {
        self.events.as_ref().is_none_or(|wanted| wanted.contains(&record.event))
            && self.from.is_none_or(|from| record.time >= from)
            && self.until.is_none_or(|until| record.time <= until)
            && !(self.without_marks && record.is_dump_mark())
    }

    /// Whether the events of this gap may have been in the wanted time.
    pub(crate) fn has_gap(&self, gap: &Gap) -> bool {
        self.until.is_none_or(|until| gap.after.is_none_or(|after| after <= until))
    }
}
