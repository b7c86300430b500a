//! The ways to a recording: from a recorder's text, from the trace of a simulated run, from events.

use std::io::{BufRead, Read};

use thiserror::Error;

use super::builder::Builder;
use super::recording::Recording;
use super::text::{Event, LineError, parse_line};
use super::{rows, stamps};
use crate::trace;

/// The first bytes of files of `perf record`, from machines of either byte order.
const PERF_MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// The most bytes of a line of text, including its end. An event has about two hundred.
const LONGEST_LINE: u64 = 64 << 10;

/// Why a recording could not be read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The file could not be read.
    #[error("line {line}: {source}")]
    Read {
        /// The line's number, from 1.
        line: usize,
        /// The error.
        source: std::io::Error,
    },
    /// A line looks like a scheduler's event and cannot be read as one.
    #[error("line {line}: {source}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        source: LineError,
    },
    /// No recorder writes a line of this length.
    #[error("line {line} is longer than {LONGEST_LINE} bytes: this is not a text of recorded events")]
    LongLine {
        /// The line's number, from 1.
        line: usize,
    },
    /// The file is what `perf record` wrote, before it was printed.
    #[error(
        "this is perf's own file, not its text: print it with `perf sched script --ns -i FILE > schedule.txt` \
         and replay that"
    )]
    PerfData,
    /// The file begins as a trace of a simulated run does, but is not a whole one.
    #[error(transparent)]
    Trace(#[from] trace::ReadError),
    /// The trace is of a run in which no client left a processor.
    #[error("there is no switch in the trace: let the simulated run be longer")]
    EmptyTrace,
    /// There is no context switch in the text.
    #[error(
        "there is no sched_switch event in it; record with `perf sched record` and print with `perf sched script`, \
         or enable sched_switch, sched_waking and sched_wakeup_new in ftrace and copy its `trace` file"
    )]
    Empty,
}

impl Recording {
    /// Reads the text of `perf sched script`, `perf script` or an ftrace `trace` file, or the
    /// [trace] of a simulated run, which it knows by its first bytes.
    ///
    /// # Errors
    ///
    /// An error names the first line that cannot be read or understood. A text without any context switch is
    /// an error, too.
    pub fn read(mut text: impl BufRead) -> Result<Recording, RecordingError> {
        let unread = |source| RecordingError::Read { line: 1, source };
        let begin = text.fill_buf().map_err(unread)?;
        if PERF_MAGICS.iter().any(|magic| begin.starts_with(magic)) {
            return Err(RecordingError::PerfData);
        }
        if begin.starts_with(trace::MAGIC) {
            let mut bytes = Vec::new();
            text.read_to_end(&mut bytes).map_err(unread)?;
            return Recording::from_trace(&trace::read(&bytes)?);
        }
        let (mut events, mut content) = (Vec::new(), Vec::new());
        for line in 1.. {
            content.clear();
            // One byte more than allowed, which tells a line that is too long.
            let read = text.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut content);
            match read.map_err(|source| RecordingError::Read { line, source })? as u64 {
                0 => break,
                bytes if bytes > LONGEST_LINE => return Err(RecordingError::LongLine { line }),
                _ => {}
            }
            // A thread's name may contain any bytes.
            let content = String::from_utf8_lossy(content.trim_ascii_end());
            events.extend(parse_line(&content).map_err(|source| RecordingError::Line { line, source })?);
        }
        if !has_switch(&events) {
            return Err(RecordingError::Empty);
        }
        Ok(Recording::from_events(&events))
    }

    /// Turns the trace of a simulated run into scripts: how much each client computed between waits, and
    /// which clients drivers and guests notified. A client that runs at the end of the run has no row for
    /// that turn.
    ///
    /// # Errors
    ///
    /// [`RecordingError::EmptyTrace`].
    pub fn from_trace(trace: &trace::Trace<'_>) -> Result<Recording, RecordingError> {
        let events = rows::events(trace);
        if has_switch(&events) {
            let mut recording = Recording::from_events(&events);
            recording.machine.is_simulated = true;
            Ok(recording)
        } else {
            Err(RecordingError::EmptyTrace)
        }
    }

    /// Turns events in the order of time into scripts. Time stamps that contradict that order count as gaps,
    /// and so do stamps after more than an hour without any event.
    pub fn from_events(events: &[Event]) -> Recording {
        let stamps: Vec<_> = events.iter().map(Event::at_ns).collect();
        let mut builder = Builder::of(events);
        for (event, stamp) in events.iter().zip(stamps::believed(&stamps)) {
            builder.take(event, stamp);
        }
        builder.finish()
    }
}

fn has_switch(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Switch { .. }))
}
