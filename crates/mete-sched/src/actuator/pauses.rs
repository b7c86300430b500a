//! Pauses: a process has the processor, or has to wait, by the signals that every user may send to processes of their own.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Resource, Signal, getrlimit, pidfd_open, pidfd_send_signal, test_kill_process,
};

use super::ledger::{Ledger, Record, Restored};
use super::undoing::Undoing;
use super::{ActuatorError, launch};
use crate::domains::process::{self, CannotLook, Process, StatFile};

/// What this actuator enforces, and how closely.
pub const ENFORCES: &str = "\
pauses: a process that is paused is stopped (SIGSTOP) until it goes on (SIGCONT), and its parent sees that. Every process that is paused goes on at the end, also after a crash or kill -9, and \
while this program is stopped itself; if the two processes that do this are killed at the same moment, the next start of \
this program by the same user does. A process that its user has stopped is left alone, but not one that the user stops \
while it is paused.";

/// The actuator of pauses. When it is dropped, all that is paused goes on.
#[derive(Debug)]
pub struct Pauses {
    undoing: Undoing<PauseLedger>,
    /// What go on again, which is not noted yet.
    resumed: Vec<PauseRecord>,
}

/// A process that may be paused.
#[derive(Debug)]
pub struct Pausable {
    pid: u32,
    start: u64,
    /// It stays this process's, whoever has its number later.
    handle: OwnedFd,
    /// Where descriptors are not scarce.
    stat: Option<StatFile>,
}

impl Pausable {
    /// Whether its first thread, as a rule the only one, runs or waits for a processor.
    #[must_use]
    pub fn is_runnable(&self) -> bool {
        self.stat.as_ref().map_or_else(|| process::is_runnable(self.pid), StatFile::is_runnable)
    }

    /// The number of the process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it is still there: another process may have its number by now.
    #[must_use]
    pub fn is_there(&self) -> bool {
        // Without a signal, which rustix does not send by such a handle.
        // SAFETY: a system call with a descriptor that lives through it, and no memory.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.handle.as_raw_fd(),
                0,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        sent == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
    }

    /// A process, to which this one may send signals.
    ///
    /// # Errors
    ///
    /// `EPERM` if it may not; `ESRCH` if the process has ended.
    pub fn of(process: &Process) -> Result<Pausable, Errno> {
        let pid = number(process.pid)?;
        let handle = pidfd_open(pid, PidfdFlags::empty())?;
        // Another process may have had the number when the handle was opened.
        let is_same = Process::read(process.pid).is_some_and(|found| found.start == process.start);
        if !is_same {
            return Err(Errno::SRCH);
        }
        test_kill_process(pid)?;
        let is_scarce = getrlimit(Resource::Nofile)
            .current
            .is_some_and(|most| handle.as_raw_fd().cast_unsigned() as u64 >= most / 4);
        let stat = if is_scarce { None } else { StatFile::of(process.pid) };
        Ok(Pausable { pid: process.pid, start: process.start, handle, stat })
    }

    fn record(&self, is_paused: bool) -> PauseRecord {
        PauseRecord { pid: self.pid, start: self.start, is_paused }
    }
}

fn number(pid: u32) -> Result<Pid, Errno> {
    Pid::from_raw(pid.cast_signed()).ok_or(Errno::SRCH)
}

impl Pauses {
    /// Starts the processes that have all go on. They run [this program](super::watcher::this_program) again.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`], [`ActuatorError::Pausing`]
    pub fn start() -> Result<Pauses, ActuatorError> {
        Pauses::start_with(launch::this_program)
    }

    /// Starts them with another program, whose `main` must call
    /// [`take_over_if_asked`](super::watcher::take_over_if_asked).
    ///
    /// # Errors
    ///
    /// As [`Pauses::start`].
    pub fn start_with(watcher: impl Fn() -> Command + Send + 'static) -> Result<Pauses, ActuatorError> {
        let undoing = Undoing::start(watcher)?;
        match undoing.other(|_| true) {
            Some(other) => Err(ActuatorError::Pausing(other)),
            None => Ok(Pauses { undoing, resumed: Vec::new() }),
        }
    }

    /// The reason why processes stay paused if this process and both of its watchers are killed at the same
    /// moment; see [`Affinity::unnamed`](super::Affinity::unnamed).
    #[must_use]
    pub fn unnamed(&self) -> Option<&io::Error> {
        self.undoing.unnamed()
    }

    /// Has a process wait. `false` if it has ended, or has another user by now, and goes on.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NotNoted`], [`ActuatorError::WatcherGone`]; it goes on then.
    pub fn pause(&mut self, process: &Pausable) -> Result<bool, ActuatorError> {
        self.undoing.be_watched()?;
        // In one with what has gone on before: to write takes longer than what is written.
        self.undoing.note_all(self.resumed.drain(..).chain([process.record(true)]))?;
        let is_paused = pidfd_send_signal(&process.handle, Signal::STOP).is_ok();
        if !is_paused {
            self.undoing.note(process.record(false))?;
        }
        Ok(is_paused)
    }

    /// Has a process go on. That is noted with the next pause, or by [`Pauses::settle`]: what is noted as paused goes on once too often
    /// rather than never.
    pub fn resume(&mut self, process: &Pausable) {
        let sent = pidfd_send_signal(&process.handle, Signal::CONT);
        // One that has another user now stays noted: it is tried again at the end, and reported.
        if sent != Err(Errno::PERM) {
            self.resumed.push(process.record(false));
        }
    }

    /// Notes what has gone on.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NotNoted`]
    pub fn settle(&mut self) -> Result<(), ActuatorError> {
        self.undoing.note_all(self.resumed.drain(..))
    }

    /// Has everything go on, and reports how that went.
    #[must_use]
    pub fn finish(mut self) -> Restored {
        // What cannot be noted goes on once more.
        let _ = self.settle();
        self.undoing.finish()
    }
}

/// A process is about to be paused, or goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PauseRecord {
    pid: u32,
    start: u64,
    is_paused: bool,
}

impl Record for PauseRecord {
    const BYTES: usize = 16;

    fn to_bytes(&self) -> Vec<u8> {
        let PauseRecord { pid, start, is_paused } = *self;
        let mut bytes =
            [pid, is_paused.into()].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        bytes.extend(start.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> PauseRecord {
        let word =
            |at: usize| bytes[at..].first_chunk().map_or(0, |bytes: &[u8; 4]| u32::from_le_bytes(*bytes));
        let start = bytes[8..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        PauseRecord { pid: word(0), start, is_paused: word(4) != 0 }
    }
}

/// The processes that are paused, with their beginnings.
#[derive(Clone, Debug, Default)]
pub(super) struct PauseLedger(BTreeMap<u32, u64>);

impl Ledger for PauseLedger {
    type Record = PauseRecord;

    const MAGIC: [u8; 8] = *b"METEPAU1";
    const EXTENSION: &'static str = "pauses";

    fn note(&mut self, record: PauseRecord) {
        if record.is_paused {
            self.0.insert(record.pid, record.start);
        } else if self.0.get(&record.pid) == Some(&record.start) {
            self.0.remove(&record.pid);
        }
    }

    fn has(&self, record: &PauseRecord) -> bool {
        (self.0.get(&record.pid) == Some(&record.start)) == record.is_paused
    }

    fn records(&self) -> impl Iterator<Item = PauseRecord> {
        self.0.iter().map(|(&pid, &start)| PauseRecord { pid, start, is_paused: true })
    }

    fn forget_ended(&mut self) {
        // One that could not be looked at is kept.
        self.0.retain(|&pid, start| {
            Process::find(pid).map_or(true, |found| found.is_some_and(|found| found.start == *start))
        });
    }

    fn restore(&self) -> Restored {
        let mut result = Restored::default();
        for (&pid, &start) in &self.0 {
            let count = match go_on(pid, start) {
                Ok(Ok(())) => &mut result.restored,
                Ok(Err(Errno::SRCH)) => &mut result.ended,
                Ok(Err(_)) => &mut result.failed,
                Err(CannotLook) => &mut result.left,
            };
            *count += 1;
        }
        result
    }
}

/// Has a process go on that is paused, or is about to be.
fn go_on(pid: u32, start: u64) -> Result<Result<(), Errno>, CannotLook> {
    // If this process could not even find itself, it would take all other processes for ended.
    process::check_sight()?;
    let Some(found) = Process::find(pid)?.filter(|found| found.start == start) else {
        return Ok(Err(Errno::SRCH));
    };
    // A signal that has not arrived yet, because the process is just being paused, is taken back, too.
    Ok(Pausable::of(&found).and_then(|process| pidfd_send_signal(&process.handle, Signal::CONT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_records_survive_the_way_through_bytes_and_the_last_one_counts() {
        let paused = PauseRecord { pid: u32::MAX, start: u64::MAX - 7, is_paused: true };
        let resumed = PauseRecord { is_paused: false, ..paused };
        let mut ledger = PauseLedger::default();
        for record in [paused, resumed, paused] {
            assert_eq!(PauseRecord::from_bytes(&record.to_bytes()), record);
            assert!(!ledger.has(&record));
            ledger.note(record);
            assert!(ledger.has(&record));
        }
        assert_eq!(ledger.records().collect::<Vec<_>>(), [paused]);
        // Another process has the number by now.
        ledger.note(PauseRecord { start: 1, ..resumed });
        assert_eq!(ledger.records().count(), 1);
    }

    #[test]
    fn log_16_what_is_paused_goes_on_and_what_its_user_has_stopped_does_not() {
        let mut processes = [(); 3].map(|()| std::process::Command::new("sleep").arg("60").spawn().unwrap());
        let [paused, stopped, ended] =
            processes.each_ref().map(|process| Process::read(process.id()).unwrap());
        for process in [&paused, &stopped] {
            let handle = Pausable::of(process).unwrap().handle;
            pidfd_send_signal(&handle, Signal::STOP).unwrap();
            while !process::is_stopped(process.pid) {
                std::thread::yield_now();
            }
        }
        processes[2].kill().unwrap();
        processes[2].wait().unwrap();
        let ledger = PauseLedger([paused.clone(), ended].iter().map(|it| (it.pid, it.start)).collect());
        assert_eq!(ledger.restore(), Restored { restored: 1, ended: 1, ..Restored::default() });
        assert_eq!([&paused, &stopped].map(|it| process::is_stopped(it.pid)), [false, true]);
        for mut process in processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
