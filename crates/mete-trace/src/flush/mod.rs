//! The flush thread moves one processor's records from its buffer into blocks, and the blocks to where they
//! are kept (KLogger §5.2).
//!
//! ```text
//!   the low-water mark is reached, or half of it when the thread looks by itself,
//!   or half a second has passed, or the recorder asks
//!        │
//!        ▼
//!   DUMP_BEGIN ─▶ copy records into blocks, give their places back ─▶ write the blocks ─▶ DUMP_FINISH
//!                 ▲                                                          │
//!                 └────────── until everything that was there is out ◀───────┘
//! ```
//!
//! The thread copies records out of the buffer before it checks and sums them, and it writes blocks from the
//! copy. KLogger writes from the buffer itself. But a producer can still change the buffer then, and the
//! checksum of the block would not match its content. The thread copies while the records are in the cache.
//! That costs less than writing them.

mod link;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

pub(crate) use link::FlushLink;
pub use link::Report;
use mete_base::processors::thread_time_ns;
use rustix::io::Errno;
use rustix::thread::futex;
pub(crate) use writer::BlockWriter;

use crate::buffer::Buffer;
use crate::consumer::{Consumer, Drained};
use crate::description::{ClockAnchor, ClockSource};
use crate::memory::Buffers;
use crate::pace::Pace;
use crate::producer::{Outcome, Producer};
use crate::record::{DUMP_BEGIN, DUMP_FINISH, Head};
use crate::symbols::AddressCollector;
use crate::thread;

/// How long a record may wait in the buffer before it is written, and then again in an open block: a second
/// together.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// How long the end of a recording waits for producers that are in the middle of a record.
const PATIENCE: Duration = Duration::from_millis(200);

/// One processor's flush thread.
///
/// Its methods get the [`Consumer`] of the buffer at which it works, because the consumer borrows from
/// `buffers`.
pub(crate) struct Flusher<B> {
    pub buffers: Arc<B>,
    /// Hands over the buffers with which to go on.
    pub next: Receiver<Arc<B>>,
    pub processor: u32,
    pub writer: BlockWriter,
    pub clock: ClockSource,
    pub realtime: bool,
    /// Events that are counted when their records are moved.
    pub watched: Vec<u16>,
    /// Collects addresses that may have names.
    pub collector: AddressCollector,
    pub link: Arc<FlushLink>,
    pub progress: FlushProgress,
}

/// How far a flush thread has come, through all of its buffers.
pub(crate) struct FlushProgress {
    /// The serial number at which the current buffer began.
    serial: u64,
    /// The number of events that had occurred when the last flush was over. As long as there are no more, the
    /// buffer holds only the flush's own marks, and there is nothing to flush.
    quiet_serial: u64,
    last_flush: Instant,
}

impl FlushProgress {
    pub fn begin() -> FlushProgress {
        FlushProgress { serial: 0, quiet_serial: 0, last_flush: Instant::now() }
    }
}

impl<B: Buffers> Flusher<B> {
    /// The thread's whole life.
    pub fn run(mut self) {
        self.introduce();
        loop {
            let buffers = Arc::clone(&self.buffers);
            let mut consumer = Consumer::at(self.buffer_in(&buffers), self.progress.serial);
            self.work(&mut consumer);
            let Ok(next) = self.next.try_recv() else { return self.finish(&mut consumer) };
            self.empty(&mut consumer);
            self.progress.serial = consumer.occurred();
            // The new buffer goes on with the old one's serial numbers, so that no gap shows.
            self.buffer_in(&next).restart(self.progress.serial);
            self.buffers = next;
        }
    }

    fn buffer_in<'a>(&self, buffers: &'a B) -> Buffer<'a> {
        buffers.buffer(self.processor as usize)
    }

    /// The processor on which the events in the buffer occur.
    fn place(&self) -> u32 {
        self.buffers.programs_of(self.processor as usize).unwrap_or(self.processor)
    }

    /// Goes to its processor and reads the clocks there.
    fn introduce(&self) {
        let placement = thread::bind(self.place());
        let scheduling = thread::set_priority(self.realtime);
        let anchor = ClockAnchor::now(self.clock, self.place());
        let mut report = self.link.report();
        report.account.processor = self.processor;
        report.account.programs_of = self.buffers.programs_of(self.processor as usize);
        (report.placement, report.scheduling) = (placement, scheduling);
        // The recorder waits for this reading, so everything else is in the report by then.
        report.anchors.push(anchor);
    }

    /// Works at a buffer until recording ends, or goes on in another buffer.
    fn work(&mut self, consumer: &mut Consumer<'_>) {
        let buffer = consumer.buffer();
        let mut pace = Pace::new(buffer.capacity());
        let (mut looked, mut taken) = (Instant::now(), buffer.reserved().words);
        while !self.is_over() {
            // The calls are read before the thread looks: a call that comes after the look ends the sleep at
            // once.
            let calls = buffer.calls().load(Ordering::Acquire);
            // The requests, too: a later request is not answered by a flush that began before it.
            let requests = self.link.requests.load(Ordering::Acquire);
            let asked = requests != self.link.answered.load(Ordering::Relaxed);
            if asked || self.is_due(consumer) {
                self.flush(consumer, asked);
                self.link.answered.store(requests, Ordering::Release);
            }
            let words = buffer.reserved().words;
            let came = u64::from(words.wrapping_sub(taken)) * 8;
            let time = pace.next(came, looked.elapsed(), buffer.used());
            (looked, taken) = (Instant::now(), words);
            sleep(buffer, calls, time);
        }
    }

    /// Whether the work at this buffer is over. The answer is yes once for each exchange.
    fn is_over(&self) -> bool {
        self.link.stop.load(Ordering::Acquire) || self.link.exchange.swap(false, Ordering::AcqRel)
    }

    fn is_due(&self, consumer: &Consumer<'_>) -> bool {
        let buffer = consumer.buffer();
        let waits = consumer.occurred() > self.progress.quiet_serial || !self.writer.is_idle();
        // Half of the mark is enough when the thread looks by itself: at its next look it might be too late.
        let half_full = buffer.used() >= (buffer.mark() / 2).max(1);
        waits && (half_full || self.has_waited())
    }

    /// Whether something may have waited as long as it may, in the buffer or in an open block.
    fn has_waited(&self) -> bool {
        self.progress.last_flush.elapsed() >= LONGEST_WAIT || self.writer.has_waited()
    }

    /// Moves at most the content of one full buffer, so that a flush ends however fast the producers are.
    fn flush(&mut self, consumer: &mut Consumer<'_>, seal: bool) {
        let seal = seal || self.writer.closes_early() && self.has_waited();
        self.put_mark(consumer.buffer(), DUMP_BEGIN);
        let capacity = u64::from(consumer.buffer().capacity());
        let mut moved = 0;
        while moved < capacity {
            let Some(drained) = self.step(consumer) else { break };
            moved += drained.bytes;
            if drained.bytes == 0 || drained.stalled {
                break;
            }
        }
        if seal {
            self.writer.seal();
        }
        self.writer.write();
        self.put_mark(consumer.buffer(), DUMP_FINISH);
        self.progress.quiet_serial = consumer.occurred();
        self.progress.last_flush = Instant::now();
        self.report_flush(consumer);
    }

    /// Writes an event that tells of a flush. A mark that finds no room is a loss like any other: its serial
    /// number is missing.
    fn put_mark(&self, buffer: Buffer<'_>, event: u16) {
        // Gathered events are older than this moment, so a mark would be out of order among them.
        if self.buffers.is_gathered(self.processor as usize) {
            return;
        }
        let (Outcome::Written | Outcome::WrittenAtMark | Outcome::Lost) =
            Producer::new(buffer).record(event, &[], || self.clock.now());
    }

    /// Moves the records of one batch of blocks; `None` while an earlier batch cannot be written.
    fn step(&mut self, consumer: &mut Consumer<'_>) -> Option<Drained> {
        if !self.writer.write() {
            return None;
        }
        match consumer.drain(|serial, record| self.take(serial, record)) {
            Ok(drained) => Some(drained),
            Err(garbled) => {
                self.link.report().garbled = Some(garbled.to_string());
                Some(Drained::default())
            }
        }
    }

    /// Takes one record; false once a batch is full.
    #[inline]
    fn take(&mut self, serial: u64, record: &[u64]) -> bool {
        let is_taken = self.writer.push(serial, record);
        self.collector.look(record);
        // A record that is not taken stays in the buffer and comes again, so it is not counted yet.
        if is_taken && self.watched.contains(&Head::from_word(record[0]).event) {
            self.writer.hold();
            self.link.seen.fetch_add(1, Ordering::Relaxed);
        }
        is_taken
    }

    fn report_flush(&self, consumer: &Consumer<'_>) {
        let pushed = self.writer.pushed();
        let mut report = self.link.report();
        report.flushes += 1;
        report.processor_time_ns = thread_time_ns();
        let account = &mut report.account;
        // Of the events that occurred, those that are neither taken out nor in the buffer are lost.
        account.end_serial = consumer.next_serial();
        account.lost = account.end_serial - pushed;
    }

    /// Writes everything up to the last block, and ends.
    fn finish(&mut self, consumer: &mut Consumer<'_>) {
        self.empty(consumer);
        let occurred = consumer.occurred();
        self.writer.seal_last(occurred);
        self.writer.write();
        self.report_flush(consumer);
        self.writer.close(occurred);
        self.link.report().anchors.push(ClockAnchor::now(self.clock, self.place()));
    }

    /// Empties the buffer for good. Producers should have stopped. The thread waits for a producer that is in
    /// the middle of a record. It gives up a record that is never completed, and everything after that
    /// record.
    fn empty(&mut self, consumer: &mut Consumer<'_>) {
        self.flush(consumer, false);
        let begun = Instant::now();
        while consumer.buffer().used() > 0 {
            match self.step(consumer) {
                None => break,
                Some(drained) if drained.stalled && begun.elapsed() < PATIENCE => thread::pause(),
                Some(drained) if drained.stalled => consumer.abandon(),
                Some(_) => {}
            }
            // If the buffer is still not empty, a producer still records. Then the recording ends here.
            if begun.elapsed() >= 2 * PATIENCE {
                break;
            }
        }
    }
}

/// Sleeps until there is a reason to look at the buffer: a call that `calls` does not count, or the time is
/// over.
fn sleep(buffer: Buffer<'_>, calls: u32, time: Duration) {
    let limit = futex::Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    match futex::wait(buffer.calls(), futex::Flags::empty(), calls, Some(&limit)) {
        // Every way in which this ends is a reason to look: a call, a change, the time, a signal.
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
        // The memory of an eBPF map belongs to no file, and no futex can be in it. No producer calls from
        // there, either.
        Err(_) => std::thread::sleep(time),
    }
}
