//! Processes of this program's own that a study watches: hogs, players, watchers of the clock.
//!
//! ```text
//!   this process ── clone ──▶ leader (setsid, waits) ── clone ──▶ member 0, member 1, …
//!         └────────────── shared words: go, stop, and some for each member ──────┘
//! ```
//!
//! All of them are in one session of their own, so that they are equals among themselves and one party to
//! everybody else. They make system calls only and allocate nothing: they are bare clones of a process that has
//! other threads.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, ptr, slice};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpid};

use crate::processor;
use crate::reason::Reason;

/// Words before the members' own.
const COMMON: usize = 8;
const GO: usize = 0;
const STOP: usize = 1;
/// Each member's first word: its number, once it is there.
const PID: usize = 0;
/// How long it may take until all are there.
const START: Duration = Duration::from_secs(5);
/// No member lives longer, whatever becomes of this process.
const LIFE_S: u32 = 60;

/// What a member does. It returns when it is told to.
pub type Work = fn(&Desk<'_>);

/// Members that run. Dropped, they are killed.
pub struct Crew {
    leader: Pid,
    memory: Shared,
    members: usize,
    words: usize,
}

/// What a member sees.
pub struct Desk<'a> {
    /// Which one it is.
    pub nth: usize,
    all: &'a [AtomicU64],
    words: usize,
}

impl Desk<'_> {
    /// Whether to end.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.all[STOP].load(Ordering::Relaxed) != 0
    }

    /// The member's own words.
    #[inline(always)]
    pub fn words(&self) -> &[AtomicU64] {
        self.of(self.nth)
    }

    /// Another member's words.
    #[inline(always)]
    pub fn of(&self, nth: usize) -> &[AtomicU64] {
        words_of(self.all, self.words, nth)
    }
}

/// Behind the word with the member's number.
fn words_of(all: &[AtomicU64], words: usize, nth: usize) -> &[AtomicU64] {
    let first = COMMON + nth * (words + 1);
    &all[first + 1..first + 1 + words]
}

impl Crew {
    /// Starts a member for each place, with so many shared words each; they wait for [`Crew::go`]. Each runs on
    /// the processor of its place, or wherever this thread may.
    ///
    /// # Errors
    ///
    /// If there is no memory or no process, or they do not come up.
    pub fn start(places: &[Option<usize>], words: usize, work: Work) -> Result<Crew, Reason> {
        let members = places.len();
        let memory = Shared::new(COMMON + members * (words + 1))?;
        // SAFETY: the closure makes system calls only, on memory that was made before.
        let leader = unsafe { clone_bare(|| lead(memory.words(), places, words, work)) };
        let leader = leader.map_err(Reason::while_trying("start processes"))?;
        let crew = Crew { leader, memory, members, words };
        let begin = Instant::now();
        while crew.pids().contains(&0) {
            if begin.elapsed() > START {
                return Err(Reason::new("processes of the study do not start"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(crew)
    }

    /// Has them begin.
    pub fn go(&self) {
        self.memory.words()[GO].store(1, Ordering::Release);
    }

    /// Asks them to end.
    pub fn stop(&self) {
        self.memory.words()[STOP].store(1, Ordering::Release);
    }

    /// The members' numbers, in order.
    pub fn pids(&self) -> Vec<i32> {
        let all = self.memory.words();
        (0..self.members)
            .map(|nth| all[COMMON + nth * (self.words + 1) + PID].load(Ordering::Acquire) as i32)
            .collect()
    }

    /// A member's shared words.
    pub fn words(&self, nth: usize) -> &[AtomicU64] {
        words_of(self.memory.words(), self.words, nth)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // All of them are in the leader's group, which it is the leader of before the first one is there.
        let _ = kill_process_group(self.leader, Signal::KILL);
        let _ = rustix::process::kill_process(self.leader, Signal::KILL);
        let _ = waitpid(Some(self.leader), WaitOptions::empty());
    }
}

fn lead(all: &[AtomicU64], places: &[Option<usize>], words: usize, work: Work) -> ! {
    // SAFETY: system calls without memory. Programs attached by this process must not live on in its clones.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::setsid();
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
    }
    for (nth, place) in places.iter().enumerate() {
        // SAFETY: as that of the leader.
        let _ = unsafe { clone_bare(|| serve(all, words, nth, *place, work)) };
    }
    loop {
        // SAFETY: waits for a signal, which ends it.
        unsafe { libc::pause() };
    }
}

fn serve(all: &[AtomicU64], words: usize, nth: usize, place: Option<usize>, work: Work) -> ! {
    // SAFETY: system calls without memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(LIFE_S);
    }
    if let Some(processor) = place {
        let _ = processor::pin_bare(processor);
    }
    // SAFETY: a query.
    let pid = unsafe { libc::syscall(libc::SYS_getpid) };
    all[COMMON + nth * (words + 1) + PID].store(pid as u64, Ordering::Release);
    while all[GO].load(Ordering::Acquire) == 0 {
        sleep_ns(200_000);
    }
    work(&Desk { nth, all, words });
    // SAFETY: ends this process without running what belongs to its parent.
    unsafe { libc::_exit(0) }
}

/// CLOCK_MONOTONIC, without a system call as a rule.
#[inline(always)]
pub fn now_ns() -> u64 {
    mete_log::clock::monotonic_ns()
}

/// Sleeps, without allocating.
pub fn sleep_ns(ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    // SAFETY: reads one time.
    unsafe { libc::nanosleep(&time, ptr::null_mut()) };
}

/// A clone of this process by the system call itself: the C library's fork would make it a component of its own,
/// with a socket and a thread.
///
/// # Safety
///
/// The child must make system calls only, on what was made before: other threads of this process may have held any
/// lock when it was cloned.
unsafe fn clone_bare(child: impl FnOnce()) -> io::Result<Pid> {
    let flags = libc::c_long::from(libc::SIGCHLD);
    // SAFETY: no memory is passed; the child has its own copy of the stack.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if pid == 0 {
        child();
        // SAFETY: as in `serve`.
        unsafe { libc::_exit(1) }
    }
    Pid::from_raw(pid as libc::pid_t).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error)
}

/// Zeroed words that this process and its clones share.
struct Shared {
    base: NonNull<u8>,
    count: usize,
}

impl Shared {
    fn new(count: usize) -> Result<Shared, Reason> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at no particular place.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), count * 8, protection, MapFlags::SHARED) };
        let base = base.map_err(Reason::while_trying("map memory for processes"))?;
        let base = NonNull::new(base.cast()).ok_or_else(|| Reason::new("memory was mapped at nowhere"))?;
        Ok(Shared { base, count })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has so many words, is never null, is page-aligned and lives as long as this.
        unsafe { slice::from_raw_parts(self.base.as_ptr().cast(), self.count) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; clones have theirs.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.count * 8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(desk: &Desk<'_>) {
        desk.words()[0].store(desk.nth as u64 + 1, Ordering::Release);
        while !desk.is_over() {
            sleep_ns(100_000);
        }
    }

    #[test]
    fn klog_9_members_begin_when_they_are_told_to_and_are_gone_with_their_crew() -> Result<(), Reason> {
        let crew = Crew::start(&[None; 3], 1, count)?;
        let pids = crew.pids();
        let said = || [0, 1, 2].map(|nth| crew.words(nth)[0].load(Ordering::Acquire));
        assert_eq!(said(), [0; 3]);
        crew.go();
        let begin = Instant::now();
        while said() != [1, 2, 3] {
            assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", said());
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(crew);
        let is_there = |pid: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z")
        };
        while pids.iter().any(is_there) {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
