//! What was changed, and how to put it back. Scheduler and watchers have the same ledger: the
//! watchers' is built from the [`Record`]s that the scheduler writes before each change.

use std::collections::BTreeMap;

use mete_log::DomainId;
use rustix::io::Errno;

use super::mask::Mask;
use crate::domains::process::{self, CannotLook, Process};

/// Passes over what may still be starting threads and processes meanwhile.
const MAX_PASSES: usize = 16;
/// Longest chain of parents that is followed.
const MAX_ANCESTORS: usize = 64;

/// One change to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub pid: u32,
    pub thread: u32,
    /// When the thread began: with its number, its identity.
    pub start: u64,
    pub domain: DomainId,
    /// The mask that its owner gave it.
    pub original: Mask,
    /// The mask that it gets now.
    pub told: Mask,
}

impl Record {
    pub const BYTES: usize = 24 + 2 * Mask::BYTES;

    pub fn to_bytes(self) -> [u8; Record::BYTES] {
        let mut bytes = [0; Record::BYTES];
        bytes[..4].copy_from_slice(&self.pid.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.thread.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.start.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.domain.to_le_bytes());
        bytes[24..24 + Mask::BYTES].copy_from_slice(&self.original.to_bytes());
        bytes[24 + Mask::BYTES..].copy_from_slice(&self.told.to_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8; Record::BYTES]) -> Record {
        let mask = |at: usize| bytes[at..].first_chunk().map(Mask::from_bytes).unwrap_or_default();
        Record {
            pid: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            thread: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            start: bytes[8..].first_chunk().map_or(0, |start| u64::from_le_bytes(*start)),
            domain: DomainId::from_le_bytes([bytes[16], bytes[17]]),
            original: mask(24),
            told: mask(24 + Mask::BYTES),
        }
    }
}

/// A thread whose mask was changed.
#[derive(Clone, Debug)]
struct Entry {
    pid: u32,
    start: u64,
    domain: DomainId,
    original: Mask,
    /// Every mask that it was ever to get. If it has another one, somebody else has decided since.
    told: Vec<Mask>,
}

/// How putting back went, in threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Have their own mask again.
    pub restored: usize,
    /// Have ended meanwhile.
    pub ended: usize,
    /// Were given another mask by somebody else meanwhile, and keep it.
    pub left_alone: usize,
    /// The kernel refused.
    pub failed: usize,
    /// This process had no means to look at them: they are left to its watchers, or to the next start of the program.
    pub left: usize,
}

impl std::ops::Add for Restored {
    type Output = Restored;

    fn add(self, other: Restored) -> Restored {
        Restored {
            restored: self.restored + other.restored,
            ended: self.ended + other.ended,
            left_alone: self.left_alone + other.left_alone,
            failed: self.failed + other.failed,
            left: self.left + other.left,
        }
    }
}

/// All changes, by thread. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    entries: BTreeMap<u32, Entry>,
}

impl Ledger {
    pub fn note(&mut self, record: Record) {
        let Record { pid, thread, start, domain, original, told } = record;
        let fresh = Entry { pid, start, domain, original, told: Vec::new() };
        let entry = self.entries.entry(thread).or_insert_with(|| fresh.clone());
        if entry.start != start {
            *entry = fresh;
        }
        (entry.domain, entry.original) = (domain, original);
        if !entry.told.contains(&told) {
            entry.told.push(told);
        }
    }

    /// Whether a record would change nothing.
    pub fn has(&self, record: &Record) -> bool {
        self.entries.get(&record.thread).is_some_and(|entry| {
            (entry.pid, entry.start, entry.domain) == (record.pid, record.start, record.domain)
                && entry.original == record.original
                && entry.told.contains(&record.told)
        })
    }

    /// What it takes to build it again.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.entries.iter().flat_map(|(&thread, entry)| {
            let &Entry { pid, start, domain, original, .. } = entry;
            entry.told.iter().map(move |&told| Record { pid, thread, start, domain, original, told })
        })
    }

    /// Forgets threads that have ended, except one for each kind: what was born of one that has ended is known by its
    /// domain and mask.
    pub fn forget_ended(&mut self) {
        let mut kept: Vec<(DomainId, Mask, Mask)> = Vec::new();
        self.entries.retain(|&thread, entry| {
            let found = Process::find_thread(entry.pid, thread);
            if !found.is_ok_and(|found| found.is_none_or(|found| found.start != entry.start)) {
                return true;
            }
            let kinds = entry.told.iter().map(|&told| (entry.domain, entry.original, told));
            let new: Vec<_> = kinds.filter(|kind| !kept.contains(kind)).collect();
            kept.extend(&new);
            !new.is_empty()
        });
    }

    /// The mask that its owner gave a thread. A thread that was born under a changed mask never had
    /// one of its own: it has inherited from its process, an ancestor, or whoever of its domain.
    pub fn original(&self, process: &Process, thread: &Process, domain: DomainId, present: Mask) -> Mask {
        if let Some(entry) = self.entry(thread) {
            return if entry.told.contains(&present) { entry.original } else { present };
        }
        let from_domain = || {
            let mut entries = self.entries.values();
            entries.find(|entry| {
                entry.domain == domain && entry.told.contains(&present) && entry.start <= thread.start
            })
        };
        let parent = self.ancestor(process, present).or_else(from_domain);
        parent.map_or(present, |entry| entry.original)
    }

    /// Gives the threads of a process their own masks back, as far as they still have ours.
    pub fn release(&self, pid: u32) {
        for (&thread, entry) in self.entries.iter().filter(|(_, entry)| entry.pid == pid) {
            // What fails here is tried again in the end.
            let _ = self.restore_thread(thread, entry);
        }
    }

    /// Puts everything back, threads and processes that were born meanwhile included.
    pub fn restore(&self) -> Restored {
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
        for _ in 0..MAX_PASSES {
            match self.restore_born() {
                Ok(0) => break,
                Ok(born) => result.restored += born,
                Err(CannotLook) => {
                    // How many there are is not known.
                    result.left += 1;
                    break;
                }
            }
        }
        result
    }

    fn restore_thread(&self, thread: u32, entry: &Entry) -> Result<Result<bool, Errno>, CannotLook> {
        // Without sight of itself this process would take all others for ended.
        process::check_sight()?;
        let found = Process::find_thread(entry.pid, thread)?.filter(|found| found.start == entry.start);
        let restore = || {
            let is_ours = entry.told.contains(&Mask::of_thread(thread)?);
            if is_ours {
                entry.original.give_to(thread)?;
            }
            Ok(is_ours)
        };
        Ok(found.map_or(Err(Errno::SRCH), |_| restore()))
    }

    /// One pass over all that were born from changed threads; how many were put right.
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
        let present = Mask::of_thread(thread).ok()?;
        let parent = self.ancestor(process, present)?;
        let found = Process::read_thread(process.pid, thread)?;
        if self.entry(&found).is_some() || found.start < parent.start || parent.original == present {
            return None;
        }
        parent.original.give_to(thread).ok()
    }

    fn entry(&self, thread: &Process) -> Option<&Entry> {
        self.entries.get(&thread.pid).filter(|entry| entry.start == thread.start)
    }

    /// The nearest changed thread above, itself included, that was told to have this mask.
    fn ancestor(&self, process: &Process, present: Mask) -> Option<&Entry> {
        let mut process = process.clone();
        for _ in 0..MAX_ANCESTORS {
            // A thread is not older than its process: older ones were another process of that number.
            let of_process = |entry: &&Entry| entry.pid == process.pid && entry.start >= process.start;
            let mut entries = self.entries.values().filter(of_process);
            if let Some(entry) = entries.find(|entry| entry.told.contains(&present)) {
                return Some(entry);
            }
            process = Process::read(process.parent)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_way_through_the_file() {
        let single = |processor| Mask::single(processor).unwrap();
        let record = Record {
            pid: 1,
            thread: 2,
            start: u64::MAX - 7,
            domain: 300,
            original: single(1000),
            told: single(3),
        };
        assert_eq!(Record::from_bytes(&record.to_bytes()), record);
    }
}
