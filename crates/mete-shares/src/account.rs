//! What a control group uses, by the kernel's own account.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mete_sched::domains::in_controller;

use crate::group::{Identity, number_of};

/// The file that says how much processor time a group has used, of either version.
#[derive(Debug)]
enum Source {
    /// `cpu.stat` of version 2, in microseconds.
    Stat(PathBuf),
    /// `cpuacct.usage` of version 1, in nanoseconds.
    Usage(PathBuf),
}

/// The processor time of a group since the account was opened, and of other groups that had its path meanwhile.
#[derive(Debug)]
pub(crate) struct Account {
    /// `None` if the kernel does not say.
    source: Option<Source>,
    /// Which directory it was.
    of: Option<Identity>,
    before: Duration,
    /// What the groups before this one had used.
    carried: Duration,
    /// What was used when it was looked at last.
    seen: Duration,
}

impl Account {
    pub fn open(group: &Path) -> Account {
        let source = Source::of(group);
        let before = source.as_ref().and_then(Source::read).unwrap_or_default();
        Account { source, of: number_of(group), before, carried: Duration::ZERO, seen: Duration::ZERO }
    }

    /// Notes what is used, in case that the group is removed before the next time.
    pub fn note(&mut self) {
        self.seen = self.used().unwrap_or(self.seen);
    }

    /// Goes on with the group that has this path now: another one has used nothing before it was made.
    pub fn go_on(&mut self, group: &Path) {
        if self.of == number_of(group) {
            return;
        }
        *self = Account { before: Duration::ZERO, carried: self.seen, ..Account::open(group) };
        self.note();
    }

    /// Whether the kernel says what the group uses.
    pub fn is_known(&self) -> bool {
        self.source.is_some()
    }

    /// `None` if the group is gone, or the kernel does not say.
    pub fn used(&self) -> Option<Duration> {
        Some(self.carried + self.source.as_ref()?.read()?.saturating_sub(self.before))
    }
}

impl Source {
    fn of(group: &Path) -> Option<Source> {
        let stat = Source::Stat(group.join("cpu.stat"));
        if stat.read().is_some() {
            return Some(stat);
        }
        let usage = |folder: &Path| Source::Usage(folder.join("cpuacct.usage"));
        let beside = || in_controller(group, "cpuacct").map(|folder| usage(&folder));
        Some(usage(group)).filter(|usage| usage.read().is_some()).or_else(beside)
    }

    fn read(&self) -> Option<Duration> {
        match self {
            Source::Stat(path) => {
                let text = fs::read_to_string(path).ok()?;
                let used = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
                used.parse().ok().map(Duration::from_micros)
            }
            Source::Usage(path) => {
                fs::read_to_string(path).ok()?.trim().parse().ok().map(Duration::from_nanos)
            }
        }
    }
}
