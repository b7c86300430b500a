//! What makes events happen at a known rate: system calls, and messages between two tasks.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::thread::{self, JoinHandle};
use std::{fs, ptr};

use crate::processor;
use crate::reason::Reason;

/// Makes so many system calls that do next to nothing.
#[inline(never)]
pub fn system_calls(times: u64) {
    for _ in 0..times {
        // SAFETY: takes no argument and cannot fail. Not by the C library, which might remember.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}

/// Has this thread's system calls take the kernel's slow way, as any tracepoint at their entry does
/// for as long as it is used by anybody. With this on all the time, a difference shows what hangs at
/// the tracepoint and not the way there.
#[derive(Debug)]
#[must_use = "system calls are quick again when this is dropped"]
pub struct SlowEntry;

impl SlowEntry {
    /// Begins, by system-call dispatch to nowhere: all of memory is excepted from it.
    ///
    /// # Errors
    ///
    /// If the kernel, older than 5.11 or of another architecture, has no such thing.
    pub fn begin() -> Result<SlowEntry, Reason> {
        const ON: libc::c_ulong = 1;
        if dispatch(ON, libc::c_ulong::MAX >> 1) == 0 {
            return Ok(SlowEntry);
        }
        Err(Reason::while_trying("slow system calls down")(io::Error::last_os_error()))
    }
}

impl Drop for SlowEntry {
    fn drop(&mut self) {
        const OFF: libc::c_ulong = 0;
        dispatch(OFF, 0);
    }
}

fn dispatch(mode: libc::c_ulong, excepted_bytes: libc::c_ulong) -> libc::c_int {
    const SET_SYSCALL_USER_DISPATCH: libc::c_int = 59;
    let (from, no_selector): (libc::c_ulong, libc::c_ulong) = (0, 0);
    // SAFETY: no memory is passed, and no call site is left out of the exception.
    unsafe { libc::prctl(SET_SYSCALL_USER_DISPATCH, mode, from, excepted_bytes, no_selector) }
}

/// Where the one that answers messages lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partner {
    /// In a thread of this process (the thesis' "Intra AS").
    SameAddressSpace,
    /// In a process of its own ("Cross AS").
    OtherAddressSpace,
}

/// A task that sends each byte back that it gets through a pipe. Dropped, it ends.
pub struct Echo {
    to: Option<fs::File>,
    from: fs::File,
    task: Task,
}

enum Task {
    Thread(Option<JoinHandle<()>>),
    Process(libc::pid_t),
}

impl Echo {
    /// Starts it on a processor. It does not take the processor from who writes to it: see
    /// [`processor::Batch`].
    ///
    /// # Errors
    ///
    /// If there are no pipes or no task.
    pub fn start(partner: Partner, processor: usize) -> Result<Echo, Reason> {
        let ((there_in, there_out), (back_in, back_out)) = (pipe()?, pipe()?);
        let task = match partner {
            Partner::SameAddressSpace => start_thread(there_in, back_out, processor)?,
            Partner::OtherAddressSpace => start_process(there_in, back_out, processor)?,
        };
        Ok(Echo { to: Some(there_out), from: back_in, task })
    }

    /// Sends a byte and waits for it to come back.
    ///
    /// # Errors
    ///
    /// If the other one is gone.
    #[inline(always)]
    pub fn round_trip(&mut self) -> io::Result<()> {
        self.send()?;
        self.receive()
    }

    /// The first half of a round trip.
    ///
    /// # Errors
    ///
    /// As [`Echo::round_trip`].
    #[inline(always)]
    pub fn send(&mut self) -> io::Result<()> {
        self.to.as_mut().map_or(Ok(()), |to| to.write_all(&[1]))
    }

    /// The second half.
    ///
    /// # Errors
    ///
    /// As [`Echo::round_trip`].
    #[inline(always)]
    pub fn receive(&mut self) -> io::Result<()> {
        self.from.read_exact(&mut [0])
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // With its end of the pipe closed, the other one reads the end and ends.
        self.to = None;
        match &mut self.task {
            Task::Thread(thread) => drop(thread.take().map(JoinHandle::join)),
            // SAFETY: our child, which nobody else waits for.
            Task::Process(pid) => drop(unsafe { libc::waitpid(*pid, ptr::null_mut(), 0) }),
        }
    }
}

fn start_thread(mut from: fs::File, mut to: fs::File, processor: usize) -> Result<Task, Reason> {
    let echo = move || {
        // Where it may not run there it runs elsewhere, which shows in the numbers.
        let _ = processor::pin(processor);
        let _batch = processor::Batch::begin();
        let mut byte = [0];
        while from.read_exact(&mut byte).is_ok() && to.write_all(&byte).is_ok() {}
    };
    let thread = thread::Builder::new().name("echo".into()).spawn(echo)?;
    Ok(Task::Thread(Some(thread)))
}

/// A bare child of the system call itself: the C library's fork would make it a component of its
/// own, with a socket and a thread.
fn start_process(mut from: fs::File, mut to: fs::File, processor: usize) -> Result<Task, Reason> {
    // SAFETY: the child makes system calls only, on what was made before, and never returns.
    unsafe {
        let flags = libc::c_long::from(libc::SIGCHLD);
        let pid = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
        if pid != 0 {
            return if pid > 0 {
                Ok(Task::Process(pid as libc::pid_t))
            } else {
                Err(Reason::while_trying("start a process")(io::Error::last_os_error()))
            };
        }
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        close_all_but([from.as_raw_fd(), to.as_raw_fd()]);
        let _ = processor::pin_bare(processor);
        let _batch = processor::Batch::begin();
        let mut byte = [0];
        while from.read_exact(&mut byte).is_ok() && to.write_all(&byte).is_ok() {}
        libc::_exit(0)
    }
}

/// Other pipes' ends must not stay open here: their readers would never see the end.
fn close_all_but(keep: [RawFd; 2]) {
    let [low, high] = [keep[0].min(keep[1]), keep[0].max(keep[1])];
    for (first, last) in [(3, low - 1), (low + 1, high - 1), (high + 1, RawFd::MAX)] {
        if first <= last {
            // SAFETY: nothing in this process uses the others.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

fn pipe() -> Result<(fs::File, fs::File), Reason> {
    let mut fds = [0; 2];
    // SAFETY: two descriptors are written into an array of two.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Reason::while_trying("make a pipe")(io::Error::last_os_error()));
    }
    // SAFETY: fresh descriptors that nobody else owns.
    Ok(fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }.into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back_and_the_partner_is_gone_afterwards() {
        for partner in [Partner::SameAddressSpace, Partner::OtherAddressSpace] {
            let mut echo = Echo::start(partner, processor::quietest()).unwrap();
            for _ in 0..100 {
                echo.round_trip().unwrap();
            }
            let pid = match &echo.task {
                Task::Process(pid) => Some(*pid),
                Task::Thread(_) => None,
            };
            drop(echo);
            let is_there = |pid| std::path::Path::new(&format!("/proc/{pid}")).exists();
            assert!(!pid.is_some_and(is_there));
        }
    }
}
