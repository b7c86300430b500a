//! What each recorded thread did, in terms of its own progress, and where that is read from.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};

use thiserror::Error;

use super::builder::Builder;
use super::machine::Machine;
use super::text::{Event, LineError, Pid, parse_line};
use super::{rows, stamps};
use crate::trace;

/// What a thread does after having computed for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It wakes another recorded thread: the index of its script.
    Wake(usize),
    /// It blocks for something outside the recorded threads (a timer, a device, a remote peer) that took
    /// this long.
    Sleep {
        /// How long, in nanoseconds.
        ns: u64,
    },
    /// It blocks until a recorded thread wakes it.
    Await,
    /// It has ended, or the recording has.
    End,
}

/// Compute, then act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Processor time since the last step, in nanoseconds.
    pub compute_ns: u64,
    /// What follows.
    pub action: Action,
}

/// One thread's life as its own progress tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The thread's number in the recording.
    pub pid: Pid,
    /// Its name, as last seen.
    pub name: String,
    /// What it did, in order; the last action is [`Action::End`].
    pub steps: Vec<Step>,
    /// How long it waited from each wake-up until it ran, as recorded, in nanoseconds.
    pub waits_ns: Vec<u64>,
    /// Its priority as the kernel counts: 120 is nice 0, below 100 is real time.
    pub priority: i32,
    /// The processors that it ran on, each with the time at which it came there first.
    pub processors: BTreeMap<u32, u64>,
    /// Whether it was made while recording.
    pub is_new: bool,
}

/// The priority of a thread with nice 0.
pub(super) const NICE_0: i32 = 120;

impl Default for Script {
    fn default() -> Script {
        Script {
            pid: 0,
            name: String::new(),
            steps: Vec::new(),
            waits_ns: Vec::new(),
            priority: NICE_0,
            processors: BTreeMap::new(),
            is_new: false,
        }
    }
}

impl Script {
    /// All processor time of the thread, in nanoseconds.
    #[must_use]
    pub fn service_ns(&self) -> u64 {
        self.steps.iter().map(|step| step.compute_ns).sum()
    }
}

/// A recorded schedule, ready to be run again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// One script for each thread that ran or was woken, in the order in which they were first seen.
    pub scripts: Vec<Script>,
    /// How many processors were seen.
    pub processors: usize,
    /// From the first event to the last, in nanoseconds.
    pub duration_ns: u64,
    /// How often the recording contradicts itself or says that events are missing. With more than
    /// none, some threads' progress is not what it was.
    pub gaps: u64,
    /// Processor time, in nanoseconds, of which the recording does not say whose it was: where a switch is
    /// missing, from the last event that agrees with the one before it. It is nobody's work in `scripts`,
    /// and all work and it together are no more than processors times `duration_ns`.
    pub uncertain_ns: u64,
    /// How long each processor was seen to work, in nanoseconds, by its number.
    pub busy_ns: Vec<u64>,
    /// What it tells of the machine on which it was made.
    pub machine: Machine,
}

/// How the files of `perf record` begin, on machines of either byte order.
const PERF_MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// Bytes of a line of text, its end included: an event has some two hundred.
const LONGEST_LINE: u64 = 64 << 10;

/// Why a recording could not be read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The file could not be read.
    #[error("line {line}: {source}")]
    Read {
        /// The line's number, from 1.
        line: usize,
        /// Why.
        source: std::io::Error,
    },
    /// A line looks like a scheduler's event and is none.
    #[error("line {line}: {source}")]
    Line {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        source: LineError,
    },
    /// No recorder writes such a line.
    #[error("line {line} is longer than {LONGEST_LINE} bytes: it is no text of recorded events")]
    LongLine {
        /// The line's number, from 1.
        line: usize,
    },
    /// The file that `perf record` wrote, before it was printed.
    #[error(
        "it is what perf recorded, not the text of it: print it with `perf sched script --ns -i FILE > schedule.txt` \
         and replay that"
    )]
    PerfData,
    /// It begins as a trace of a simulated run does, and is not a whole one.
    #[error(transparent)]
    Trace(#[from] trace::ReadError),
    /// The trace of a run in which nobody left a processor.
    #[error("there is no switch in the trace: let the simulated run be longer")]
    EmptyTrace,
    /// Not one context switch.
    #[error(
        "there is no sched_switch event in it; record with `perf sched record` and print with `perf sched script`, \
         or enable sched_switch, sched_waking and sched_wakeup_new in ftrace and copy its `trace` file"
    )]
    Empty,
}

impl Recording {
    /// Reads the text of `perf sched script`, `perf script` or an ftrace `trace` file, or the
    /// [trace](crate::trace) of a simulated run, which is told by how it begins.
    ///
    /// # Errors
    ///
    /// With the number of the first line that cannot be read or understood, and when nothing in the
    /// text is a context switch.
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
            let read = text.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut content);
            match read.map_err(|source| RecordingError::Read { line, source })? as u64 {
                0 => break,
                bytes if bytes > LONGEST_LINE => return Err(RecordingError::LongLine { line }),
                _ => {}
            }
            // A thread's name may be any bytes.
            let content = String::from_utf8_lossy(content.trim_ascii_end());
            events.extend(parse_line(&content).map_err(|source| RecordingError::Line { line, source })?);
        }
        let is_switch = |event: &Event| matches!(event, Event::Switch { .. });
        if !events.iter().any(is_switch) {
            return Err(RecordingError::Empty);
        }
        Ok(Recording::from_events(&events))
    }

    /// Turns the trace of a simulated run into scripts: who computed how much between waiting and waiting,
    /// whom drivers and guests notified. Whoever runs at the end of the run has no row for that.
    ///
    /// # Errors
    ///
    /// [`RecordingError::EmptyTrace`].
    pub fn from_trace(trace: &trace::Trace<'_>) -> Result<Recording, RecordingError> {
        let events = rows::events(trace);
        if events.iter().any(|event| matches!(event, Event::Switch { .. })) {
            let mut recording = Recording::from_events(&events);
            recording.machine.is_simulated = true;
            Ok(recording)
        } else {
            Err(RecordingError::EmptyTrace)
        }
    }

    /// All threads' work, in nanoseconds.
    #[must_use]
    pub fn work_ns(&self) -> u64 {
        self.scripts.iter().map(Script::service_ns).sum()
    }

    /// What the processors can have done in that time, in nanoseconds.
    #[must_use]
    pub fn capacity_ns(&self) -> u64 {
        self.duration_ns.saturating_mul(self.processors as u64)
    }

    /// Turns events in the order of time into scripts. Time stamps that contradict that order, and those after
    /// more than an hour without any event, are gaps.
    #[must_use]
    pub fn from_events(events: &[Event]) -> Recording {
        let stamps: Vec<_> = events.iter().map(Event::at_ns).collect();
        let mut builder = Builder::of(events);
        for (event, stamp) in events.iter().zip(stamps::believed(&stamps)) {
            builder.take(event, stamp);
        }
        builder.finish()
    }
}
