//! How much of all processors' time is used, as the kernel accounts for it.

use std::fs;

use mete_measure::reason::Reason;

/// The number of fields of /proc/stat, from the first one, that make up a processor's time. The time of
/// guests comes after them, and is already contained in that of programs.
const KINDS: usize = 8;
const IDLE: usize = 3;
const WAITING_FOR_DISKS: usize = 4;
/// Time that the hypervisor gave to other machines than this one.
const STOLEN: usize = 7;

/// The processors' time since the machine started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    used: u64,
    all: u64,
}

impl Busy {
    /// The time until now.
    ///
    /// # Errors
    ///
    /// If the kernel does not report it.
    pub fn now() -> Result<Busy, Reason> {
        let stat = fs::read_to_string("/proc/stat").map_err(Reason::while_trying("read /proc/stat"))?;
        Busy::of(&stat).ok_or_else(|| Reason::new("/proc/stat does not say how processors spend their time"))
    }

    fn of(stat: &str) -> Option<Busy> {
        // The line of all processors: those of single processors begin with `cpu0`, without a space after
        // `cpu`.
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> =
            line.split_ascii_whitespace().take(KINDS).map(str::parse).collect::<Result<_, _>>().ok()?;
        let all = ticks.iter().sum();
        let unused =
            [IDLE, WAITING_FOR_DISKS, STOLEN].map(|kind| ticks.get(kind).copied().unwrap_or_default());
        // Each unused kind is one of the ticks summed above, so this does not go below zero.
        Some(Busy { used: all - unused.iter().sum::<u64>(), all })
    }

    /// Percent of all processors' time that was used since an earlier instant; 0 if no time has passed.
    pub fn percent_since(&self, before: Busy) -> f64 {
        // The kernel's idle and waiting times can go back a little, so the differences saturate.
        let (used, all) = (self.used.saturating_sub(before.used), self.all.saturating_sub(before.all));
        100.0 * used as f64 / all.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_what_is_used_is_neither_idle_nor_waiting_nor_the_hypervisors() {
        let before = Busy::of("cpu  10 0 20 100 5 1 2 7 3 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n").unwrap();
        assert_eq!(before, Busy { used: 33, all: 145 });
        let after = Busy::of("cpu  25 0 20 160 10 1 2 27 9 0\n").unwrap();
        assert_eq!(after.percent_since(before), 15.0);
        assert_eq!(before.percent_since(before), 0.0);
    }

    #[test]
    fn klog_9_a_text_without_the_times_of_processors_gives_no_value() {
        assert_eq!(Busy::of(""), None);
        assert_eq!(Busy::of("cpu  1 x\n"), None);
        let now = Busy::now().unwrap();
        assert!(now.used > 0 && now.used <= now.all, "{now:?}");
    }
}
