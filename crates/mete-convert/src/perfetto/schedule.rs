//! The schedule: who ran when, as the kernel's own `sched_switch` would have told it.
//!
//! One switch may be several events here, such as one for the thread that leaves and one for the thread that
//! comes. They are put together again: what leaves waits until somebody comes.

use std::collections::{BTreeMap, BTreeSet};

use mete_trace::record::FIRST_RESERVED;
use mete_trace::{EventLayout, FieldLayout, Record};

use super::packets::Put;
use super::proto::Proto;
use crate::meaning::{Meaning, Meanings, What};
use crate::threads::{Threads, number};

/// Fields of `FtraceEvent`.
mod field {
    pub const TIMESTAMP: u32 = 1;
    pub const PID: u32 = 2;
    pub const SCHED_SWITCH: u32 = 4;
    pub const SCHED_WAKEUP: u32 = 17;
    pub const SCHED_WAKING: u32 = 20;
    pub const SCHED_WAKEUP_NEW: u32 = 114;
}

/// The wake-ups that the UI draws, and their fields in `FtraceEvent`.
const WAKES: [(&str, u32); 3] = [
    ("sched_waking", field::SCHED_WAKING),
    ("sched_wakeup", field::SCHED_WAKEUP),
    ("sched_wakeup_new", field::SCHED_WAKEUP_NEW),
];

/// The thread that runs where no other does.
const IDLE: i32 = 0;

/// One side of a switch, or whom a wake-up wakes.
#[derive(Clone, Debug)]
struct Side {
    thread: FieldLayout,
    priority: Option<FieldLayout>,
    /// With whether it is as the kernel keeps it.
    state: Option<(FieldLayout, bool)>,
    preempted: Option<FieldLayout>,
    processor: Option<FieldLayout>,
}

/// What an event is for the schedule.
#[derive(Clone, Debug)]
enum Kind {
    Other,
    Switch { out: Option<Box<Side>>, into: Option<Box<Side>> },
    Wake { field: u32, woken: Box<Side>, waker: Option<Box<FieldLayout>> },
}

/// A thread on a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Runs {
    thread: i32,
    priority: i32,
}

/// A thread that has left, while nobody is known to have come.
#[derive(Clone, Copy, Debug)]
struct Left {
    runs: Runs,
    state: i64,
    time: u64,
    serial: u64,
}

#[derive(Clone, Debug, Default)]
struct Processor {
    /// Who is drawn as running.
    current: Runs,
    left: Option<Left>,
    /// Events that are off, without which nobody knows who runs.
    off: BTreeSet<u16>,
}

/// Puts switches together.
#[derive(Debug)]
pub struct Schedule {
    kinds: Vec<Kind>,
    /// Whether each switch tells who comes.
    tells_all: bool,
    processors: BTreeMap<u32, Processor>,
}

impl Schedule {
    /// Of a trace's events.
    pub fn new(meanings: &Meanings, events: &[EventLayout]) -> Schedule {
        let own = events.iter().filter(|event| event.id < FIRST_RESERVED);
        let most = own.map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let meaning = |number: usize| meanings.event(number as u16);
        let mut kinds: Vec<_> = (0..most).map(|number| meaning(number).map_or(Kind::Other, kind)).collect();
        let comes = |number: usize| matches!(kinds[number], Kind::Switch { into: Some(_), .. });
        let always = |number: usize| {
            meaning(number).and_then(|it| it.place("sched_switch")).is_some_and(|place| place.is_always)
        };
        let tells_all = (0..most).any(|number| comes(number) && always(number));
        let tells_both = (0..most).any(comes)
            && kinds.iter().any(|kind| matches!(kind, Kind::Switch { out: Some(_), .. }));
        if !tells_all && !tells_both {
            // Nobody can tell from these when a thread ran.
            kinds
                .iter_mut()
                .filter(|kind| matches!(kind, Kind::Switch { .. }))
                .for_each(|kind| *kind = Kind::Other);
        }
        Schedule { kinds, tells_all, processors: BTreeMap::new() }
    }

    /// Takes an event; false if it is none of the schedule's.
    pub fn event(
        &mut self,
        record: &Record<'_>,
        time: u64,
        threads: &Threads,
        packets: &mut impl Put,
    ) -> bool {
        let Some(kind) = self.kinds.get(usize::from(record.event)) else { return false };
        let processor = self.processors.entry(record.processor).or_default();
        let mut draw = Draw { processor, number: record.processor, threads, packets };
        match kind {
            Kind::Other => {
                if !self.tells_all {
                    draw.nobody_came();
                }
                false
            }
            Kind::Switch { .. } if !draw.processor.off.is_empty() => true,
            Kind::Switch { out, into } => {
                let left = out.as_ref().and_then(|side| side.left(record, time));
                let comes = into.as_ref().and_then(|side| side.runs(record));
                draw.switch(left, comes.map(|runs| (runs, time, record.serial)), self.tells_all);
                true
            }
            Kind::Wake { field, woken, waker } => {
                if let Some(runs) = woken.runs(record) {
                    let target = number(woken.processor.as_ref(), record.bytes);
                    draw.wake(*field, runs, target, number(waker.as_deref(), record.bytes), time);
                }
                true
            }
        }
    }

    /// An event is switched on or off. Without one that tells who comes, nobody knows who runs; what a program that still
    /// ran has recorded all the same is not all.
    pub fn switched(
        &mut self,
        number: u32,
        event: u16,
        is_on: bool,
        time: u64,
        threads: &Threads,
        packets: &mut impl Put,
    ) {
        let Some(Kind::Switch { into, .. }) = self.kinds.get(usize::from(event)) else { return };
        if self.tells_all && into.is_none() {
            return;
        }
        if !is_on {
            self.lost(number, Some(time), threads, packets);
        }
        let off = &mut self.processors.entry(number).or_default().off;
        if is_on {
            off.remove(&event)
        } else {
            off.insert(event)
        };
    }

    /// Events of this processor are missing from this time on: nobody knows who runs.
    pub fn lost(&mut self, number: u32, time: Option<u64>, threads: &Threads, packets: &mut impl Put) {
        let Some(processor) = self.processors.get_mut(&number) else { return };
        let mut draw = Draw { processor, number, threads, packets };
        draw.nobody_came();
        if let (Some(time), current) = (time, draw.processor.current)
            && current.thread != IDLE
        {
            draw.sched_switch(Left { runs: current, state: 0, time, serial: 0 }, Runs::default(), time);
        }
        packets.scheduling_lost(number);
    }
}

fn kind(meaning: &Meaning) -> Kind {
    if let Some(place) = meaning.place("sched_switch") {
        let (out, into) = (side(meaning, "prev", place.is_raw), side(meaning, "next", place.is_raw));
        let names_who_leaves = meaning.field("prev", What::Name).is_some();
        return match (&out, &into) {
            (None, None) => Kind::Other,
            // It tells of some threads who they are, such as of one that ends, and not how they leave.
            (Some(out), None) if out.state.is_none() && names_who_leaves && !place.is_always => Kind::Other,
            _ => Kind::Switch { out, into },
        };
    }
    let wake = WAKES.iter().find(|(tracepoint, _)| meaning.place(tracepoint).is_some());
    let woken = side(meaning, "p", true).or_else(|| side(meaning, "", true));
    match (wake, woken) {
        (Some((_, field)), Some(woken)) => {
            let waker = meaning.field("", What::Thread).filter(|waker| **waker != woken.thread);
            Kind::Wake { field: *field, woken, waker: waker.cloned().map(Box::new) }
        }
        _ => Kind::Other,
    }
}

fn side(meaning: &Meaning, who: &str, is_raw: bool) -> Option<Box<Side>> {
    let field = |what| meaning.field(who, what).cloned();
    Some(Box::new(Side {
        thread: field(What::Thread)?,
        priority: field(What::Priority),
        state: field(What::State)
            .map(|state| (state, is_raw))
            .or_else(|| Some((field(What::ReportedState)?, false))),
        preempted: field(What::Preempted),
        processor: field(What::Processor),
    }))
}

impl Side {
    fn runs(&self, record: &Record<'_>) -> Option<Runs> {
        let thread = number(Some(&self.thread), record.bytes)?;
        Some(Runs { thread, priority: number(self.priority.as_ref(), record.bytes).unwrap_or(0) })
    }

    fn left(&self, record: &Record<'_>, time: u64) -> Option<Left> {
        let state = self.state.as_ref().and_then(|(field, _)| field.value(record.bytes));
        let is_raw = self.state.as_ref().is_some_and(|(_, is_raw)| *is_raw);
        let state = match state {
            Some(mete_trace::Value::Unsigned(state)) => state,
            Some(mete_trace::Value::Signed(state)) => state as u64,
            _ => 0,
        };
        let is_preempted = number(self.preempted.as_ref(), record.bytes).is_some_and(|it| it != 0);
        let state = reported(state, is_preempted, is_raw);
        Some(Left { runs: self.runs(record)?, state, time, serial: record.serial })
    }
}

/// The kernel's own numbers of states (`include/linux/sched.h`), and those that its tracepoint reports.
const TASK_REPORT: u64 = 0x7f;
const TASK_DEAD: u64 = 0x80;
const TASK_IDLE: u64 = 0x402;
const EXIT_DEAD: i64 = 0x10;
const REPORTED_IDLE: i64 = 0x80;
const REPORTED_PREEMPTED: i64 = 0x100;

/// A state as the record of `sched_switch` in the tracing file system has it: one bit, the highest of those that
/// are reported.
fn reported(state: u64, is_preempted: bool, is_raw: bool) -> i64 {
    match state {
        _ if is_preempted => REPORTED_PREEMPTED,
        state if !is_raw => (state & 0x1ff) as i64,
        state if state & TASK_IDLE == TASK_IDLE => REPORTED_IDLE,
        state if state & TASK_DEAD != 0 => EXIT_DEAD,
        state => (state & TASK_REPORT).checked_ilog2().map_or(0, |bit| 1 << bit),
    }
}

/// Draws the switches of one processor.
struct Draw<'a, P> {
    processor: &'a mut Processor,
    number: u32,
    threads: &'a Threads,
    packets: &'a mut P,
}

impl<P: Put> Draw<'_, P> {
    /// Somebody leaves, somebody comes, or both.
    fn switch(&mut self, left: Option<Left>, comes: Option<(Runs, u64, u64)>, tells_all: bool) {
        if left.is_some() {
            // Several events may say that the same thread leaves.
            self.processor.left = left;
        }
        let Some((comes, time, serial)) = comes else { return };
        let left = self.processor.left.take();
        match left {
            Some(left) if tells_all || serial <= left.serial + 1 => self.sched_switch(left, comes, time),
            Some(left) => {
                self.sched_switch(left, Runs::default(), left.time);
                self.sched_switch(Left { runs: Runs::default(), state: 0, time, serial }, comes, time);
            }
            None if self.processor.current.thread != comes.thread => {
                let runs = self.processor.current;
                self.sched_switch(Left { runs, state: 0, time, serial }, comes, time);
            }
            None => {}
        }
    }

    /// Nobody has come after the one who left: nobody that the trace tells of.
    fn nobody_came(&mut self) {
        if let Some(left) = self.processor.left.take() {
            self.sched_switch(left, Runs::default(), left.time);
        }
    }

    fn sched_switch(&mut self, left: Left, comes: Runs, time: u64) {
        if left.runs.thread != self.processor.current.thread {
            // It is not known since when it ran; that it did is.
            let from = Left { runs: self.processor.current, state: 0, ..left };
            self.put(from, left.runs, left.time);
        }
        self.put(left, comes, time);
        self.processor.current = comes;
    }

    fn put(&mut self, left: Left, comes: Runs, time: u64) {
        let threads = self.threads;
        self.packets.scheduling(self.number, |event| {
            event.uint(field::TIMESTAMP, time).int(field::PID, left.runs.thread.into());
            event.message(field::SCHED_SWITCH, |switch| {
                named(switch, 1, threads.name(left.runs.thread));
                switch.int(2, left.runs.thread.into()).int(3, left.runs.priority.into()).int(4, left.state);
                named(switch, 5, threads.name(comes.thread));
                switch.int(6, comes.thread.into()).int(7, comes.priority.into());
            });
        });
    }

    fn wake(&mut self, field: u32, woken: Runs, target: Option<i32>, waker: Option<i32>, time: u64) {
        let waker = waker.unwrap_or(self.processor.current.thread);
        let threads = self.threads;
        self.packets.scheduling(self.number, |event| {
            event.uint(field::TIMESTAMP, time).int(field::PID, waker.into());
            event.message(field, |wake| {
                named(wake, 1, threads.name(woken.thread));
                wake.int(2, woken.thread.into()).int(3, woken.priority.into()).int(4, 1);
                if let Some(target) = target {
                    wake.int(5, target.into());
                }
            });
        });
    }
}

fn named(message: &mut Proto, field: u32, name: &str) {
    if !name.is_empty() {
        message.text(field, name);
    }
}

#[cfg(test)]
mod tests {
    use super::reported;

    #[test]
    fn new_6_states_are_those_that_the_kernels_tracepoint_reports() {
        let raw = |state| reported(state, false, true);
        assert_eq!((raw(0), raw(1), raw(2), raw(0x2001), raw(0x102)), (0, 1, 2, 1, 2));
        assert_eq!((raw(0x402), raw(0x80), raw(8)), (0x80, 0x10, 8));
        assert_eq!((reported(0, true, true), reported(0x100, false, false)), (0x100, 0x100));
        let told = |state| reported(state, false, false);
        assert_eq!((told(2), told(0x20), told(0x80), reported(0, true, false)), (2, 0x20, 0x80, 0x100));
    }
}
