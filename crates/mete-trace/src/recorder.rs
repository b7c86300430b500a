//! Recording: from buffers into a trace directory, or into memory until somebody asks for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::block::{self, Builder, RecordingId};
use crate::completeness::Account;
use crate::description::{
    Circumstances, Clock, ClockAnchor, ClockSource, Description, DescriptionError, DescriptionFileError,
    EventLayout, FILE_NAME, FORMAT, FORMER_FILE_NAME, FlushThread, Machine, TraceDescription, TraceFile,
    VERSION, file_name, recording_text,
};
use crate::directory::{self, Directory, FormerTrace};
use crate::flush::{Flusher, Report, Shared};
use crate::memory::Buffers;
use crate::producer::Producer;
use crate::sink::{FileSink, Flight, Sink};
use crate::switch::Switches;
use crate::symbols::{Addresses, Collector};
use crate::{names, thread};

/// How a recording is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where records go.
    pub keep: Keep,
    /// What becomes of a trace that is where this one is to be.
    pub former: FormerTrace,
    /// Bytes of a block: a multiple of 4096, 8192 to 16 Mi.
    pub block_bytes: u32,
    /// The clock that producers stamp records with.
    pub clock: ClockSource,
    /// The low-water mark that the buffers were made with, for the description.
    pub low_water_percent: u8,
    /// Whether flush threads take a real-time priority if they may (KLogger §5.2).
    pub realtime: bool,
    /// Names of the accounting domains by their numbers, for the description.
    pub domains: Vec<String>,
    /// Names of the events that are off at first, for the description.
    pub off_at_first: Vec<String>,
    /// Numbers of events whose occurrences are counted for [`Recorder::seen`]. When one comes, a flight recorder holds
    /// what it has until it is dumped, and as much again of what comes next; what is more is not kept.
    pub watched: Vec<u16>,
}

/// Where records go.
#[derive(Clone, Debug)]
pub enum Keep {
    /// Into this directory, as they come. It is made, for its owner alone, or must be empty.
    Directory(PathBuf),
    /// Into memory: the newest so many bytes, shared out evenly among the processors.
    Newest(u64),
}

impl Options {
    /// The defaults, into a directory.
    pub fn directory(path: impl Into<PathBuf>) -> Options {
        Options::keep(Keep::Directory(path.into()))
    }

    /// The defaults of a flight recorder.
    pub fn flight(bytes: u64) -> Options {
        Options::keep(Keep::Newest(bytes))
    }

    fn keep(keep: Keep) -> Options {
        Options {
            keep,
            former: FormerTrace::Stays,
            block_bytes: block::DEFAULT_BYTES,
            clock: ClockSource::Counter,
            low_water_percent: crate::layout::DEFAULT_LOW_WATER_PERCENT,
            realtime: true,
            domains: Vec::new(),
            off_at_first: Vec::new(),
            watched: Vec::new(),
        }
    }
}

/// Why nothing is recorded, or a recording has no proper end.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Blocks of such a size cannot be.
    #[error("blocks of {0} bytes: must be a multiple of 4096 from 8192 to 16777216")]
    BlockSize(u32),
    /// The events cannot be described.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The description could not be written.
    #[error(transparent)]
    DescriptionFile(#[from] DescriptionFileError),
    /// The directory or a file in it could not be made.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    Create {
        /// What was tried.
        what: &'static str,
        /// What.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// There is a file already, where there should be a directory.
    #[error("{path} is a file; a trace needs a directory of its own", path = .0.display())]
    NotDirectory(PathBuf),
    /// There is something already.
    #[error("{path} is not empty; a trace needs a directory of its own", path = .0.display())]
    NotEmpty(PathBuf),
    /// There is a trace already.
    #[error("there is a trace in {path} already", path = .0.display())]
    TraceThere(PathBuf),
    /// A trace would give way, but there is something else.
    #[error("{path} is not replaced: {name} in it is no part of a trace", path = path.display(), name = name.display())]
    NotReplaced {
        /// The directory.
        path: PathBuf,
        /// What is in it.
        name: PathBuf,
    },
    /// Another recorder writes into it.
    #[error("another recorder is at work in {path}; a trace needs a directory of its own", path = .0.display())]
    InUse(PathBuf),
    /// No thread, no random number.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A flush thread did not answer a request.
    #[error("the flush thread of processor {processor} has not answered for {seconds} s; is its disk stuck?")]
    NoAnswer {
        /// Whose.
        processor: usize,
        /// How long.
        seconds: u64,
    },
    /// What was recorded cannot be written.
    #[error("processor {processor}'s blocks cannot be written: {why}")]
    Write {
        /// Whose.
        processor: usize,
        /// The system's answer.
        why: String,
    },
    /// A dump was asked of a recorder that writes all the time.
    #[error("this recorder writes into its directory as it goes; only a flight recorder can be dumped")]
    NotFlight,
}

/// A running recording. Dropped without [`Recorder::stop`], it ends its threads and keeps what they
/// wrote; the description then says that it was not finished.
#[derive(Debug)]
pub struct Recorder<B: Buffers> {
    buffers: Arc<B>,
    options: Options,
    flights: Vec<Flight>,
    threads: Vec<FlushHandle<B>>,
    trace: TraceDescription,
    addresses: Arc<Addresses>,
    /// Where records go as they come.
    directory: Option<Directory>,
    /// When it was looked last whether the kernel has left out programs.
    looked: u64,
}

#[derive(Debug)]
struct FlushHandle<B> {
    shared: Arc<Shared>,
    /// Hands the thread other buffers.
    next: Sender<Arc<B>>,
    thread: Option<JoinHandle<()>>,
}

/// How long a flush thread may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the first two readings of the clocks are apart: so good is the rate of a trace whose
/// recorder was killed, about a part in ten thousand.
const CALIBRATION: Duration = Duration::from_millis(20);

impl<B: Buffers> Recorder<B> {
    /// Starts a flush thread for each buffer and writes the first description.
    ///
    /// # Errors
    ///
    /// [`RecordError`]; nothing runs then, and nothing is left.
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
        let trace = first_description(&*buffers, description, &options, id);
        let mut recorder = Recorder {
            buffers,
            options,
            flights: Vec::new(),
            threads: Vec::new(),
            trace,
            addresses: Arc::default(),
            directory: None,
            looked: 0,
        };
        recorder.looked = recorder.clock().now();
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
        // Before there can be a block: without it, none can be read.
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
        let shared = Arc::new(Shared::default());
        let (next, exchanged) = channel();
        let flusher = Flusher {
            buffers: Arc::clone(&self.buffers),
            next: exchanged,
            processor,
            builder: Builder::new(id, processor, self.options.block_bytes),
            sink: self.sink(processor)?,
            clock: self.options.clock,
            realtime: self.options.realtime,
            watched: self.options.watched.clone(),
            collector: Collector::new(&self.trace.description, Arc::clone(&self.addresses)),
            closes_early: matches!(self.options.keep, Keep::Directory(_)),
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new().name(format!("mete-flush-{processor}"));
        let failed = |source| RecordError::System { what: "start a flush thread", source };
        let thread = Some(thread.spawn(move || flusher.run()).map_err(failed)?);
        self.threads.push(FlushHandle { shared, next, thread });
        Ok(())
    }

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
        let all_read = || self.threads.iter().all(|thread| !thread.shared.report().anchors.is_empty());
        while !all_read() && begun.elapsed() < ANSWER {
            thread::pause();
        }
        std::thread::sleep(CALIBRATION.saturating_sub(begun.elapsed()));
        self.anchor();
    }

    fn anchor(&mut self) {
        let processor = rustix::thread::sched_getcpu() as u32;
        self.trace.clock.anchors.push(ClockAnchor::now(self.options.clock, processor));
    }

    /// What each flush thread has done so far.
    pub fn reports(&self) -> Vec<Report> {
        self.threads.iter().map(|thread| thread.shared.report().clone()).collect()
    }

    /// Everything that is in the trace and is not, so far.
    pub fn accounts(&self) -> Vec<Account> {
        self.threads.iter().map(|thread| thread.shared.report().account).collect()
    }

    /// What a flight recorder's memory has, by file: what a dump of it would say of itself. Nothing of other recorders.
    pub fn kept(&self) -> Vec<Account> {
        let account =
            |(file, flight): (usize, &Flight)| flight.account(file as u32, self.buffers.programs_of(file));
        self.flights.iter().enumerate().map(account).collect()
    }

    /// How many records of [watched](Options::watched) events came by so far.
    pub fn seen(&self) -> u64 {
        self.threads.iter().map(|thread| thread.shared.seen.load(Ordering::Relaxed)).sum()
    }

    /// Changes the low-water mark: flushes are due when less than `percent` of a buffer is free (KLogger §4.3).
    pub fn set_low_water(&self, percent: u8) {
        (0..self.buffers.processors()).for_each(|nth| self.buffers.buffer(nth).set_low_water(percent));
    }

    pub(crate) fn buffers(&self) -> &B {
        &self.buffers
    }

    pub(crate) fn clock(&self) -> ClockSource {
        self.options.clock
    }

    /// The layout of the records of the first event that this holds of.
    pub(crate) fn layout(&self, of: impl Fn(&EventLayout) -> bool) -> Option<&EventLayout> {
        self.trace.description.events.iter().find(|layout| of(layout))
    }

    pub(crate) fn switches(&mut self) -> &mut Switches {
        &mut self.trace.circumstances.switches
    }

    pub(crate) fn circumstances(&mut self) -> &mut Circumstances {
        &mut self.trace.circumstances
    }

    pub(crate) fn looked(&mut self) -> &mut u64 {
        &mut self.looked
    }

    /// Has the description on disk say what is known by now; a flight recorder has none yet.
    ///
    /// # Errors
    ///
    /// [`RecordError::DescriptionFile`] if it cannot be written; the one before is there then.
    pub fn save_description(&mut self) -> Result<(), RecordError> {
        self.update(false);
        self.write_description()
    }

    fn write_description(&self) -> Result<(), RecordError> {
        match &self.directory {
            Some(directory) => Ok(self.trace.write_into(&directory.folder, &directory.path)?),
            None => Ok(()),
        }
    }

    /// Has everything written that was recorded before the call, however little it is.
    ///
    /// # Errors
    ///
    /// [`RecordError::NoAnswer`] if a thread does not come back from its disk, [`RecordError::Write`]
    /// if its disk refuses, as a full one does.
    pub fn flush(&self) -> Result<(), RecordError> {
        self.await_all(&self.ask_all())
    }

    /// Goes on with other buffers, one for one: what is in the old ones is written first, and serial numbers go on. No
    /// producer may write into either meanwhile; what one does all the same is not in the trace, and not known to be
    /// lost. Buffers that are the same as before are left alone.
    ///
    /// # Errors
    ///
    /// As [`Recorder::flush`]; the new buffers are in use all the same.
    pub fn exchange(&mut self, buffers: Arc<B>) -> Result<(), RecordError> {
        for (nth, thread) in self.threads.iter().enumerate().take(buffers.processors()) {
            if !buffers.buffer(nth).is_same(&self.buffers.buffer(nth))
                && thread.next.send(Arc::clone(&buffers)).is_ok()
            {
                thread.shared.exchange.store(true, Ordering::Release);
            }
        }
        // They sleep at the old ones.
        let asked = self.ask_all();
        self.buffers = buffers;
        self.await_all(&asked)
    }

    /// Asks all threads to write everything; the numbers that they are to answer by.
    fn ask_all(&self) -> Vec<u64> {
        let ask = |thread: &FlushHandle<B>| thread.shared.requests.fetch_add(1, Ordering::AcqRel) + 1;
        let asked = self.threads.iter().map(ask).collect();
        self.call_all();
        asked
    }

    fn await_all(&self, asked: &[u64]) -> Result<(), RecordError> {
        let begun = Instant::now();
        let mut asked = asked.iter().enumerate();
        asked.try_for_each(|(processor, number)| self.await_answer(processor, *number, begun))
    }

    fn await_answer(&self, processor: usize, number: u64, begun: Instant) -> Result<(), RecordError> {
        let shared = &self.threads[processor].shared;
        while shared.answered.load(Ordering::Acquire) < number {
            if begun.elapsed() > ANSWER {
                return Err(RecordError::NoAnswer { processor, seconds: ANSWER.as_secs() });
            }
            thread::pause();
        }
        let refused = shared.report().write_error.clone();
        refused.map_or(Ok(()), |why| Err(RecordError::Write { processor, why }))
    }

    /// Writes what a flight recorder has kept as a trace into a directory, and goes on.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if this is no flight recorder or the directory cannot be written.
    pub fn dump(&mut self, directory: &Path) -> Result<(), RecordError> {
        self.flush()?;
        self.anchor();
        self.look_at_threads();
        self.look_at_addresses();
        self.update(false);
        self.write_flight(directory)
    }

    fn write_flight(&self, directory: &Path) -> Result<(), RecordError> {
        if self.flights.is_empty() {
            return Err(RecordError::NotFlight);
        }
        let mut directory = directory::make(directory, self.options.former)?;
        self.write_flight_into(&directory).inspect_err(|_| self.remove(&directory))?;
        directory.remove_former();
        Ok(())
    }

    fn write_flight_into(&self, directory: &Directory) -> Result<(), RecordError> {
        for (processor, flight) in self.flights.iter().enumerate() {
            let name = file_name(processor as u32);
            let file = FileSink::create_in(&directory.folder, &name);
            let written = file.and_then(|mut file| file.take(&flight.blocks()));
            let path = directory.path.join(name);
            written.map_err(|source| RecordError::Create { what: "write", path, source })?;
        }
        self.flights.iter().for_each(Flight::release);
        Ok(self.trace.write_into(&directory.folder, &directory.path)?)
    }

    /// Stops the flush threads when they have emptied their buffers, and says what each has written and what not: this
    /// is known also where [`Recorder::stop`] cannot write the last description then.
    pub fn settle(&mut self) -> Vec<Account> {
        self.end_threads();
        self.accounts()
    }

    /// The recording has begun in earnest: a trace that gives way to it is removed now. Until then, or until it is
    /// stopped, [`Recorder::discard`] puts it back.
    pub fn remove_former(&mut self) {
        self.directory.iter_mut().for_each(Directory::remove_former);
    }

    /// Ends it, and removes what there is of its trace, and the directories that were made for it: that of what never
    /// ran would only be in the way of the next one.
    pub fn discard(mut self) {
        self.end_threads();
        self.directory.iter().for_each(|directory| self.remove(directory));
    }

    /// A part of a trace is of no use, and its room may be what is missing. What cannot be removed stays: why there is
    /// no trace matters more.
    fn remove(&self, directory: &Directory) {
        let blocks = self.trace.files.iter().map(|file| file.name.as_str());
        directory.remove(blocks.chain([FILE_NAME, FORMER_FILE_NAME]));
    }

    /// Stops the flush threads when they have emptied their buffers, and writes the last
    /// description. Producers should have stopped: what they record later is not in the trace,
    /// and not known to be lost. What could not be written is `unwritten` in its account.
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

    /// As [`Recorder::stop`], for a flight recorder: what it has kept becomes a trace.
    ///
    /// # Errors
    ///
    /// As [`Recorder::dump`].
    pub fn stop_and_dump(mut self, directory: &Path) -> Result<TraceDescription, RecordError> {
        self.end_threads();
        self.anchor();
        self.look_at_addresses();
        self.update(true);
        self.write_flight(directory)?;
        Ok(self.trace.clone())
    }

    /// Threads that are new since recording began, and names that have changed.
    fn look_at_threads(&mut self) {
        let machine = &mut self.trace.machine;
        for was in names::merge(&mut machine.threads, names::living()) {
            if machine.threads_before.iter().all(|known| known.thread != was.thread) {
                machine.threads_before.push(was);
            }
        }
    }

    fn look_at_addresses(&mut self) {
        self.trace.machine.symbols = self.addresses.names();
    }

    fn end_threads(&mut self) {
        if self.threads.iter().all(|handle| handle.thread.is_none()) {
            return;
        }
        // Before its own are gone: they are among those that were recorded.
        self.look_at_threads();
        self.threads.iter().for_each(|thread| thread.shared.stop.store(true, Ordering::Release));
        self.call_all();
        for handle in &mut self.threads {
            // A flush thread does not panic; if one did, its report tells how far it came.
            let _ = handle.thread.take().map(JoinHandle::join);
        }
    }

    fn call_all(&self) {
        for processor in 0..self.threads.len() {
            Producer::new(self.buffers.buffer(processor)).call_flush();
        }
    }

    /// Brings the description up to date.
    fn update(&mut self, finished: bool) {
        let reports = self.reports();
        let own = self
            .trace
            .clock
            .anchors
            .iter()
            .filter(|anchor| !reports.iter().any(|report| report.anchors.contains(anchor)));
        let anchors: Vec<_> = own.chain(reports.iter().flat_map(|report| &report.anchors)).copied().collect();
        self.trace.clock.anchors = anchors;
        self.trace.finished = finished;
        let kept_all = matches!(self.options.keep, Keep::Directory(_));
        self.trace.completeness = if finished && kept_all { self.accounts() } else { Vec::new() };
        let thread = |report: &Report| FlushThread {
            processor: report.account.processor,
            scheduling: report.scheduling.clone(),
            placement: report.placement.clone(),
            garbled: report.garbled.clone(),
        };
        self.trace.circumstances.flush_threads = reports.iter().map(thread).collect();
    }
}

impl<B: Buffers> Drop for Recorder<B> {
    fn drop(&mut self) {
        self.end_threads();
    }
}

fn first_description(
    buffers: &impl Buffers,
    description: Description,
    options: &Options,
    id: RecordingId,
) -> TraceDescription {
    let processors = 0..buffers.processors() as u32;
    let file = |processor| TraceFile {
        processor,
        name: file_name(processor),
        programs_of: buffers.programs_of(processor as usize),
    };
    let circumstances = Circumstances {
        buffer_bytes: buffers.buffer(0).capacity().into(),
        low_water_percent: options.low_water_percent,
        not_locked: buffers.not_locked(),
        flight_bytes: match options.keep {
            Keep::Directory(_) => None,
            Keep::Newest(bytes) => Some(bytes),
        },
        missed_runs: 0,
        missed: Vec::new(),
        domains: options.domains.clone(),
        switches: Switches { off_at_first: options.off_at_first.clone(), ..Switches::default() },
        flush_threads: Vec::new(),
    };
    TraceDescription {
        format: FORMAT.to_owned(),
        version: VERSION,
        recording: recording_text(id),
        finished: false,
        block_bytes: options.block_bytes,
        files: processors.map(file).collect(),
        clock: Clock { source: options.clock, anchors: Vec::new() },
        machine: Machine::here(),
        circumstances,
        completeness: Vec::new(),
        description,
    }
}

fn new_recording() -> Result<RecordingId, RecordError> {
    use std::io::Read;
    let mut id = RecordingId::default();
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut id));
    read.map_err(|source| RecordError::System { what: "read /dev/urandom", source })?;
    Ok(id)
}
