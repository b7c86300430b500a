//! The schedule: which thread ran when, in the form of the kernel's own `sched_switch`.
//!
//! Here one switch may be several events, such as one for the thread that leaves and one for the thread that
//! comes. They are put together again: a thread that leaves is kept until the next thread comes.

use std::collections::{BTreeMap, BTreeSet};

use mete_trace::record::FIRST_RESERVED;
use mete_trace::{EventLayout, FieldLayout, Record};

use super::packets::PacketSink;
use super::proto::Proto;
use crate::meaning::{FieldSubject, Meaning, Meanings};
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

/// The thread that runs when no other thread does.
const IDLE: i32 = 0;

/// One side of a switch, or the thread that a wake-up wakes.
#[derive(Clone, Debug)]
struct SwitchSide {
    thread: FieldLayout,
    priority: Option<FieldLayout>,
    /// The second value says whether the state is in the kernel's own numbers.
    state: Option<(FieldLayout, bool)>,
    preempted: Option<FieldLayout>,
    processor: Option<FieldLayout>,
}

/// The role of an event in the schedule.
#[derive(Clone, Debug)]
enum ScheduleRole {
    Other,
    Switch { out: Option<Box<SwitchSide>>, into: Option<Box<SwitchSide>> },
    Wake { field: u32, woken: Box<SwitchSide>, waker: Option<Box<FieldLayout>> },
}

/// A thread on a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RunningThread {
    thread: i32,
    priority: i32,
}

/// A thread that has left, while it is not known which thread has come.
#[derive(Clone, Copy, Debug)]
struct DepartedThread {
    runs: RunningThread,
    state: i64,
    time: u64,
    serial: u64,
}

#[derive(Clone, Debug, Default)]
struct Processor {
    /// The thread that is drawn as running.
    current: RunningThread,
    left: Option<DepartedThread>,
    /// Events that are off, and without which it is not known which thread runs.
    off: BTreeSet<u16>,
}

/// Puts switches together.
#[derive(Debug)]
pub struct Schedule {
    kinds: Vec<ScheduleRole>,
    /// Whether each switch tells which thread comes.
    tells_all: bool,
    processors: BTreeMap<u32, Processor>,
}

impl Schedule {
    /// The schedule of a trace with these events.
    pub fn new(meanings: &Meanings, events: &[EventLayout]) -> Schedule {
        // The recorder's marks have the largest numbers and would make the table large.
        let own = events.iter().filter(|event| event.id < FIRST_RESERVED);
        let most = own.map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let meaning = |number: usize| meanings.event(number as u16);
        let mut kinds: Vec<_> =
            (0..most).map(|number| meaning(number).map_or(ScheduleRole::Other, kind)).collect();
        let comes = |number: usize| matches!(kinds[number], ScheduleRole::Switch { into: Some(_), .. });
        let tells_all = (0..most).any(|number| comes(number) && meaning(number).is_some_and(is_each_switch));
        let tells_both = (0..most).any(comes)
            && kinds.iter().any(|kind| matches!(kind, ScheduleRole::Switch { out: Some(_), .. }));
        if !tells_all && !tells_both {
            // From these events it cannot be known when a thread ran.
            kinds
                .iter_mut()
                .filter(|kind| matches!(kind, ScheduleRole::Switch { .. }))
                .for_each(|kind| *kind = ScheduleRole::Other);
        }
        Schedule { kinds, tells_all, processors: BTreeMap::new() }
    }

    /// Takes an event; false if it is not a part of the schedule.
    pub fn event(
        &mut self,
        record: &Record<'_>,
        time: u64,
        threads: &Threads,
        packets: &mut impl PacketSink,
    ) -> bool {
        let Some(kind) = self.kinds.get(usize::from(record.event)) else { return false };
        let processor = self.processors.entry(record.processor).or_default();
        let mut draw = ScheduleDrawing { processor, number: record.processor, threads, packets };
        match kind {
            ScheduleRole::Other => {
                // Any event in between may stand for a switch that is not recorded.
                if !self.tells_all {
                    draw.close_departure();
                }
                false
            }
            // An event of the switch is off, so what the others say is not all.
            ScheduleRole::Switch { .. } if !draw.processor.off.is_empty() => true,
            ScheduleRole::Switch { out, into } => {
                let left = out.as_ref().and_then(|side| side.left(record, time));
                let comes = into.as_ref().and_then(|side| side.runs(record));
                draw.switch(left, comes.map(|runs| (runs, time, record.serial)), self.tells_all);
                true
            }
            ScheduleRole::Wake { field, woken, waker } => {
                if let Some(runs) = woken.runs(record) {
                    let target = number(woken.processor.as_ref(), record.bytes);
                    draw.wake(*field, runs, target, number(waker.as_deref(), record.bytes), time);
                }
                true
            }
        }
    }

    /// Takes a switch of an event, on or off. While an event that tells which thread comes is off, it is not
    /// known which thread runs. A program that was still running may have recorded some of these events, but
    /// not all of them.
    pub fn switched(
        &mut self,
        number: u32,
        event: u16,
        is_on: bool,
        time: u64,
        threads: &Threads,
        packets: &mut impl PacketSink,
    ) {
        let Some(ScheduleRole::Switch { into, .. }) = self.kinds.get(usize::from(event)) else { return };
        // The schedule is complete without this event.
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

    /// Notes that events of this processor are missing from this time on. It is not known which thread runs
    /// then.
    pub fn lost(&mut self, number: u32, time: Option<u64>, threads: &Threads, packets: &mut impl PacketSink) {
        let Some(processor) = self.processors.get_mut(&number) else { return };
        let mut draw = ScheduleDrawing { processor, number, threads, packets };
        draw.close_departure();
        if let (Some(time), current) = (time, draw.processor.current)
            && current.thread != IDLE
        {
            draw.sched_switch(
                DepartedThread { runs: current, state: 0, time, serial: 0 },
                RunningThread::default(),
                time,
            );
        }
        packets.scheduling_lost(number);
    }
}

/// Whether the event is logged at each context switch.
fn is_each_switch(meaning: &Meaning) -> bool {
    meaning.place("sched_switch").is_some_and(|place| place.is_always)
}

fn kind(meaning: &Meaning) -> ScheduleRole {
    if let Some(place) = meaning.place("sched_switch") {
        let (out, into) = (side(meaning, "prev", place.is_raw), side(meaning, "next", place.is_raw));
        let names_who_leaves = meaning.field("prev", FieldSubject::Name).is_some();
        return match (&out, &into) {
            (None, None) => ScheduleRole::Other,
            // This event identifies some threads, such as those that end, and does not say how they leave.
            (Some(out), None) if out.state.is_none() && names_who_leaves && !place.is_always => {
                ScheduleRole::Other
            }
            _ => ScheduleRole::Switch { out, into },
        };
    }
    let wake = WAKES.iter().find(|(tracepoint, _)| meaning.place(tracepoint).is_some());
    let woken = side(meaning, "p", true).or_else(|| side(meaning, "", true));
    match (wake, woken) {
        (Some((_, field)), Some(woken)) => {
            let waker = meaning.field("", FieldSubject::Thread).filter(|waker| **waker != woken.thread);
            ScheduleRole::Wake { field: *field, woken, waker: waker.cloned().map(Box::new) }
        }
        _ => ScheduleRole::Other,
    }
}

fn side(meaning: &Meaning, who: &str, is_raw: bool) -> Option<Box<SwitchSide>> {
    let field = |what| meaning.field(who, what).cloned();
    Some(Box::new(SwitchSide {
        thread: field(FieldSubject::Thread)?,
        priority: field(FieldSubject::Priority),
        state: field(FieldSubject::State)
            .map(|state| (state, is_raw))
            .or_else(|| Some((field(FieldSubject::ReportedState)?, false))),
        preempted: field(FieldSubject::Preempted),
        processor: field(FieldSubject::Processor),
    }))
}

impl SwitchSide {
    fn runs(&self, record: &Record<'_>) -> Option<RunningThread> {
        let thread = number(Some(&self.thread), record.bytes)?;
        Some(RunningThread { thread, priority: number(self.priority.as_ref(), record.bytes).unwrap_or(0) })
    }

    fn left(&self, record: &Record<'_>, time: u64) -> Option<DepartedThread> {
        let state = self.state.as_ref().and_then(|(field, _)| field.value(record.bytes));
        let is_raw = self.state.as_ref().is_some_and(|(_, is_raw)| *is_raw);
        let state = match state {
            Some(mete_trace::Value::Unsigned(state)) => state,
            Some(mete_trace::Value::Signed(state)) => state as u64,
            _ => 0,
        };
        let is_preempted = number(self.preempted.as_ref(), record.bytes).is_some_and(|it| it != 0);
        let state = reported(state, is_preempted, is_raw);
        Some(DepartedThread { runs: self.runs(record)?, state, time, serial: record.serial })
    }
}

/// The kernel's own numbers of states (`include/linux/sched.h`), and the numbers that its tracepoint reports.
const TASK_REPORT: u64 = 0x7f;
const TASK_DEAD: u64 = 0x80;
const TASK_IDLE: u64 = 0x402;
const EXIT_DEAD: i64 = 0x10;
const REPORTED_IDLE: i64 = 0x80;
const REPORTED_PREEMPTED: i64 = 0x100;

/// A state in the form of the record of `sched_switch` in the tracing file system: one bit, the highest of
/// those that are reported.
fn reported(state: u64, is_preempted: bool, is_raw: bool) -> i64 {
    match state {
        _ if is_preempted => REPORTED_PREEMPTED,
        state if !is_raw => (state & 0x1ff) as i64,
        // Before the single bits: an idle state has two of them.
        state if state & TASK_IDLE == TASK_IDLE => REPORTED_IDLE,
        state if state & TASK_DEAD != 0 => EXIT_DEAD,
        state => (state & TASK_REPORT).checked_ilog2().map_or(0, |bit| 1 << bit),
    }
}

/// Draws the switches of one processor.
struct ScheduleDrawing<'a, P> {
    processor: &'a mut Processor,
    number: u32,
    threads: &'a Threads,
    packets: &'a mut P,
}

impl<P: PacketSink> ScheduleDrawing<'_, P> {
    /// Draws that a thread leaves, that a thread comes, or both.
    fn switch(
        &mut self,
        left: Option<DepartedThread>,
        comes: Option<(RunningThread, u64, u64)>,
        tells_all: bool,
    ) {
        if left.is_some() {
            // Several events may say that the same thread leaves. The last one counts.
            self.processor.left = left;
        }
        let Some((comes, time, serial)) = comes else { return };
        let left = self.processor.left.take();
        match left {
            // No thread came in between: each switch would tell that, or no event at all is between the two.
            Some(left) if tells_all || serial <= left.serial + 1 => self.sched_switch(left, comes, time),
            // Switches that are not recorded may have been in between. The processor is drawn as idle there.
            Some(left) => {
                self.sched_switch(left, RunningThread::default(), left.time);
                self.sched_switch(
                    DepartedThread { runs: RunningThread::default(), state: 0, time, serial },
                    comes,
                    time,
                );
            }
            None if self.processor.current.thread != comes.thread => {
                let runs = self.processor.current;
                self.sched_switch(DepartedThread { runs, state: 0, time, serial }, comes, time);
            }
            None => {}
        }
    }

    /// Draws the last departure without a thread that comes: the trace has none.
    fn close_departure(&mut self) {
        if let Some(left) = self.processor.left.take() {
            self.sched_switch(left, RunningThread::default(), left.time);
        }
    }

    fn sched_switch(&mut self, left: DepartedThread, comes: RunningThread, time: u64) {
        if left.runs.thread != self.processor.current.thread {
            // This thread ran, but since when is not known. It is drawn without a length.
            let from = DepartedThread { runs: self.processor.current, state: 0, ..left };
            self.put(from, left.runs, left.time);
        }
        self.put(left, comes, time);
        self.processor.current = comes;
    }

    fn put(&mut self, left: DepartedThread, comes: RunningThread, time: u64) {
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

    fn wake(&mut self, field: u32, woken: RunningThread, target: Option<i32>, waker: Option<i32>, time: u64) {
        // Without a field for it, the waker is the thread that runs: wake-ups are recorded in its context.
        let waker = waker.unwrap_or(self.processor.current.thread);
        let threads = self.threads;
        self.packets.scheduling(self.number, |event| {
            event.uint(field::TIMESTAMP, time).int(field::PID, waker.into());
            event.message(field, |wake| {
                named(wake, 1, threads.name(woken.thread));
                // Field 4 says that the wake-up succeeded, which is true of every recorded one.
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
