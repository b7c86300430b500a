//! From events to scripts: what each recorded thread did, in terms of its own progress.

use std::collections::HashMap;
use std::io::BufRead;

use thiserror::Error;

use super::rows;
use super::text::{Event, LineError, Pid, parse_line};
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
}

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
        if text.fill_buf().map_err(unread)?.starts_with(trace::MAGIC) {
            let mut bytes = Vec::new();
            text.read_to_end(&mut bytes).map_err(unread)?;
            return Recording::from_trace(&trace::read(&bytes)?);
        }
        let mut events = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.map_err(|source| RecordingError::Read { line, source })?;
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
            Ok(Recording::from_events(&events))
        } else {
            Err(RecordingError::EmptyTrace)
        }
    }

    /// Turns events in the order of time into scripts.
    #[must_use]
    pub fn from_events(events: &[Event]) -> Recording {
        let mut builder = Builder::starting_with(events);
        for event in events {
            builder.take(event);
        }
        builder.finish()
    }
}

/// Where a thread is while its script is being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Runs since then.
    Running(u64),
    /// Could run since then.
    Ready {
        since: u64,
        woken: bool,
    },
    /// Waits since then; its newest step is still to learn for what.
    Blocked(u64),
    Ended,
}

struct Thread {
    script: Script,
    state: State,
    /// Processor time since its last step.
    since_step_ns: u64,
}

impl Thread {
    fn step(&mut self, action: Action) {
        let compute_ns = std::mem::take(&mut self.since_step_ns);
        self.script.steps.push(Step { compute_ns, action });
    }
}

struct Builder {
    threads: Vec<Thread>,
    by_pid: HashMap<Pid, usize>,
    /// Who runs on each processor since the first event that was seen of it.
    running: HashMap<u32, Pid>,
    start_ns: u64,
    last_ns: u64,
    gaps: u64,
    /// Wake-ups are taken where they are caused if the recording has such events at all.
    at_cause: bool,
}

impl Builder {
    fn starting_with(events: &[Event]) -> Builder {
        let start_ns = events.iter().find_map(time_of).unwrap_or(0);
        let at_cause =
            events.iter().any(|event| matches!(event, Event::Wake { at_cause: true, new: false, .. }));
        Builder {
            threads: Vec::new(),
            by_pid: HashMap::new(),
            running: HashMap::new(),
            start_ns,
            last_ns: start_ns,
            gaps: 0,
            at_cause,
        }
    }

    fn take(&mut self, event: &Event) {
        let at_ns = time_of(event).unwrap_or(self.last_ns);
        self.gaps += u64::from(at_ns < self.last_ns);
        self.last_ns = self.last_ns.max(at_ns);
        match event {
            Event::Lost => self.gaps += 1,
            Event::Switch {
                processor, previous, previous_name, runnable, ended, next, next_name, ..
            } => {
                self.leave(*processor, *previous, previous_name, (*runnable, *ended));
                self.enter(*processor, *next, next_name);
            }
            Event::Wake { waker, pid, name, new, at_cause, .. } => {
                if *new || *at_cause == self.at_cause {
                    self.wake(*waker, *pid, name);
                }
            }
        }
    }

    /// The thread of that number; `state` is what it must have been in if this is its first mention.
    fn thread(&mut self, pid: Pid, name: &str, state: State) -> usize {
        let index = *self.by_pid.entry(pid).or_insert_with(|| {
            let mut steps = Vec::new();
            if let State::Blocked(_) = state {
                steps.push(Step { compute_ns: 0, action: Action::Await });
            }
            let script = Script { pid, name: String::new(), steps, waits_ns: Vec::new() };
            self.threads.push(Thread { script, state, since_step_ns: 0 });
            self.threads.len() - 1
        });
        if self.threads[index].script.name != name {
            name.clone_into(&mut self.threads[index].script.name);
        }
        index
    }

    /// The next mention of that number is a new thread's, if its last bearer has ended.
    fn forget_ended(&mut self, pid: Pid) -> bool {
        let ended = self.by_pid.get(&pid).is_some_and(|&index| self.threads[index].state == State::Ended);
        ended && self.by_pid.remove(&pid).is_some()
    }

    fn leave(&mut self, processor: u32, pid: Pid, name: &str, (runnable, ended): (bool, bool)) {
        let known = self.running.get(&processor).copied();
        self.gaps += u64::from(known.is_some_and(|known| known != pid));
        if pid == 0 {
            return;
        }
        let now = self.last_ns;
        let index = self.thread(pid, name, State::Running(self.start_ns));
        let thread = &mut self.threads[index];
        let since = match thread.state {
            State::Running(since) => since,
            // Recorders begin with one processor after the other, so the first on each came unseen.
            State::Ready { since, .. } if known.is_none() => since,
            _ => {
                self.gaps += 1;
                return;
            }
        };
        thread.since_step_ns += now - since;
        if ended {
            thread.step(Action::End);
            thread.state = State::Ended;
        } else if runnable {
            thread.state = State::Ready { since: now, woken: false };
        } else {
            thread.step(Action::Await);
            thread.state = State::Blocked(now);
        }
    }

    fn enter(&mut self, processor: u32, pid: Pid, name: &str) {
        self.running.insert(processor, pid);
        if pid == 0 {
            return;
        }
        let now = self.last_ns;
        // A number that was free again is another thread's, which has slept until now.
        let state = if self.forget_ended(pid) {
            State::Blocked(self.start_ns)
        } else {
            State::Ready { since: now, woken: false }
        };
        let index = self.thread(pid, name, state);
        let thread = &mut self.threads[index];
        match thread.state {
            State::Ready { since, woken: true } => thread.script.waits_ns.push(now - since),
            State::Ready { woken: false, .. } => {}
            // Its wake-up is missing: it is taken to have come now, from outside.
            State::Blocked(since) => {
                self.gaps += 1;
                end_of_wait(thread, Action::Sleep { ns: now - since });
            }
            State::Running(since) => {
                self.gaps += 1;
                thread.since_step_ns += now - since;
            }
            State::Ended => self.gaps += 1,
        }
        thread.state = State::Running(now);
    }

    fn wake(&mut self, waker: Option<Pid>, pid: Pid, name: &str) {
        let now = self.last_ns;
        self.forget_ended(pid);
        let index = self.thread(pid, name, State::Blocked(self.start_ns));
        let State::Blocked(since) = self.threads[index].state else { return };
        let waker = waker.and_then(|waker| self.by_pid.get(&waker).copied());
        let by_thread = waker.is_some_and(|waker| self.record_wake(waker, index));
        let wait = if by_thread { Action::Await } else { Action::Sleep { ns: now - since } };
        let thread = &mut self.threads[index];
        end_of_wait(thread, wait);
        thread.state = State::Ready { since: now, woken: true };
    }

    /// Writes the wake-up into the waker's script; not when the waker is not known to run.
    fn record_wake(&mut self, waker: usize, woken: usize) -> bool {
        let now = self.last_ns;
        let thread = &mut self.threads[waker];
        let State::Running(since) = thread.state else { return false };
        thread.since_step_ns += now - since;
        thread.state = State::Running(now);
        thread.step(Action::Wake(woken));
        true
    }

    fn finish(mut self) -> Recording {
        let now = self.last_ns;
        for thread in &mut self.threads {
            match thread.state {
                State::Running(since) => thread.since_step_ns += now - since,
                // It never woke again: to wait for nobody is to have ended.
                State::Blocked(_) => end_of_wait(thread, Action::End),
                State::Ready { .. } | State::Ended => {}
            }
            if thread.script.steps.last().is_none_or(|step| step.action != Action::End) {
                thread.step(Action::End);
            }
        }
        Recording {
            scripts: self.threads.into_iter().map(|thread| thread.script).collect(),
            processors: self.running.len().max(1),
            duration_ns: now - self.start_ns,
            gaps: self.gaps,
        }
    }
}

/// Says what the newest step, which blocked, has waited for.
fn end_of_wait(thread: &mut Thread, action: Action) {
    if let Some(step) = thread.script.steps.last_mut() {
        step.action = action;
    }
}

fn time_of(event: &Event) -> Option<u64> {
    match event {
        Event::Switch { at_ns, .. } | Event::Wake { at_ns, .. } => Some(*at_ns),
        Event::Lost => None,
    }
}
