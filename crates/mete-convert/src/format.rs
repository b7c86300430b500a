//! The interface of a format.

use std::io;

use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH};
use mete_trace::{Account, EventLayout, Gap, ReadError, Record, Trace};

/// The name of a gap where it stands between events.
pub const LOST: &str = "LOST";

/// One event with all that is known about it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The record.
    pub record: Record<'a>,
    /// Its layout; `None` for the recorder's own marks, and for numbers that the description does not have.
    pub layout: Option<&'a EventLayout>,
    /// CLOCK_MONOTONIC nanoseconds; `None` if the trace's clock cannot be converted.
    pub time_ns: Option<u64>,
}

impl Event<'_> {
    /// The event's name; `UNKNOWN` if the description has none.
    pub fn name(&self) -> &str {
        self.layout.map_or_else(|| name_without_layout(self.record.event), |layout| &layout.name)
    }
}

/// The name of an event that the description does not have.
pub(crate) fn name_without_layout(event: u16) -> &'static str {
    match event {
        DUMP_BEGIN => "DUMP_BEGIN",
        DUMP_FINISH => "DUMP_FINISH",
        _ => "UNKNOWN",
    }
}

/// A format to convert to. The calls come in the order of the methods. Those between the first and the last
/// come any number of times, in the trace's order.
pub trait Format {
    /// Comes before everything else.
    ///
    /// # Errors
    ///
    /// The output's error; the same holds for the other methods.
    fn begin(&mut self, trace: &Trace) -> io::Result<()>;

    /// Takes an event.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn event(&mut self, event: &Event<'_>) -> io::Result<()>;

    /// Takes an event that was not chosen, from between those that were. It may tell the name of a thread of
    /// which the chosen events have only the number.
    fn overhear(&mut self, _: &Record<'_>) {}

    /// Takes a gap: events that are missing. `after_ns` is the time of the last record before them in
    /// CLOCK_MONOTONIC nanoseconds, if there is such a record and the trace's clock can be converted.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn lost(&mut self, gap: &Gap, after_ns: Option<u64>) -> io::Result<()>;

    /// Takes the error for a part of the trace that cannot be read.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn unreadable(&mut self, error: &ReadError) -> io::Result<()>;

    /// Comes at the end, with what was in the trace of each processor (NEW-2). The list is empty if the
    /// conversion was stopped earlier.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn finish(&mut self, accounts: &[Account]) -> io::Result<()>;
}
