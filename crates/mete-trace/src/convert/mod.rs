//! From a trace to something that other programs read (NEW-6): one pass, record by record, so
//! memory does not grow with the trace.

mod csv;
mod json;
mod perl;
mod text;
mod write;

use std::io;

pub use csv::Csv;
pub use json::JsonLines;
pub use perl::Perl;
pub use text::Text;

use crate::completeness::Account;
use crate::description::{Converter as Clock, EventLayout};
use crate::file::ReadError;
use crate::filter::Filter;
use crate::reader::{Gap, Item};
use crate::record::{DUMP_BEGIN, DUMP_FINISH, Record};
use crate::trace::Trace;

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
        match (self.layout, self.record.event) {
            (Some(layout), _) => &layout.name,
            (None, DUMP_BEGIN) => "DUMP_BEGIN",
            (None, DUMP_FINISH) => "DUMP_FINISH",
            (None, _) => "UNKNOWN",
        }
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

    /// Events that are missing.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn lost(&mut self, gap: &Gap) -> io::Result<()>;

    /// A part of the trace that cannot be read.
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn unreadable(&mut self, error: &ReadError) -> io::Result<()>;

    /// The end, with what was in it of each processor (NEW-2).
    ///
    /// # Errors
    ///
    /// See [`Format::begin`].
    fn finish(&mut self, accounts: &[Account]) -> io::Result<()>;
}

/// What a conversion went through.
#[derive(Debug)]
pub struct Converted {
    /// Events that were handed to the format.
    pub events: u64,
    /// What was in the trace of each processor, in the chosen interval.
    pub accounts: Vec<Account>,
    /// Parts that could not be read.
    pub errors: Vec<ReadError>,
}

/// Errors that are kept; more are handed to the format alone.
const MOST_ERRORS: usize = 1000;

/// Converts what the filter chooses.
///
/// # Errors
///
/// Whatever the output answers. Damage in the trace is no error: the format is told, and the rest
/// is converted.
pub fn convert(trace: &Trace, filter: Filter, format: &mut dyn Format) -> io::Result<Converted> {
    let layouts = Layouts::new(trace);
    let clock = trace.description().clock.converter();
    let mut merged = trace.merge(filter);
    let (mut events, mut errors) = (0, Vec::new());
    format.begin(trace)?;
    while let Some(item) = merged.next() {
        match item {
            Ok(Item::Record(record)) => {
                format.event(&layouts.event(record, clock.as_ref()))?;
                events += 1;
            }
            Ok(Item::Lost(gap)) => format.lost(&gap)?,
            Err(error) => {
                format.unreadable(&error)?;
                if errors.len() < MOST_ERRORS {
                    errors.push(error);
                }
            }
        }
    }
    let accounts = merged.accounts();
    format.finish(&accounts)?;
    Ok(Converted { events, accounts, errors })
}

/// Layouts by the events' numbers.
struct Layouts<'a>(Vec<Option<&'a EventLayout>>);

impl<'a> Layouts<'a> {
    fn new(trace: &'a Trace) -> Layouts<'a> {
        let events = &trace.description().description.events;
        let mut all = vec![None; events.iter().map(|event| usize::from(event.id) + 1).max().unwrap_or(0)];
        events.iter().for_each(|event| all[usize::from(event.id)] = Some(event));
        Layouts(all)
    }

    fn event(&self, record: Record<'a>, clock: Option<&Clock>) -> Event<'a> {
        let layout = self.0.get(usize::from(record.event)).copied().flatten();
        Event { record, layout, time_ns: clock.map(|clock| clock.ns(record.time)) }
    }
}
