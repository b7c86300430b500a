//! The ledger as a file: what is written here is undone, whatever happens to the process that wrote it.
//!
//! The scheduler writes a [`Record`] before each change. The keepers have the same file open and read it when they are
//! to undo. It lies in the directory of this user's components (`/run/mete` for root) and carries a lock as long as one
//! of the three lives, so that the next start of the program can tell a [file that was left](undo_all_left) from one in
//! use.
//!
//! ```text
//!   0     8        44    48          56     64                      begin
//!   magic boot_id  zero  namespace   begin  records that count no more  records
//! ```
//!
//! An empty file says that everything is undone.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use mete_probe::directory;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, MemfdFlags, Mode, OFlags};

use super::ledger::{Ledger, Record, Restored};
use crate::domains::process::Process;

const MAGIC: &[u8; 8] = b"METEMSK1";
const HEADER_BYTES: u64 = 64;
const BOOT: std::ops::Range<usize> = 8..44;
const NAMESPACE: std::ops::Range<usize> = 48..56;
const BEGIN: std::ops::Range<usize> = 56..64;
/// What the names of journals end with.
const EXTENSION: &str = "masks";
/// The directory may be removed by another program just before a file is put into it.
const TRIES: u32 = 10;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    /// `None` where no directory would have it: then it ends with the last of the three processes.
    path: Option<PathBuf>,
    /// Where the records begin, and where the next one goes.
    begin: u64,
    end: u64,
}

impl Journal {
    /// A new one, of this process, and where it has no name, the reason.
    pub fn create() -> io::Result<(Journal, Option<io::Error>)> {
        let mut why = None;
        for _ in 0..TRIES {
            match Journal::named() {
                Ok((file, path)) => {
                    let journal = Journal { file, path: Some(path), begin: HEADER_BYTES, end: HEADER_BYTES };
                    return Ok((journal, None));
                }
                Err(error) => why = Some(error),
            }
        }
        Ok((Journal::without_name()?, why))
    }

    /// One that ends with the last process that has it open.
    pub fn without_name() -> io::Result<Journal> {
        let file = File::from(rustix::fs::memfd_create("mete-masks", MemfdFlags::CLOEXEC)?);
        prepare(&file)?;
        Ok(Journal { file, path: None, begin: HEADER_BYTES, end: HEADER_BYTES })
    }

    /// It has its name once it has its lock: without one, it would be taken for left.
    fn named() -> io::Result<(File, PathBuf)> {
        let directory = directory::own();
        directory::prepare(&directory)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&directory, flags, Mode::RUSR | Mode::WUSR)?);
        prepare(&file)?;
        let own = std::process::id();
        let start = Process::read(own).map_or(0, |process| process.start);
        let path = directory.join(format!("{own}-{start}.{EXTENSION}"));
        rustix::fs::linkat(CWD, nameless(&file), CWD, &path, AtFlags::SYMLINK_FOLLOW)?;
        Ok((file, path))
    }

    /// A keeper's, as the scheduler left it to it.
    pub fn inherited(file: OwnedFd, path: &OsStr) -> Journal {
        let path = (!path.is_empty()).then(|| path.into());
        Journal { file: file.into(), path, begin: HEADER_BYTES, end: HEADER_BYTES }
    }

    /// What a keeper needs to have the same one.
    pub fn to_inherit(&self) -> io::Result<(OwnedFd, OsString)> {
        let path = self.path.clone().unwrap_or_default();
        Ok((self.file.try_clone()?.into(), path.into()))
    }

    /// Notes a change to come. Once this returns, it will be undone. What was written of a record before an error does
    /// not count: the next one takes its place.
    pub fn append(&mut self, record: Record) -> io::Result<()> {
        self.file.write_all_at(&record.to_bytes(), self.end)?;
        self.end += Record::BYTES as u64;
        Ok(())
    }

    /// How many records it has.
    pub fn records(&self) -> usize {
        ((self.end - self.begin) / Record::BYTES as u64) as usize
    }

    /// Has these records instead. A reader sees the old ones or the new ones, whenever this process is killed.
    pub fn rewrite(&mut self, records: impl Iterator<Item = Record>) -> io::Result<()> {
        let begin = self.end;
        records.into_iter().try_for_each(|record| self.append(record))?;
        self.file.write_all_at(&begin.to_le_bytes(), BEGIN.start as u64)?;
        self.begin = begin;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // It would only take more room.
        let _ = rustix::fs::fallocate(&self.file, flags, HEADER_BYTES, begin - HEADER_BYTES);
        Ok(())
    }

    /// Undoes what is noted, unless it was undone; `None` then. Of several processes that call this, one does it at a
    /// time.
    ///
    /// # Errors
    ///
    /// If the file cannot be locked or read.
    pub fn undo(&self) -> io::Result<Option<Restored>> {
        self.undo_under(FlockOperation::LockExclusive)
    }

    /// The lock is by process, not by open file: the three share that.
    fn undo_under(&self, lock: FlockOperation) -> io::Result<Option<Restored>> {
        rustix::fs::fcntl_lock(&self.file, lock)?;
        let restored = self.undo_locked();
        // Others may wait for it while this process waits for them. It ends with this process at the latest.
        let _ = rustix::fs::fcntl_lock(&self.file, FlockOperation::Unlock);
        restored
    }

    fn undo_locked(&self) -> io::Result<Option<Restored>> {
        let restored = self.read()?.map(|ledger| ledger.restore());
        if restored.is_some_and(|restored| restored.left > 0) {
            // Another one has to do the rest, and finds it as it was.
            return Ok(restored);
        }
        if restored.is_some() {
            self.file.set_len(0)?;
        }
        if let Some(path) = &self.path {
            // Another one may have done that.
            let _ = fs::remove_file(path);
        }
        Ok(restored)
    }

    /// What it says; `None` if everything is undone.
    fn read(&self) -> io::Result<Option<Ledger>> {
        let length = self.file.metadata()?.len();
        if length < HEADER_BYTES {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES as usize];
        self.file.read_exact_at(&mut header, 0)?;
        let begin = number(&header[BEGIN]).max(HEADER_BYTES);
        let mut ledger = Ledger::default();
        let mut bytes = [0; Record::BYTES];
        for at in (begin..length).step_by(Record::BYTES) {
            // An incomplete one at the end was not acted upon.
            if self.file.read_exact_at(&mut bytes, at).is_err() {
                break;
            }
            ledger.note(Record::from_bytes(&bytes));
        }
        Ok(Some(ledger))
    }
}

/// Writes the header, and takes the lock that says that somebody cares.
fn prepare(file: &File) -> io::Result<()> {
    rustix::fs::flock(file, FlockOperation::LockExclusive)?;
    file.write_all_at(&header()?, 0)
}

fn header() -> io::Result<[u8; HEADER_BYTES as usize]> {
    let mut header = [0; HEADER_BYTES as usize];
    header[..8].copy_from_slice(MAGIC);
    // Numbers of processes, and when they began, mean something within one boot and one namespace of processes.
    let boot = fs::read("/proc/sys/kernel/random/boot_id")?;
    header[BOOT].copy_from_slice(boot.get(..BOOT.len()).ok_or(io::ErrorKind::InvalidData)?);
    header[NAMESPACE].copy_from_slice(&fs::metadata("/proc/self/ns/pid")?.ino().to_le_bytes());
    header[BEGIN].copy_from_slice(&HEADER_BYTES.to_le_bytes());
    Ok(header)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn nameless(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Undoes what schedulers of this user have left that were killed together with their keepers; `None` if there is
/// nothing of the kind.
pub(super) fn undo_all_left() -> Option<Restored> {
    let left = directory::all_own().into_iter().flat_map(|directory| left_in(&directory));
    // One that is about to undo it need not be waited for: it may be stopped.
    let undo = |journal: Journal| journal.undo_under(FlockOperation::NonBlockingLockExclusive).ok().flatten();
    left.filter_map(undo).reduce(|sum, one| sum + one)
}

/// The journals in a directory whose schedulers have ended. None in a directory that another user could have put
/// some into.
fn left_in(directory: &Path) -> Vec<Journal> {
    let own = rustix::process::geteuid().as_raw();
    let is_safe = |found: fs::Metadata| found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0;
    if !fs::symlink_metadata(directory).is_ok_and(is_safe) {
        return Vec::new();
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let journals = entries.filter(|path| path.extension() == Some(OsStr::new(EXTENSION)));
    journals.filter_map(|path| left(path).ok().flatten()).collect()
}

fn left(path: PathBuf) -> io::Result<Option<Journal>> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    // Refused while one of its processes lives: the scheduler, or a keeper that was stopped.
    let is_deserted = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let (here, mut there) = (header()?, [0; HEADER_BYTES as usize]);
    if file.read_exact_at(&mut there, 0).is_err() {
        if !is_deserted {
            return Ok(None);
        }
        // Undone, and killed before its name was removed.
        fs::remove_file(&path)?;
        return Ok(None);
    }
    if there[..8] != here[..8] || there[NAMESPACE] != here[NAMESPACE] {
        // Of another version, or of a container.
        return Ok(None);
    }
    if there[BOOT] != here[BOOT] {
        // What it tells of ended with the machine.
        fs::remove_file(&path)?;
        return Ok(None);
    }
    let is_over = is_deserted || has_ended(&path);
    Ok(is_over.then_some(Journal { file, path: Some(path), begin: HEADER_BYTES, end: HEADER_BYTES }))
}

/// Whether the scheduler has ended that a journal of this namespace is called after.
fn has_ended(path: &Path) -> bool {
    let name = path.file_stem().and_then(OsStr::to_str).and_then(|name| name.split_once('-'));
    let number = |text: &str| text.parse::<u64>().ok();
    let Some((Some(pid), Some(start))) = name.map(|(pid, start)| (number(pid), number(start))) else {
        return false;
    };
    let found = u32::try_from(pid).ok().map(Process::find);
    matches!(found, Some(Ok(found)) if found.as_ref().is_none_or(|found| found.start != start))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

    use super::*;
    use crate::actuator::Mask;

    /// Of threads that there are not.
    fn record(thread: u32) -> Record {
        let (original, told) = (Mask::single(1).unwrap(), Mask::single(0).unwrap());
        Record { pid: thread, thread, start: u64::MAX, domain: 2, original, told }
    }

    fn threads(journal: &Journal) -> Vec<u32> {
        journal.read().unwrap().unwrap().records().map(|record| record.thread).collect()
    }

    /// A directory of a test's own.
    struct Place(PathBuf);

    impl Place {
        fn new(test: &str) -> Place {
            let path = std::env::temp_dir().join(format!("mete-journal-{}-{test}", std::process::id()));
            fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
            Place(path)
        }

        /// A journal as a killed scheduler leaves it, but for some bytes of its header.
        fn leave(&self, name: &str, change: impl FnOnce(&mut [u8])) -> (PathBuf, File) {
            let path = self.0.join(name).with_extension(EXTENSION);
            let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
            let mut header = header().unwrap();
            change(&mut header);
            file.write_all_at(&header, 0).unwrap();
            (path, file)
        }

        fn left(&self) -> Vec<PathBuf> {
            left_in(&self.0).into_iter().filter_map(|journal| journal.path).collect()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn log_16_what_a_killed_scheduler_left_is_undone_where_its_numbers_mean_the_same_and_nobody_cares_for_it()
    {
        let place = Place::new("left");
        let (plain, _) = place.leave("plain", |_| ());
        let (boot, _) = place.leave("another-boot", |header| header[BOOT.start] ^= 1);
        let (namespace, _) = place.leave("another-namespace", |header| header[NAMESPACE.start] ^= 1);
        let (version, _) = place.leave("another-version", |header| header[MAGIC.len() - 1] ^= 1);
        let (in_use, file) = place.leave("in-use", |_| ());
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        let (undone, empty) = place.leave("undone", |_| ());
        empty.set_len(0).unwrap();
        let link = place.0.join("link").with_extension(EXTENSION);
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        fs::write(place.0.join("1.sock"), "").unwrap();
        assert_eq!(place.left(), std::slice::from_ref(&plain));
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        assert!([&plain, &namespace, &version, &in_use, &link].into_iter().all(is_there));
        assert!(!is_there(&boot) && !is_there(&undone), "of these nothing is to be undone by anybody");
    }

    #[test]
    fn log_16_nothing_is_undone_that_another_user_may_have_written() {
        let place = Place::new("others");
        let (left, _) = place.leave("left", |_| ());
        for (mode, is_believed) in [(0o770, false), (0o702, false), (0o755, true), (0o700, true)] {
            fs::set_permissions(&place.0, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(place.left().len(), usize::from(is_believed), "{mode:o}");
        }
        let link = place.0.with_extension("link");
        std::os::unix::fs::symlink(&place.0, &link).unwrap();
        let through_link = left_in(&link);
        fs::remove_file(link).unwrap();
        assert!(through_link.is_empty());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&left, Some(65_534), None).unwrap();
            assert!(place.left().is_empty());
        }
    }

    #[test]
    fn log_16_a_journal_that_is_rewritten_tells_the_new_records_and_no_old_one() {
        let mut journal = Journal::without_name().unwrap();
        (1..=9).for_each(|thread| journal.append(record(thread)).unwrap());
        assert_eq!((threads(&journal), journal.records()), ((1..=9).collect(), 9));
        journal.rewrite([record(4), record(5)].into_iter()).unwrap();
        journal.append(record(10)).unwrap();
        assert_eq!((threads(&journal), journal.records()), (vec![4, 5, 10], 3));
    }

    #[test]
    fn log_16_what_is_undone_is_undone_once_and_half_a_record_does_not_count() {
        let mut journal = Journal::without_name().unwrap();
        journal.append(record(1)).unwrap();
        journal.file.write_all_at(&record(2).to_bytes()[..100], journal.end).unwrap();
        assert_eq!(threads(&journal), [1]);
        assert_eq!(journal.undo().unwrap(), Some(Restored { ended: 1, ..Restored::default() }));
        assert_eq!(journal.undo().unwrap(), None);
    }

    #[test]
    fn log_16_ended_threads_are_forgotten_except_one_of_each_kind() {
        let mut ledger = Ledger::default();
        (1_000_001..1_000_009).for_each(|thread| ledger.note(record(thread)));
        let other = Record { domain: 3, ..record(1_000_009) };
        ledger.note(other);
        assert!(ledger.has(&other) && !ledger.has(&Record { domain: 2, ..other }));
        ledger.forget_ended();
        assert_eq!(ledger.records().map(|record| record.domain).collect::<Vec<_>>(), [2, 3]);
    }
}
