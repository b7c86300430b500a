//! A trace, read event by event.

use std::collections::HashMap;
use std::path::Path;

use mete_trace::description::Converter;
use mete_trace::{EventLayout, Filter, Item, Record, ThreadName, Trace, Value};

use crate::reason::Reason;
use crate::scratch::Scratch;

/// A trace that can be read any number of times.
pub struct Recorded {
    trace: Trace,
    convert: Converter,
    // The directory must live as long as its files are read.
    _scratch: Option<Scratch>,
}

/// The next item of a trace.
pub enum Next<'a> {
    /// An event.
    Event(SeenEvent<'a>),
    /// Events that a processor has lost. What was known of the processor's state is no longer known.
    Lost {
        /// Which processor.
        processor: u32,
    },
}

/// An event of a trace.
pub struct SeenEvent<'a> {
    /// The time of the event by CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The processor on which it occurred.
    pub processor: u32,
    layout: &'a EventLayout,
    bytes: &'a [u8],
}

impl SeenEvent<'_> {
    /// The event's name.
    pub fn name(&self) -> &str {
        &self.layout.name
    }

    fn value(&self, field: &str) -> Option<Value<'_>> {
        self.layout.fields.iter().find(|layout| layout.name == field)?.value(self.bytes)
    }

    /// A field as a number; 0 if the event has no such field. A check of the event by [`Recorded::needs`] comes first.
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

impl Recorded {
    /// Opens the trace in a directory.
    ///
    /// # Errors
    ///
    /// If there is no trace.
    pub fn open(directory: &Path) -> Result<Recorded, Reason> {
        Recorded::new(directory, None)
    }

    /// Opens a trace in a scratch directory, which lives as long as the result.
    pub(super) fn in_scratch(scratch: Scratch, name: &str) -> Result<Recorded, Reason> {
        Recorded::new(&scratch.path().join(name), Some(scratch))
    }

    fn new(directory: &Path, scratch: Option<Scratch>) -> Result<Recorded, Reason> {
        let trace = Trace::open(directory).map_err(Reason::from_error)?;
        let convert = trace
            .description()
            .clock
            .converter()
            .ok_or_else(|| Reason::new("the trace does not say how its clock runs"))?;
        Ok(Recorded { trace, convert, _scratch: scratch })
    }

    /// Whether the trace's schema has these events.
    ///
    /// # Errors
    ///
    /// If an event is missing. The reason names it, and a schema that has it.
    pub fn needs(&self, schema: &str, events: &[&str]) -> Result<(), Reason> {
        let has = |name: &&&str| self.trace.description().description.events.iter().any(|e| e.name == **name);
        match events.iter().find(|name| !has(name)) {
            None => Ok(()),
            Some(missing) => Err(Reason::new(format!(
                "{} has no event {missing}; record with: mete record --schema {schema}",
                self.trace.directory().display()
            ))),
        }
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
        let (mut first, mut last) = (u64::MAX, 0);
        // The times of a processor without records are not set.
        let accounts = self.trace.description().completeness.iter().filter(|account| account.records > 0);
        for account in accounts {
            (first, last) = (first.min(account.first_time), last.max(account.last_time));
        }
        // Without any record `first` is the greatest number, and the duration is 0.
        self.convert.ns(last).saturating_sub(self.convert.ns(first.min(last)))
    }

    /// Hands out all events and losses in order of time, without the recorder's own marks. A part that cannot be read
    /// counts as lost.
    pub fn each(&self, mut see: impl FnMut(Next<'_>)) {
        // A map, because each record is looked up by its event's number.
        let events = &self.trace.description().description.events;
        let layouts: HashMap<u16, &EventLayout> = events.iter().map(|event| (event.id, event)).collect();
        let mut merged = self.trace.merge(Filter::default().without_marks());
        while let Some(item) = merged.next() {
            match item {
                // Around a switch of what is recorded, events may be missing, which is the same as a loss.
                Ok(Item::Record(record)) if record.switches().is_some() => {
                    see(Next::Lost { processor: record.processor });
                }
                Ok(Item::Record(record)) => {
                    // Records of events that the description does not have cannot be read, and are left out.
                    if let Some(layout) = layouts.get(&record.event) {
                        see(Next::Event(self.seen(&record, layout)));
                    }
                }
                Ok(Item::Lost(gap)) => see(Next::Lost { processor: gap.processor }),
                // A part that cannot be read leaves a gap, which the merge reports in its place.
                Err(_) => {}
            }
        }
    }

    fn seen<'a>(&self, record: &Record<'a>, layout: &'a EventLayout) -> SeenEvent<'a> {
        let time_ns = self.convert.ns(record.time);
        SeenEvent { time_ns, processor: record.processor, layout, bytes: record.bytes }
    }

    /// The size of all files of the trace together.
    ///
    /// # Errors
    ///
    /// The error of the file system.
    pub fn bytes(&self) -> Result<u64, Reason> {
        let mut bytes = 0;
        for entry in std::fs::read_dir(self.trace.directory())? {
            bytes += entry?.metadata()?.len();
        }
        Ok(bytes)
    }

    /// The number of events that are missing.
    pub fn lost(&self) -> u64 {
        self.trace.description().completeness.iter().map(|account| account.lost).sum()
    }
}
