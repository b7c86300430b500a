//! What a member of a stage does, and what it notes of it in its shared words.

use std::hint::{black_box, spin_loop};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mete_bench::crew::{MemberWords, PIPES, now_ns, sleep_ns};
use mete_log::clock::nanoseconds;
use rustix::time::ClockId;

/// What a member does, and what it notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It computes all the time. After each turn on the processor, it notes when the turn began and ended.
    Hog,
    /// It sleeps for some milliseconds and computes for a moment, again and again. It notes by how much it
    /// ran late, in nanoseconds.
    Sleeper,
    /// It computes frame after frame, each of which is the same work, and notes when each was done. After
    /// some of them it sleeps, as if it waited for a disk.
    Encoder,
    /// It waits for a byte from the other player of its pair and gives it back, again and again. It notes nothing,
    /// and counts the bytes.
    Player,
}

impl Role {
    const ALL: [Role; 4] = [Role::Hog, Role::Sleeper, Role::Encoder, Role::Player];

    /// The role that a word stands for.
    fn of(word: u64) -> Option<Role> {
        Role::ALL.into_iter().find(|role| *role as u64 == word)
    }
}

/// What a member has noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// The newest notes, in their order.
    pub kept: Vec<u64>,
    /// How many before them there was no room for.
    pub lost: u64,
}

/// How long a sleeper sleeps and computes.
pub(crate) const SLEEP_NS: u64 = 5_000_000;
pub(crate) const ANSWER_NS: u64 = 100_000;
/// What a frame takes of a processor, and how long an encoder sleeps after this number of frames.
pub(crate) const FRAME_NS: u64 = 25_000_000;
pub(crate) const READ_NS: u64 = 5_000_000;
pub(crate) const FRAMES_A_READ: u64 = 14;
/// How long a hog computes between two notes of its processor time.
const NOTE_NS: u64 = 20_000;
/// A hog that has not seen the clock for so long did not have its processor meanwhile. It looks at the clock
/// all the time, and for its processor time asks the kernel.
const GAP_NS: u64 = 100_000;

/// A member's words: its role, what it has to know for that, its processor time since it began and what it had used before,
/// how often it was done, how much it has noted, and the newest notes.
const ROLE: usize = 0;
const KNOWS: usize = 1;
const USED: usize = 2;
const USED_BEFORE: usize = 3;
const DONE: usize = 4;
const NOTED: usize = 5;
const NOTES: usize = 6;
/// The most notes that are made at once: those of a turn. They stand beside each other.
const AT_ONCE: u64 = 2;
const MOST_NOTES: usize = 8192;
pub(super) const WORDS: usize = NOTES + MOST_NOTES;

/// Says what a member is to do, before it begins, and what it has to know for that: an encoder the steps of a frame, a player
/// which one it is: those that play with each other follow each other.
pub(super) fn cast(words: &[AtomicU64], role: Role, knows: u64) {
    words[ROLE].store(role as u64, Ordering::Relaxed);
    words[KNOWS].store(knows, Ordering::Relaxed);
}

/// How often a player has had the byte.
pub(super) fn done(words: &[AtomicU64]) -> u64 {
    words[DONE].load(Ordering::Relaxed)
}

/// The processor time that a member has used since it began, in nanoseconds, as it noted it last. One of a thousand may begin long
/// after the others, and would seem to use then what it took to start it.
pub(super) fn used(words: &[AtomicU64]) -> u64 {
    words[USED].load(Ordering::Relaxed)
}

/// How much a member has noted.
pub(super) fn noted(words: &[AtomicU64]) -> u64 {
    words[NOTED].load(Ordering::Acquire)
}

/// What a member has noted since it had noted this much.
pub(super) fn notes(words: &[AtomicU64], since: u64) -> Notes {
    let until = noted(words);
    let at = |nth: u64| words[NOTES + nth as usize % MOST_NOTES].load(Ordering::Relaxed);
    let first = since.max(until.saturating_sub(MOST_NOTES as u64));
    let mut kept: Vec<_> = (first..until).map(at).collect();
    // It may have gone on meanwhile, and what is about to be noted may be there already.
    let first_whole = (noted(words) + AT_ONCE).saturating_sub(MOST_NOTES as u64).clamp(since, until);
    kept.drain(..first_whole.saturating_sub(first) as usize);
    Notes { kept, lost: first_whole.max(first) - since }
}

fn note<const N: usize>(words: &[AtomicU64], notes: [u64; N]) {
    let noted = words[NOTED].load(Ordering::Relaxed);
    for (nth, note) in (noted..).zip(notes) {
        words[NOTES + nth as usize % MOST_NOTES].store(note, Ordering::Relaxed);
    }
    words[NOTED].store(noted + N as u64, Ordering::Release);
}

/// What a member does. Between a bare clone and its end it may make system calls, but allocates nothing and
/// takes no lock.
pub(super) fn play(member: &MemberWords<'_>) {
    member.words()[USED_BEFORE].store(nanoseconds(ClockId::ThreadCPUTime), Ordering::Relaxed);
    match Role::of(member.words()[ROLE].load(Ordering::Relaxed)) {
        Some(Role::Hog) => compute_on(member),
        Some(Role::Sleeper) => sleep_and_answer(member),
        Some(Role::Encoder) => encode(member),
        Some(Role::Player) => give_back(member),
        None => (),
    }
}

fn compute_on(member: &MemberWords<'_>) {
    let words = member.words();
    let mut began = now_ns();
    let mut seen = began;
    let mut due = began;
    while !member.is_over() {
        let now = now_ns();
        if now - seen > GAP_NS {
            note(words, [began, seen]);
            began = now;
        }
        seen = now;
        if now >= due {
            note_used(words);
            due = now + NOTE_NS;
        }
        // Where processors are emulated by one thread, the others go on at this moment.
        spin_loop();
    }
}

fn sleep_and_answer(member: &MemberWords<'_>) {
    let words = member.words();
    while !member.is_over() {
        let due = now_ns() + SLEEP_NS;
        sleep_ns(SLEEP_NS);
        note(words, [now_ns().saturating_sub(due)]);
        let end = now_ns() + ANSWER_NS;
        while now_ns() < end {
            spin_loop();
        }
        note_used(words);
    }
}

fn encode(member: &MemberWords<'_>) {
    let words = member.words();
    let steps = words[KNOWS].load(Ordering::Relaxed);
    let mut frames = 0;
    while !member.is_over() {
        work(steps);
        note(words, [now_ns()]);
        note_used(words);
        frames += 1;
        if frames % FRAMES_A_READ == 0 {
            sleep_ns(READ_NS);
        }
    }
}

fn give_back(member: &MemberWords<'_>) {
    let words = member.words();
    let knows = words[KNOWS].load(Ordering::Relaxed) as usize;
    let is_first = knows.is_multiple_of(2);
    // A pair has two pipes.
    let Some([there, back]) = PIPES.as_chunks().0.get(knows / 2) else { return };
    let (from, to) = if is_first { (back[0], there[1]) } else { (there[0], back[1]) };
    // SAFETY: each member has the pipes, and they are open until it ends.
    let (from, to) = unsafe { (BorrowedFd::borrow_raw(from), BorrowedFd::borrow_raw(to)) };
    let mut byte = [0];
    if is_first && rustix::io::write(to, &byte) != Ok(1) {
        return;
    }
    let mut done = 0;
    while !member.is_over()
        && rustix::io::read(from, &mut byte) == Ok(1)
        && rustix::io::write(to, &byte) == Ok(1)
    {
        done += 1;
        words[DONE].store(done, Ordering::Relaxed);
    }
}

fn note_used(words: &[AtomicU64]) {
    let before = words[USED_BEFORE].load(Ordering::Relaxed);
    words[USED].store(nanoseconds(ClockId::ThreadCPUTime) - before, Ordering::Relaxed);
}

/// The same work for the same number of steps, however long it takes.
fn work(steps: u64) {
    let mut state = 1u64;
    for _ in 0..steps {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}

/// The steps of work that take this time here, in nanoseconds. The shortest of some tries was disturbed
/// least.
pub(super) fn steps_in(ns: u64) -> u64 {
    const STEPS: u64 = 1_000_000;
    let tries = (0..10).map(|_| {
        let begin = Instant::now();
        work(black_box(STEPS));
        begin.elapsed().as_nanos() as u64
    });
    STEPS * ns / tries.min().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_6_the_newest_notes_are_kept() {
        let words: Vec<_> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        for nth in 0..10 {
            note(&words, [2 * nth, 2 * nth + 1]);
        }
        assert_eq!(notes(&words, 18), Notes { kept: vec![18, 19], lost: 0 });
        for nth in 10..(MOST_NOTES as u64) {
            note(&words, [2 * nth, 2 * nth + 1]);
        }
        let Notes { kept, lost } = notes(&words, 18);
        // The two oldest ones may be written over at any moment.
        let first = MOST_NOTES as u64 + AT_ONCE;
        assert_eq!((kept, lost), ((first..2 * MOST_NOTES as u64).collect(), first - 18));
    }
}
