//! Reading in place: how fast it is, and how often it has to begin again (LOG-10).

use std::hint::black_box;
use std::ptr;
use std::time::{Duration, Instant};

use mete_log::clock::UserClock;
use mete_log::{
    Cursor, DomainId, Entries, EventId, FileSpec, Plan, Poll, Record, Region, Shape, Stamp, handler, ring,
};
use mete_measure::Bar;
use mete_measure::interleave::{interleave, quotients};
use mete_measure::machine::Machine;
use mete_measure::processor::{self, Pinned};
use mete_measure::reason::Reason;
use mete_measure::report::Row;
use mete_measure::statistics::median;

use crate::context::Context;
use crate::user::scheduler::{Logging, ROWS, Scheduler};
use crate::user::timed;
use crate::user::writer::{Pace, Writer};

/// The least number of bytes that a repetition goes over, so that it can be timed.
const REPETITION_BYTES: u64 = 1 << 20;
/// Words that the memcpy in pieces copies at once: as many as the reader.
const PIECE_WORDS: usize = 512;
const ROW_BYTES: u64 = 32;

pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    let [l2, l3] = Machine::here().caches;
    // Caches of unknown size count as caches of a usual size.
    let (l2, l3) = (if l2 == 0 { 1 << 20 } else { l2 }, if l3 == 0 { 32 << 20 } else { l3 });
    let sizes = [("in L2", l2 / 8), ("in L3", (l3 / 4).max(l2 * 2)), ("beyond L3", (l3 * 2).min(128 << 20))];
    let mut rows = Vec::new();
    for (place, bytes) in sizes {
        if !context.is_cancelled() {
            rows.extend(bandwidth(context, place, bytes.next_power_of_two()));
        }
    }
    if !context.is_cancelled() {
        rows.push(passes(context));
    }
    rows
}

#[derive(Clone, Copy, PartialEq)]
enum ReadMethod {
    Memcpy,
    MemcpyInPieces,
    Reader,
    Fold,
}

fn bandwidth(context: &mut Context<'_>, place: &str, bytes: u64) -> Vec<Row> {
    const VARIANTS: [ReadMethod; 4] =
        [ReadMethod::Memcpy, ReadMethod::MemcpyInPieces, ReadMethod::Reader, ReadMethod::Fold];
    let name = |what: &str| format!("reader, {place}: {what}");
    let (mut full, _pinned) = match begin(bytes) {
        Ok(begun) => begun,
        Err(reason) => {
            return vec![Row::new(name("reader / memcpy"), "ratio", Err(reason)).bar(Bar::AtLeast(0.8))];
        }
    };
    let what = format!("reader, {place}");
    let rounds = context.rounds(40);
    let samples = interleave(&what, rounds, &VARIANTS, context.progress, |how| full.measure(how));
    let speed = |what: &str, how| {
        let speeds = samples.of(how).map(|costs| costs.iter().map(|ns_per_byte| 1.0 / ns_per_byte).collect());
        Row::new(name(what), "GB/s", speeds)
    };
    let ratio = |over, under| quotients(&samples.of(over)?, &samples.of(under)?);
    let in_pieces = ratio(ReadMethod::MemcpyInPieces, ReadMethod::Reader).ok().and_then(|r| median(&r));
    let in_pieces = in_pieces.map(|ratio| {
        format!(
            "{ratio:.2} of a memcpy that, as the reader does, copies into one small buffer again and again"
        )
    });
    vec![
        speed("memcpy", ReadMethod::Memcpy)
            .note(format!("{} KiB into a buffer of the same size", bytes >> 10)),
        speed("memcpy in pieces", ReadMethod::MemcpyInPieces).note("4 KiB each, into one small buffer"),
        speed("reader", ReadMethod::Reader).note("poll_rows, rows handed out and not looked at"),
        speed("reader, summing", ReadMethod::Fold).note("poll, each row decoded and its counter added up"),
        Row::new(name("reader / memcpy"), "ratio", ratio(ReadMethod::Memcpy, ReadMethod::Reader))
            .bar(Bar::AtLeast(0.8))
            .note(in_pieces.unwrap_or_default()),
    ]
}

fn begin(bytes: u64) -> Result<(Full, Pinned), Reason> {
    Ok((Full::new(bytes)?, Pinned::to(processor::quietest())?))
}

/// A full log file, and room for a copy of it.
struct Full {
    region: Region,
    start: Cursor,
    copy: Vec<u64>,
}

impl Full {
    fn new(bytes: u64) -> Result<Full, Reason> {
        let shape = Shape::new(1, 1, 0, bytes.trailing_zeros() as u8)
            .ok_or_else(|| Reason::new(format!("a log file of {bytes} bytes is not possible")))?;
        let region = Region::create(shape, 1)?;
        let mut plan = Plan::new(shape);
        let event = EventId::new(0);
        let rows = (bytes / ROW_BYTES) as u32;
        let file = plan.file(FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows })?;
        plan.route_event(event, file)?;
        let area = region.area(0);
        plan.apply(area);
        for counter in 0..u64::from(rows) {
            let (domain, correspondent) = (DomainId::new(0), DomainId::new(1));
            handler::log(area, &UserClock, Record { event, domain, correspondent, counter });
        }
        let start = Cursor::from_oldest(area, file, plan.control(file));
        Ok(Full { region, start, copy: vec![1; (bytes / 8) as usize] })
    }

    /// Nanoseconds for a byte.
    fn measure(&mut self, how: ReadMethod) -> Result<f64, Reason> {
        let bytes = self.copy.len() as u64 * 8;
        let times = (REPETITION_BYTES / bytes).max(1);
        let mut seen = 0;
        let mut failure = None;
        let cost = timed(times, |times| {
            for _ in 0..times {
                match self.once(how) {
                    Ok(bytes) => seen += bytes,
                    Err(reason) => failure = Some(reason),
                }
            }
        });
        match failure {
            Some(reason) => Err(reason),
            // `timed` gives the time of a pass; a pass goes over `seen / times` bytes.
            None => Ok(cost * times as f64 / seen as f64),
        }
    }

    /// Goes over the file once. Returns the number of bytes.
    fn once(&mut self, how: ReadMethod) -> Result<u64, Reason> {
        match how {
            ReadMethod::Memcpy => Ok(self.memcpy()),
            ReadMethod::MemcpyInPieces => Ok(self.memcpy_in_pieces()),
            ReadMethod::Reader => {
                let poll = self.start.clone().poll_rows(self.region.area(0), |rows| {
                    black_box(rows.words());
                })?;
                Ok(poll.rows * ROW_BYTES)
            }
            ReadMethod::Fold => {
                let mut sum = 0;
                let poll = self.start.clone().poll_rows(self.region.area(0), |rows| {
                    sum += rows.iter().map(|row| row.counter.unwrap_or(0)).sum::<u64>();
                })?;
                black_box(sum);
                Ok(poll.rows * ROW_BYTES)
            }
        }
    }

    fn memcpy(&mut self) -> u64 {
        let from = self.region.area(0).row_words(0, self.copy.len());
        // SAFETY: both have at least `from.len()` words, and no thread writes to the file any more.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr().cast(), self.copy.as_mut_ptr(), from.len()) };
        black_box(&mut self.copy);
        from.len() as u64 * 8
    }

    fn memcpy_in_pieces(&mut self) -> u64 {
        let mut piece = [0u64; PIECE_WORDS];
        let from = self.region.area(0).row_words(0, self.copy.len());
        for words in from.as_chunks::<PIECE_WORDS>().0 {
            // SAFETY: as in `memcpy`. A chunk has as many words as the piece.
            unsafe { ptr::copy_nonoverlapping(words.as_ptr().cast(), piece.as_mut_ptr(), PIECE_WORDS) };
            black_box(&mut piece);
        }
        from.len() as u64 * 8
    }
}

/// How often the reader goes over a file while a thread writes it at full speed. The reader has no loop that
/// begins again. What can be observed is that it never hands out more rows than the file has, and that the
/// rows read and overwritten add up to the rows written.
fn passes(context: &mut Context<'_>) -> Row {
    const NAME: &str = "reader: passes, writer at full speed";
    let row = |samples| Row::new(NAME, "passes", samples).bar_of_each(Bar::AtMost(1.0));
    context.progress.begin(NAME, 1);
    let duration = Duration::from_millis(if context.options.is_quick { 100 } else { 500 });
    match observe(duration) {
        Ok(seen) if seen.sum.rows + seen.sum.overwritten == seen.written => {
            let note = format!(
                "{} polls; {} rows written = {} read + {} overwritten and counted",
                seen.passes.len(),
                seen.written,
                seen.sum.rows,
                seen.sum.overwritten
            );
            row(Ok(seen.passes)).note(note)
        }
        Ok(seen) => {
            let lost = seen.written.abs_diff(seen.sum.rows + seen.sum.overwritten);
            row(Ok(seen.passes)).note(format!("{lost} rows are not accounted for")).failed()
        }
        Err(reason) => row(Err(reason)),
    }
}

struct ReaderPasses {
    passes: Vec<f64>,
    sum: Poll,
    written: u64,
}

fn observe(duration: Duration) -> Result<ReaderPasses, Reason> {
    let here = processor::quietest();
    let there = processor::other_than(here);
    if here == there {
        return Err(Reason::new("this machine has one processor: no thread can write while the reader runs"));
    }
    let mut scheduler = Scheduler::begin()?;
    let (file, control) = scheduler.replace_files(Logging::Five.file(ROWS))?;
    scheduler.set_file(file)?;
    let _pinned = Pinned::to(here)?;
    let area = scheduler.area(there);
    let mut cursor = Cursor::new(area, file, control);
    let before = ring::written(&area.register(file).index);
    let writer = Writer::begin(there, Pace::FullSpeed)?;
    let (mut passes, mut sum) = (Vec::new(), Poll::default());
    let end = Instant::now() + duration;
    while Instant::now() < end {
        let poll = cursor.poll_rows(area, |rows| {
            black_box(rows.words());
        })?;
        // A poll without rows is a pass, too: the reader has looked at the index.
        passes.push((poll.rows as f64 / f64::from(ROWS)).ceil().max(1.0));
        sum += poll;
    }
    writer.end();
    // After the writer's end: every row that it has written must be accounted for.
    sum += cursor.poll_rows(area, |_| ())?;
    Ok(ReaderPasses { passes, sum, written: ring::written(&area.register(file).index) - before })
}
