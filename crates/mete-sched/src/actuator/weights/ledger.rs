//! Which control groups' weights and limits were changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::file::GroupFile;
use crate::actuator::Restored;
use crate::actuator::ledger::{Ledger, Record};

/// One change that is about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::actuator) struct WeightRecord {
    file: GroupFile,
    /// What the file said before, and what it is about to say.
    original: u64,
    told: u64,
}

/// How long a path may be, and where it begins in a record.
const LONGEST: usize = 4096;
const PATH: usize = 32;

impl WeightRecord {
    pub(super) fn new(file: &GroupFile, original: u64, told: u64) -> Result<WeightRecord, String> {
        let is_short = file.path.as_os_str().len() < LONGEST;
        is_short
            .then(|| WeightRecord { file: file.clone(), original, told })
            .ok_or_else(|| format!("its path is longer than {LONGEST} bytes"))
    }
}

impl Record for WeightRecord {
    const BYTES: usize = PATH + LONGEST;

    /// The path ends at its first zero, which no path contains.
    fn to_bytes(&self) -> Vec<u8> {
        let WeightRecord { file, original, told } = self;
        let numbers = [file.device, file.inode, *original, *told];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend_from_slice(file.path.as_os_str().as_bytes());
        bytes.resize(WeightRecord::BYTES, 0);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> WeightRecord {
        let number =
            |nth: usize| bytes[8 * nth..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let path = bytes[PATH..].split(|&byte| byte == 0).next().unwrap_or_default();
        let file =
            GroupFile { path: PathBuf::from(OsStr::from_bytes(path)), device: number(0), inode: number(1) };
        WeightRecord { file, original: number(2), told: number(3) }
    }
}

/// A file whose value was changed.
#[derive(Debug)]
struct Changed {
    file: GroupFile,
    original: u64,
    /// Every value that it was to get. If it has another one, another program has changed it since.
    told: Vec<u64>,
}

/// All changes, by device and inode. See [`Ledger`].
#[derive(Debug, Default)]
pub(in crate::actuator) struct WeightLedger {
    files: BTreeMap<(u64, u64), Changed>,
}

impl WeightLedger {
    /// Whether this file was changed, or is about to be.
    pub(super) fn knows(&self, file: &GroupFile) -> bool {
        self.files.contains_key(&(file.device, file.inode))
    }

    /// What its owner has given the group: what it has now, unless that is ours.
    pub(super) fn original(&self, file: &GroupFile, present: u64) -> u64 {
        let changed = self.files.get(&(file.device, file.inode));
        changed.filter(|changed| changed.told.contains(&present)).map_or(present, |changed| changed.original)
    }
}

impl Ledger for WeightLedger {
    type Record = WeightRecord;

    const MAGIC: [u8; 8] = *b"METEWGT1";
    const EXTENSION: &'static str = "weights";

    fn note(&mut self, record: WeightRecord) {
        let WeightRecord { file, original, told } = record;
        let key = (file.device, file.inode);
        let changed = self.files.entry(key).or_insert_with(|| Changed { file, original, told: Vec::new() });
        changed.original = original;
        if !changed.told.contains(&told) {
            changed.told.push(told);
        }
    }

    fn has(&self, record: &WeightRecord) -> bool {
        let WeightRecord { file, original, told } = record;
        let changed = self.files.get(&(file.device, file.inode));
        changed.is_some_and(|changed| changed.original == *original && changed.told.contains(told))
    }

    fn records(&self) -> impl Iterator<Item = WeightRecord> {
        self.files.values().flat_map(|changed| {
            let Changed { file, original, told } = changed;
            told.iter().map(|&told| WeightRecord { file: file.clone(), original: *original, told })
        })
    }

    fn forget_ended(&mut self) {
        self.files.retain(|_, changed| changed.file.is_there());
    }

    fn restore(&self) -> Restored {
        let mut result = Restored::default();
        let failed = in_any_order(self.files.values().collect(), |changed| {
            let count = match changed.put_back() {
                Ok(true) => &mut result.restored,
                Ok(false) => &mut result.left_alone,
                Err(_) if !changed.file.is_there() => &mut result.ended,
                Err(error) => return Err(error),
            };
            *count += 1;
            Ok(())
        });
        result.failed = failed.len();
        result
    }
}

/// Does this with each, and again with those that fail, as long as one succeeds: a group's limit is at most that of the group
/// above, so which of them has to be changed first depends on both. Those that fail in the end, with their errors.
pub fn in_any_order<T, E>(mut all: Vec<T>, mut act: impl FnMut(&T) -> Result<(), E>) -> Vec<(T, E)> {
    loop {
        let many = all.len();
        let tried = all.into_iter().filter_map(|each| {
            let error = act(&each).err()?;
            Some((each, error))
        });
        let failed: Vec<_> = tried.collect();
        if failed.is_empty() || failed.len() == many {
            return failed;
        }
        all = failed.into_iter().map(|(each, _)| each).collect();
    }
}

impl Changed {
    /// Puts the value back if it is ours. Whether it was.
    fn put_back(&self) -> io::Result<bool> {
        let is_ours = self.told.contains(&self.file.read()?);
        if is_ours {
            self.file.write(self.original)?;
        }
        Ok(is_ours)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::*;

    #[test]
    fn records_survive_the_way_through_the_file() {
        let file = GroupFile { path: "/a/b\n c/cpu.weight".into(), device: u64::MAX, inode: 7 };
        let record = WeightRecord::new(&file, 100, 10_000).unwrap();
        assert_eq!(WeightRecord::from_bytes(&record.to_bytes()), record);
        let path = "x".repeat(LONGEST).into();
        assert!(WeightRecord::new(&GroupFile { path, ..file }, 1, 2).unwrap_err().contains("longer"));
    }

    #[test]
    fn vtrr_7_nothing_is_written_but_weights_of_control_groups_whatever_a_journal_says() {
        let place = tempfile::tempdir().unwrap();
        let cgroup = Path::new("/sys/fs/cgroup");
        let procs = [cgroup.join("cpu/cgroup.procs"), cgroup.join("cgroup.procs")];
        let other = procs.into_iter().find(|path| path.exists());
        let own = place.path().join("cpu.weight");
        fs::write(&own, "300").unwrap();
        for path in [Some(own.clone()), other].into_iter().flatten() {
            let found = fs::metadata(&path).unwrap();
            let file = GroupFile { path, device: found.dev(), inode: found.ino() };
            assert!(file.read().is_err() && file.write(100).is_err() && !file.is_there(), "{file:?}");
            let mut ledger = WeightLedger::default();
            ledger.note(WeightRecord::new(&file, 100, 300).unwrap());
            assert_eq!(ledger.restore(), Restored { ended: 1, ..Restored::default() });
        }
        assert_eq!(fs::read_to_string(own).unwrap(), "300");
    }
}
