//! A trace of the scheduler's schema as a recorded schedule, which `mete replay` runs again under other policies.

use std::collections::HashMap;
use std::path::Path;

use mete_sim::replay::{Event, Pid, Recording, RunningThread as Running};

use crate::reason::Reason;
use crate::trace::{Names, Next, Recorded, SeenEvent};

/// The events of which a schedule consists (KLogger §9).
const EVENTS: [&str; 5] = ["SCHEDIN", "SCHEDOUT", "TRY_TO_WAKEUP", "ADD_TO_RUNQ", "FORK"];
/// Task states without return: `EXIT_DEAD` and `EXIT_ZOMBIE` of the kernel's `sched.h`.
const ENDED: i64 = 0x10 | 0x20;

/// Reads a trace that `mete record --schema scheduler` has made.
///
/// # Errors
///
/// If there is no trace, its schema lacks one of these events, or no process leaves a processor in it.
pub fn recorded_schedule(directory: &Path) -> Result<Recording, Reason> {
    let recorded = Recorded::open(directory)?;
    recorded.needs("scheduler", &EVENTS)?;
    let events = events(&recorded);
    if events.iter().any(|event| matches!(event, Event::Switch { .. })) {
        let mut recording = Recording::from_events(&events);
        recording.machine.kernel = Some(recorded.kernel().to_owned());
        return Ok(recording);
    }
    Err(Reason::new(format!("no process leaves a processor in {}: record for longer", directory.display())))
}

fn events(recorded: &Recorded) -> Vec<Event> {
    let mut schedule = Schedule { names: Names::of_trace(recorded), ..Schedule::default() };
    recorded.each(|next| schedule.take(&next));
    schedule.events
}

#[derive(Default)]
struct Schedule {
    names: Names,
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
    fn take(&mut self, next: &Next<'_>) {
        self.names.next(next);
        match next {
            Next::Lost { processor } => {
                self.left.remove(processor);
                self.events.push(Event::Lost);
            }
            Next::Event(seen) => match seen.name() {
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

    /// One BPF program logs both events of a switch. One event without the other means that events were lost between
    /// them.
    fn switch(&mut self, seen: &SeenEvent<'_>) {
        let Some(left) = self.left.remove(&seen.processor) else { return };
        let next = pid(seen, "pid");
        self.events.push(Event::Switch {
            at_ns: seen.time_ns,
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

    fn wake(&mut self, seen: &SeenEvent<'_>, waker: Option<Pid>, new: bool) {
        let woken = pid(seen, "pid");
        self.events.push(Event::Wake {
            at_ns: seen.time_ns,
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

fn pid(seen: &SeenEvent<'_>, field: &str) -> Pid {
    Pid::try_from(seen.number(field)).unwrap_or(0)
}

/// The priority in the kernel's own numbers.
fn priority(seen: &SeenEvent<'_>) -> Option<i32> {
    i32::try_from(seen.number("priority")).ok()
}

#[cfg(test)]
mod tests {
    use mete_sim::replay::{Action, Step};

    use super::*;
    use crate::trace::written::Written;

    /// 7 computes, wakes 8 and blocks; 8 computes and ends.
    fn two() -> Written {
        let mut written = Written::new("scheduler", 1);
        let out = |pid, state| [("pid", pid), ("state", state)];
        written.event(0, 100, "SCHEDOUT", &out(0, 0));
        written.event(0, 100, "SCHEDIN", &[("pid", 7)]);
        written.event(0, 400, "TRY_TO_WAKEUP", &[("pid", 8), ("waker", 7)]);
        written.event(0, 410, "ADD_TO_RUNQ", &[("pid", 8)]);
        written.event(0, 500, "SCHEDOUT", &out(7, 1));
        written.event(0, 500, "SCHEDIN", &[("pid", 8)]);
        written.event(0, 700, "SCHEDOUT", &out(8, 0x20));
        written.event(0, 700, "SCHEDIN", &[("pid", 0)]);
        written
    }

    #[test]
    fn klog_8_a_trace_tells_what_each_process_computed_and_whom_it_woke() {
        let recording = Recording::from_events(&events(&two().read()));
        let steps =
            |pid| recording.scripts.iter().find(|script| script.pid == pid).map(|of| of.steps.clone());
        let step = |compute_ns, action| Step { compute_ns, action };
        let place = recording.scripts.iter().position(|script| script.pid == 8).expect("it is woken");
        assert_eq!(steps(7), Some(vec![step(300, Action::Wake(place)), step(100, Action::End)]));
        assert_eq!(steps(8), Some(vec![step(0, Action::Await), step(200, Action::End)]));
        assert_eq!((recording.gaps, recording.uncertain_ns, recording.work_ns()), (0, 0, 600));
    }

    #[test]
    fn klog_8_lost_events_are_a_gap_and_no_work_of_any_process() {
        let mut written = two();
        written.lose(0, 3);
        written.event(0, 900, "SCHEDOUT", &[("pid", 7), ("state", 1)]);
        written.event(0, 900, "SCHEDIN", &[("pid", 0)]);
        let recording = Recording::from_events(&events(&written.read()));
        assert!(recording.gaps >= 1, "{recording:?}");
        assert_eq!(recording.work_ns(), 600);
    }

    #[test]
    fn a_directory_without_a_trace_is_refused_by_its_name() {
        let said = recorded_schedule(Path::new("/no/such/trace")).expect_err("there is none");
        assert!(said.to_string().contains("/no/such/trace"), "{said}");
    }
}
