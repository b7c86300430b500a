//! Processes that this program makes for a study to watch: hogs, players, watchers of the clock.
//!
//! ```text
//!   this process ── clone ──▶ leader (setsid, waits) ── clone ──▶ member 0, member 1, …
//!         └────────────── shared words: go, stop, and some for each member ──────┘
//! ```
//!
//! All members are in one session of their own. The kernel's scheduler treats the members as equals, and the
//! session as one party among the machine's sessions. Members only make system calls and allocate nothing,
//! because they are bare clones of a process that has other threads.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, ptr, slice};

use mete_measure::processor;
use mete_measure::reason::Reason;
use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process, waitpid};

/// The number of words before those of the members.
const COMMON: usize = 8;
const GO: usize = 0;
const STOP: usize = 1;
/// Each member's first word: its process id, once it runs, or the negative number of the error by which it
/// may not run on its processor.
const PID: usize = 0;
/// The longest time until all members run, and what comes to it for each of them.
const START: Duration = Duration::from_secs(5);
const START_OF_EACH: Duration = Duration::from_millis(30);
/// The pipes of a crew: from where each is read and to where it is written. The leader has no other descriptor when it
/// makes them, so they have the lowest numbers, and members inherit them.
pub const PIPES: [[RawFd; 2]; 8] = [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13], [14, 15]];
/// The flag of `clone3` (linux/sched.h), which the C library's constant is too narrow for.
const CLONE_INTO_CGROUP: u64 = 1 << 33;
/// No member waits longer for the start, and none lives longer after it, even if this process is killed.
const WAIT_S: u32 = 600;
const LIFE_S: u32 = 60;

/// What a member does. It returns when [`MemberWords::is_over`] says so.
pub type Work = fn(&MemberWords<'_>);

/// Members that run. They are killed when this is dropped.
pub struct Crew {
    leader: Pid,
    memory: Shared,
    members: usize,
    words: usize,
}

/// What a member sees of the shared words.
pub struct MemberWords<'a> {
    /// The member's place in the crew, from 0.
    pub nth: usize,
    all: &'a [AtomicU64],
    words: usize,
}

impl MemberWords<'_> {
    /// Whether the member shall end.
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

/// The words of a member, which follow the word with its process id.
fn words_of(all: &[AtomicU64], words: usize, nth: usize) -> &[AtomicU64] {
    let first = COMMON + nth * (words + 1);
    &all[first + 1..first + 1 + words]
}

impl Crew {
    /// Starts a member for each place, with `words` shared words each. The members wait for [`Crew::go`].
    /// Each runs on the processor of its place, or, without one, on any processor on which this thread may
    /// run.
    ///
    /// # Errors
    ///
    /// If there is no memory or no process, a member may not run on its processor, or the members do not
    /// start in time.
    pub fn start(places: &[Option<usize>], words: usize, work: Work) -> Result<Crew, Reason> {
        Crew::start_in(&[], places, words, work)
    }

    /// The same, and each member begins in the control group of version 2 with this path; where there are no paths, in that
    /// of this process. To move thousands later would take the kernel some ten milliseconds for each.
    ///
    /// # Errors
    ///
    /// As above, or if a member may not be in its group.
    pub fn start_in(
        groups: &[CString],
        places: &[Option<usize>],
        words: usize,
        work: Work,
    ) -> Result<Crew, Reason> {
        let members = places.len();
        let memory = Shared::new(COMMON + members * (words + 1))?;
        // SAFETY: the closure only makes system calls, on memory that was made before the clone.
        let leader = unsafe { clone_bare(None, || lead(memory.words(), (groups, places), words, work)) };
        let leader = leader.map_err(Reason::while_trying("start processes"))?;
        let crew = Crew { leader, memory, members, words };
        let begin = Instant::now();
        // A member stores its process id last, so none of them is 0 once all wait for the start.
        loop {
            let pids = crew.pids();
            if let Some((pid, place)) = pids.iter().zip(places).find(|(pid, _)| **pid < 0) {
                let what = place.map_or_else(
                    || "start a process in a control group".to_owned(),
                    |place| format!("start a process on processor {place}"),
                );
                return Err(Reason::while_trying(what)(io::Error::from_raw_os_error(-pid)));
            }
            if !pids.contains(&0) {
                return Ok(crew);
            }
            if begin.elapsed() > START + START_OF_EACH * members as u32 {
                return Err(Reason::new("processes of the study do not start"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Makes the members begin.
    pub fn go(&self) {
        let go = &self.memory.words()[GO];
        go.store(1, Ordering::Release);
        // SAFETY: the call reads no memory. It cannot fail at an address that there is.
        unsafe { libc::syscall(libc::SYS_futex, go.as_ptr(), libc::FUTEX_WAKE, libc::c_int::MAX) };
    }

    /// Whether all members are there still.
    ///
    /// # Errors
    ///
    /// Some have ended by themselves: none lives longer than a minute after its start.
    pub fn check(&self) -> Result<(), Reason> {
        let pids = self.pids();
        let gone = |pid: &&i32| Pid::from_raw(**pid).is_none_or(|pid| test_kill_process(pid).is_err());
        match pids.iter().filter(gone).count() {
            0 => Ok(()),
            gone => Err(Reason::new(format!("{gone} of {} processes had ended before the time", pids.len()))),
        }
    }

    /// Asks the members to end.
    pub fn stop(&self) {
        self.memory.words()[STOP].store(1, Ordering::Release);
    }

    /// The process ids of the members, in order; 0 for a member that does not run yet.
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
        // The leader makes its process group before it clones the first member, so the group has all members.
        let _ = kill_process_group(self.leader, Signal::KILL);
        let _ = rustix::process::kill_process(self.leader, Signal::KILL);
        // Only the leader is a child of this process; its members have gone to init, which waits for them.
        let _ = waitpid(Some(self.leader), WaitOptions::empty());
    }
}

fn lead(all: &[AtomicU64], (groups, places): (&[CString], &[Option<usize>]), words: usize, work: Work) -> ! {
    // SAFETY: these system calls take no memory. All descriptors are closed: they would keep programs
    // attached that this process has attached.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::setsid();
        // A member that ends is gone at once, so that `check` sees it.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        for _ in PIPES {
            libc::pipe([0; 2].as_mut_ptr());
        }
    }
    for (nth, place) in places.iter().enumerate() {
        let group = groups.get(nth).map(|path| rustix::fs::open(path, OFlags::PATH, Mode::empty()));
        let cloned = match &group {
            Some(Err(error)) => Err((*error).into()),
            // SAFETY: as for the leader in `Crew::start`.
            group => unsafe {
                let group = group.as_ref().and_then(|group| group.as_ref().ok()).map(OwnedFd::as_raw_fd);
                clone_bare(group, || serve(all, words, nth, *place, work))
            },
        };
        if let Err(error) = cloned {
            say_start(all, words, nth, -i64::from(error.raw_os_error().unwrap_or(libc::EAGAIN)));
        }
    }
    loop {
        // SAFETY: takes no memory. It waits for a signal, which ends the process.
        unsafe { libc::pause() };
    }
}

fn serve(all: &[AtomicU64], words: usize, nth: usize, place: Option<usize>, work: Work) -> ! {
    // SAFETY: these system calls take no memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // A handler that was inherited would run code that is not made for a bare clone.
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(WAIT_S);
    }
    // Elsewhere it would measure something else, and other members would meet it on their processors.
    let refused = place.and_then(|processor| processor::pin_bare(processor).err()?.raw_os_error());
    // SAFETY: a query, which takes no memory.
    let pid = refused.map_or_else(|| unsafe { libc::syscall(libc::SYS_getpid) }, |error| -i64::from(error));
    say_start(all, words, nth, pid);
    // Acquire: a member that sees the start also sees the words that were written before.
    let go = &all[GO];
    while go.load(Ordering::Acquire) == 0 {
        // A thousand that look at it again and again would keep others from being started. The word is 1 at most, and a futex
        // is its lower half.
        // SAFETY: the call reads the word, and no time.
        unsafe {
            libc::syscall(libc::SYS_futex, go.as_ptr(), libc::FUTEX_WAIT, 0, ptr::null::<libc::timespec>())
        };
    }
    // SAFETY: takes no memory.
    unsafe { libc::alarm(LIFE_S) };
    work(&MemberWords { nth, all, words });
    // SAFETY: ends this process without the exit handlers, which belong to its parent.
    unsafe { libc::_exit(0) }
}

/// Says the process id of a member that runs, or the negative number of the error by which it does not.
fn say_start(all: &[AtomicU64], words: usize, nth: usize, pid: i64) {
    all[COMMON + nth * (words + 1) + PID].store(pid as u64, Ordering::Release);
}

/// The time of CLOCK_MONOTONIC, as a rule without a system call.
#[inline(always)]
pub fn now_ns() -> u64 {
    mete_log::clock::monotonic_ns()
}

/// Sleeps, without allocating.
pub fn sleep_ns(ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    // SAFETY: the call reads one `timespec`, which lives across it.
    unsafe { libc::nanosleep(&time, ptr::null_mut()) };
}

/// Clones this process by the system call itself, into this control group if there is one; the clone ends after `child`. The C
/// library's fork would make the clone a component of its own, with a socket and a thread.
///
/// # Safety
///
/// The child must only make system calls, on memory that was made before. Other threads of this process may
/// have held any lock at the time of the clone.
pub(crate) unsafe fn clone_bare(group: Option<RawFd>, child: impl FnOnce()) -> io::Result<Pid> {
    let flags = libc::c_long::from(libc::SIGCHLD);
    let pid = match group {
        // SAFETY: no memory is passed, and the child has its own copy of the stack.
        None => unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) },
        // SAFETY: the arguments live across the call, and are as long as it says.
        Some(group) => unsafe {
            let mut arguments: libc::clone_args = std::mem::zeroed();
            arguments.flags = CLONE_INTO_CGROUP;
            arguments.exit_signal = libc::SIGCHLD as u64;
            arguments.cgroup = group as u64;
            libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>())
        },
    };
    if pid == 0 {
        child();
        // SAFETY: as in `serve`.
        unsafe { libc::_exit(0) }
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
        // SAFETY: this makes a new mapping at an address of the kernel's choice.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), count * 8, protection, MapFlags::SHARED) };
        let base = base.map_err(Reason::while_trying("map memory for processes"))?;
        let base = NonNull::new(base.cast()).ok_or_else(|| Reason::new("memory was mapped at nowhere"))?;
        Ok(Shared { base, count })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has `count` words, is not null, is page-aligned and lives as long as `self`.
        unsafe { slice::from_raw_parts(self.base.as_ptr().cast(), self.count) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` made. Clones have their own mappings of the same memory.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.count * 8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::is_there;

    fn count(member: &MemberWords<'_>) {
        member.words()[0].store(member.nth as u64 + 1, Ordering::Release);
        while !member.is_over() {
            sleep_ns(100_000);
        }
    }

    #[test]
    fn klog_9_a_processor_that_a_member_may_not_run_on_is_the_reason() {
        let refused = Crew::start(&[None, Some(100_000)], 1, count).err().map(|reason| reason.to_string());
        assert!(refused.as_ref().is_some_and(|why| why.contains("processor 100000")), "{refused:?}");
    }

    #[test]
    fn klog_9_members_that_ended_before_the_time_are_missed() -> Result<(), Reason> {
        let crew = Crew::start(&[None; 3], 1, count)?;
        crew.check()?;
        let first = Pid::from_raw(crew.pids()[0]);
        first.map(|pid| rustix::process::kill_process(pid, Signal::KILL));
        let begin = Instant::now();
        let missed = loop {
            match crew.check() {
                Err(reason) => break reason.to_string(),
                Ok(()) => assert!(begin.elapsed() < Duration::from_secs(20)),
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(missed.starts_with("1 of 3"), "{missed}");
        Ok(())
    }

    #[test]
    fn klog_9_members_begin_on_request_and_end_with_their_crew() -> Result<(), Reason> {
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
        while pids.iter().any(|pid| is_there(*pid)) {
            assert!(begin.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
