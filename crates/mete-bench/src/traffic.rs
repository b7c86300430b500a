//! Traffic that causes events at a known rate: system calls, and messages between two tasks.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::thread::{self, JoinHandle};

use mete_measure::processor;
use mete_measure::reason::Reason;
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::crew::clone_bare;

/// Makes `times` system calls that do hardly any work.
#[inline(never)]
pub fn system_calls(times: u64) {
    for _ in 0..times {
        // SAFETY: the call takes no argument and cannot fail. The C library's function could return a
        // remembered value without a system call.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}

/// Makes this thread's system calls take the kernel's slow path. A tracepoint at their entry does the same as
/// long as it is in use. With the slow path on for all variants, a difference shows the cost of what is
/// attached to the tracepoint, without the cost of the path to it.
#[derive(Debug)]
#[must_use = "system calls are quick again when this is dropped"]
pub struct SlowEntry;

impl SlowEntry {
    /// Begins. It switches system-call user dispatch on and excepts all of memory from it, so no call is
    /// dispatched.
    ///
    /// # Errors
    ///
    /// If the kernel has no such dispatch, because it is older than 5.11 or of another architecture.
    pub fn begin() -> Result<SlowEntry, Reason> {
        const ON: libc::c_ulong = 1;
        // A program's code is in the lower half of the address space; the upper half is the kernel's.
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
    // SAFETY: no memory is passed, and the exception covers all call sites.
    unsafe { libc::prctl(SET_SYSCALL_USER_DISPATCH, mode, from, excepted_bytes, no_selector) }
}

/// Where the task runs that answers messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partner {
    /// In a thread of this process (the thesis' "Intra AS").
    SameAddressSpace,
    /// In a process of its own ("Cross AS").
    OtherAddressSpace,
}

/// A task that sends each byte back that it gets through a pipe. It ends when this is dropped.
pub struct Echo {
    to: Option<PipeWriter>,
    from: PipeReader,
    task: Task,
}

enum Task {
    Thread(Option<JoinHandle<()>>),
    Process(Pid),
}

impl Echo {
    /// Starts the task on a processor. The task does not take the processor from the thread that writes to
    /// it: see [`processor::Batch`].
    ///
    /// # Errors
    ///
    /// If the pipes or the task cannot be made, or this thread may not run on the processor.
    pub fn start(partner: Partner, processor: usize) -> Result<Echo, Reason> {
        let ((there_in, there_out), (back_in, back_out)) = (io::pipe()?, io::pipe()?);
        // The task inherits the processor. This thread is let go when the task has started.
        let _pinned = processor::Pinned::to(processor)?;
        let task = match partner {
            Partner::SameAddressSpace => start_thread(there_in, back_out)?,
            Partner::OtherAddressSpace => start_process(there_in, back_out)?,
        };
        Ok(Echo { to: Some(there_out), from: back_in, task })
    }

    /// Sends a byte and waits for it to come back.
    ///
    /// # Errors
    ///
    /// If the task has ended.
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
        // Once this end of the pipe is closed, the task reads the end of the file, and ends.
        self.to = None;
        match &mut self.task {
            Task::Thread(thread) => drop(thread.take().map(JoinHandle::join)),
            // This is our child, for which no other code waits.
            Task::Process(pid) => drop(waitpid(Some(*pid), WaitOptions::empty())),
        }
    }
}

fn start_thread(from: PipeReader, to: PipeWriter) -> Result<Task, Reason> {
    let thread = thread::Builder::new().name("echo".into()).spawn(move || echo(from, to))?;
    Ok(Task::Thread(Some(thread)))
}

fn start_process(from: PipeReader, to: PipeWriter) -> Result<Task, Reason> {
    // SAFETY: the child only makes system calls, on what was made before the clone.
    let child = unsafe {
        clone_bare(None, || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            close_all_but([from.as_raw_fd(), to.as_raw_fd()]);
            echo(from, to);
        })
    };
    child.map(Task::Process).map_err(Reason::while_trying("start a process"))
}

/// Sends each byte back.
fn echo(mut from: PipeReader, mut to: PipeWriter) {
    let _batch = processor::Batch::begin();
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() && to.write_all(&byte).is_ok() {}
}

/// Closes all descriptors except these. If ends of other pipes stayed open here, their readers would never
/// see the end of the file.
fn close_all_but(keep: [RawFd; 2]) {
    let [low, high] = [keep[0].min(keep[1]), keep[0].max(keep[1])];
    for (first, last) in [(3, low - 1), (low + 1, high - 1), (high + 1, RawFd::MAX)] {
        if first <= last {
            // SAFETY: this process uses none of the other descriptors.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_that_the_partner_may_not_run_on_is_the_reason() {
        for partner in [Partner::SameAddressSpace, Partner::OtherAddressSpace] {
            let reason = Echo::start(partner, 100_000).map(drop).unwrap_err().to_string();
            assert!(reason.contains("processor 100000"), "{reason}");
        }
    }

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
            let is_there = |pid| std::path::Path::new(&format!("/proc/{}", Pid::as_raw(Some(pid)))).exists();
            assert!(!pid.is_some_and(is_there));
        }
    }
}
