//! Which processor masks were changed.

use std::collections::BTreeMap;

use mete_log::DomainId;
use rustix::io::Errno;

use super::ledger::{Ledger, Record, Restored};
use super::mask::Mask;
use crate::domains::process::{self, CannotLook, Process};

/// The number of passes over processes that may start threads and processes meanwhile.
const MAX_PASSES: usize = 16;
/// The length of the longest chain of parents that is followed.
const MAX_ANCESTORS: usize = 64;

/// One change that is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MaskRecord {
    pub pid: u32,
    pub thread: u32,
    /// When the thread began. Together with its number, this identifies the thread.
    pub start: u64,
    pub domain: DomainId,
    /// The mask that its owner gave it.
    pub original: Mask,
    /// The mask that it is about to get.
    pub told: Mask,
}

impl Record for MaskRecord {
    const BYTES: usize = 24 + 2 * Mask::BYTES;

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; MaskRecord::BYTES];
        bytes[..4].copy_from_slice(&self.pid.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.thread.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.start.to_le_bytes());
        bytes[16..18].copy_from_slice(&self.domain.get().to_le_bytes());
        bytes[24..24 + Mask::BYTES].copy_from_slice(&self.original.to_bytes());
        bytes[24 + Mask::BYTES..].copy_from_slice(&self.told.to_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> MaskRecord {
        let number = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let mask = |at: usize| bytes[at..].first_chunk().map(Mask::from_bytes).unwrap_or_default();
        // The chunks have a fixed place in bytes of a fixed length, so the fallbacks are never used.
        MaskRecord {
            pid: number(0),
            thread: number(4),
            start: bytes[8..].first_chunk().map_or(0, |start| u64::from_le_bytes(*start)),
            domain: DomainId::new(u16::from_le_bytes([bytes[16], bytes[17]])),
            original: mask(24),
            told: mask(24 + Mask::BYTES),
        }
    }
}

/// A thread whose mask was changed.
#[derive(Clone, Debug)]
struct LedgerEntry {
    pid: u32,
    start: u64,
    domain: DomainId,
    original: Mask,
    /// Every mask that it was to get. If it has another mask, another program has changed its mask since.
    told: Vec<Mask>,
}

/// All changes, by number of the thread. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct MaskLedger {
    entries: BTreeMap<u32, LedgerEntry>,
}

impl Ledger for MaskLedger {
    type Record = MaskRecord;

    const MAGIC: [u8; 8] = *b"METEMSK1";
    const EXTENSION: &'static str = "masks";

    fn note(&mut self, record: MaskRecord) {
        let MaskRecord { pid, thread, start, domain, original, told } = record;
        let fresh = LedgerEntry { pid, start, domain, original, told: Vec::new() };
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

    fn has(&self, record: &MaskRecord) -> bool {
        self.entries.get(&record.thread).is_some_and(|entry| {
            (entry.pid, entry.start, entry.domain) == (record.pid, record.start, record.domain)
                && entry.original == record.original
                && entry.told.contains(&record.told)
        })
    }

    fn records(&self) -> impl Iterator<Item = MaskRecord> {
        self.entries.iter().flat_map(|(&thread, entry)| {
            let &LedgerEntry { pid, start, domain, original, .. } = entry;
            entry.told.iter().map(move |&told| MaskRecord { pid, thread, start, domain, original, told })
        })
    }

    /// Forgets threads that have ended, except for one thread of each kind. A thread that was started by one that has
    /// ended is known by its domain and mask.
    fn forget_ended(&mut self) {
        let mut kept: Vec<(DomainId, Mask, Mask)> = Vec::new();
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
        // Until a pass finds nothing more: what a placed thread starts during a pass inherits its mask.
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

impl MaskLedger {
    /// The mask that its owner gave a thread. A thread that was started under a changed mask never had a mask of its
    /// own: it has inherited its mask from its process, an ancestor, or any thread of its domain.
    pub fn original(&self, process: &Process, thread: &Process, domain: DomainId, present: Mask) -> Mask {
        if let Some(entry) = self.entry(thread) {
            return if entry.told.contains(&present) { entry.original } else { present };
        }
        let parent =
            self.ancestor(process, present).or_else(|| self.possible_parent(domain, present, thread.start));
        parent.map_or(present, |entry| entry.original)
    }

    /// A changed thread of this domain, with this mask, from which a thread may have inherited that began at `start`.
    fn possible_parent(&self, domain: DomainId, present: Mask, start: u64) -> Option<&LedgerEntry> {
        let mut entries = self.entries.values();
        entries.find(|entry| entry.domain == domain && entry.told.contains(&present) && entry.start <= start)
    }

    /// Gives the threads of a process their own masks back, unless another program has changed them since.
    pub fn release(&self, pid: u32) {
        for (&thread, entry) in self.entries.iter().filter(|(_, entry)| entry.pid == pid) {
            // A failure is of no consequence here: it is tried again at the end.
            let _ = self.restore_thread(thread, entry);
        }
    }

    /// Puts a thread's own mask back. Returns whether it still had one of ours.
    fn restore_thread(&self, thread: u32, entry: &LedgerEntry) -> Result<Result<bool, Errno>, CannotLook> {
        // If this process could not even find itself, it would take all other processes for ended.
        process::check_sight()?;
        let found = Process::find_thread(entry.pid, thread)?.filter(|found| found.start == entry.start);
        Ok(found.map_or(Err(Errno::SRCH), |_| entry.put_back(thread)))
    }

    /// Makes one pass over all threads that were started by changed threads. Returns how many got another mask.
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
        // A thread with an entry was restored already. A thread that is older than that ancestor inherited nothing from
        // it. A thread with the original mask needs nothing.
        if self.entry(&found).is_some() || found.start < parent.start || parent.original == present {
            return None;
        }
        parent.original.give_to(thread).ok()
    }

    fn entry(&self, thread: &Process) -> Option<&LedgerEntry> {
        self.entries.get(&thread.pid).filter(|entry| entry.start == thread.start)
    }

    /// The nearest changed thread with this mask among a process's own threads and those of its ancestors.
    fn ancestor(&self, process: &Process, present: Mask) -> Option<&LedgerEntry> {
        let mut process = process.clone();
        // Bounded, because parents change while the chain is followed.
        for _ in 0..MAX_ANCESTORS {
            // A thread is never older than its process. Older entries are of another process that had the same number.
            let entry = self.entries.values().find(|entry| {
                entry.pid == process.pid && entry.start >= process.start && entry.told.contains(&present)
            });
            if let Some(entry) = entry {
                return Some(entry);
            }
            process = Process::read(process.parent)?;
        }
        None
    }
}

impl LedgerEntry {
    /// Gives the thread its own mask back if it has one that the scheduler gave it. Returns whether it had.
    fn put_back(&self, thread: u32) -> Result<bool, Errno> {
        let is_ours = self.told.contains(&Mask::of_thread(thread)?);
        if is_ours {
            self.original.give_to(thread)?;
        }
        Ok(is_ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_way_through_the_file() {
        let single = |processor| Mask::single(processor).unwrap();
        let record = MaskRecord {
            pid: 1,
            thread: 2,
            start: u64::MAX - 7,
            domain: DomainId::new(300),
            original: single(1000),
            told: single(3),
        };
        assert_eq!(MaskRecord::from_bytes(&record.to_bytes()), record);
    }
}
