//! Recording: from buffers into a trace directory, or into memory until a dump is asked for.
//!
//! A recorder owns one flush thread for each buffer, and the trace's description:
//!
//! ```text
//!   start ─▶ description, flush threads, marks of what is off, second reading of the clocks
//!     │
//!     ├── flush, exchange, dump ── a request to every flush thread, and its answer
//!     ▼
//!   stop  ─▶ flush threads empty their buffers and end, last description
//! ```

mod describe;
mod dump;
mod mark;
mod options;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mete_log::Ticks;
pub use options::{Keep, Options};

use crate::block::{self, Builder, RecordingId};
use crate::completeness::Account;
use crate::description::{Description, FILE_NAME, FORMER_FILE_NAME, TraceDescription, file_name};
use crate::directory::{self, Directory};
pub use crate::error::RecordError;
use crate::flush::{BlockWriter, FlushLink, FlushProgress, Flusher, Report};
use crate::memory::Buffers;
use crate::producer::Producer;
use crate::sink::{FileSink, Flight, Sink};
use crate::symbols::{AddressCollector, Addresses};
use crate::thread;

/// A running recording. If it is dropped without [`Recorder::stop`], it ends its threads and keeps what they
/// wrote. The description then says that the recording was not finished.
#[derive(Debug)]
pub struct Recorder<B: Buffers> {
    buffers: Arc<B>,
    options: Options,
    flights: Vec<Flight>,
    threads: Vec<FlushHandle<B>>,
    trace: TraceDescription,
    addresses: Arc<Addresses>,
    /// Where records go as they come; `None` for a flight recorder.
    directory: Option<Directory>,
    /// When the recorder last looked whether the kernel has left out programs.
    looked: Ticks,
}

/// The recorder's hold on one flush thread.
#[derive(Debug)]
struct FlushHandle<B> {
    link: Arc<FlushLink>,
    /// Hands other buffers to the thread.
    next: Sender<Arc<B>>,
    /// `None` once the thread has ended.
    thread: Option<JoinHandle<()>>,
}

/// How long a flush thread may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// The time between the first two readings of the clocks. It determines the accuracy of the clock's rate in a
/// trace whose recorder was killed: about one part in ten thousand.
const CALIBRATION: Duration = Duration::from_millis(20);

impl<B: Buffers> Recorder<B> {
    /// Starts a flush thread for each buffer and writes the first description.
    ///
    /// # Errors
    ///
    /// [`RecordError`]. Nothing runs then, and nothing is left on disk.
    pub fn start(
        buffers: Arc<B>,
        description: Description,
        options: Options,
    ) -> Result<Recorder<B>, RecordError> {
        description.check()?;
        if !block::is_sound_block_size(options.block_bytes) {
            return Err(RecordError::BlockSize(options.block_bytes));
        }
        let id = new_recording()?;
        let trace = describe::first(&*buffers, description, &options, id);
        let mut recorder = Recorder {
            buffers,
            looked: options.clock.now(),
            options,
            flights: Vec::new(),
            threads: Vec::new(),
            trace,
            addresses: Arc::default(),
            directory: None,
        };
        if let Keep::Directory(path) = &recorder.options.keep {
            recorder.directory = Some(directory::make(path, recorder.options.former)?);
        }
        match recorder.begin(id) {
            Ok(()) => Ok(recorder),
            Err(error) => {
                recorder.discard();
                Err(error)
            }
        }
    }

    fn begin(&mut self, id: RecordingId) -> Result<(), RecordError> {
        // The description comes before the first block: without it, no block can be read.
        self.anchor();
        self.save_description()?;
        for processor in 0..self.buffers.processors() as u32 {
            self.spawn(processor, id)?;
        }
        self.mark_off_at_first();
        self.calibrate();
        self.save_description()
    }

    fn spawn(&mut self, processor: u32, id: RecordingId) -> Result<(), RecordError> {
        let link = Arc::new(FlushLink::default());
        let (next, exchanged) = channel();
        let builder = Builder::new(id, processor, self.options.block_bytes);
        let sink = self.sink(processor)?;
        let flusher = Flusher {
            buffers: Arc::clone(&self.buffers),
            next: exchanged,
            processor,
            writer: BlockWriter::new(builder, sink, Arc::clone(&link), self.options.keeps_all()),
            clock: self.options.clock,
            realtime: self.options.realtime,
            watched: self.options.watched.clone(),
            collector: AddressCollector::new(&self.trace.description, Arc::clone(&self.addresses)),
            link: Arc::clone(&link),
            progress: FlushProgress::begin(),
        };
        let thread = std::thread::Builder::new().name(format!("mete-flush-{processor}"));
        let thread = thread
            .spawn(move || flusher.run())
            .map_err(|source| RecordError::System { what: "start a flush thread", source })?;
        self.threads.push(FlushHandle { link, next, thread: Some(thread) });
        Ok(())
    }

    /// Where one processor's blocks go.
    fn sink(&mut self, processor: u32) -> Result<Box<dyn Sink>, RecordError> {
        match (&self.directory, &self.options.keep) {
            (Some(directory), _) => {
                let name = file_name(processor);
                let sink = FileSink::create_in(&directory.folder, &name);
                let path = directory.path.join(name);
                Ok(Box::new(sink.map_err(|source| RecordError::Create { what: "create", path, source })?))
            }
            (None, Keep::Directory(path)) => Err(RecordError::NotDirectory(path.clone())),
            (None, Keep::Newest(bytes)) => {
                let each = bytes / self.buffers.processors() as u64;
                // All flights share one hold: a watched event on one processor holds the blocks of all.
                let hold = self.flights.first().map(|flight| flight.shared_hold()).unwrap_or_default();
                let flight = Flight::new(each, self.options.block_bytes, hold);
                self.flights.push(flight.clone());
                Ok(Box::new(flight))
            }
        }
    }

    /// Waits until all threads have read their clocks, and reads them once more a little later.
    fn calibrate(&mut self) {
        let begun = Instant::now();
        while !self.have_read_clocks() && begun.elapsed() < ANSWER {
            thread::pause();
        }
        std::thread::sleep(CALIBRATION.saturating_sub(begun.elapsed()));
        self.anchor();
    }

    fn have_read_clocks(&self) -> bool {
        self.threads.iter().all(|thread| !thread.link.report().anchors.is_empty())
    }

    /// What each flush thread has done so far.
    pub fn reports(&self) -> Vec<Report> {
        self.threads.iter().map(|thread| thread.link.report().clone()).collect()
    }

    /// What is in the trace and what is not, so far, for each buffer.
    pub fn accounts(&self) -> Vec<Account> {
        self.threads.iter().map(|thread| thread.link.report().account).collect()
    }

    /// How many records of [watched](Options::watched) events have been moved so far.
    pub fn seen(&self) -> u64 {
        self.threads.iter().map(|thread| thread.link.seen.load(Ordering::Relaxed)).sum()
    }

    /// Changes the low-water mark: flushes are due when less than `percent` of a buffer is free (KLogger
    /// §4.3).
    pub fn set_low_water(&self, percent: u8) {
        (0..self.buffers.processors()).for_each(|nth| self.buffers.buffer(nth).set_low_water(percent));
    }

    /// Writes everything that was recorded before the call, even if it is little.
    ///
    /// # Errors
    ///
    /// [`RecordError::NoAnswer`] if a thread does not return from its disk, [`RecordError::Write`] if its
    /// disk refuses, as a full one does.
    pub fn flush(&self) -> Result<(), RecordError> {
        self.await_all(&self.ask_all())
    }

    /// Goes on with other buffers, one for one. The content of the old ones is written first, and serial
    /// numbers go on.
    ///
    /// No producer may write into an old or a new buffer during the call. If one does, its events are not in
    /// the trace, and not known to be lost. A buffer that is the same as before is left alone.
    ///
    /// # Errors
    ///
    /// As [`Recorder::flush`]. The new buffers are in use even then.
    pub fn exchange(&mut self, buffers: Arc<B>) -> Result<(), RecordError> {
        for (nth, thread) in self.threads.iter().enumerate().take(buffers.processors()) {
            if !buffers.buffer(nth).is_same(&self.buffers.buffer(nth))
                && thread.next.send(Arc::clone(&buffers)).is_ok()
            {
                thread.link.exchange.store(true, Ordering::Release);
            }
        }
        // Before `self.buffers` is replaced: the threads sleep on words in the old buffers.
        let asked = self.ask_all();
        self.buffers = buffers;
        self.await_all(&asked)
    }

    /// Asks all threads to write everything. Returns the numbers that the threads must answer.
    fn ask_all(&self) -> Vec<u64> {
        let links = self.threads.iter().map(|thread| &thread.link);
        let asked = links.map(|link| link.requests.fetch_add(1, Ordering::AcqRel) + 1).collect();
        self.call_all();
        asked
    }

    fn await_all(&self, asked: &[u64]) -> Result<(), RecordError> {
        let begun = Instant::now();
        let mut asked = asked.iter().enumerate();
        asked.try_for_each(|(processor, number)| self.await_answer(processor, *number, begun))
    }

    fn await_answer(&self, processor: usize, number: u64, begun: Instant) -> Result<(), RecordError> {
        let link = &self.threads[processor].link;
        // Acquire: with the answer, the report of that flush is visible.
        while link.answered.load(Ordering::Acquire) < number {
            if begun.elapsed() > ANSWER {
                return Err(RecordError::NoAnswer { processor, seconds: ANSWER.as_secs() });
            }
            thread::pause();
        }
        let refused = link.report().write_error.clone();
        refused.map_or(Ok(()), |why| Err(RecordError::Write { processor, why }))
    }

    /// Stops the flush threads after they have emptied their buffers. Returns what each of them has written
    /// and what not. This is known also if [`Recorder::stop`] cannot write the last description afterwards.
    pub fn settle(&mut self) -> Vec<Account> {
        self.end_threads();
        self.accounts()
    }

    /// Removes a trace that gives way to this one: the recording has begun for certain. Until this is called,
    /// or until the recording is stopped, [`Recorder::discard`] puts the old trace back.
    pub fn remove_former(&mut self) {
        self.directory.iter_mut().for_each(Directory::remove_former);
    }

    /// Ends the recording and removes its trace, and the directories that were made for it. The trace of
    /// something that never ran would only be in the way of the next one.
    pub fn discard(mut self) {
        self.end_threads();
        self.directory.iter().for_each(|directory| self.remove(directory));
    }

    /// Removes an unfinished trace: it is of no use, and it may occupy exactly the space that is missing.
    /// What cannot be removed stays, because the reason why there is no trace is the more important error.
    fn remove(&self, directory: &Directory) {
        let blocks = self.trace.files.iter().map(|file| file.name.as_str());
        directory.remove(blocks.chain([FILE_NAME, FORMER_FILE_NAME]));
    }

    /// Stops the flush threads after they have emptied their buffers, and writes the last description.
    ///
    /// Producers should have stopped before. What they record later is not in the trace, and not known to be
    /// lost. What could not be written is `unwritten` in its account.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if the description cannot be written. The threads have ended then, too.
    pub fn stop(mut self) -> Result<TraceDescription, RecordError> {
        self.end_threads();
        self.anchor();
        self.look_at_addresses();
        self.update(true);
        self.write_description()?;
        self.remove_former();
        Ok(self.trace.clone())
    }

    fn end_threads(&mut self) {
        if self.threads.iter().all(|handle| handle.thread.is_none()) {
            return;
        }
        // While the flush threads still live: their names belong into the trace, too.
        self.look_at_threads();
        self.threads.iter().for_each(|thread| thread.link.stop.store(true, Ordering::Release));
        self.call_all();
        for handle in &mut self.threads {
            // A flush thread does not panic. If one did, its report tells how far it came.
            let _ = handle.thread.take().map(JoinHandle::join);
        }
    }

    /// Wakes all flush threads.
    fn call_all(&self) {
        for processor in 0..self.threads.len() {
            Producer::new(self.buffers.buffer(processor)).call_flush();
        }
    }
}

impl<B: Buffers> Drop for Recorder<B> {
    fn drop(&mut self) {
        self.end_threads();
    }
}

fn new_recording() -> Result<RecordingId, RecordError> {
    use std::io::Read;
    let mut id = RecordingId::default();
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut id));
    read.map_err(|source| RecordError::System { what: "read /dev/urandom", source })?;
    Ok(id)
}
