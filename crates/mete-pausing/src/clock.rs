//! The clocks by which clients are charged.

use std::time::Duration;

use mete_policy::Nanoseconds;

/// The processor time that all threads of a process have used; `None` if there is no such process any more. Every user may
/// read it.
pub(crate) fn used_by(process: u32) -> Option<Nanoseconds> {
    // As `clock_getcpuclockid` has it (its number from the kernel's headers, CPUCLOCK_SCHED), which asks the kernel once more whether
    // there is such a process.
    const SCHED: i32 = 2;
    let is_number = process > 0 && process <= LARGEST;
    is_number.then(|| read((!process.cast_signed()) << 3 | SCHED)).flatten()
}

/// No process has a larger number (`PID_MAX_LIMIT`).
const LARGEST: u32 = 1 << 22;

/// The time since the machine was started, without that in which it was asleep.
pub(crate) fn now() -> Nanoseconds {
    read(libc::CLOCK_MONOTONIC).unwrap_or_default()
}

/// The processor time that this thread has used.
pub(crate) fn used_by_thread() -> Nanoseconds {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

fn read(clock: libc::clockid_t) -> Option<Nanoseconds> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written to a variable that lives through the call.
    let is_read = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
    let time = Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32);
    is_read.then(|| Nanoseconds::new(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_a_process_goes_on_while_it_computes_and_there_is_none_of_one_that_is_not_there() {
        let own = std::process::id();
        let before = used_by(own).unwrap();
        let begin = used_by_thread();
        while used_by_thread().saturating_sub(begin) < Nanoseconds::from_millis(5) {
            std::hint::spin_loop();
        }
        let used = used_by(own).unwrap().saturating_sub(before);
        assert!(used >= Nanoseconds::from_millis(5), "{used:?}");
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        assert_eq!([used_by(ended.id()), used_by(0), used_by(u32::MAX >> 1)], [None; 3]);
    }
}
