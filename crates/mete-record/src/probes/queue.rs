//! What has happened on one processor and is not recorded yet, because a row with an earlier time stamp may
//! still come.

use std::sync::Arc;

use mete_log::{DomainId, Ticks};
use mete_schema::evaluate::Row;
use mete_trace::{Buffer, Outcome, Producer, switch};

use super::clock::Clock;
use super::points::ProbePoints;

/// A queue with this many entries takes no more. Rows wait in the programs' memory then, where a loss is
/// counted.
const MOST: usize = 1 << 18;
/// The most events that can be reported as missing before a record behind them leaves the buffer: serial
/// numbers have 32 bits there. A larger number is reported as this one.
const MOST_MISSED: u32 = 1 << 31;

/// One processor's queue.
pub struct Queue {
    processor: u32,
    /// In order of time, except for those that came since the last sort.
    entries: Vec<Entry>,
    /// The events that are on at the point in time up to which the queue is recorded.
    is_on: Arc<[bool]>,
    missed: UntoldLoss,
    /// The time of the last record. A program that loses the processor in the middle of a row may finish it
    /// when later rows are recorded already. It is recorded behind them with this time, so that the trace
    /// stays in order.
    recorded_ns: u64,
}

/// Events that serial numbers were taken for, and of which no record has told the reader yet.
#[derive(Default)]
struct UntoldLoss {
    events: u32,
    /// Whether a record has been written behind them.
    is_told: bool,
}

struct Entry {
    ticks: Ticks,
    what: Happening,
}

/// What can happen on a processor.
pub enum Happening {
    /// A program has written a row.
    Row(Logged),
    /// This number of rows is lost.
    RowsMissed(u64),
    /// From here on these events of the schema are recorded.
    Switched(Arc<[bool]>),
    /// An event was switched: its number and its name.
    Mark { event: u16, name: String, on: bool },
}

/// A row of a program.
pub struct Logged {
    /// The probe.
    pub probe: usize,
    /// The value that the program gave.
    pub value: u64,
    /// The domain at the other end.
    pub correspondent: DomainId,
    /// The domain that is charged.
    pub domain: DomainId,
    /// The program.
    pub process: i32,
}

impl Queue {
    /// An empty queue, for a schema with this number of events. None of them is on.
    pub fn new(processor: u32, events: usize) -> Queue {
        let is_on = vec![false; events].into();
        Queue { processor, entries: Vec::new(), is_on, missed: UntoldLoss::default(), recorded_ns: 0 }
    }

    /// Whether it takes no more entries.
    pub fn is_full(&self) -> bool {
        self.entries.len() >= MOST
    }

    /// Whether everything is recorded.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Everything that has happened, in the order in which it was pushed.
    #[cfg(test)]
    pub fn into_entries(self) -> impl Iterator<Item = (Ticks, Happening)> {
        self.entries.into_iter().map(|entry| (entry.ticks, entry.what))
    }

    /// Adds an entry with this time stamp.
    pub fn push(&mut self, ticks: Ticks, what: Happening) {
        self.entries.push(Entry { ticks, what });
    }

    /// Records the entries before this time, as far as there is room.
    pub fn record(&mut self, before_ns: u64, clock: &Clock, points: &ProbePoints, buffer: Buffer<'_>) {
        // The rows of each program are in order already, and a stable sort merges such runs fast.
        self.entries.sort_by_key(|entry| entry.ticks);
        let producer = Producer::new(buffer);
        self.missed.forget_if_read(buffer);
        let mut count = 0;
        for entry in &self.entries {
            let time_ns = clock.to_ns(entry.ticks);
            if time_ns >= before_ns {
                break;
            }
            // The rest waits here, because a record that finds no room in the buffer is lost.
            if buffer.used() > buffer.capacity() / 2 {
                producer.call_flush();
                break;
            }
            let time_ns = self.recorded_ns.max(time_ns);
            self.recorded_ns = time_ns;
            let mut write = EntryWriter {
                producer,
                points,
                time_ns,
                processor: self.processor,
                missed: &mut self.missed,
            };
            write.entry(&entry.what, &mut self.is_on);
            count += 1;
        }
        self.entries.drain(..count);
    }

    /// Counts as lost what there was no room for.
    pub fn give_up(&mut self, buffer: Buffer<'_>) {
        let producer = Producer::new(buffer);
        for entry in self.entries.drain(..) {
            match entry.what {
                Happening::Row(_) => self.missed.add(producer, 1),
                Happening::RowsMissed(rows) => self.missed.add(producer, rows),
                // These stand for no event, so that nothing is missing without them.
                Happening::Switched(_) | Happening::Mark { .. } => {}
            }
        }
    }
}

impl UntoldLoss {
    fn add(&mut self, producer: Producer<'_>, events: u64) {
        let events = events.min((MOST_MISSED - self.events).into()) as u32;
        producer.miss(events);
        *self = UntoldLoss { events: self.events + events, is_told: false };
    }

    /// Begins again at zero when the record behind them has left the buffer.
    fn forget_if_read(&mut self, buffer: Buffer<'_>) {
        if self.is_told && buffer.used() == 0 {
            *self = UntoldLoss::default();
        }
    }
}

/// Writes the records of one entry.
struct EntryWriter<'a> {
    missed: &'a mut UntoldLoss,
    producer: Producer<'a>,
    points: &'a ProbePoints,
    time_ns: u64,
    processor: u32,
}

impl EntryWriter<'_> {
    fn entry(&mut self, what: &Happening, is_on: &mut Arc<[bool]>) {
        match what {
            Happening::Row(logged) => self.row(logged, is_on),
            Happening::RowsMissed(rows) => self.missed.add(self.producer, *rows),
            Happening::Switched(now) => *is_on = Arc::clone(now),
            Happening::Mark { event, name, on } => {
                let (number, words) = switch::mark(*event, name, *on);
                self.put(number, &words);
            }
        }
    }

    fn row(&mut self, logged: &Logged, is_on: &[bool]) {
        let row = Row {
            value: logged.value,
            correspondent: logged.correspondent.get(),
            cpu: self.processor,
            tgid: logged.process,
            time: self.time_ns,
            domain: logged.domain.get(),
        };
        let points = self.points;
        points.records(logged.probe, &row, is_on, |event, words| self.put(event, words));
    }

    /// A record that finds no room is lost, and the buffer counts it.
    fn put(&mut self, event: u16, words: &[u64]) {
        // The trace's clock is the monotonic one, so a tick is one nanosecond.
        match self.producer.record(event, words, || Ticks::new(self.time_ns)) {
            Outcome::Written | Outcome::WrittenAtMark => self.missed.is_told = true,
            Outcome::Lost => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use mete_schema::{Schema, Source, check};
    use mete_trace::{Buffers, Consumer, Memory};

    use super::*;

    fn points() -> ProbePoints {
        let text = "event A { u64 value }\nat probe:a log A(value)";
        let schema = Schema::read(&[Source::new("a.mete", text)]).unwrap();
        ProbePoints::of(&schema, &check(&schema, None).unwrap())
    }

    fn buffers() -> Memory {
        Memory::new(1, 16, 10).unwrap()
    }

    fn row(value: u64) -> Happening {
        let domain = DomainId::default();
        Happening::Row(Logged { probe: 0, value, correspondent: domain, domain, process: 1 })
    }

    /// A queue whose event is on.
    fn queue() -> Queue {
        let mut queue = Queue::new(0, 1);
        queue.push(Ticks::default(), Happening::Switched([true].into()));
        queue
    }

    /// Serial numbers and values.
    fn drain(consumer: &mut Consumer<'_>) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let drained = consumer.drain(|serial, words| {
            found.push((serial, words[2]));
            true
        });
        drained.unwrap();
        found
    }

    #[test]
    fn klog_6_rows_are_recorded_in_order_of_time_and_only_when_no_earlier_one_can_come() {
        let (buffers, points, mut clock, mut queue) = (buffers(), points(), Clock::new(), queue());
        let mut consumer = Consumer::new(buffers.buffer(0));
        let began = mete_log::clock::ticks();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let now_ns = clock.read();
        for (after, value) in [(10, 1), (30, 3), (50, 5), (20, 2), (40, 4)] {
            queue.push(began.saturating_add(after), row(value));
        }
        queue.push(began.saturating_add(45), Happening::RowsMissed(7));
        queue.push(mete_log::clock::ticks().saturating_add(1_000_000), row(6));
        queue.record(now_ns, &clock, &points, buffers.buffer(0));
        assert_eq!(drain(&mut consumer), [(0, 1), (1, 2), (2, 3), (3, 4), (11, 5)]);
        assert!(!queue.is_empty());
        queue.record(u64::MAX, &clock, &points, buffers.buffer(0));
        assert_eq!((drain(&mut consumer), queue.is_empty()), (vec![(12, 6)], true));
    }

    #[test]
    fn klog_6_a_row_that_comes_late_is_recorded_behind_later_ones_and_no_earlier_than_they() {
        let (buffers, points, mut clock, mut queue) = (buffers(), points(), Clock::new(), queue());
        let mut consumer = Consumer::new(buffers.buffer(0));
        let began = mete_log::clock::ticks();
        std::thread::sleep(std::time::Duration::from_millis(2));
        clock.read();
        let mut times = Vec::new();
        for (after, value) in [(1_000_000, 1), (10, 2), (2_000_000, 3)] {
            queue.push(began.saturating_add(after), row(value));
            queue.record(u64::MAX, &clock, &points, buffers.buffer(0));
            let drained = consumer.drain(|serial, words| {
                assert_eq!((serial + 1, words[2]), (value, value));
                times.push(words[1]);
                true
            });
            drained.unwrap();
        }
        assert!(times[0] == times[1] && times[1] < times[2], "{times:?}");
    }

    #[test]
    fn klog_6_rows_wait_where_there_is_no_room_and_are_missing_where_there_never_is() {
        let (buffers, points, clock, mut queue) = (buffers(), points(), Clock::new(), queue());
        (0..5000).for_each(|value| queue.push(Ticks::new(value), row(value)));
        let mut consumer = Consumer::new(buffers.buffer(0));
        let mut values = Vec::new();
        for _ in 0..2 {
            queue.record(u64::MAX, &clock, &points, buffers.buffer(0));
            assert!(!queue.is_empty());
            values.extend(drain(&mut consumer));
        }
        assert!(values.iter().copied().eq((0..values.len() as u64).map(|nth| (nth, nth))));
        queue.give_up(buffers.buffer(0));
        assert_eq!((consumer.occurred(), queue.is_empty()), (5000, true));
    }

    #[test]
    fn klog_6_no_number_of_missing_rows_makes_serial_numbers_ambiguous() {
        let (buffers, points, clock, mut queue) = (buffers(), points(), Clock::new(), queue());
        let mut consumer = Consumer::new(buffers.buffer(0));
        for round in 0..4_u64 {
            for nth in 0..100 {
                let at = Ticks::new(round * 1000 + nth);
                queue.push(at, Happening::RowsMissed(if nth % 2 == 0 { u64::MAX } else { 1 << 30 }));
                queue.push(at, row(nth));
            }
            queue.record(u64::MAX, &clock, &points, buffers.buffer(0));
            let found = drain(&mut consumer);
            let first = (round + 1) * u64::from(MOST_MISSED) + round * 100;
            assert!(found.into_iter().eq((0..100).map(|nth| (first + nth, nth))));
        }
    }
}
