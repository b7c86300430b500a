//! What has happened on one processor and is not recorded yet, because something earlier may still come.

use std::sync::Arc;

use mete_schema::evaluate::Row;
use mete_trace::{Buffer, Outcome, Producer, switch};

use super::clock::Clock;
use super::points::Points;

/// More is not read before some of it is recorded: it waits in programs' memory, where it is counted if it is lost.
const MOST: usize = 1 << 18;
/// So many events may be missing between records before one of them is taken out of the buffer: serial numbers have 32
/// bits there. More are told as so many.
const MOST_MISSED: u32 = 1 << 31;

/// One processor's queue.
pub struct Queue {
    processor: u32,
    /// In order of time but for what came last.
    entries: Vec<Entry>,
    /// What is recorded where the queue is now.
    is_on: Arc<[bool]>,
    missed: Missed,
}

/// What serial numbers were taken for and nobody has seen yet.
#[derive(Default)]
struct Missed {
    events: u32,
    /// Whether a record has come behind them.
    is_told: bool,
}

struct Entry {
    ticks: u64,
    what: What,
}

/// What can happen.
pub enum What {
    /// A program has logged something.
    Row(Logged),
    /// So many rows are lost.
    Missed(u64),
    /// From here on other events of the schema are recorded.
    Switched(Arc<[bool]>),
    /// An event was switched: its number and its name.
    Mark { event: u16, name: String, on: bool },
}

/// What a program has logged.
pub struct Logged {
    /// The probe.
    pub probe: usize,
    /// What the program gave.
    pub value: u64,
    /// The domain at the other end.
    pub correspondent: u16,
    /// The domain that is charged.
    pub domain: u16,
    /// The program.
    pub process: i32,
}

impl Queue {
    /// An empty one; nothing is recorded of so many events.
    pub fn new(processor: u32, events: usize) -> Queue {
        Queue { processor, entries: Vec::new(), is_on: vec![false; events].into(), missed: Missed::default() }
    }

    /// Whether it should take no more.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= MOST
    }

    /// Whether all is recorded.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Something has happened.
    pub fn push(&mut self, ticks: u64, what: What) {
        self.entries.push(Entry { ticks, what });
    }

    /// Records what has happened before, as far as there is room.
    pub fn record(&mut self, before_ns: u64, clock: &Clock, points: &Points, buffer: Buffer<'_>) {
        // Programs' rows come one program after the other, each in order, which this makes use of.
        self.entries.sort_by_key(|entry| entry.ticks);
        let producer = Producer::new(buffer);
        self.missed.look(buffer);
        let mut count = 0;
        for entry in &self.entries {
            let time_ns = clock.to_ns(entry.ticks);
            if time_ns >= before_ns {
                break;
            }
            if buffer.used() > buffer.capacity() / 2 {
                producer.call_flush();
                break;
            }
            let mut write =
                Write { producer, points, time_ns, processor: self.processor, missed: &mut self.missed };
            write.entry(&entry.what, &mut self.is_on);
            count += 1;
        }
        self.entries.drain(..count);
    }

    /// What there was no room for is lost.
    pub fn give_up(&mut self, buffer: Buffer<'_>) {
        let producer = Producer::new(buffer);
        for entry in self.entries.drain(..) {
            match entry.what {
                What::Row(_) => self.missed.add(producer, 1),
                What::Missed(rows) => self.missed.add(producer, rows),
                What::Switched(_) | What::Mark { .. } => {}
            }
        }
    }
}

impl Missed {
    fn add(&mut self, producer: Producer<'_>, events: u64) {
        let events = events.min((MOST_MISSED - self.events).into()) as u32;
        producer.miss(events);
        *self = Missed { events: self.events + events, is_told: false };
    }

    /// Nothing is left of them where the record behind them was taken out.
    fn look(&mut self, buffer: Buffer<'_>) {
        if self.is_told && buffer.used() == 0 {
            *self = Missed::default();
        }
    }
}

/// Writes the records of one moment.
struct Write<'a> {
    missed: &'a mut Missed,
    producer: Producer<'a>,
    points: &'a Points,
    time_ns: u64,
    processor: u32,
}

impl Write<'_> {
    fn entry(&mut self, what: &What, is_on: &mut Arc<[bool]>) {
        match what {
            What::Row(logged) => self.row(logged, is_on),
            What::Missed(rows) => self.missed.add(self.producer, *rows),
            What::Switched(now) => *is_on = Arc::clone(now),
            What::Mark { event, name, on } => {
                let (number, words) = switch::mark(*event, name, *on);
                self.put(number, &words);
            }
        }
    }

    fn row(&mut self, logged: &Logged, is_on: &[bool]) {
        let row = Row {
            value: logged.value,
            correspondent: logged.correspondent,
            cpu: self.processor,
            tgid: logged.process,
            time: self.time_ns,
            domain: logged.domain,
        };
        let points = self.points;
        points.records(logged.probe, &row, is_on, |event, words| self.put(event, words));
    }

    /// One that finds no room is a loss like any other.
    fn put(&mut self, event: u16, words: &[u64]) {
        match self.producer.record(event, words, || self.time_ns) {
            Outcome::Written | Outcome::WrittenAtMark => self.missed.is_told = true,
            Outcome::Lost => {}
        }
    }
}
