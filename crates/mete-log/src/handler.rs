//! The portable handler: from an occurrence of an event, over the domain table, to the committed row.
//!
//! It is the reference for the other two handlers: [`rseq`](crate::rseq) (x86-64 assembly with the same
//! decisions) and `include/mete_handler.h` (BPF C). Components without restartable sequences use it directly.
//! The register's busy word then protects the row: one locked instruction takes it, and no thread waits for
//! it.

use core::sync::atomic::Ordering;

use crate::area::{Area, Pair, Register};
use crate::control::{ADD_BIT, COUNTER_BIT, Control, Stamp, WHO_BITS};
use crate::layout::PAIR_KEEP_INTERNAL;
use crate::{DomainId, EventId, row};

/// One occurrence of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The characteristic.
    pub event: EventId,
    /// The domain that is charged.
    pub domain: DomainId,
    /// The domain at the other end, or [`NO_DOMAIN`](crate::NO_DOMAIN).
    pub correspondent: DomainId,
    /// The alteration, delta or value.
    pub counter: u64,
}

/// What became of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A row was committed.
    Logged,
    /// The occurrence stayed inside its domain and was dropped on purpose (thesis §3.6.2).
    Internal,
    /// The occurrence was counted towards the pair's threshold.
    Counted,
    /// The pair's file is not enabled.
    Off,
    /// The file was frozen or busy. The register's count of lost rows went up.
    Refused,
}

/// The time sources of a component (thesis §4.3.3). A reading goes into the row as it is, so it is a plain
/// word here.
pub trait Clock {
    /// The finest clock.
    fn hardware(&self) -> u64;
    /// The periodic tick.
    fn tick(&self) -> u64;
    /// The run-queue clock. Components without one return 0.
    fn run_queue(&self) -> u64 {
        0
    }
}

/// The whole handler: filter, threshold, routing, row (thesis §4.3.3, §4.3.5).
#[inline]
pub fn log(area: Area<'_>, clock: &impl Clock, record: Record) -> Outcome {
    let pair = area.pair(record.domain, record.event);
    if is_internal(pair, record) {
        return Outcome::Internal;
    }
    if !reaches_threshold(pair) {
        return Outcome::Counted;
    }
    route(area, clock, pair, record)
}

/// The entry into a phase of continuous use. Counts it towards the threshold and answers whether its exit is
/// to be logged, so that the value at the entry is read only if it is needed (thesis §4.3.5).
///
/// The papers ask the counter again at the exit. Here the caller keeps the answer, so that phases can overlap
/// and can end on another processor than the one on which they began.
#[inline]
pub fn enter(area: Area<'_>, domain: DomainId, event: EventId) -> bool {
    reaches_threshold(area.pair(domain, event))
}

/// The exit from a phase whose [`enter`] answered yes: logs the delta.
#[inline]
pub fn exit(area: Area<'_>, clock: &impl Clock, record: Record) -> Outcome {
    let pair = area.pair(record.domain, record.event);
    if is_internal(pair, record) { Outcome::Internal } else { route(area, clock, pair, record) }
}

#[inline]
fn route(area: Area<'_>, clock: &impl Clock, pair: &Pair, record: Record) -> Outcome {
    let register = area.register(pair.file());
    if !register.control().is_enabled() {
        return Outcome::Off;
    }
    if !try_take(register) {
        return refuse(register);
    }
    // Only this one counts: a plan that changes it waits for threads that have taken the file.
    let control = register.control();
    let outcome = if !control.is_enabled() {
        Outcome::Off
    } else if control.is_frozen() {
        refuse(register)
    } else {
        put_row(area, clock, register, control, record);
        Outcome::Logged
    };
    // Release: the row and its commit come before the next writer's.
    register.busy.store(0, Ordering::Release);
    outcome
}

fn refuse(register: &Register) -> Outcome {
    // Relaxed: a count on its own. By a locked instruction, because several threads can be refused at once.
    register.lost.fetch_add(1, Ordering::Relaxed);
    Outcome::Refused
}

/// Takes a file for this thread, if no other thread has it. Does not wait.
fn try_take(register: &Register) -> bool {
    // Acquire: what the last writer committed is seen before this row is placed. SeqCst: see `Plan::apply`.
    // Relaxed on failure: nothing of the file is read then.
    let is_taken = register.busy.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed).is_ok();
    if is_taken {
        hold_back_the_clock();
    }
    is_taken
}

/// Keeps the processor from reading its time-stamp counter before it has the file. Otherwise the processor
/// may read the counter before its locked instruction is complete, and a row of another processor, which
/// comes earlier in the file, would have the later stamp.
#[inline(always)]
fn hold_back_the_clock() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: LFENCE has no precondition; every x86-64 processor has it.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
}

#[inline(always)]
pub(crate) fn is_internal(pair: &Pair, record: Record) -> bool {
    // Relaxed: the flag says all that there is to it.
    record.domain == record.correspondent && pair.flags.load(Ordering::Relaxed) & PAIR_KEEP_INTERNAL == 0
}

/// Counts an occurrence; true if it makes a row. Takes one locked instruction at most, and only on pairs that
/// have a threshold: without restartable sequences several threads of one processor can count at the same
/// time.
#[inline(always)]
fn reaches_threshold(pair: &Pair) -> bool {
    // Relaxed, here and below: the count protects no other memory, so only its atomicity matters.
    let threshold = pair.threshold.load(Ordering::Relaxed);
    if threshold <= 1 {
        return true;
    }
    let mut count = pair.count.load(Ordering::Relaxed);
    loop {
        let next = count.wrapping_add(1);
        let is_reached = next >= threshold;
        let next = if is_reached { 0 } else { next };
        match pair.count.compare_exchange_weak(count, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return is_reached,
            Err(now) => count = now,
        }
    }
}

/// Writes one row into a file that this thread has to itself.
#[inline(always)]
fn put_row(area: Area<'_>, clock: &impl Clock, register: &Register, control: Control, record: Record) {
    // Relaxed: only the thread that has the file changes the index, and `try_take` acquired it.
    let index = register.index.load(Ordering::Relaxed);
    let place = control.place(index);
    let bits = control.to_bits();
    let (has_who, has_counter) = (bits & WHO_BITS != 0, bits & COUNTER_BIT != 0);
    let who = row::who(record.event, record.domain, record.correspondent);
    let stamp = stamp(area, clock, control.stamp());

    let mut words = [(0, 0); 3];
    let mut used = 0;
    let selected = [
        (has_who, who),
        (has_counter, counter(area, control, index, record)),
        (stamp.is_some(), stamp.unwrap_or(0)),
    ];
    for (_, word) in selected.into_iter().filter(|(is_selected, _)| *is_selected) {
        words[used] = (used, word);
        used += 1;
    }
    let row = words[..used].iter().map(|&(nth, word)| (area.row_word(place, nth), word));
    crate::ring::publish(&register.index, index, row);
}

/// The counter to write: the occurrence's own, or in an adding file the sum so far (the papers'
/// `counter_add`). Each row of an adding file has the running total, so that the commit of one index is
/// enough and the newest row is the answer.
#[inline(always)]
pub(crate) fn counter(area: Area<'_>, control: Control, index: u64, record: Record) -> u64 {
    if control.to_bits() & ADD_BIT == 0 {
        return record.counter;
    }
    // The counter is the second word of a row that has a first one, and else the first.
    let nth = usize::from(control.to_bits() & WHO_BITS != 0);
    // Relaxed: the thread that has the file wrote it last, or the plan cleared it before it set the control
    // word.
    let before = area.row_word(control.place(index.wrapping_sub(1)), nth).load(Ordering::Relaxed);
    before.wrapping_add(record.counter)
}

#[inline(always)]
fn stamp(area: Area<'_>, clock: &impl Clock, source: Stamp) -> Option<u64> {
    match source {
        Stamp::None => None,
        Stamp::Hardware => Some(clock.hardware()),
        Stamp::Tick => Some(clock.tick()),
        // Relaxed: the clock orders rows by its value alone; a locked instruction hands out each value once.
        Stamp::Virtual => Some(area.virtual_clock().fetch_add(1, Ordering::Relaxed)),
        Stamp::RunQueue => Some(clock.run_queue()),
    }
}
