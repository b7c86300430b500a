//! Records a shipped schema's events from the running kernel into a trace, with the recorder that
//! `mete record` uses.

use std::ops::Deref;
use std::path::Path;

use mete_base::sentence;
use mete_measure::reason::Reason;
use mete_record::{Plan, RecordedSchema, RecordingError};
use mete_schema::{Source, shipped};
use mete_trace::layout::{DEFAULT_BYTES, DEFAULT_LOW_WATER_PERCENT};
use mete_trace::{FormerTrace, NamedTrace, Report};

use crate::scratch::Scratch;
use crate::tracing_mount;

/// A running recording of the whole machine. When this is dropped, no program stays attached and no file is
/// left.
pub struct ScratchRecording {
    // Fields are dropped in this order: the recording ends before its files are removed.
    recording: mete_record::Session,
    scratch: Scratch,
}

/// What has happened to events so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Records that have been written.
    pub records: u64,
    /// Events that found no room.
    pub lost: u64,
    /// Bytes of the trace's files.
    pub bytes: u64,
    /// Processor time of the flush threads.
    pub flush_ns: u64,
}

impl ScratchRecording {
    /// Records these events of a shipped schema from now on; all events if none is named.
    ///
    /// # Errors
    ///
    /// The reason names what is missing: rights, the kernel's types, or a compiler if the shipped programs
    /// are not for this kernel.
    pub fn begin(schema: &str, events: &[&str]) -> Result<ScratchRecording, Reason> {
        let shipped =
            shipped::by_name(schema).ok_or_else(|| Reason::new(format!("no schema {schema} is shipped")))?;
        ScratchRecording::of_source(shipped.source(), events)
    }

    /// The same for any schema.
    ///
    /// # Errors
    ///
    /// As [`ScratchRecording::begin`].
    pub fn of_source(source: Source, events: &[&str]) -> Result<ScratchRecording, Reason> {
        let schema = tracing_mount::with_tracing_file_system(|| read(source))?;
        let names: Vec<_> = events.iter().map(|name| (*name).to_owned()).collect();
        // No name stands for all events.
        let events = match names.is_empty() {
            true => (0..schema.events().len()).collect(),
            false => schema.places(&names)?,
        };
        let scratch = Scratch::new()?;
        let plan = Plan {
            schema,
            events,
            is_on: true,
            may_switch: false,
            directory: scratch.path().join("trace"),
            former: FormerTrace::Stays,
            domains: Vec::new(),
            buffer_bytes: DEFAULT_BYTES,
            low_water_percent: DEFAULT_LOW_WATER_PERCENT,
            flight: None,
            has_command: false,
        };
        // The recorder's notices are about domains, probes and the flight recorder. This plan has none of
        // them.
        let recording = mete_record::Session::begin(plan, &mut drop)?;
        Ok(ScratchRecording { recording, scratch })
    }

    /// Detaches the programs without ending the recording.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn pause(&mut self) -> Result<(), Reason> {
        Ok(self.recording.pause()?)
    }

    /// Attaches the programs again.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn resume(&mut self) -> Result<(), Reason> {
        Ok(self.recording.resume()?)
    }

    /// The number of a processor's records that have been written. All records made before the call are among
    /// them.
    ///
    /// # Errors
    ///
    /// If the records cannot be written.
    pub fn records(&self, processor: usize) -> Result<u64, Reason> {
        let reports = self.recording.flush()?;
        let own = reports.iter().find(|report| report.account.processor as usize == processor);
        Ok(own.map_or(0, |report| report.account.records))
    }

    /// The counts of all processors together.
    ///
    /// # Errors
    ///
    /// As [`ScratchRecording::records`].
    pub fn totals(&self) -> Result<Totals, Reason> {
        let reports = self.recording.flush()?;
        let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum();
        Ok(Totals {
            records: sum(|report| report.account.records),
            lost: sum(|report| report.account.lost),
            bytes: sum(|report| report.bytes),
            flush_ns: sum(|report| report.processor_time_ns),
        })
    }

    /// Ends the recording.
    ///
    /// # Errors
    ///
    /// If the trace cannot be written or read.
    pub fn end(self) -> Result<Recorded, Reason> {
        let ScratchRecording { recording, scratch } = self;
        recording.end(&mut drop)?.stopped?;
        Recorded::in_scratch(scratch, "trace")
    }
}

/// Reads a schema for the running kernel. The error shows problems with their places in the source.
fn read(source: Source) -> Result<RecordedSchema, Reason> {
    let sources = [source];
    RecordedSchema::read(sources.to_vec()).map_err(|error| match error {
        RecordingError::Schema(problems) => Reason::from_error(problems.render(&sources, false)),
        error => Reason::new(sentence(&error)),
    })
}

/// A trace that was recorded, with the directory of its files. It can be read any number of times.
pub struct Recorded {
    trace: NamedTrace,
    // The directory must live as long as its files are read.
    _scratch: Option<Scratch>,
}

impl Recorded {
    /// Opens the trace in a directory.
    ///
    /// # Errors
    ///
    /// If there is no trace.
    pub fn open(directory: &Path) -> Result<Recorded, Reason> {
        Ok(Recorded { trace: NamedTrace::open(directory)?, _scratch: None })
    }

    /// Opens a trace in a scratch directory, which lives as long as the result.
    pub fn in_scratch(scratch: Scratch, name: &str) -> Result<Recorded, Reason> {
        let trace = NamedTrace::open(scratch.path().join(name))?;
        Ok(Recorded { trace, _scratch: Some(scratch) })
    }
}

impl Deref for Recorded {
    type Target = NamedTrace;

    fn deref(&self) -> &NamedTrace {
        &self.trace
    }
}
