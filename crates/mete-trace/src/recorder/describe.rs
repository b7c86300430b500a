//! What the recorder writes into the trace's description.

use super::{Keep, Options, RecordError, Recorder};
use crate::block::RecordingId;
use crate::description::switches::Switches;
use crate::description::{
    Circumstances, Clock, ClockAnchor, Description, FORMAT, FlushThread, Machine, TraceDescription,
    TraceFile, VERSION, file_name, recording_text,
};
use crate::flush::Report;
use crate::memory::Buffers;
use crate::names;

impl<B: Buffers> Recorder<B> {
    /// Writes what is known by now into the description on disk. A flight recorder has none yet.
    ///
    /// # Errors
    ///
    /// [`RecordError::DescriptionFile`] if it cannot be written. The one before is still there then.
    pub fn save_description(&mut self) -> Result<(), RecordError> {
        self.update(false);
        self.write_description()
    }

    pub(super) fn write_description(&self) -> Result<(), RecordError> {
        match &self.directory {
            Some(directory) => Ok(self.trace.write_into(&directory.folder, &directory.path)?),
            None => Ok(()),
        }
    }

    /// Adds a reading of the clocks.
    pub(super) fn anchor(&mut self) {
        let processor = rustix::thread::sched_getcpu() as u32;
        self.trace.clock.anchors.push(ClockAnchor::now(self.options.clock, processor));
    }

    /// Looks for threads that are new since recording began, and for names that have changed.
    pub(super) fn look_at_threads(&mut self) {
        let machine = &mut self.trace.machine;
        for was in names::merge(&mut machine.threads, names::living()) {
            // Only the first of several former names is kept.
            if machine.threads_before.iter().all(|known| known.thread != was.thread) {
                machine.threads_before.push(was);
            }
        }
    }

    pub(super) fn look_at_addresses(&mut self) {
        self.trace.machine.symbols = self.addresses.names();
    }

    /// Brings the description in memory up to date.
    pub(super) fn update(&mut self, finished: bool) {
        let reports = self.reports();
        // The flush threads' readings are in the description already if this is not the first update. They
        // are taken out and added again, so that each is there once.
        let own = self
            .trace
            .clock
            .anchors
            .iter()
            .filter(|anchor| !reports.iter().any(|report| report.anchors.contains(anchor)));
        let anchors = own.chain(reports.iter().flat_map(|report| &report.anchors)).copied().collect();
        self.trace.clock.anchors = anchors;
        self.trace.finished = finished;
        // A flight recorder's accounts are of all that it has recorded, and a dump has only the newest part
        // of it.
        let has_all = finished && self.options.keeps_all();
        self.trace.completeness = if has_all { self.accounts() } else { Vec::new() };
        self.trace.circumstances.flush_threads = reports.into_iter().map(how_it_ran).collect();
    }
}

fn how_it_ran(report: Report) -> FlushThread {
    FlushThread {
        processor: report.account.processor,
        scheduling: report.scheduling,
        placement: report.placement,
        garbled: report.garbled,
    }
}

/// The description when recording begins.
pub(super) fn first(
    buffers: &impl Buffers,
    description: Description,
    options: &Options,
    id: RecordingId,
) -> TraceDescription {
    let processors = 0..buffers.processors() as u32;
    TraceDescription {
        format: FORMAT.to_owned(),
        version: VERSION,
        recording: recording_text(id),
        finished: false,
        block_bytes: options.block_bytes,
        files: processors.map(|processor| file(buffers, processor)).collect(),
        clock: Clock { source: options.clock, anchors: Vec::new() },
        machine: Machine::here(),
        circumstances: circumstances(buffers, options),
        completeness: Vec::new(),
        description,
    }
}

fn file(buffers: &impl Buffers, processor: u32) -> TraceFile {
    let programs_of = buffers.programs_of(processor as usize);
    TraceFile { processor, name: file_name(processor), programs_of }
}

fn circumstances(buffers: &impl Buffers, options: &Options) -> Circumstances {
    Circumstances {
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
    }
}
