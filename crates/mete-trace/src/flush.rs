//! The flush thread: moves one processor's records from its buffer into blocks and these to where
//! they are kept (KLogger §5.2).
//!
//! ```text
//!   low-water mark, or half of it at a look of its own, or half a second passed, or a request
//!        │
//!        ▼
//!   DUMP_BEGIN ─▶ copy records into blocks, give their places back ─▶ write the blocks ─▶ DUMP_FINISH
//!                 ▲                                                          │
//!                 └────────────── until all that was there is out ◀──────────┘
//! ```
//!
//! Records are copied out of the buffer before they are checked and summed, and blocks are
//! written from the copy. KLogger writes from the buffer itself; but a block whose content somebody
//! can still change carries a checksum of something else. The copy is made while the records are
//! in the cache and costs less than writing them does.

use std::io;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::futex;

use crate::block::{Block, Builder};
use crate::buffer::Buffer;
use crate::completeness::Account;
use crate::consumer::{Consumer, Drained};
use crate::description::{ClockAnchor, ClockSource};
use crate::memory::Buffers;
use crate::pace::Pace;
use crate::producer::{Outcome, Producer};
use crate::record::{DUMP_BEGIN, DUMP_FINISH, Head};
use crate::sink::Sink;
use crate::symbols::Collector;
use crate::thread;

/// Blocks that are written by one system call.
const BATCH: usize = 16;
/// How long a record may wait in the buffer, and then again in an open block, before it is written: a second together.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// How long the end of a recording waits for producers that are in the middle of a record.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a flush thread and its recorder tell each other.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub stop: AtomicBool,
    /// Whether other buffers wait to be gone on with.
    pub exchange: AtomicBool,
    /// Counts requests to write everything; the thread answers by the same number.
    pub requests: AtomicU64,
    pub answered: AtomicU64,
    /// Records of watched events that came by.
    pub seen: AtomicU64,
    pub report: Mutex<Report>,
}

impl Shared {
    /// No code that holds the lock can leave the report half changed.
    pub fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a flush thread has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What is written, and what was lost so far.
    pub account: Account,
    /// Bytes of blocks written.
    pub bytes: u64,
    /// Blocks written.
    pub blocks: u64,
    /// Flushes.
    pub flushes: u64,
    /// Processor time that the thread has used, in nanoseconds.
    pub processor_time_ns: u64,
    /// Why what was last tried to write is not written. The thread goes on trying.
    pub write_error: Option<String>,
    /// What was wrong in the buffer, last.
    pub garbled: Option<String>,
    pub(crate) placement: String,
    pub(crate) scheduling: String,
    pub(crate) anchors: Vec<ClockAnchor>,
}

/// One processor's flush thread before it runs.
pub(crate) struct Flusher<B> {
    pub buffers: Arc<B>,
    /// Those to go on with.
    pub next: Receiver<Arc<B>>,
    pub processor: u32,
    pub builder: Builder,
    pub sink: Box<dyn Sink>,
    pub clock: ClockSource,
    pub realtime: bool,
    /// Events that are counted as they come by.
    pub watched: Vec<u16>,
    /// Collects addresses that may have names.
    pub collector: Collector,
    /// Whether a block is closed when it has waited long, full or not: what is in a file outlives
    /// the recorder. In memory it does not, and small blocks would push out large ones.
    pub closes_early: bool,
    pub shared: Arc<Shared>,
}

impl<B: Buffers> Flusher<B> {
    /// The thread's whole life.
    pub fn run(self) {
        self.introduce();
        let (place, is_gathered) = (self.place(), self.buffers.is_gathered(self.processor as usize));
        let Flusher { builder, sink, clock, shared, processor, closes_early, watched, collector, .. } = self;
        let pending = Vec::new();
        let report = Arc::clone(&shared);
        let writer = Writer { builder, sink, pending, shared: report, opened: None, closes_early };
        let last_flush = Instant::now();
        let mut task = Task {
            writer,
            shared,
            watched,
            collector,
            clock,
            is_gathered,
            serial: 0,
            quiet_serial: 0,
            last_flush,
        };
        let mut buffers = self.buffers;
        loop {
            let mut worker = task.at(buffers.buffer(processor as usize));
            worker.work();
            let Ok(next) = self.next.try_recv() else {
                worker.finish();
                return worker.task.shared.report().anchors.push(ClockAnchor::now(clock, place));
            };
            task = worker.leave();
            next.buffer(processor as usize).restart(task.serial);
            buffers = next;
        }
    }

    /// The processor that the events happen on.
    fn place(&self) -> u32 {
        self.buffers.programs_of(self.processor as usize).unwrap_or(self.processor)
    }

    /// Goes to its processor and reads the clocks there. The recorder waits for that reading, so all
    /// else is said by then.
    fn introduce(&self) {
        let placement = thread::bind(self.place());
        let scheduling = thread::set_priority(self.realtime);
        let anchor = ClockAnchor::now(self.clock, self.place());
        let mut report = self.shared.report();
        report.account.processor = self.processor;
        report.account.programs_of = self.buffers.programs_of(self.processor as usize);
        (report.placement, report.scheduling) = (placement, scheduling);
        report.anchors.push(anchor);
    }
}

/// Writes the events that tell of flushes.
struct Marks<'a> {
    producer: Producer<'a>,
    clock: ClockSource,
    /// Where events are gathered.
    are_out_of_order: bool,
}

impl Marks<'_> {
    /// A mark that finds no room is a loss like any other: its serial number is missing.
    fn put(&self, event: u16) {
        if self.are_out_of_order {
            return;
        }
        let (Outcome::Written | Outcome::WrittenAtMark | Outcome::Lost) =
            self.producer.record(event, &[], || self.clock.now());
    }
}

/// What a flush thread has in hand, whatever buffer it works at.
struct Task {
    writer: Writer,
    shared: Arc<Shared>,
    watched: Vec<u16>,
    collector: Collector,
    clock: ClockSource,
    is_gathered: bool,
    /// The serial number at which a buffer begins.
    serial: u64,
    /// Events that had occurred when the last flush was over: as long as there are no more, there
    /// is nothing but its own marks to flush.
    quiet_serial: u64,
    last_flush: Instant,
}

impl Task {
    fn at(self, buffer: Buffer<'_>) -> Worker<'_> {
        let (clock, are_out_of_order) = (self.clock, self.is_gathered);
        let marks = Marks { producer: Producer::new(buffer), clock, are_out_of_order };
        Worker { consumer: Consumer::at(buffer, self.serial), marks, task: self }
    }
}

/// The thread at a buffer.
struct Worker<'a> {
    consumer: Consumer<'a>,
    marks: Marks<'a>,
    task: Task,
}

impl Worker<'_> {
    /// Until recording ends, or goes on in another buffer.
    fn work(&mut self) {
        let buffer = self.consumer.buffer();
        let mut pace = Pace::new(buffer.capacity());
        let (mut looked, mut taken) = (Instant::now(), buffer.reserved().words);
        let shared = Arc::clone(&self.task.shared);
        let is_over = || shared.stop.load(Ordering::Acquire) || shared.exchange.swap(false, Ordering::AcqRel);
        while !is_over() {
            // Read before the look: a call that comes after it ends the sleep at once.
            let calls = buffer.calls().load(Ordering::Acquire);
            let requests = shared.requests.load(Ordering::Acquire);
            let asked = requests != shared.answered.load(Ordering::Relaxed);
            if asked || self.is_due() {
                self.flush(asked);
                shared.answered.store(requests, Ordering::Release);
            }
            let words = buffer.reserved().words;
            let came = u64::from(words.wrapping_sub(taken)) * 8;
            let sleep = pace.next(came, looked.elapsed(), buffer.used());
            (looked, taken) = (Instant::now(), words);
            self.sleep(calls, sleep);
        }
    }

    /// Half of the mark is enough at a look of its own: at the next one it might be too late.
    fn is_due(&self) -> bool {
        let buffer = self.consumer.buffer();
        let waits = self.consumer.occurred() > self.task.quiet_serial || !self.task.writer.is_idle();
        let half_full = buffer.used() >= (buffer.mark() / 2).max(1);
        waits && (half_full || self.has_waited())
    }

    /// Whether something may wait in the buffer or in an open block for as long as it may.
    fn has_waited(&self) -> bool {
        self.task.last_flush.elapsed() >= LONGEST_WAIT || self.task.writer.has_waited()
    }

    /// At most one buffer's worth, so that it ends however fast producers are.
    fn flush(&mut self, seal: bool) {
        let seal = seal || self.task.writer.closes_early && self.has_waited();
        self.marks.put(DUMP_BEGIN);
        let capacity = u64::from(self.consumer.buffer().capacity());
        let mut moved = 0;
        while moved < capacity {
            let Some(drained) = self.step() else { break };
            moved += drained.bytes;
            if drained.bytes == 0 || drained.stalled {
                break;
            }
        }
        if seal {
            self.task.writer.seal();
        }
        self.task.writer.write();
        self.marks.put(DUMP_FINISH);
        self.task.quiet_serial = self.consumer.occurred();
        self.task.last_flush = Instant::now();
        self.report();
    }

    /// Moves what one batch of blocks holds; `None` while an earlier one cannot be written.
    fn step(&mut self) -> Option<Drained> {
        if !self.task.writer.write() {
            return None;
        }
        let Worker { consumer, task: Task { writer, watched, collector, shared, .. }, .. } = self;
        let push = |serial, record: &[u64]| {
            let is_taken = writer.push(serial, record);
            collector.look(record);
            if is_taken && watched.contains(&Head::from_word(record[0]).event) {
                writer.sink.hold();
                shared.seen.fetch_add(1, Ordering::Relaxed);
            }
            is_taken
        };
        match consumer.drain(push) {
            Ok(drained) => Some(drained),
            Err(garbled) => {
                self.task.shared.report().garbled = Some(garbled.to_string());
                Some(Drained::default())
            }
        }
    }

    fn report(&self) {
        let pushed = self.task.writer.pushed();
        let mut report = self.task.shared.report();
        report.flushes += 1;
        report.processor_time_ns = thread::processor_time_ns();
        let account = &mut report.account;
        // Of what occurred, all that is neither taken out nor in the buffer is lost.
        account.end_serial = self.consumer.next_serial();
        account.lost = account.end_serial - pushed;
    }

    fn sleep(&self, calls: u32, time: Duration) {
        let limit = futex::Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        match futex::wait(self.consumer.buffer().calls(), futex::Flags::empty(), calls, Some(&limit)) {
            // Every way in which this ends is a reason to look: a call, a change, the time, a signal.
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
            // The memory of an eBPF map is no file's, and no futex can be in it. Nobody calls from there either.
            Err(_) => std::thread::sleep(time),
        }
    }

    /// The last block.
    fn finish(&mut self) {
        self.empty();
        let occurred = self.consumer.occurred();
        self.task.writer.seal_last(occurred);
        self.task.writer.write();
        self.report();
        self.task.writer.close(occurred);
    }

    /// Leaves an empty buffer, to go on in another one.
    fn leave(mut self) -> Task {
        self.empty();
        Task { serial: self.consumer.occurred(), ..self.task }
    }

    /// Empties the buffer for good. Producers should have stopped; one that is in the middle of a
    /// record is waited for, one that never ends is given up, and what lies behind it with it.
    fn empty(&mut self) {
        self.flush(false);
        let begun = Instant::now();
        while self.consumer.buffer().used() > 0 {
            match self.step() {
                None => break,
                Some(drained) if drained.stalled && begun.elapsed() < PATIENCE => thread::pause(),
                Some(drained) if drained.stalled => self.consumer.abandon(),
                Some(_) => {}
            }
            // Somebody still records; the end is wherever we are.
            if begun.elapsed() >= 2 * PATIENCE {
                break;
            }
        }
    }
}

/// Fills blocks and writes them.
struct Writer {
    builder: Builder,
    sink: Box<dyn Sink>,
    /// Closed blocks that are not written yet.
    pending: Vec<Arc<Block>>,
    shared: Arc<Shared>,
    /// When the first record came into the open block.
    opened: Option<Instant>,
    closes_early: bool,
}

impl Writer {
    /// Takes a record; false once a batch is full.
    fn push(&mut self, serial: u64, record: &[u64]) -> bool {
        if self.builder.push(serial, record) {
            return true;
        }
        if self.pending.len() + 1 >= BATCH {
            return false;
        }
        self.seal();
        self.builder.push(serial, record)
    }

    fn seal(&mut self) {
        if !self.builder.is_empty() {
            self.pending.push(Arc::new(self.builder.seal()));
            self.opened = None;
        }
    }

    fn seal_last(&mut self, occurred: u64) {
        self.pending.push(Arc::new(self.builder.seal_last(occurred)));
    }

    /// Writes what is closed; false if that fails. It is kept, and tried again the next time.
    fn write(&mut self) -> bool {
        if self.builder.is_full() {
            self.seal();
        }
        if self.opened.is_none() && !self.builder.is_empty() {
            self.opened = Some(Instant::now());
        }
        let taken = match self.sink.take(&self.pending) {
            Ok(()) => self.pending.len(),
            Err(error) => self.write_singly(&error),
        };
        self.note(taken);
        self.pending.drain(..taken);
        self.pending.is_empty()
    }

    /// As many as there is room for, where there is none for all of them.
    fn write_singly(&mut self, error: &io::Error) -> usize {
        let refused = self.pending.iter().position(|block| self.sink.take(slice::from_ref(block)).is_err());
        refused
            .inspect(|_| self.shared.report().write_error = Some(error.to_string()))
            .unwrap_or(self.pending.len())
    }

    /// So many of the blocks that wait are written.
    fn note(&self, taken: usize) {
        let mut report = self.shared.report();
        if taken == self.pending.len() {
            report.write_error = None;
        }
        for Block { header, bytes } in self.pending[..taken].iter().map(|block| &**block) {
            let account = &mut report.account;
            account.first_time = match (account.records, header.records) {
                (_, 0) => account.first_time,
                (0, _) => header.first_time,
                _ => account.first_time.min(header.first_time),
            };
            account.records += u64::from(header.records);
            account.last_time = header.last_time;
            account.ended = header.is_last();
            report.bytes += bytes.len() as u64;
            report.blocks += 1;
        }
    }

    /// Whether nothing waits to be written before more comes.
    fn is_idle(&self) -> bool {
        self.pending.is_empty() && (self.builder.is_empty() || !self.closes_early)
    }

    fn has_waited(&self) -> bool {
        self.closes_early && self.opened.is_some_and(|opened| opened.elapsed() >= LONGEST_WAIT)
    }

    /// Records that were pushed, written or not.
    fn pushed(&self) -> u64 {
        let pending: u64 = self.pending.iter().map(|block| u64::from(block.header.records)).sum();
        self.shared.report().account.records + pending + u64::from(self.builder.records())
    }

    /// The last word: what could not be written is lost.
    fn close(&self, occurred: u64) {
        let account = &mut self.shared.report().account;
        account.end_serial = occurred;
        account.unwritten = self.pending.iter().map(|block| u64::from(block.header.records)).sum();
        account.lost = occurred - account.records;
    }
}
