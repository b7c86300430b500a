//! A thread that looks at others goes ahead of them.

use mete_measure::Reason;

/// Has this thread run before all ordinary ones: in the lowest real-time class. Where it has used a processor for some seconds without
/// sleeping, which it does not do, the kernel ends the process; and it leaves others a part of each second.
pub(super) struct Ahead {
    limit: libc::rlimit,
}

/// For how long it may go without sleeping, in microseconds.
const MOST_US: u64 = 5_000_000;

impl Ahead {
    /// # Errors
    ///
    /// The kernel does not allow that to this user.
    pub fn of_all() -> Result<Ahead, Reason> {
        let set = || {
            let ahead = Ahead { limit: bound(MOST_US)? };
            // Of what this thread starts, nothing is in the class.
            set_class(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1).map(|()| ahead)
        };
        set().map_err(Reason::while_trying("have a real-time priority, as only root may"))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Every thread may have less.
        let _ = set_class(libc::SCHED_OTHER, 0);
        // SAFETY: reads the limit alone.
        unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const self.limit) };
    }
}

/// Sets the limit of real time without sleep, and answers what it was.
fn bound(most_us: u64) -> std::io::Result<libc::rlimit> {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes the limit alone.
    if unsafe { libc::getrlimit(libc::RLIMIT_RTTIME, &raw mut before) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let limit = libc::rlimit { rlim_cur: most_us.min(before.rlim_max), rlim_max: before.rlim_max };
    // SAFETY: reads the limit alone.
    if unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(before)
}

fn set_class(class: libc::c_int, priority: libc::c_int) -> std::io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: reads the parameters alone; 0 is this thread.
    match unsafe { libc::sched_setscheduler(0, class, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
