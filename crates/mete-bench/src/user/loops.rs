//! The loops that are timed. Loops that are compared differ only in the measured line.

use std::arch::asm;
use std::hash::{DefaultHasher, Hasher};
use std::time::Instant;

use mete_log::clock::ticks;
use mete_probe::{DomainId, event, probe};

event! {
    /// The event that the benchmark logs.
    pub static ROW: access "mete bench row";
}

/// The correspondent of the benchmark's rows. It differs from [`DOMAIN`](super::scheduler::DOMAIN), so that
/// no row is internal to a domain.
pub const CORRESPONDENT: DomainId = DomainId::new(2);

/// Nanoseconds for each of `times` passes that `run` makes.
pub fn timed(times: u64, run: impl FnOnce(u64)) -> f64 {
    let begin = Instant::now();
    run(times);
    begin.elapsed().as_nanos() as f64 / times as f64
}

/// Makes the compiler believe that the value is used. This costs no instruction.
#[inline(always)]
pub fn keep(value: u64) {
    // SAFETY: the assembly text is a comment: it contains no instruction.
    unsafe { asm!("/* {0} */", in(reg) value, options(nomem, nostack, preserves_flags)) };
}

/// Makes the compiler forget what it knows about the value. This costs no instruction.
#[inline(always)]
fn hide(mut value: u64) -> u64 {
    // SAFETY: the assembly text is a comment: it contains no instruction.
    unsafe { asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Loops that differ in one expression.
macro_rules! loops {
    ($($(#[$doc:meta])* $name:ident: |$at:ident| $body:expr;)+) => {$(
        $(#[$doc])*
        #[inline(never)]
        pub fn $name(times: u64) {
            for $at in 0..times {
                keep($at);
                $body;
            }
        }
    )+};
}

loops! {
    /// The loop alone.
    nothing: |_at| {};
    /// The time-stamp counter alone.
    clock: |_at| keep(ticks().get());
    /// The probe.
    row: |at| probe!(ROW, CORRESPONDENT, at);
}

macro_rules! eight {
    ($body:expr) => {{
        $body;
        $body;
        $body;
        $body;
        $body;
        $body;
        $body;
        $body;
    }};
}

loops! {
    /// Eight steps of a chain of multiplications. With eight steps in a pass, the loop itself is only a small
    /// part of what is measured.
    eight_steps: |at| {
        let mut value = at;
        eight!(value = hide(value.wrapping_mul(value)));
        keep(value)
    };
    /// The same with a probe at each step.
    eight_probed_steps: |at| {
        let mut value = at;
        eight!({
            value = hide(value.wrapping_mul(value));
            probe!(ROW, CORRESPONDENT, at)
        });
        keep(value)
    };
    /// Eight times nothing.
    eight_times_nothing: |at| eight!(keep(at));
    /// Eight probes and nothing else.
    eight_probes: |at| eight!({
        keep(at);
        probe!(ROW, CORRESPONDENT, at)
    });
}

/// The kinds of work, by what limits the processor in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Each step waits for the step before, so the processor is half idle.
    Latency,
    /// Four independent chains of cheap steps keep nearly all of the processor's units busy.
    Throughput,
    /// A keyed hash over some words, as programs compute it for their tables. It lies between the other two.
    Hash,
}

/// The number of steps in one turn of the loop over them. A loop of many short turns would end with a branch
/// that the processor mispredicts or not, depending on the other code of the pass.
const UNROLLED: u64 = 4;

/// Some work on the result of the pass before. This way passes overlap only where the work itself does.
#[inline(always)]
fn work(kind: Work, mut lanes: [u64; 4], turns: u64) -> [u64; 4] {
    if kind == Work::Hash {
        lanes[0] = hash(lanes[0], turns);
        return lanes;
    }
    for _ in 0..turns {
        for _ in 0..UNROLLED {
            lanes = step(kind, lanes);
        }
    }
    lanes
}

#[inline(always)]
fn step(kind: Work, lanes: [u64; 4]) -> [u64; 4] {
    if kind == Work::Throughput {
        return lanes.map(|lane| hide(lane.rotate_left(5).wrapping_add(lane) ^ 99));
    }
    let [first, second, third, fourth] = lanes;
    [hide(first.wrapping_mul(first)), second, third, fourth]
}

#[inline(always)]
fn hash(seed: u64, words: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    for word in 0..words {
        hasher.write_u64(seed ^ word);
    }
    hasher.finish()
}

/// Loops over `turns` turns of work of each kind.
macro_rules! working_loops {
    ($($(#[$doc:meta])* $name:ident: $kind:expr, |$at:ident| $body:expr;)+) => {$(
        $(#[$doc])*
        #[inline(never)]
        pub fn $name(times: u64, turns: u64) {
            let mut lanes = [3, 5, 7, 9];
            for $at in 0..times {
                // The lanes go from pass to pass, so the compiler cannot move the work out of the loop.
                lanes = work($kind, lanes, turns);
                keep($at);
                $body;
            }
            // Without a use the compiler would drop the whole work.
            lanes.into_iter().for_each(keep);
        }
    )+};
}

working_loops! {
    /// Work alone.
    latency_work: Work::Latency, |_at| {};
    /// Work, then a look at the time-stamp counter.
    latency_work_and_clock: Work::Latency, |_at| keep(ticks().get());
    /// Work, then a row.
    latency_work_and_row: Work::Latency, |at| probe!(ROW, CORRESPONDENT, at);
    /// Work alone.
    throughput_work: Work::Throughput, |_at| {};
    /// Work, then a look at the time-stamp counter.
    throughput_work_and_clock: Work::Throughput, |_at| keep(ticks().get());
    /// Work, then a row.
    throughput_work_and_row: Work::Throughput, |at| probe!(ROW, CORRESPONDENT, at);
    /// Work alone.
    hash_work: Work::Hash, |_at| {};
    /// Work, then a look at the time-stamp counter.
    hash_work_and_clock: Work::Hash, |_at| keep(ticks().get());
    /// Work, then a row.
    hash_work_and_row: Work::Hash, |at| probe!(ROW, CORRESPONDENT, at);
}

/// What a loop does after each piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// It reads the time-stamp counter.
    Clock,
    /// It logs a row.
    Row,
}

/// A loop whose passes are `turns` turns of work each, with `after` behind each of them.
pub fn working(kind: Work, after: After, turns: u64) -> impl FnOnce(u64) {
    let [nothing, clock, row]: [fn(u64, u64); 3] = match kind {
        Work::Latency => [latency_work, latency_work_and_clock, latency_work_and_row],
        Work::Throughput => [throughput_work, throughput_work_and_clock, throughput_work_and_row],
        Work::Hash => [hash_work, hash_work_and_clock, hash_work_and_row],
    };
    let run = match after {
        After::Nothing => nothing,
        After::Clock => clock,
        After::Row => row,
    };
    move |times| run(times, turns)
}

/// The number of turns of work that take closest to `wanted_ns`. Each cost is the best of several tries.
pub fn calibrate(kind: Work, wanted_ns: f64) -> u64 {
    const TIMES: u64 = 5_000;
    const SAMPLE: u64 = 16;
    let cost = |turns| {
        let tries = (0..9).map(|_| timed(TIMES, working(kind, After::Nothing, turns)));
        tries.fold(f64::INFINITY, f64::min)
    };
    let estimate = (wanted_ns * SAMPLE as f64 / cost(SAMPLE)) as u64;
    // The estimate counts the loop's own cost to the turns, so the numbers of turns around it are tried, too.
    let candidates = (estimate.saturating_sub(1).max(1)..=estimate + 2)
        .map(|turns| ((cost(turns) - wanted_ns).abs(), turns));
    candidates.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(1, |(_, turns)| turns)
}
