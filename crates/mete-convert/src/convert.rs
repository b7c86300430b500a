//! The pass over a trace.

use std::io;
use std::ops::ControlFlow;

use mete_trace::description::Converter as Clock;
use mete_trace::{Account, EventLayout, Filter, Item, ReadError, Record, Ticks, Trace};

use crate::format::{Event, Format};

/// The result of a conversion.
#[derive(Debug)]
pub struct Converted {
    /// Events that were handed to the format.
    pub events: u64,
    /// What was in the trace, for each processor, in the chosen interval, as far as the conversion went.
    pub accounts: Vec<Account>,
    /// Parts that could not be read: the first thousand.
    pub errors: Vec<ReadError>,
    /// The number of further parts that could not be read. The format was told about them.
    pub more_errors: u64,
    /// Whether the conversion went to the end of the trace.
    pub is_whole: bool,
}

/// How far a conversion has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Blocks of the trace that were read.
    pub blocks: u64,
    /// The number of blocks that will be read at most.
    pub of: u64,
}

/// Errors that are kept. Further errors go to the format only.
const MOST_ERRORS: usize = 1000;
/// The number of steps between two questions whether to go on.
const STRIDE: u32 = 16 << 10;

/// Converts what the filter chooses.
///
/// # Errors
///
/// The output's error. Damage in the trace is no error: the format is told about it, and the rest is
/// converted.
pub fn convert(trace: &Trace, filter: Filter, format: &mut dyn Format) -> io::Result<Converted> {
    convert_while(trace, filter, format, &mut |_| ControlFlow::Continue(()))
}

/// The same, as long as `go_on` says so, which is asked every few thousand events. A conversion that is
/// stopped ends without a statement of what is in the trace and what is not. That is not known then, and it
/// would be wrong to say that the trace has no end.
///
/// # Errors
///
/// Those of [`convert`].
pub fn convert_while(
    trace: &Trace,
    filter: Filter,
    format: &mut dyn Format,
    go_on: &mut dyn FnMut(Position) -> ControlFlow<()>,
) -> io::Result<Converted> {
    let layouts = Layouts::new(trace);
    let clock = trace.description().clock.converter();
    // All events: a format may learn the names of threads from those that are not chosen.
    let mut merged = trace.merge(filter.with_all_events());
    let mut done =
        Converted { events: 0, accounts: Vec::new(), errors: Vec::new(), more_errors: 0, is_whole: true };
    // Counted so that asking `go_on`, which may look at the time or draw progress, costs nothing for each
    // event.
    let mut steps = 0_u32;
    format.begin(trace)?;
    while let Some(item) = merged.next() {
        match item {
            Ok(Item::Record(record)) if !filter.has(&record) => format.overhear(&record),
            Ok(Item::Record(record)) => {
                format.event(&layouts.event(record, clock.as_ref()))?;
                done.events += 1;
            }
            Ok(Item::Lost(gap)) => format.lost(&gap, ns(clock.as_ref(), gap.after))?,
            Err(error) => done.unreadable(error, format)?,
        }
        steps = (steps + 1) % STRIDE;
        let (blocks, of) = if steps == 0 { merged.blocks() } else { continue };
        if go_on(Position { blocks, of }).is_break() {
            done.is_whole = false;
            break;
        }
    }
    done.accounts = merged.accounts();
    // The accounts of a part would look like those of a trace that ends there.
    format.finish(if done.is_whole { &done.accounts } else { &[] })?;
    Ok(done)
}

impl Converted {
    fn unreadable(&mut self, error: ReadError, format: &mut dyn Format) -> io::Result<()> {
        format.unreadable(&error)?;
        if self.errors.len() < MOST_ERRORS {
            self.errors.push(error);
        } else {
            self.more_errors += 1;
        }
        Ok(())
    }
}

fn ns(clock: Option<&Clock>, ticks: Option<Ticks>) -> Option<u64> {
    Some(clock?.ns(ticks?))
}

/// Layouts by the events' numbers.
struct Layouts<'a>(Vec<Option<&'a EventLayout>>);

impl<'a> Layouts<'a> {
    fn new(trace: &'a Trace) -> Layouts<'a> {
        let events = &trace.description().description.events;
        // By number, so that no event needs a search: the table has at most 65536 entries.
        let mut all = vec![None; events.iter().map(|event| usize::from(event.id) + 1).max().unwrap_or(0)];
        events.iter().for_each(|event| all[usize::from(event.id)] = Some(event));
        Layouts(all)
    }

    fn event(&self, record: Record<'a>, clock: Option<&Clock>) -> Event<'a> {
        let layout = self.0.get(usize::from(record.event)).copied().flatten();
        Event { record, layout, time_ns: clock.map(|clock| clock.ns(record.time)) }
    }
}
