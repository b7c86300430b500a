//! From events to scripts: who ran when, and what that was of each thread's own progress.
//!
//! Recorders lose switches, and some kernels never record those of some threads. So a thread's time on a
//! processor is its work only from one event that says that it runs there to the next that agrees. Where the
//! next one names somebody else, a switch between them is missing, and the time between is nobody's.
//!
//! ```text
//!   A enters      A wakes X          C leaves         events of one processor
//!   ───┼────────────┼──────────────────┼────▶
//!      └─ A's work ─┘└── uncertain ────┘
//! ```

use std::collections::HashMap;

use super::recording::{Action, Recording, Script, Step};
use super::text::{Event, Pid};

/// Where a thread is while its script is being written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Runs on this processor, whose [`Seat`] says so too.
    Running(u32),
    /// Could run since then.
    Ready {
        since: u64,
        woken: bool,
    },
    /// Waits since then; its newest step is still to learn for what.
    Blocked(u64),
    /// Has left its processor unseen, after then; whether it could have gone on is not known.
    Unseen(u64),
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

    fn block(&mut self, now_ns: u64) {
        self.step(Action::Await);
        self.state = State::Blocked(now_ns);
    }
}

/// What is known of a processor since the first event that was seen there.
#[derive(Clone, Copy)]
struct Seat {
    /// Who is believed to run there; nobody knows once a thread is seen elsewhere that has not left.
    who: Option<Pid>,
    /// The last event that agreed with it.
    certain_ns: u64,
}

/// Takes events in the order of time.
pub(super) struct Builder {
    threads: Vec<Thread>,
    by_pid: HashMap<Pid, usize>,
    seats: HashMap<u32, Seat>,
    start_ns: u64,
    last_ns: u64,
    gaps: u64,
    uncertain_ns: u64,
    /// Wake-ups are taken where they are caused if the recording has such events at all.
    at_cause: bool,
}

impl Builder {
    pub(super) fn starting_with(events: &[Event]) -> Builder {
        let start_ns = events.iter().find_map(time_of).unwrap_or(0);
        let at_cause =
            events.iter().any(|event| matches!(event, Event::Wake { at_cause: true, new: false, .. }));
        Builder {
            threads: Vec::new(),
            by_pid: HashMap::new(),
            seats: HashMap::new(),
            start_ns,
            last_ns: start_ns,
            gaps: 0,
            uncertain_ns: 0,
            at_cause,
        }
    }

    pub(super) fn take(&mut self, event: &Event) {
        let at_ns = time_of(event).unwrap_or(self.last_ns);
        self.gaps += u64::from(at_ns < self.last_ns);
        self.last_ns = self.last_ns.max(at_ns);
        match event {
            Event::Lost => self.gaps += 1,
            Event::Switch {
                processor, previous, previous_name, runnable, ended, next, next_name, ..
            } => {
                self.seen(*processor, *previous, previous_name);
                self.leave(*previous, *runnable, *ended);
                self.enter(*processor, *next, next_name);
                self.sit(*processor, *next);
            }
            Event::Wake { seen, waker, pid, name, new, at_cause, .. } => {
                if let Some(seen) = seen {
                    self.seen(seen.processor, seen.pid, &seen.name);
                }
                if *new || *at_cause == self.at_cause {
                    self.wake(*waker, *pid, name);
                }
            }
        }
    }

    /// An event says who runs on its processor: the time since the last one that agrees was its work.
    fn seen(&mut self, processor: u32, pid: Pid, name: &str) {
        match self.seats.get(&processor).copied() {
            None => self.seen_first(processor, pid, name),
            Some(seat) if seat.who == Some(pid) => self.work(pid, seat.certain_ns),
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

    /// Whom the first event of a processor finds there has been there from the beginning, unless it has been
    /// mentioned elsewhere before: recorders begin with one processor after the other.
    fn seen_first(&mut self, processor: u32, pid: Pid, name: &str) {
        if pid != 0 && !self.by_pid.contains_key(&pid) {
            self.thread(pid, name, State::Running(processor));
            self.work(pid, self.start_ns);
        } else if pid != 0 {
            self.uncertain_ns += self.last_ns - self.start_ns;
            self.came_unseen(processor, pid, name);
        }
    }

    fn sit(&mut self, processor: u32, pid: Pid) {
        self.seats.insert(processor, Seat { who: Some(pid), certain_ns: self.last_ns });
    }

    /// Time since then was this thread's work; pid 0 does none.
    fn work(&mut self, pid: Pid, since_ns: u64) {
        if let Some(&index) = self.by_pid.get(&pid) {
            self.threads[index].since_step_ns += self.last_ns - since_ns;
        }
    }

    fn left_unseen(&mut self, pid: Pid, after_ns: u64) {
        if let Some(&index) = self.by_pid.get(&pid) {
            self.threads[index].state = State::Unseen(after_ns);
        }
    }

    /// It runs there now, and nobody knows since when.
    fn came_unseen(&mut self, processor: u32, pid: Pid, name: &str) {
        if pid == 0 {
            return;
        }
        // A number that was free again is another thread's, which has slept until now.
        let state = if self.forget_ended(pid) {
            State::Blocked(self.start_ns)
        } else {
            State::Ready { since: self.last_ns, woken: false }
        };
        let index = self.thread(pid, name, state);
        match self.threads[index].state {
            // Its wake-up is missing: it is taken to have come now, from outside.
            State::Blocked(since) => {
                self.gaps += 1;
                end_of_wait(&mut self.threads[index], Action::Sleep { ns: self.last_ns - since });
            }
            // It has left that processor unseen, and who followed it there is not known.
            State::Running(elsewhere) if elsewhere != processor => {
                self.gaps += 1;
                self.seats.entry(elsewhere).and_modify(|seat| seat.who = None);
            }
            State::Running(_) | State::Ready { .. } | State::Unseen(_) | State::Ended => {}
        }
        self.threads[index].state = State::Running(processor);
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

    /// Who was [`Builder::seen`] leaves its processor.
    fn leave(&mut self, pid: Pid, runnable: bool, ended: bool) {
        let Some(&index) = self.by_pid.get(&pid).filter(|_| pid != 0) else { return };
        let thread = &mut self.threads[index];
        if ended {
            thread.step(Action::End);
            thread.state = State::Ended;
        } else if runnable {
            thread.state = State::Ready { since: self.last_ns, woken: false };
        } else {
            thread.block(self.last_ns);
        }
    }

    fn enter(&mut self, processor: u32, pid: Pid, name: &str) {
        if let Some(&index) = self.by_pid.get(&pid) {
            let thread = &mut self.threads[index];
            if let State::Ready { since, woken: true } = thread.state {
                thread.script.waits_ns.push(self.last_ns - since);
            }
        }
        self.came_unseen(processor, pid, name);
    }

    fn wake(&mut self, waker: Option<Pid>, pid: Pid, name: &str) {
        let now = self.last_ns;
        self.forget_ended(pid);
        let index = self.thread(pid, name, State::Blocked(self.start_ns));
        if let State::Unseen(after) = self.threads[index].state {
            // Who is woken had blocked.
            self.threads[index].block(after);
        }
        let State::Blocked(since) = self.threads[index].state else { return };
        let by_thread = waker.is_some_and(|waker| self.record_wake(waker, index));
        let wait = if by_thread { Action::Await } else { Action::Sleep { ns: now - since } };
        let thread = &mut self.threads[index];
        end_of_wait(thread, wait);
        thread.state = State::Ready { since: now, woken: true };
    }

    /// Writes the wake-up into the waker's script; not when the waker is not known to run.
    fn record_wake(&mut self, waker: Pid, woken: usize) -> bool {
        let Some(&index) = self.by_pid.get(&waker) else { return false };
        let State::Running(processor) = self.threads[index].state else { return false };
        if let Some(seat) = self.seats.get(&processor).copied() {
            self.work(waker, seat.certain_ns);
            self.sit(processor, waker);
        }
        self.threads[index].step(Action::Wake(woken));
        true
    }

    pub(super) fn finish(mut self) -> Recording {
        let seats = std::mem::take(&mut self.seats);
        for seat in seats.values() {
            match seat.who {
                Some(pid) => self.work(pid, seat.certain_ns),
                None => self.uncertain_ns += self.last_ns - seat.certain_ns,
            }
        }
        self.threads.iter_mut().for_each(end_of_script);
        let recording = Recording {
            scripts: self.threads.into_iter().map(|thread| thread.script).collect(),
            processors: seats.len().max(1),
            duration_ns: self.last_ns - self.start_ns,
            gaps: self.gaps,
            uncertain_ns: self.uncertain_ns,
        };
        debug_assert!(recording.work_ns() + recording.uncertain_ns <= recording.capacity_ns());
        recording
    }
}

fn end_of_script(thread: &mut Thread) {
    // It never woke again: to wait for nobody is to have ended.
    if let State::Blocked(_) = thread.state {
        end_of_wait(thread, Action::End);
    }
    if thread.script.steps.last().is_none_or(|step| step.action != Action::End) {
        thread.step(Action::End);
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
