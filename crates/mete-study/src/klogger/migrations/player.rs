//! A player like the paper's (§9.2): one process decodes frames, another one shows them, and hogs compute
//! beside them.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mete_bench::crew::{Crew, MemberWords, now_ns, sleep_ns};
use mete_measure::Reason;

use crate::klogger::fastest_ns;

/// The time of a frame, at 25 frames a second.
const FRAME_NS: u64 = 40_000_000;
/// The time to decode a frame, then to show it. Together they take less than one processor, as in the paper.
const DECODE_NS: u64 = 18_000_000;
const SHOW_NS: u64 = 9_000_000;

/// The number of shared words of each member.
const WORDS: usize = 8;
/// A word of the display: one more than the number of the newest decoded frame. The display waits until it
/// changes.
const DECODED: usize = 0;
/// A word of the display: the number of frames that should have been shown by now.
const DUE: usize = 1;
/// A word of the display: the number of frames that were shown in time.
const SHOWN: usize = 2;
/// A word of each member: when the first frame is due.
const BEGIN: usize = 3;
/// A word of each member: turns of the work loop in a millisecond.
const TURNS: usize = 4;

/// What happened to the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// The number of frames that should have been shown.
    pub due: u64,
    /// The number of frames that were shown in time.
    pub shown: u64,
}

impl Frames {
    /// Percent of the frames; `None` before the first one is due.
    pub fn lost_percent(&self) -> Option<f64> {
        (self.due > 0).then(|| 100.0 * (1.0 - self.shown.min(self.due) as f64 / self.due as f64))
    }
}

/// A player with hogs. Member 0 decodes, member 1 shows, and the others are hogs.
pub struct Player {
    /// The members, which wait for [`Crew::go`].
    pub crew: Crew,
}

impl Player {
    /// Starts the processes, which wait then.
    ///
    /// # Errors
    ///
    /// If the processes do not start.
    pub fn start(hogs: usize) -> Result<Player, Reason> {
        let crew = Crew::start(&vec![None; 2 + hogs], WORDS, play)?;
        let turns = turns_a_ms();
        for nth in 0..2 + hogs {
            crew.words(nth)[TURNS].store(turns, Ordering::Release);
        }
        Ok(Player { crew })
    }

    /// The number of frames that should have been shown so far, and of those that were.
    pub fn frames(&self) -> Frames {
        let read = |word: usize| self.crew.words(1)[word].load(Ordering::Acquire);
        Frames { due: read(DUE), shown: read(SHOWN) }
    }
}

fn play(member: &MemberWords<'_>) {
    match member.nth {
        0 => decode(member),
        1 => show(member),
        _ => {
            while !member.is_over() {
                work(10_000);
            }
        }
    }
}

/// Decodes a frame in each 40 ms. A frame that is not begun before the next one is due is left out.
fn decode(member: &MemberWords<'_>) {
    let turns = member.words()[TURNS].load(Ordering::Acquire);
    let display = member.of(1);
    let begin = now_ns();
    display[BEGIN].store(begin, Ordering::Release);
    let mut frame = 0u64;
    while !member.is_over() {
        let due = begin.wrapping_add(frame.wrapping_mul(FRAME_NS));
        // A frame that is already due is not waited for.
        sleep_ns(due.saturating_sub(now_ns()));
        if now_ns() < due.wrapping_add(FRAME_NS) {
            work(turns.wrapping_mul(DECODE_NS / 1_000_000));
            display[DECODED].store(frame.wrapping_add(1), Ordering::Release);
            wake(&display[DECODED]);
        }
        frame = frame.wrapping_add(1);
        display[DUE].store(frame, Ordering::Release);
    }
}

/// Shows the newest decoded frame. It is in time if it is shown within two frames' time after it was due.
fn show(member: &MemberWords<'_>) {
    let own = member.words();
    let turns = own[TURNS].load(Ordering::Acquire);
    let mut last = 0;
    while !member.is_over() {
        let frame = own[DECODED].load(Ordering::Acquire);
        if frame == last {
            wait(&own[DECODED], frame);
            continue;
        }
        work(turns.wrapping_mul(SHOW_NS / 1_000_000));
        // The decoder has stored it before its first frame.
        let begin = own[BEGIN].load(Ordering::Acquire);
        // The frame's own number is one less than `frame`, and frame 0 is due at `begin`.
        if now_ns() < begin.wrapping_add(frame.wrapping_add(1).wrapping_mul(FRAME_NS)) {
            own[SHOWN].fetch_add(1, Ordering::AcqRel);
        }
        last = frame;
    }
}

/// The lower half of a word, on which a futex can wait.
fn half(word: &AtomicU64) -> &AtomicU32 {
    // SAFETY: the first half of a live word on a machine whose lowest byte comes first; all accesses are
    // atomic, and the kernel alone looks at the half.
    unsafe { &*std::ptr::from_ref(word).cast::<AtomicU32>() }
}

fn wake(word: &AtomicU64) {
    let _ = rustix::thread::futex::wake(half(word), rustix::thread::futex::Flags::empty(), 1);
}

/// Waits until the word changes, but not longer than a frame, so that the member sees the end.
fn wait(word: &AtomicU64, value: u64) {
    let time = rustix::thread::Timespec { tv_sec: 0, tv_nsec: FRAME_NS as i64 };
    let none = rustix::thread::futex::Flags::empty();
    // The kernel returns at once if the word has changed. Any other early return is harmless: the caller
    // looks again.
    let _ = rustix::thread::futex::wait(half(word), none, value as u32, Some(&time));
}

#[inline(never)]
fn work(turns: u64) {
    let mut sum = 0u64;
    let mut turn = 0u64;
    while turn < turns {
        sum = black_box(sum.wrapping_mul(3).wrapping_add(turn));
        turn = turn.wrapping_add(1);
    }
    black_box(sum);
}

/// The number of turns of the work loop in a millisecond.
fn turns_a_ms() -> u64 {
    const TURNS: u64 = 50_000;
    // At least one turn, so that work is never empty.
    (TURNS * 1_000_000 / fastest_ns(|| work(TURNS))).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_frames_are_lost_that_were_due_and_not_shown() {
        assert_eq!(Frames { due: 50, shown: 40 }.lost_percent().map(f64::round), Some(20.0));
        assert_eq!(Frames { due: 0, shown: 0 }.lost_percent(), None);
    }
}
