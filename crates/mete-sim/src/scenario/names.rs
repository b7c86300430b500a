//! The names that a scenario's tables and programs use, each with its number.

use std::collections::HashMap;
use std::ops::Range;

use mete_policy::{DomainIndex, Share};
use toml::Spanned;

use super::error::Fault;
use super::ports::Ports;
use super::table::ScenarioTable;
use super::vcpus;

/// With up to this number of clients, policies keep even the largest sum of shares exact.
const MOST_CLIENTS: usize = 1 << 20;

/// The names of one kind of thing, each with its number.
#[derive(Default)]
pub(super) struct Register {
    numbers: HashMap<String, usize>,
    next: usize,
}

impl Register {
    /// How many numbers are taken.
    pub(super) fn count(&self) -> usize {
        self.next
    }

    pub(super) fn add(&mut self, name: &Spanned<String>) -> Result<(), Fault> {
        self.add_wide(name, 1)
    }

    /// Adds a thing that takes several numbers; its name means the first of them.
    fn add_wide(&mut self, name: &Spanned<String>, width: usize) -> Result<(), Fault> {
        let number = self.next;
        self.next += width;
        match self.numbers.insert(name.get_ref().clone(), number) {
            None => Ok(()),
            Some(_) => {
                Err(Fault::new(name.span(), format!("name: there are two called {:?}", name.get_ref())))
            }
        }
    }

    pub(super) fn find(&self, key: &str, name: &Spanned<String>) -> Result<usize, Fault> {
        let found = self.numbers.get(name.get_ref()).copied();
        found.ok_or_else(|| {
            let mut known: Vec<_> = self.numbers.keys().map(String::as_str).collect();
            known.sort_unstable();
            let known = if known.is_empty() { "none is defined".into() } else { known.join(", ") };
            Fault::new(name.span(), format!("{key}: there is no {:?}; allowed: {known}", name.get_ref()))
        })
    }
}

/// All names that a scenario's tables use.
#[derive(Default)]
pub(super) struct Names {
    /// What a share of 1 is multiplied by, so that each virtual processor's part is a whole number.
    unit: u32,
    pub(super) domains: Register,
    pub(super) disks: Register,
    pub(super) remotes: Register,
    pub(super) clients: Register,
    pub(super) ports: Ports,
    /// A lock exists because a program uses it; no table defines locks.
    locks: HashMap<String, LockUse>,
}

/// How a lock is used. One that is only taken, or only handed on, is a mistake in its name.
struct LockUse {
    number: usize,
    /// The place of its first use.
    span: Range<usize>,
    /// Which of the [`LockStep`]s there are.
    steps: [bool; 3],
}

/// What a step of a program does with a lock.
#[derive(Clone, Copy)]
pub(super) enum LockStep {
    Take,
    SpinFor,
    HandOn,
}

impl Names {
    /// No names yet; a share of 1 is given to policies as `unit`.
    pub(super) fn new(unit: u32) -> Names {
        Names { unit, ..Names::default() }
    }

    /// How many locks there are.
    pub(super) fn locks(&self) -> usize {
        self.locks.len()
    }

    /// Numbers the clients, before any program is read: programs send to clients.
    pub(super) fn number_clients(&mut self, table: &ScenarioTable) -> Result<(), Fault> {
        if let Some(driver) = &table.driver {
            self.clients.add(&driver.name)?;
        }
        let tasks = table.task.iter().map(|task| (&task.name, &task.count, 1));
        let guests = table.guest.iter();
        let guests = guests.map(|guest| (&guest.name, &guest.count, *guest.vcpus.get_ref() as usize));
        for (name, count, width) in tasks.chain(guests) {
            for copy in copies(name, count)? {
                self.clients.add_wide(&Spanned::new(name.span(), copy), width)?;
            }
            if self.clients.next > MOST_CLIENTS {
                return Err(Fault::new(
                    count.span(),
                    format!("count: at most {MOST_CLIENTS} clients in all"),
                ));
            }
        }
        if self.clients.next == 0 {
            return Err(Fault::new(0..0, "a scenario needs a [[task]] or a [[guest]]"));
        }
        Ok(())
    }

    pub(super) fn domain(&self, name: Option<&Spanned<String>>) -> Result<DomainIndex, Fault> {
        // Domain 0 is the root, which has no table.
        name.map_or(Ok(DomainIndex::ROOT), |name| Ok(DomainIndex::at(self.domains.find("domain", name)? + 1)))
    }

    /// A share, in the units in which it is given to policies.
    pub(super) fn share(&self, share: &Spanned<u32>) -> Result<Share, Fault> {
        vcpus::share(share, self.unit)
    }

    /// The number of a lock, which is used in this way at this place.
    pub(super) fn lock(&mut self, name: &str, span: Range<usize>, step: LockStep) -> usize {
        let number = self.locks.len();
        // A lock that is known keeps its number and its first place.
        let lock = self.locks.entry(name.to_owned()).or_insert(LockUse { number, span, steps: [false; 3] });
        lock.steps[step as usize] = true;
        lock.number
    }

    /// Checks how locks are used. It goes by their numbers, so that of several mistakes the same one is named
    /// each time.
    pub(super) fn check_locks(&self) -> Result<(), Fault> {
        let wrong = self.locks.iter().filter_map(|(name, lock)| Some((lock, lock.fault(name)?)));
        match wrong.min_by_key(|(lock, _)| lock.number) {
            Some((lock, what)) => Err(Fault::new(lock.span.clone(), what)),
            None => Ok(()),
        }
    }
}

impl LockUse {
    /// What is wrong with the use of this lock. A lock that a task spins for is unlocked, too: other programs
    /// are refused.
    fn fault(&self, name: &str) -> Option<String> {
        let (step, what) = match self.steps {
            [true, true, _] => {
                ("lock", "is in a spin_lock, too; all programs have to wait for a lock in one way")
            }
            [true, false, false] => ("lock", "is in no unlock of any program"),
            [false, false, _] => ("unlock", "is in no lock or spin_lock of any program"),
            [true, false, true] | [false, true, _] => return None,
        };
        Some(format!("{step}: {name:?} {what}"))
    }
}

/// The names of a table's copies: `name` alone, or `name-1`, `name-2`, …
pub(super) fn copies(name: &Spanned<String>, count: &Spanned<u32>) -> Result<Vec<String>, Fault> {
    match *count.get_ref() {
        0 => Err(Fault::new(count.span(), "count: 1 or more, not 0")),
        1 => Ok(vec![name.get_ref().clone()]),
        count if count as usize > MOST_CLIENTS => {
            Err(Fault::new(name.span(), format!("count: at most {MOST_CLIENTS}, not {count}")))
        }
        count => Ok((1..=count).map(|copy| format!("{}-{copy}", name.get_ref())).collect()),
    }
}
