//! A trace of the scheduler's schema as a recorded schedule, which `mete replay` runs again under other
//! policies.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use mete_sim::replay::{Event, Nanoseconds, Pid, Recording, RunningThread as Running};
use mete_trace::{NamedEvent, NamedItem, NamedTrace, NamedTraceError, ProcessNames};

/// The events of which a schedule consists (KLogger §9).
pub const SCHEDULE_EVENTS: [&str; 5] = ["SCHEDIN", "SCHEDOUT", "TRY_TO_WAKEUP", "ADD_TO_RUNQ", "FORK"];
/// Task states without return: `EXIT_DEAD` and `EXIT_ZOMBIE` of the kernel's `sched.h`.
const ENDED: i64 = 0x10 | 0x20;

/// Why a trace is no recorded schedule.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The trace cannot be read, or its schema lacks an event of the schedule.
    #[error(transparent)]
    Trace(#[from] NamedTraceError),
    /// Nothing is known of any process: each ran from before the trace until after it, or its events are
    /// lost.
    #[error("no process leaves a processor in {path}: record for longer", path = .0.display())]
    NoSwitch(PathBuf),
}

/// Reads a trace that `mete record --schema scheduler` has made.
///
/// # Errors
///
/// If there is no trace, its schema lacks one of these events, or no process leaves a processor in it.
pub fn recorded_schedule(directory: &Path) -> Result<Recording, ScheduleError> {
    let trace = NamedTrace::open(directory)?;
    let events = schedule_events(&trace)?;
    if events.iter().any(|event| matches!(event, Event::Switch { .. })) {
        let mut recording = Recording::from_events(&events);
        recording.machine.kernel = Some(trace.kernel().to_owned());
        return Ok(recording);
    }
    Err(ScheduleError::NoSwitch(directory.to_owned()))
}

/// The events of which such a trace's schedule consists, in the order of time.
///
/// # Errors
///
/// If the trace's schema lacks one of them.
pub fn schedule_events(trace: &NamedTrace) -> Result<Vec<Event>, NamedTraceError> {
    trace.needs("scheduler", &SCHEDULE_EVENTS)?;
    let mut schedule = Schedule { names: ProcessNames::of_trace(trace), ..Schedule::default() };
    trace.each(|item| schedule.take(&item));
    Ok(schedule.events)
}

#[derive(Default)]
struct Schedule {
    names: ProcessNames,
    /// For each processor, the process that has left it, until the next one's event.
    left: HashMap<u32, Left>,
    /// The parent of each process that was made but has not been woken yet.
    parents: HashMap<Pid, Pid>,
    events: Vec<Event>,
}

#[derive(Clone, Copy)]
struct Left {
    pid: Pid,
    state: i64,
}

impl Schedule {
    fn take(&mut self, item: &NamedItem<'_>) {
        self.names.take(item);
        match item {
            NamedItem::Lost { processor } => {
                self.left.remove(processor);
                self.events.push(Event::Lost);
            }
            NamedItem::Event(seen) => match seen.name() {
                "SCHEDOUT" => {
                    let left = Left { pid: pid(seen, "pid"), state: seen.number("state") };
                    self.left.insert(seen.processor, left);
                }
                "SCHEDIN" => self.switch(seen),
                "FORK" => {
                    self.parents.insert(pid(seen, "child"), pid(seen, "parent"));
                }
                "TRY_TO_WAKEUP" => self.wake(seen, Some(pid(seen, "waker")), false),
                // A wake-up is logged at its cause, by TRY_TO_WAKEUP; a new process has only this event.
                "ADD_TO_RUNQ" if seen.number("is_new") != 0 => {
                    let parent = self.parents.remove(&pid(seen, "pid"));
                    self.wake(seen, parent, true);
                }
                _ => {}
            },
        }
    }

    /// One BPF program logs both events of a switch. One event without the other means that events were lost
    /// between them.
    fn switch(&mut self, seen: &NamedEvent<'_>) {
        let Some(left) = self.left.remove(&seen.processor) else { return };
        let next = pid(seen, "pid");
        self.events.push(Event::Switch {
            at_ns: Nanoseconds::new(seen.time_ns),
            processor: seen.processor,
            previous: left.pid,
            previous_name: self.name(left.pid),
            // State 0 is TASK_RUNNING: the process was preempted.
            runnable: left.state == 0,
            ended: left.state & ENDED != 0,
            next,
            next_name: self.name(next),
            next_priority: priority(seen),
        });
    }

    fn wake(&mut self, seen: &NamedEvent<'_>, waker: Option<Pid>, new: bool) {
        let woken = pid(seen, "pid");
        self.events.push(Event::Wake {
            at_ns: Nanoseconds::new(seen.time_ns),
            seen: waker.map(|waker| Running {
                processor: seen.processor,
                pid: waker,
                name: self.name(waker),
            }),
            waker,
            pid: woken,
            name: self.name(woken),
            priority: priority(seen),
            new,
            at_cause: true,
        });
    }

    fn name(&self, pid: Pid) -> String {
        self.names.of(pid as i32)
    }
}

fn pid(seen: &NamedEvent<'_>, field: &str) -> Pid {
    Pid::try_from(seen.number(field)).unwrap_or(0)
}

/// The priority in the kernel's own numbers.
fn priority(seen: &NamedEvent<'_>) -> Option<i32> {
    i32::try_from(seen.number("priority")).ok()
}
