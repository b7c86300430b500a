//! A shipped schema's events from the running kernel into a trace of our own.

use mete_kernel::record::{Areas, Cache, Recording, Settings};
use mete_schema::generate::bpf;
use mete_schema::kernel::Running;
use mete_schema::{Checked, Problems, Schema, Source, check, shipped};
use mete_trace::layout::DEFAULT_LOW_WATER_PERCENT;
use mete_trace::{ClockSource, Description, Options, Recorder};

use super::{Recorded, described};
use crate::reason::Reason;
use crate::scratch::Scratch;

/// The default of `mete record`.
pub const BUFFER_BYTES: u64 = 4 << 20;

/// A running recording of the whole machine. Dropped, it leaves nothing attached and no files.
pub struct Session {
    // Fields are dropped in this order: programs, then threads, then the files.
    recording: Recording,
    recorder: Recorder<Areas>,
    scratch: Scratch,
}

/// What has become of events so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Records that are written.
    pub records: u64,
    /// Events that found no room.
    pub lost: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// Processor time of the flush threads.
    pub flush_ns: u64,
}

impl Session {
    /// Records these events of a shipped schema from now on; all of them without any.
    ///
    /// # Errors
    ///
    /// What is missing: rights, the kernel's types, a compiler where the kernel is not the one that the shipped
    /// programs are for.
    pub fn begin(schema: &str, events: &[&str]) -> Result<Session, Reason> {
        let shipped =
            shipped::by_name(schema).ok_or_else(|| Reason::new(format!("no schema {schema} is shipped")))?;
        Session::of_source(shipped.source(), events, BUFFER_BYTES)
    }

    /// The same of any schema, with so much memory for each processor.
    ///
    /// # Errors
    ///
    /// As [`Session::begin`].
    pub fn of_source(source: Source, events: &[&str], buffer_bytes: u64) -> Result<Session, Reason> {
        let sources = [source];
        let (schema, checked, programs) = described::with_tracing_file_system(|| generate(&sources))?;
        let is_wanted =
            |event: &usize| events.is_empty() || events.contains(&schema.events[*event].name.as_str());
        let settings = Settings {
            events: (0..schema.events.len()).filter(is_wanted).collect(),
            buffer_bytes,
            low_water_percent: DEFAULT_LOW_WATER_PERCENT,
            domains: None,
        };
        let mut recording = Recording::load(&schema, &checked, &programs, &settings, &Cache::of_user())?;
        let scratch = Scratch::new()?;
        // The kernel's programs can read no other clock.
        let options =
            Options { clock: ClockSource::Monotonic, ..Options::directory(scratch.path().join("trace")) };
        let recorder =
            Recorder::start(recording.buffers(), Description::of_schema(&schema, &sources), options)?;
        recording.attach()?;
        Ok(Session { recording, recorder, scratch })
    }

    /// Detaches the programs for a while, without ending the recording.
    pub fn pause(&mut self) {
        self.recording.detach();
    }

    /// Attaches them again.
    ///
    /// # Errors
    ///
    /// If the kernel refuses now.
    pub fn resume(&mut self) -> Result<(), Reason> {
        Ok(self.recording.attach()?)
    }

    /// Records of a processor that have been written so far, all that were made before the call among them.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn records(&self, processor: usize) -> Result<u64, Reason> {
        self.recorder.flush()?;
        let accounts = self.recorder.accounts();
        let own = accounts.iter().find(|account| account.processor as usize == processor);
        Ok(own.map_or(0, |account| account.records))
    }

    /// The same of all processors, and what it took.
    ///
    /// # Errors
    ///
    /// As [`Session::records`].
    pub fn totals(&self) -> Result<Totals, Reason> {
        self.recorder.flush()?;
        let reports = self.recorder.reports();
        let sum = |of: fn(&mete_trace::Report) -> u64| reports.iter().map(of).sum();
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
        let Session { mut recording, mut recorder, scratch } = self;
        recording.detach();
        recorder.look_for_missed_runs(|| recording.runs_missed())?;
        recorder.stop()?;
        Recorded::in_scratch(scratch, "trace")
    }
}

/// What is recorded, held against the running kernel, and the text of its programs.
fn generate(sources: &[Source]) -> Result<(Schema, Checked, String), Reason> {
    let wrong = |problems: Problems| Reason::from_error(problems.render(sources, false));
    let schema = Schema::read(sources).map_err(wrong)?;
    let kernel = Running::new().map_err(Reason::from_error)?;
    let checked = check(&schema, Some(&kernel)).map_err(wrong)?;
    let programs = bpf(&schema, &checked, &kernel).map_err(wrong)?;
    Ok((schema, checked, programs))
}
