//! Gathers the rows of all programs, in order of time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mete_log::clock::ticks;
use mete_trace::{Buffers, Memory};

use super::clock::Clock;
use super::log::Log;
use super::news::News;
use super::points::ProbePoints;
use super::queue::{Happening, Queue};

/// How long a row waits in its queue, in case another program is still writing a row with an earlier time
/// stamp. Writing a row takes some nanoseconds, and an interrupt in the middle of it may take longer.
pub const HELD: Duration = Duration::from_millis(5);
/// How long the end of a recording waits for a slow disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// The logs of all programs, and a queue and a buffer for each processor.
pub struct Gatherer {
    clock: Clock,
    logs: Vec<Log>,
    queues: Vec<Queue>,
    buffers: Arc<Memory>,
}

impl Gatherer {
    /// A gatherer that writes into these buffers, for a schema with this number of events. No event is on.
    pub fn new(buffers: Arc<Memory>, events: usize) -> Gatherer {
        let queues = (0..buffers.processors()).map(|processor| Queue::new(processor as u32, events));
        Gatherer { clock: Clock::new(), logs: Vec::new(), queues: queues.collect(), buffers }
    }

    /// Reads a program's log from now on.
    pub fn add(&mut self, log: Log) {
        self.logs.push(log);
    }

    /// Notes that these programs have ended. Their logs are read once more and let go then.
    pub fn end(&mut self, ended: &[u64]) {
        for log in self.logs.iter_mut().filter(|log| ended.contains(&log.number)) {
            log.has_ended = true;
        }
    }

    /// From now on these events are recorded, of this number of events in the schema.
    pub fn switch(&mut self, events: &[usize], of: usize) {
        let is_on: Arc<[bool]> = (0..of).map(|event| events.contains(&event)).collect();
        for queue in &mut self.queues {
            queue.push(ticks(), Happening::Switched(Arc::clone(&is_on)));
        }
    }

    /// Marks on every processor that an event is switched at this moment.
    pub fn mark(&mut self, event: u16, name: &str, on: bool) {
        for queue in &mut self.queues {
            queue.push(ticks(), Happening::Mark { event, name: name.to_owned(), on });
        }
    }

    /// Reads new rows, and records those before which no earlier one can come any more.
    pub fn pass(&mut self, points: &ProbePoints, news: &News) {
        // The clock first: a row that is not read below is written later than this moment.
        let now_ns = self.clock.read();
        let is_all = self.read(news);
        self.record(now_ns.saturating_sub(HELD.as_nanos() as u64), points);
        // The log of a program that has ended is kept as long as a full queue has left rows in it.
        if is_all {
            self.logs.retain(|log| !log.has_ended);
        }
    }

    /// Reads new rows into the queues; returns whether all were read. They are not where a queue is full.
    fn read(&mut self, news: &News) -> bool {
        let mut is_all = true;
        for (processor, queue) in self.queues.iter_mut().enumerate() {
            if queue.is_full() {
                is_all = false;
            } else {
                self.logs.iter_mut().for_each(|log| log.read(processor, queue));
            }
        }
        let garbled = self.logs.iter().filter(|log| log.is_garbled());
        garbled.for_each(|log| news.tell(garbled_by(&log.label)));
        let forged = self.logs.iter().filter(|log| log.is_forged());
        forged.for_each(|log| news.tell(forged_by(&log.label)));
        is_all
    }

    fn record(&mut self, before_ns: u64, points: &ProbePoints) {
        for (processor, queue) in self.queues.iter_mut().enumerate() {
            queue.record(before_ns, &self.clock, points, self.buffers.buffer(processor));
        }
    }

    /// Records everything that is left, after all probes are off.
    pub fn finish(&mut self, points: &ProbePoints, news: &News) {
        let begun = Instant::now();
        loop {
            let is_all = self.read(news);
            self.clock.read();
            self.record(u64::MAX, points);
            let is_done = is_all && self.queues.iter().all(Queue::is_empty);
            if is_done || begun.elapsed() > PATIENCE {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for (processor, queue) in self.queues.iter_mut().enumerate() {
            queue.give_up(self.buffers.buffer(processor));
        }
    }
}

fn garbled_by(label: &str) -> String {
    format!("{label} has written into its log what no probe writes; what of it can be a row is recorded")
}

fn forged_by(label: &str) -> String {
    format!(
        "{label} has named domains in its log that it may not speak for; its rows of that kind are recorded in no domain"
    )
}
