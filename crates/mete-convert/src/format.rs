//! What a format has to take.

use std::io;

use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH};
use mete_trace::{Account, EventLayout, Gap, ReadError, Record, Trace};

/// What gaps are called where they stand between events.
pub const LOST: &str = "LOST";

/// One event with all that is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// The record.
    pub record: Record<'a>,
    /// Its layout; `None` for the recorder's own marks, and for numbers that the description
    /// does not have.
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

/// A format to convert to. The calls come in the order of the methods; the middle ones any number
/// of times, in the trace's order.
pub trait Format {
    /// Before everything else.
    ///
    /// # Errors
    ///
    /// Whatever the output answers; so do the others.
    fn begin(&mut self, trace: &Trace) -> io::Result<()>;

    /// An event.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn event(&mut self, event: &Event<'_>) -> io::Result<()>;

    /// An event that was not chosen, among those that were: it may tell the name of a thread that others have only the
    /// number of.
    fn overhear(&mut self, _: &Record<'_>) {}

    /// Events that are missing, and the time of the last record before them in CLOCK_MONOTONIC nanoseconds,
    /// if there is one and the trace's clock can be converted.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn lost(&mut self, gap: &Gap, after_ns: Option<u64>) -> io::Result<()>;

    /// A part of the trace that cannot be read.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn unreadable(&mut self, error: &ReadError) -> io::Result<()>;

    /// The end, with what was in it of each processor (NEW-2); of none if the conversion was stopped before.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn finish(&mut self, accounts: &[Account]) -> io::Result<()>;
}
