//! A trace read by the names of its events and fields, for programs that know a schema's names and not its
//! layout.

use std::collections::HashMap;
use std::path::PathBuf;

use mete_log::Ticks;

use crate::description::{Converter, DescriptionFileError};
use crate::{Account, EventLayout, Filter, Item, Record, ThreadName, Trace, Value};

/// Why a trace cannot be read by names.
#[derive(Debug, thiserror::Error)]
pub enum NamedTraceError {
    /// The trace has no description that can be read.
    #[error(transparent)]
    Description(#[from] DescriptionFileError),
    /// Without anchors, the ticks of the trace's clock are no time.
    #[error("the trace does not say how its clock runs")]
    NoClock,
    /// The trace's schema lacks an event.
    #[error("{path} has no event {event}; record with: mete record --schema {schema}", path = directory.display())]
    NoEvent {
        /// The trace.
        directory: PathBuf,
        /// The event.
        event: String,
        /// A schema that has it.
        schema: String,
    },
}

/// A trace that can be read any number of times.
#[derive(Debug)]
pub struct NamedTrace {
    trace: Trace,
    convert: Converter,
}

/// The next item of a trace that is read by names.
pub enum NamedItem<'a> {
    /// An event.
    Event(NamedEvent<'a>),
    /// Events that a processor has lost. What was known of the processor's state is no longer known.
    Lost {
        /// Which processor.
        processor: u32,
    },
}

/// An event of a trace.
pub struct NamedEvent<'a> {
    /// The time of the event by CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The processor on which it occurred.
    pub processor: u32,
    layout: &'a EventLayout,
    bytes: &'a [u8],
}

impl NamedEvent<'_> {
    /// The event's name.
    pub fn name(&self) -> &str {
        &self.layout.name
    }

    fn value(&self, field: &str) -> Option<Value<'_>> {
        self.layout.fields.iter().find(|layout| layout.name == field)?.value(self.bytes)
    }

    /// A field as a number; 0 if the event has no such field. A check of the event by [`NamedTrace::needs`]
    /// comes first.
    pub fn number(&self, field: &str) -> i64 {
        match self.value(field) {
            Some(Value::Unsigned(number) | Value::Address(number)) => number as i64,
            Some(Value::Signed(number)) => number,
            Some(Value::Bool(truth)) => truth.into(),
            _ => 0,
        }
    }

    /// A field as a process id, which fits into an `i32` on every kernel.
    pub fn pid(&self, field: &str) -> i32 {
        self.number(field) as i32
    }

    /// A field as text; empty if the event has no such field.
    pub fn text(&self, field: &str) -> String {
        match self.value(field) {
            Some(Value::Text(text)) => text.into_owned(),
            _ => String::new(),
        }
    }
}

impl NamedTrace {
    /// Opens the trace in a directory.
    ///
    /// # Errors
    ///
    /// If there is no trace, or it does not say how its clock runs.
    pub fn open(directory: impl Into<PathBuf>) -> Result<NamedTrace, NamedTraceError> {
        let trace = Trace::open(directory)?;
        let convert = trace.description().clock.converter().ok_or(NamedTraceError::NoClock)?;
        Ok(NamedTrace { trace, convert })
    }

    /// Whether the trace's schema has these events.
    ///
    /// # Errors
    ///
    /// [`NamedTraceError::NoEvent`] names the first event that is missing, and `schema`, which has it.
    pub fn needs(&self, schema: &str, events: &[&str]) -> Result<(), NamedTraceError> {
        match events.iter().find(|name| !self.has(name)) {
            None => Ok(()),
            Some(missing) => Err(NamedTraceError::NoEvent {
                directory: self.trace.directory().to_owned(),
                event: (*missing).to_owned(),
                schema: schema.to_owned(),
            }),
        }
    }

    fn has(&self, event: &str) -> bool {
        self.trace.description().description.events.iter().any(|layout| layout.name == event)
    }

    /// The threads that lived when recording began and when it ended.
    pub fn threads(&self) -> &[ThreadName] {
        &self.trace.description().machine.threads
    }

    /// The kernel and its release.
    pub fn kernel(&self) -> &str {
        &self.trace.description().machine.kernel
    }

    /// The number of processors that were recorded.
    pub fn processors(&self) -> usize {
        self.trace.description().files.len()
    }

    /// The time from the first event to the last one.
    pub fn duration_ns(&self) -> u64 {
        let (mut first, mut last) = (Ticks::MAX, Ticks::default());
        // The times of a processor without records are not set.
        for account in self.accounts().filter(|account| account.records > 0) {
            (first, last) = (first.min(account.first_time), last.max(account.last_time));
        }
        // Without any record `first` is the latest reading, and the duration is 0.
        self.convert.ns(last).saturating_sub(self.convert.ns(first.min(last)))
    }

    /// Hands out all events and losses in order of time, without the recorder's own marks. A part that cannot
    /// be read counts as lost.
    pub fn each(&self, mut see: impl FnMut(NamedItem<'_>)) {
        // A map, because each record is looked up by its event's number.
        let events = &self.trace.description().description.events;
        let layouts: HashMap<u16, &EventLayout> = events.iter().map(|event| (event.id, event)).collect();
        let mut merged = self.trace.merge(Filter::default().without_marks());
        while let Some(item) = merged.next() {
            match item {
                // Around a switch of what is recorded, events may be missing, which is the same as a loss.
                Ok(Item::Record(record)) if record.switches().is_some() => {
                    see(NamedItem::Lost { processor: record.processor });
                }
                Ok(Item::Record(record)) => {
                    // Records of events that the description does not have cannot be read, and are left out.
                    if let Some(layout) = layouts.get(&record.event) {
                        see(NamedItem::Event(self.seen(&record, layout)));
                    }
                }
                Ok(Item::Lost(gap)) => see(NamedItem::Lost { processor: gap.processor }),
                // A part that cannot be read leaves a gap, which the merge reports in its place.
                Err(_) => {}
            }
        }
    }

    fn seen<'a>(&self, record: &Record<'a>, layout: &'a EventLayout) -> NamedEvent<'a> {
        let time_ns = self.convert.ns(record.time);
        NamedEvent { time_ns, processor: record.processor, layout, bytes: record.bytes }
    }

    /// The size of all files of the trace together.
    ///
    /// # Errors
    ///
    /// The error of the file system.
    pub fn bytes(&self) -> std::io::Result<u64> {
        let mut bytes = 0;
        for entry in std::fs::read_dir(self.trace.directory())? {
            bytes += entry?.metadata()?.len();
        }
        Ok(bytes)
    }

    /// The number of events that are missing.
    pub fn lost(&self) -> u64 {
        self.accounts().map(|account| account.lost).sum()
    }

    fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.trace.description().completeness.iter()
    }
}
