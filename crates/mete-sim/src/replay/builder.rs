//! From events to scripts: which thread ran when, and how that relates to each thread's own progress.
//! The module `reading` feeds it, whatever the recording's format.
//!
//! Recorders lose switches, and some kernels never record the switches of some threads. So a thread's time on
//! a processor counts as its work only from an event that says that it runs there to the next event that
//! agrees. If the next event names another thread, a switch between them is missing, and the time between
//! them is no thread's work.
//!
//! ```text
//!   A enters      A wakes X          C leaves         events of one processor
//!   ───┼────────────┼──────────────────┼────▶
//!      └─ A's work ─┘└── uncertain ────┘
//! ```

use std::collections::{BTreeMap, HashMap};

use mete_policy::Nanoseconds;

use super::machine::{Machine, WakeSource};
use super::recording::{Action, Recording, Script, Step};
use super::stamps::Stamp;
use super::text::{Event, Pid};

/// What is known of a thread while its script is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    /// It runs on this processor, whose [`Seat`] says so, too.
    Running(u32),
    /// It could run, since then.
    Ready {
        since: Nanoseconds,
        /// `Some` if it was woken: the processor on which that was decided, which some recordings do not say.
        woken: Option<Option<u32>>,
    },
    /// It has waited since this time. When it wakes, what it waited for is written into its newest step.
    Blocked(Nanoseconds),
    /// It left its processor unseen, after then. Whether it could have gone on is not known.
    Unseen(Nanoseconds),
    Ended,
}

struct Thread {
    script: Script,
    state: ThreadState,
    /// Its processor time since its last step.
    since_step_ns: Nanoseconds,
    /// Since when it has its processor.
    entered_ns: Nanoseconds,
}

impl Thread {
    fn step(&mut self, action: Action) {
        let compute_ns = std::mem::take(&mut self.since_step_ns);
        self.script.steps.push(Step { compute_ns, action });
    }

    fn block(&mut self, now_ns: Nanoseconds) {
        self.step(Action::Await);
        self.state = ThreadState::Blocked(now_ns);
    }
}

/// What is known of a processor since the first event that was seen there.
#[derive(Clone, Copy)]
struct Seat {
    /// The thread that is believed to run there. `None` once that thread is seen elsewhere although it has
    /// not left.
    who: Option<Pid>,
    /// The time of the last event that agreed with it.
    certain_ns: Nanoseconds,
}

/// What is known of the thread that leaves when another one comes.
#[derive(Clone, Copy)]
struct Left {
    /// Since when it was there.
    entered_ns: Nanoseconds,
    is_idle: bool,
    is_runnable: bool,
}

/// Takes events in the order of time; the first is at time 0.
#[derive(Default)]
pub(super) struct Builder {
    threads: Vec<Thread>,
    by_pid: HashMap<Pid, usize>,
    seats: HashMap<u32, Seat>,
    last_ns: Nanoseconds,
    gaps: u64,
    uncertain_ns: Nanoseconds,
    machine: Machine,
    busy_ns: BTreeMap<u32, Nanoseconds>,
    /// Since when each idle processor is idle.
    idle_since: HashMap<u32, Nanoseconds>,
    /// Wake-ups are taken where they are caused, if the recording has such events at all.
    at_cause: bool,
}

impl Builder {
    pub(super) fn of(events: &[Event]) -> Builder {
        let at_cause =
            events.iter().any(|event| matches!(event, Event::Wake { at_cause: true, new: false, .. }));
        Builder { at_cause, ..Builder::default() }
    }

    pub(super) fn take(&mut self, event: &Event, stamp: Stamp) {
        self.gaps += u64::from(!stamp.is_believed);
        self.last_ns = stamp.at_ns;
        match event {
            Event::Lost => self.gaps += 1,
            Event::Switch {
                processor,
                previous,
                previous_name,
                runnable,
                ended,
                next,
                next_name,
                next_priority,
                ..
            } => {
                // The leaving thread's work is settled before the next thread enters.
                self.seen(*processor, *previous, previous_name);
                let left = self.left(*processor, *previous, *runnable);
                self.leave(*previous, *runnable, *ended);
                self.enter(*processor, *next, next_name, left);
                self.sit(*processor, *next);
                self.set_priority(*next, *next_priority);
            }
            Event::Wake { seen, waker, pid, name, new, at_cause, priority, .. } => {
                if let Some(seen) = seen {
                    self.seen(seen.processor, seen.pid, &seen.name);
                }
                if *new || *at_cause == self.at_cause {
                    let from = seen.as_ref().map(|seen| seen.processor);
                    self.wake(*waker, *pid, name, *new, from);
                    self.set_priority(*pid, *priority);
                }
            }
        }
    }

    fn set_priority(&mut self, pid: Pid, priority: Option<i32>) {
        if let (Some(&index), Some(priority)) = (self.by_pid.get(&pid), priority) {
            self.threads[index].script.priority = priority;
        }
    }

    fn left(&mut self, processor: u32, pid: Pid, is_runnable: bool) -> Left {
        let thread = self.by_pid.get(&pid).map(|&index| &self.threads[index]);
        let entered_ns = match pid {
            0 => self.idle_since.get(&processor).copied().unwrap_or_default(),
            _ => thread.map_or(self.last_ns, |thread| thread.entered_ns),
        };
        Left { entered_ns, is_idle: pid == 0, is_runnable: pid != 0 && is_runnable }
    }

    /// An event says which thread runs on its processor: the time since the last event that agrees was that
    /// thread's work.
    fn seen(&mut self, processor: u32, pid: Pid, name: &str) {
        match self.seats.get(&processor).copied() {
            None => self.seen_first(processor, pid, name),
            Some(seat) if seat.who == Some(pid) => self.work(processor, pid, seat.certain_ns),
            Some(seat) => {
                self.uncertain_ns += self.last_ns - seat.certain_ns;
                if let Some(believed) = seat.who {
                    self.gaps += 1;
                    self.left_unseen(believed, seat.certain_ns);
                }
                self.came_unseen(processor, pid, name);
            }
        }
        self.sit(processor, pid);
    }

    /// The first event of a processor shows a thread there. It has been there from the beginning, unless it
    /// was mentioned elsewhere before: recorders begin with one processor after another.
    fn seen_first(&mut self, processor: u32, pid: Pid, name: &str) {
        if pid != 0 && !self.by_pid.contains_key(&pid) {
            self.thread(pid, name, ThreadState::Running(processor));
            self.work(processor, pid, Nanoseconds::ZERO);
        } else if pid != 0 {
            self.uncertain_ns += self.last_ns;
            self.came_unseen(processor, pid, name);
        }
    }

    fn sit(&mut self, processor: u32, pid: Pid) {
        self.seats.insert(processor, Seat { who: Some(pid), certain_ns: self.last_ns });
    }

    /// The time since then was this thread's work. Thread 0, the idle task, does none.
    fn work(&mut self, processor: u32, pid: Pid, since_ns: Nanoseconds) {
        if let Some(&index) = self.by_pid.get(&pid) {
            let ns = self.last_ns - since_ns;
            self.threads[index].since_step_ns += ns;
            *self.busy_ns.entry(processor).or_default() += ns;
        }
    }

    fn left_unseen(&mut self, pid: Pid, after_ns: Nanoseconds) {
        if let Some(&index) = self.by_pid.get(&pid) {
            self.threads[index].state = ThreadState::Unseen(after_ns);
        }
    }

    /// The thread runs there now, and it is not known since when.
    fn came_unseen(&mut self, processor: u32, pid: Pid, name: &str) {
        if pid == 0 {
            return;
        }
        // A number that was free again belongs to another thread, which has slept until now.
        let state = if self.forget_ended(pid) {
            ThreadState::Blocked(Nanoseconds::ZERO)
        } else {
            ThreadState::Ready { since: self.last_ns, woken: None }
        };
        let index = self.thread(pid, name, state);
        match self.threads[index].state {
            // Its wake-up is missing: it is taken to have come now, from outside.
            ThreadState::Blocked(since) => {
                self.gaps += 1;
                end_of_wait(&mut self.threads[index], Action::Sleep { ns: self.last_ns - since });
            }
            // It left that processor unseen, and it is not known which thread followed it there.
            ThreadState::Running(elsewhere) if elsewhere != processor => {
                self.gaps += 1;
                self.seats.entry(elsewhere).and_modify(|seat| seat.who = None);
            }
            ThreadState::Running(_)
            | ThreadState::Ready { .. }
            | ThreadState::Unseen(_)
            | ThreadState::Ended => {}
        }
        self.threads[index].state = ThreadState::Running(processor);
    }

    /// The thread with that number. `state` is the state that it must have been in if this is its first
    /// mention.
    fn thread(&mut self, pid: Pid, name: &str, state: ThreadState) -> usize {
        let index = *self.by_pid.entry(pid).or_insert_with(|| {
            let mut steps = Vec::new();
            if let ThreadState::Blocked(_) = state {
                steps.push(Step { compute_ns: Nanoseconds::ZERO, action: Action::Await });
            }
            let script = Script { pid, steps, ..Script::default() };
            self.threads.push(Thread {
                script,
                state,
                since_step_ns: Nanoseconds::ZERO,
                entered_ns: Nanoseconds::ZERO,
            });
            self.threads.len() - 1
        });
        if self.threads[index].script.name != name {
            name.clone_into(&mut self.threads[index].script.name);
        }
        index
    }

    /// If the thread with that number has ended, its next mention belongs to a new thread.
    fn forget_ended(&mut self, pid: Pid) -> bool {
        let ended =
            self.by_pid.get(&pid).is_some_and(|&index| self.threads[index].state == ThreadState::Ended);
        ended && self.by_pid.remove(&pid).is_some()
    }

    /// The thread that was [`Builder::seen`] leaves its processor.
    fn leave(&mut self, pid: Pid, runnable: bool, ended: bool) {
        let Some(&index) = self.by_pid.get(&pid).filter(|_| pid != 0) else { return };
        let thread = &mut self.threads[index];
        if ended {
            thread.step(Action::End);
            thread.state = ThreadState::Ended;
        } else if runnable {
            thread.state = ThreadState::Ready { since: self.last_ns, woken: None };
        } else {
            thread.block(self.last_ns);
        }
    }

    fn enter(&mut self, processor: u32, pid: Pid, name: &str, left: Left) {
        if pid == 0 {
            self.idle_since.insert(processor, self.last_ns);
        }
        let now_ns = self.last_ns;
        if let Some(&index) = self.by_pid.get(&pid) {
            let thread = &mut self.threads[index];
            if let ThreadState::Ready { since, woken } = thread.state {
                if woken.is_some() {
                    thread.script.waits_ns.push(now_ns - since);
                }
                let was_there = left.entered_ns <= since;
                let from =
                    woken.map(|place| WakeSource::remote(place.is_some_and(|place| place != processor)));
                // Only a wake-up while the present occupant was already there can be what made it leave.
                match from {
                    Some(from) if left.is_idle && was_there => {
                        self.machine.came_to_idle(from, now_ns - since);
                    }
                    _ if !left.is_runnable => {}
                    Some(from) if was_there => self.machine.made_way(from, now_ns, now_ns - since),
                    _ => self.machine.slice_ended(now_ns),
                }
            }
        }
        self.came_unseen(processor, pid, name);
        if let Some(&index) = self.by_pid.get(&pid) {
            self.threads[index].entered_ns = now_ns;
            self.threads[index].script.processors.entry(processor).or_insert(now_ns);
        }
    }

    fn wake(&mut self, waker: Option<Pid>, pid: Pid, name: &str, is_new: bool, from: Option<u32>) {
        let now = self.last_ns;
        self.forget_ended(pid);
        let index = self.thread(pid, name, ThreadState::Blocked(Nanoseconds::ZERO));
        if let ThreadState::Unseen(after) = self.threads[index].state {
            // A thread that is woken had blocked.
            self.threads[index].block(after);
        }
        // A wake-up of a thread that does not wait changes nothing.
        let ThreadState::Blocked(since) = self.threads[index].state else { return };
        let by_thread = waker.is_some_and(|waker| self.record_wake(waker, index));
        let wait = if by_thread { Action::Await } else { Action::Sleep { ns: now - since } };
        let thread = &mut self.threads[index];
        end_of_wait(thread, wait);
        thread.script.is_new |= is_new;
        thread.state = ThreadState::Ready { since: now, woken: Some(from) };
    }

    /// Writes the wake-up into the waker's script. Returns false if the waker is not known to run.
    fn record_wake(&mut self, waker: Pid, woken: usize) -> bool {
        let Some(&index) = self.by_pid.get(&waker) else { return false };
        let ThreadState::Running(processor) = self.threads[index].state else { return false };
        if let Some(seat) = self.seats.get(&processor).copied() {
            // The step's computing includes the time up to this event.
            self.work(processor, waker, seat.certain_ns);
            self.sit(processor, waker);
        }
        self.threads[index].step(Action::Wake(woken));
        true
    }

    pub(super) fn finish(mut self) -> Recording {
        let seats = std::mem::take(&mut self.seats);
        // The time from each processor's last event to the end of the recording.
        for (&processor, seat) in &seats {
            match seat.who {
                Some(pid) => self.work(processor, pid, seat.certain_ns),
                None => self.uncertain_ns += self.last_ns - seat.certain_ns,
            }
        }
        self.threads.iter_mut().for_each(end_of_script);
        let recording = Recording {
            scripts: self.threads.into_iter().map(|thread| thread.script).collect(),
            processors: seats.len().max(1),
            duration_ns: self.last_ns,
            gaps: self.gaps,
            uncertain_ns: self.uncertain_ns,
            machine: self.machine.sorted(),
            domains: Vec::new(),
            busy_ns: self.busy_ns.into_values().collect(),
        };
        debug_assert!(recording.work_ns() + recording.uncertain_ns <= recording.capacity_ns());
        recording
    }
}

fn end_of_script(thread: &mut Thread) {
    // It never woke again. A wait that never ends is replayed as the thread's end.
    if let ThreadState::Blocked(_) = thread.state {
        end_of_wait(thread, Action::End);
    }
    if thread.script.steps.last().is_none_or(|step| step.action != Action::End) {
        thread.step(Action::End);
    }
}

/// Says what the newest step, which blocked, waited for.
fn end_of_wait(thread: &mut Thread, action: Action) {
    if let Some(step) = thread.script.steps.last_mut() {
        step.action = action;
    }
}
