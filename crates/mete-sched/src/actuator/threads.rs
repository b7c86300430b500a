//! What was changed of threads: their processor masks, or their scheduling classes.
//!
//! Both pass on to the threads and processes that a thread starts. So these are put back, too.

use std::collections::BTreeMap;

use mete_log::DomainId;
use rustix::io::Errno;

use super::ledger::{Ledger, Record, Restored};
use crate::domains::process::{self, CannotLook, Process};

/// The number of passes over processes that may start threads and processes meanwhile.
const MAX_PASSES: usize = 16;
/// The length of the longest chain of parents that is followed.
const MAX_ANCESTORS: usize = 64;

/// Something that each thread has, and passes on to those that it starts.
pub(super) trait Setting: Copy + Default + Eq {
    /// How long one is in a journal.
    const BYTES: usize;
    /// See [`Ledger::MAGIC`].
    const MAGIC: [u8; 8];
    /// See [`Ledger::EXTENSION`].
    const EXTENSION: &'static str;

    fn of_thread(thread: u32) -> Result<Self, Errno>;
    fn give_to(&self, thread: u32) -> Result<(), Errno>;

    /// What a thread with this setting gets back, if this is `told` except for a part that another program
    /// may change without undoing it. `None` if this is another setting, which stays.
    fn back(&self, told: &Self, original: &Self) -> Option<Self> {
        let _ = (told, original);
        None
    }

    fn write_to(&self, bytes: &mut [u8]);
    fn read_from(bytes: &[u8]) -> Self;
}

/// One change that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadRecord<S> {
    pub pid: u32,
    pub thread: u32,
    /// When the thread began. Together with its number, this identifies the thread.
    pub start: u64,
    pub domain: DomainId,
    /// When this is noted, in the ticks since boot in which threads begin: what began before cannot have
    /// inherited it. The journal has 48 bits of it.
    pub since: u64,
    /// What its owner gave it.
    pub original: S,
    /// What it is about to get.
    pub told: S,
}

impl<S: Setting> Record for ThreadRecord<S> {
    const BYTES: usize = 24 + 2 * S::BYTES;

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.pid.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.thread.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.start.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.domain.get().to_le_bytes());
        bytes[18..24].copy_from_slice(&self.since.to_le_bytes()[..6]);
        self.original.write_to(&mut bytes[24..24 + S::BYTES]);
        self.told.write_to(&mut bytes[24 + S::BYTES..]);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> ThreadRecord<S> {
        // The chunks have a fixed place in bytes of a fixed length, so the fallbacks are never used.
        let number = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        ThreadRecord {
            pid: number(0),
            thread: number(4),
            start: bytes[8..].first_chunk().map_or(0, |start| u64::from_le_bytes(*start)),
            domain: DomainId::new(u16::from_le_bytes([bytes[16], bytes[17]])),
            since: bytes[16..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word) >> 16),
            original: S::read_from(&bytes[24..24 + S::BYTES]),
            told: S::read_from(&bytes[24 + S::BYTES..]),
        }
    }
}

/// A thread of which something was changed.
#[derive(Clone, Debug)]
struct LedgerEntry<S> {
    pid: u32,
    start: u64,
    domain: DomainId,
    /// Before that, nothing was changed.
    since: u64,
    original: S,
    /// Everything that it was to get. If it has something else, another program has changed it since.
    told: Vec<S>,
}

/// All changes, by number of the thread. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadLedger<S> {
    entries: BTreeMap<u32, LedgerEntry<S>>,
}

impl<S: Setting> Ledger for ThreadLedger<S> {
    type Record = ThreadRecord<S>;

    const MAGIC: [u8; 8] = S::MAGIC;
    const EXTENSION: &'static str = S::EXTENSION;

    fn note(&mut self, record: ThreadRecord<S>) {
        let ThreadRecord { pid, thread, start, domain, since, original, told } = record;
        let fresh = LedgerEntry { pid, start, domain, since, original, told: Vec::new() };
        let entry = self.entries.entry(thread).or_insert_with(|| fresh.clone());
        // The number has been given to another thread, so what was noted of the former one is void.
        if entry.start != start {
            *entry = fresh;
        }
        (entry.domain, entry.original) = (domain, original);
        if !entry.told.contains(&told) {
            entry.told.push(told);
        }
    }

    fn has(&self, record: &ThreadRecord<S>) -> bool {
        self.entries.get(&record.thread).is_some_and(|entry| {
            (entry.pid, entry.start, entry.domain) == (record.pid, record.start, record.domain)
                && entry.original == record.original
                && entry.told.contains(&record.told)
        })
    }

    fn records(&self) -> impl Iterator<Item = ThreadRecord<S>> {
        self.entries.iter().flat_map(|(&thread, entry)| {
            let &LedgerEntry { pid, start, domain, since, original, .. } = entry;
            let record = move |&told| ThreadRecord { pid, thread, start, domain, since, original, told };
            entry.told.iter().map(record)
        })
    }

    /// Forgets threads that have ended, except for one thread of each kind. A thread that was started by one
    /// that has ended is known by its domain and what was changed.
    fn forget_ended(&mut self) {
        let mut kept: Vec<(DomainId, S, S)> = Vec::new();
        self.entries.retain(|&thread, entry| {
            let found = Process::find_thread(entry.pid, thread);
            // A thread that could not be looked at is kept, too.
            if !found.is_ok_and(|found| found.is_none_or(|found| found.start != entry.start)) {
                return true;
            }
            let kinds = entry.told.iter().map(|&told| (entry.domain, entry.original, told));
            let new: Vec<_> = kinds.filter(|kind| !kept.contains(kind)).collect();
            kept.extend(&new);
            !new.is_empty()
        });
    }

    /// Puts everything back, including threads and processes that were started meanwhile.
    fn restore(&self) -> Restored {
        let mut result = Restored::default();
        for (&thread, entry) in &self.entries {
            let count = match self.restore_thread(thread, entry) {
                Ok(Ok(true)) => &mut result.restored,
                Ok(Ok(false)) => &mut result.left_alone,
                Ok(Err(Errno::SRCH)) => &mut result.ended,
                Ok(Err(_)) => &mut result.failed,
                Err(CannotLook) => &mut result.left,
            };
            *count += 1;
        }
        // Until a pass finds nothing more: what a changed thread starts during a pass inherits the change.
        for _ in 0..MAX_PASSES {
            match self.restore_born() {
                Ok(0) => break,
                Ok(born) => result.restored += born,
                Err(CannotLook) => {
                    // The number of such threads is not known, so they count as 1.
                    result.left += 1;
                    break;
                }
            }
        }
        result
    }
}

impl<S: Setting> ThreadLedger<S> {
    /// What its owner gave a thread. A thread that was started under a changed mask or class never had one of
    /// its own: it has inherited it from its process, an ancestor, or any thread of its domain.
    pub fn original(&self, process: &Process, thread: &Process, domain: DomainId, present: S) -> S {
        if let Some(entry) = self.entry(thread) {
            return if entry.told.contains(&present) { entry.original } else { present };
        }
        let parent = self
            .ancestor(process, thread.start, present)
            .or_else(|| self.possible_parent(domain, present, thread.start));
        parent.map_or(present, |entry| entry.original)
    }

    /// A changed thread of this domain, with this setting, from which a thread may have inherited that began
    /// at `start`.
    fn possible_parent(&self, domain: DomainId, present: S, start: u64) -> Option<&LedgerEntry<S>> {
        let mut entries = self.entries.values();
        entries.find(|entry| entry.domain == domain && entry.told.contains(&present) && entry.since <= start)
    }

    /// Gives the threads of a process their own settings back, unless another program has changed them since.
    pub fn release(&self, pid: u32) {
        for (&thread, entry) in self.entries.iter().filter(|(_, entry)| entry.pid == pid) {
            // A failure is of no consequence here: it is tried again at the end.
            let _ = self.restore_thread(thread, entry);
        }
    }

    /// Puts a thread's own setting back. Returns whether it still had one of ours.
    fn restore_thread(&self, thread: u32, entry: &LedgerEntry<S>) -> Result<Result<bool, Errno>, CannotLook> {
        // If this process could not even find itself, it would take all other processes for ended.
        process::check_sight()?;
        let found = Process::find_thread(entry.pid, thread)?.filter(|found| found.start == entry.start);
        Ok(found.map_or(Err(Errno::SRCH), |_| entry.put_back(thread)))
    }

    /// Makes one pass over all threads that were started by changed threads. Returns how many got another
    /// one.
    fn restore_born(&self) -> Result<usize, CannotLook> {
        let mut fixed = 0;
        for process in process::all()? {
            let Some(process) = Process::find(process)? else { continue };
            let threads = process::threads(process.pid).into_iter();
            fixed += threads.filter(|&thread| self.restore_if_born(&process, thread).is_some()).count();
        }
        Ok(fixed)
    }

    fn restore_if_born(&self, process: &Process, thread: u32) -> Option<()> {
        let present = S::of_thread(thread).ok()?;
        let found = Process::read_thread(process.pid, thread)?;
        let parent = self.ancestor(process, found.start, present)?;
        // A thread with an entry was restored already. A thread with the original needs nothing.
        if self.entry(&found).is_some() || parent.original == present {
            return None;
        }
        parent.original.give_to(thread).ok()
    }

    /// What its owner gave a thread that is known by this number, if it still has what it was to get.
    pub fn own(&self, thread: u32, present: S) -> Option<S> {
        self.entries.get(&thread).filter(|entry| entry.told.contains(&present)).map(|entry| entry.original)
    }

    fn entry(&self, thread: &Process) -> Option<&LedgerEntry<S>> {
        self.entries.get(&thread.pid).filter(|entry| entry.start == thread.start)
    }

    /// The nearest changed thread with this setting among a process's own threads and those of its ancestors,
    /// from which a thread may have inherited it that began at `start`.
    fn ancestor(&self, process: &Process, start: u64, present: S) -> Option<&LedgerEntry<S>> {
        let mut process = process.clone();
        // Bounded, because parents change while the chain is followed.
        for _ in 0..MAX_ANCESTORS {
            // A thread is never older than its process. Older entries are of another process that had the
            // same number.
            let entry = self.entries.values().find(|entry| {
                let is_of_process = entry.pid == process.pid && entry.start >= process.start;
                is_of_process && entry.since <= start && entry.told.contains(&present)
            });
            if let Some(entry) = entry {
                return Some(entry);
            }
            process = Process::read(process.parent)?;
        }
        None
    }
}

impl<S: Setting> LedgerEntry<S> {
    /// Gives the thread its own setting back if it has one that the scheduler gave it. Returns whether it
    /// had.
    fn put_back(&self, thread: u32) -> Result<bool, Errno> {
        let present = S::of_thread(thread)?;
        let back = match self.told.contains(&present) {
            true => Some(self.original),
            false => self.told.iter().find_map(|told| present.back(told, &self.original)),
        };
        if let Some(back) = &back {
            back.give_to(thread)?;
        }
        Ok(back.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actuator::Mask;

    #[test]
    fn records_survive_the_way_through_the_file() {
        let single = |processor| Mask::single(processor).unwrap();
        let record = ThreadRecord {
            pid: 1,
            thread: 2,
            start: u64::MAX - 7,
            domain: DomainId::new(300),
            since: (1 << 48) - 9,
            original: single(1000),
            told: single(3),
        };
        assert_eq!(ThreadRecord::from_bytes(&record.to_bytes()), record);
    }
}
