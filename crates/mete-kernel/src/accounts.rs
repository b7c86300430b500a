//! The kernel's account of a scheduler's programs: how often each ran, and for how long.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{ProgramType, libbpf_sys};

/// What a program has done since it was loaded, as far as the kernel took account of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// How often it ran.
    pub runs: u64,
    /// The time of all runs, in nanoseconds.
    pub ns: u64,
}

impl Account {
    /// What has come to it since an earlier look.
    #[must_use]
    pub fn since(self, before: Account) -> Account {
        Account { runs: self.runs.saturating_sub(before.runs), ns: self.ns.saturating_sub(before.ns) }
    }

    /// What a run takes in the mean, in nanoseconds; `None` if there was none.
    #[must_use]
    pub fn mean_ns(self) -> Option<f64> {
        (self.runs > 0).then(|| self.ns as f64 / self.runs as f64)
    }
}

/// Has the kernel take account of the programs of the whole machine, which costs each run some ten nanoseconds. It does
/// so until this is dropped, or this process ends in any other way.
#[derive(Debug)]
pub struct Accounts(#[expect(dead_code, reason = "the kernel counts while it is open")] OwnedFd);

impl Accounts {
    /// Begins to take account.
    ///
    /// # Errors
    ///
    /// The kernel's answer, as a rule that this user may not.
    pub fn begin() -> io::Result<Accounts> {
        // SAFETY: the call has no other arguments.
        let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: the kernel has just made it, and nothing else knows it.
        Ok(Accounts(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The accounts of a scheduler's operations with these names, in that order. `None` if one is not loaded, or more than
    /// once: of several schedulers that are loaded, it is not known which one rules.
    #[must_use]
    pub fn of<const N: usize>(&self, names: [&str; N]) -> Option<[Account; N]> {
        let loaded: Vec<_> =
            ProgInfoIter::default().filter(|program| program.ty == ProgramType::StructOps).collect();
        let mut accounts = [Account::default(); N];
        for (account, name) in accounts.iter_mut().zip(names) {
            let mut named = loaded.iter().filter(|program| program.name.as_os_str() == name);
            let program = named.next().filter(|_| named.next().is_none())?;
            *account = Account { runs: program.run_cnt, ns: program.run_time_ns };
        }
        Some(accounts)
    }
}
