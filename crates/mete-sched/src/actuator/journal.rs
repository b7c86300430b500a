//! A ledger as a file: what is written here is undone, whatever happens to the process that wrote it.
//!
//! The scheduler writes a record before each change. What the records are says the kind of [`Ledger`], whose
//! first bytes the file carries. The watchers have the same file open, and read it when they have to undo the
//! changes. The file lies in the directory of this user's components (`/run/mete` for root). It carries a
//! lock as long as one of the three processes lives. By this lock, the next start of the program can tell a
//! [file that was left behind](recover) from a file in use.
//!
//! ```text
//!   0     8        44    48          56     64                      begin
//!   magic boot_id  zero  namespace   begin  outdated records  records
//! ```
//!
//! An empty file means that everything is undone.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use mete_keeper::{files_left, open_left};
use mete_probe::directory;
use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, MemfdFlags, Mode, OFlags};

use super::ledger::{Ledger, Record, Restored};
use crate::domains::process::Process;

const HEADER_BYTES: u64 = 64;
const MAGIC: std::ops::Range<usize> = 0..8;
const BOOT: std::ops::Range<usize> = 8..44;
const NAMESPACE: std::ops::Range<usize> = 48..56;
const BEGIN: std::ops::Range<usize> = 56..64;
/// The most bytes of records. What a scheduler that rules every thread of a large machine notes fits in many
/// times.
const MOST_BYTES: u64 = 64 << 20;
/// How often to try to make a file. Another program may remove the directory just before the file is put into
/// it.
const TRIES: u32 = 10;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Journal<L> {
    kind: PhantomData<L>,
    file: File,
    /// `None` if no directory would take the file. Then it ends with the last of the three processes.
    path: Option<PathBuf>,
    /// The offset of the first record, and the offset of the next record to be written.
    begin: u64,
    end: u64,
}

impl<L: Ledger> Journal<L> {
    fn of(file: File, path: Option<PathBuf>) -> Journal<L> {
        Journal { kind: PhantomData, file, path, begin: HEADER_BYTES, end: HEADER_BYTES }
    }

    /// A new journal of this process. If it has no name, also the reason for that.
    pub fn create() -> io::Result<(Journal<L>, Option<io::Error>)> {
        let mut why = None;
        for _ in 0..TRIES {
            match Journal::named() {
                Ok(journal) => return Ok((journal, None)),
                Err(error) => why = Some(error),
            }
        }
        Ok((Journal::without_name()?, why))
    }

    /// A journal that ends with the last process that has it open.
    pub fn without_name() -> io::Result<Journal<L>> {
        let file = File::from(rustix::fs::memfd_create("mete-journal", MemfdFlags::CLOEXEC)?);
        prepare(&file, L::MAGIC)?;
        Ok(Journal::of(file, None))
    }

    /// A file with a name. It gets its name only after its lock: without the lock, the next start of a
    /// program would take it for one that was left behind.
    fn named() -> io::Result<Journal<L>> {
        let directory = directory::own();
        directory::prepare(&directory)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&directory, flags, Mode::RUSR | Mode::WUSR)?);
        prepare(&file, L::MAGIC)?;
        // The number and the start together are unique, so that a name never belongs to a journal that was
        // left behind.
        let own = std::process::id();
        let start = Process::read(own).map_or(0, |process| process.start);
        let path = directory.join(format!("{own}-{start}.{}", L::EXTENSION));
        rustix::fs::linkat(CWD, nameless(&file), CWD, &path, AtFlags::SYMLINK_FOLLOW)?;
        Ok(Journal::of(file, Some(path)))
    }

    /// The journal of a watcher, from the file that the scheduler has passed on; `None` if it is of another
    /// kind.
    pub fn inherited(file: &OwnedFd, path: &OsStr) -> io::Result<Option<Journal<L>>> {
        let path = (!path.is_empty()).then(|| path.into());
        let mut magic = [0; MAGIC.end];
        let file = File::from(file.try_clone()?);
        file.read_exact_at(&mut magic, 0)?;
        Ok((magic == L::MAGIC).then(|| Journal::of(file, path)))
    }

    /// What a watcher needs to open the same journal.
    pub fn to_inherit(&self) -> io::Result<(OwnedFd, OsString)> {
        let path = self.path.clone().unwrap_or_default();
        Ok((self.file.try_clone()?.into(), path.into()))
    }

    /// Notes a change that is about to be made. After this returns, the change will be undone. If there is an
    /// error, the part of the record that was written does not count: the next record takes its place.
    pub fn append(&mut self, record: &L::Record) -> io::Result<()> {
        self.check_room()?;
        self.write(record)
    }

    /// Notes several changes at once, as [`Journal::append`] does one. After an error, some of them may be noted.
    pub fn append_all(&mut self, records: &[L::Record]) -> io::Result<()> {
        self.check_room()?;
        let bytes: Vec<u8> = records.iter().flat_map(L::Record::to_bytes).collect();
        self.file.write_all_at(&bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn check_room(&self) -> io::Result<()> {
        let is_full = self.end - self.begin >= MOST_BYTES;
        let full = || io::Error::new(io::ErrorKind::FileTooLarge, "the journal is full");
        if is_full { Err(full()) } else { Ok(()) }
    }

    fn write(&mut self, record: &L::Record) -> io::Result<()> {
        self.file.write_all_at(&record.to_bytes(), self.end)?;
        self.end += L::Record::BYTES as u64;
        Ok(())
    }

    /// The number of records.
    pub fn records(&self) -> usize {
        ((self.end - self.begin) / L::Record::BYTES as u64) as usize
    }

    /// Replaces the records by these. A reader sees either the old or the new records, at whatever moment
    /// this process is killed.
    pub fn rewrite(&mut self, records: impl Iterator<Item = L::Record>) -> io::Result<()> {
        // The new records go behind the old ones; the one write of `begin` then switches over.
        let begin = self.end;
        records.into_iter().try_for_each(|record| self.write(&record))?;
        self.file.write_all_at(&begin.to_le_bytes(), BEGIN.start as u64)?;
        self.begin = begin;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // An error would only mean that the file takes more room.
        let _ = rustix::fs::fallocate(&self.file, flags, HEADER_BYTES, begin - HEADER_BYTES);
        Ok(())
    }

    /// What this user's other schedulers have noted that live, or whose watchers do, each with its number.
    pub fn others(&self) -> impl Iterator<Item = (u32, L)> {
        let left =
            directory::all_own().into_iter().flat_map(|directory| files_left(&directory, L::EXTENSION));
        let others = left.filter(|path| Some(path) != self.path.as_ref());
        others.filter_map(|path| Some((named_for(&path)?.0, in_use(&path)?)))
    }

    /// Undoes what is noted, unless it was undone already; `None` then. If several processes call this, one
    /// works at a time.
    ///
    /// # Errors
    ///
    /// An error if the file cannot be locked or read.
    pub fn undo(&self) -> io::Result<Option<Restored>> {
        self.undo_under(FlockOperation::LockExclusive)
    }

    /// Undoes what is noted, and keeps the notes: the scheduler will make the same changes again.
    ///
    /// # Errors
    ///
    /// An error if the file cannot be read.
    pub fn undo_for_now(&self) -> io::Result<()> {
        if let Some(ledger) = self.read()? {
            ledger.restore();
        }
        Ok(())
    }

    /// Undoes under a lock of this kind. It is a lock by process, because the three processes share the open
    /// file, and with it a lock by open file.
    fn undo_under(&self, lock: FlockOperation) -> io::Result<Option<Restored>> {
        rustix::fs::fcntl_lock(&self.file, lock)?;
        let restored = self.undo_locked();
        // Other processes may wait for the lock while this process waits for them. An error is of no
        // consequence: the lock ends with this process at the latest.
        let _ = rustix::fs::fcntl_lock(&self.file, FlockOperation::Unlock);
        restored
    }

    fn undo_locked(&self) -> io::Result<Option<Restored>> {
        let restored = self.read()?.map(|ledger| ledger.restore());
        if restored.is_some_and(|restored| restored.left > 0) {
            // Another process has to undo the rest, and it needs the journal as it was.
            return Ok(restored);
        }
        // Emptied before the name goes: the watchers have the file open, and must not undo it again.
        if restored.is_some() {
            self.file.set_len(0)?;
        }
        if let Some(path) = &self.path {
            // An error is of no consequence: another process may have removed it.
            let _ = fs::remove_file(path);
            directory::remove_unused();
        }
        Ok(restored)
    }

    /// The ledger that is noted; `None` if everything is undone.
    fn read(&self) -> io::Result<Option<L>> {
        let length = self.file.metadata()?.len();
        if length < HEADER_BYTES {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES as usize];
        self.file.read_exact_at(&mut header, 0)?;
        let begin = number(&header[BEGIN]).max(HEADER_BYTES);
        // `append` writes no more than that.
        let length = length.min(begin.saturating_add(MOST_BYTES));
        let mut ledger = L::default();
        let mut bytes = vec![0; L::Record::BYTES];
        for at in (begin..length).step_by(L::Record::BYTES) {
            // An incomplete record at the end was never acted upon.
            if self.file.read_exact_at(&mut bytes, at).is_err() {
                break;
            }
            ledger.note(L::Record::from_bytes(&bytes));
        }
        Ok(Some(ledger))
    }
}

/// Takes the lock that says that a process looks after the file, and writes the header.
fn prepare(file: &File, magic: [u8; 8]) -> io::Result<()> {
    rustix::fs::flock(file, FlockOperation::LockExclusive)?;
    file.write_all_at(&header(magic)?, 0)
}

fn header(magic: [u8; 8]) -> io::Result<[u8; HEADER_BYTES as usize]> {
    let mut header = [0; HEADER_BYTES as usize];
    header[MAGIC].copy_from_slice(&magic);
    // The numbers and starts of processes have a meaning only within one boot and one namespace of processes.
    let boot = fs::read("/proc/sys/kernel/random/boot_id")?;
    header[BOOT].copy_from_slice(boot.get(..BOOT.len()).ok_or(io::ErrorKind::InvalidData)?);
    header[NAMESPACE].copy_from_slice(&fs::metadata("/proc/self/ns/pid")?.ino().to_le_bytes());
    header[BEGIN].copy_from_slice(&HEADER_BYTES.to_le_bytes());
    Ok(header)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A path to a file without a name, by which it can be linked to a name.
fn nameless(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Undoes what schedulers of this user have left behind that were killed together with both of their
/// watchers; `None` if nothing of this kind was left. The cost is one look into a directory.
pub(super) fn recover<L: Ledger>() -> Option<Restored> {
    let left = directory::all_own().into_iter().flat_map(|directory| left_in::<L>(&directory));
    // Without waiting for the lock: the process that holds it undoes the same, and might be stopped.
    left.filter_map(|journal| journal.undo_under(FlockOperation::NonBlockingLockExclusive).ok().flatten())
        .reduce(|sum, restored| sum + restored)
}

/// The journals in a directory whose schedulers have ended. There are none if another user could have put
/// files into the directory.
fn left_in<L: Ledger>(directory: &Path) -> Vec<Journal<L>> {
    let journals = files_left(directory, L::EXTENSION).into_iter();
    journals.filter_map(|path| left(path).ok().flatten()).collect()
}

/// The journal in a file, if its scheduler has ended.
fn left<L: Ledger>(path: PathBuf) -> io::Result<Option<Journal<L>>> {
    let Some(file) = open_left(&path, OFlags::RDWR)? else { return Ok(None) };
    // The lock is refused while one of its processes lives: the scheduler, or a watcher that was stopped.
    let is_deserted = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let (here, mut there) = (header(L::MAGIC)?, [0; HEADER_BYTES as usize]);
    if file.read_exact_at(&mut there, 0).is_err() {
        if !is_deserted {
            return Ok(None);
        }
        // It was undone by a process that was killed before it removed the name.
        fs::remove_file(&path)?;
        return Ok(None);
    }
    if there[MAGIC] != here[MAGIC] || there[NAMESPACE] != here[NAMESPACE] {
        // It belongs to another version, or to a container.
        return Ok(None);
    }
    if there[BOOT] != here[BOOT] {
        // The processes that it names ended with the machine.
        fs::remove_file(&path)?;
        return Ok(None);
    }
    // A watcher that was stopped holds the lock, but then the scheduler has ended all the same.
    let is_over = is_deserted || has_ended(&path);
    Ok(is_over.then(|| Journal::of(file, Some(path))))
}

/// The ledger in a file that a process looks after, in any namespace.
fn in_use<L: Ledger>(path: &Path) -> Option<L> {
    let file = open_left(path, OFlags::RDONLY).ok()??;
    let is_deserted = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    let (here, mut there) = (header(L::MAGIC).ok()?, [0; HEADER_BYTES as usize]);
    file.read_exact_at(&mut there, 0).ok()?;
    let is_readable = there[MAGIC] == here[MAGIC] && there[BOOT] == here[BOOT];
    if is_deserted || !is_readable {
        return None;
    }
    Journal::of(file, None).read().ok()?
}

/// The number and the start of the process after which a journal is named.
fn named_for(path: &Path) -> Option<(u32, u64)> {
    let (pid, start) = path.file_stem()?.to_str()?.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Whether the scheduler has ended after which a journal of this namespace is named.
fn has_ended(path: &Path) -> bool {
    let Some((pid, start)) = named_for(path) else { return false };
    matches!(Process::find(pid), Ok(found) if found.as_ref().is_none_or(|found| found.start != start))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use mete_log::DomainId;
    use tempfile::TempDir;

    use super::*;
    use crate::actuator::Mask;
    use crate::actuator::threads::{ThreadLedger, ThreadRecord};

    type MaskJournal = Journal<ThreadLedger<Mask>>;

    const EXTENSION: &str = ThreadLedger::<Mask>::EXTENSION;

    /// A record of a thread that does not exist.
    fn record(thread: u32) -> ThreadRecord<Mask> {
        let (original, told) = (Mask::single(1).unwrap(), Mask::single(0).unwrap());
        ThreadRecord {
            pid: thread,
            thread,
            start: u64::MAX,
            domain: DomainId::new(2),
            since: 0,
            original,
            told,
        }
    }

    fn threads(journal: &MaskJournal) -> Vec<u32> {
        journal.read().unwrap().unwrap().records().map(|record| record.thread).collect()
    }

    /// A directory of a test's own.
    struct JournalDirectory(TempDir);

    impl JournalDirectory {
        fn new() -> JournalDirectory {
            JournalDirectory(tempfile::tempdir().unwrap())
        }

        fn leave(&self, name: &str, change: impl FnOnce(&mut [u8])) -> (PathBuf, File) {
            let path = self.0.path().join(name).with_extension(EXTENSION);
            let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
            let mut header = header(ThreadLedger::<Mask>::MAGIC).unwrap();
            change(&mut header);
            file.write_all_at(&header, 0).unwrap();
            (path, file)
        }

        fn left(&self) -> Vec<PathBuf> {
            left_in::<ThreadLedger<Mask>>(self.0.path())
                .into_iter()
                .filter_map(|journal| journal.path)
                .collect()
        }
    }

    #[test]
    fn log_16_of_a_journal_that_is_longer_than_any_that_is_written_no_more_is_read() {
        let place = JournalDirectory::new();
        let (_, file) = place.leave("long", |_| ());
        file.write_all_at(&record(7).to_bytes(), HEADER_BYTES).unwrap();
        file.set_len(200 << 30).unwrap();
        let journals = left_in::<ThreadLedger<Mask>>(place.0.path());
        assert_eq!(threads(&journals[0]), [0, 7]);
    }

    #[test]
    fn log_16_a_journal_in_use_is_seen_by_others_with_its_process() {
        let place = JournalDirectory::new();
        let (path, file) = place.leave("4711-815", |_| ());
        file.write_all_at(&record(7).to_bytes(), HEADER_BYTES).unwrap();
        assert!(in_use::<ThreadLedger<Mask>>(&path).is_none(), "no process looks after it");
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        let ledger = in_use::<ThreadLedger<Mask>>(&path).unwrap();
        assert_eq!((named_for(&path), ledger.records().count()), (Some((4711, 815)), 1));
        let (path, file) = place.leave("4711-816", |header| header[BOOT.start] ^= 1);
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        assert!(in_use::<ThreadLedger<Mask>>(&path).is_none(), "its process ended with the machine");
    }

    #[test]
    fn log_16_what_a_killed_scheduler_left_is_undone_where_its_numbers_mean_the_same_and_no_process_looks_after_it()
     {
        let place = JournalDirectory::new();
        let (plain, _) = place.leave("plain", |_| ());
        let (boot, _) = place.leave("another-boot", |header| header[BOOT.start] ^= 1);
        let (namespace, _) = place.leave("another-namespace", |header| header[NAMESPACE.start] ^= 1);
        let (version, _) = place.leave("another-version", |header| header[MAGIC.end - 1] ^= 1);
        let (in_use, file) = place.leave("in-use", |_| ());
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        let (undone, empty) = place.leave("undone", |_| ());
        empty.set_len(0).unwrap();
        let link = place.0.path().join("link").with_extension(EXTENSION);
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        fs::write(place.0.path().join("1.sock"), "").unwrap();
        assert_eq!(place.left(), std::slice::from_ref(&plain));
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        assert!([&plain, &namespace, &version, &in_use, &link].into_iter().all(is_there));
        assert!(!is_there(&boot) && !is_there(&undone), "these contain nothing that any process must undo");
    }

    #[test]
    fn log_16_nothing_is_undone_that_another_user_may_have_written() {
        let place = JournalDirectory::new();
        let (left, _) = place.leave("left", |_| ());
        for (mode, is_believed) in [(0o770, false), (0o702, false), (0o755, true), (0o700, true)] {
            fs::set_permissions(place.0.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(place.left().len(), usize::from(is_believed), "{mode:o}");
        }
        let link = place.0.path().with_extension("link");
        std::os::unix::fs::symlink(place.0.path(), &link).unwrap();
        let through_link = left_in::<ThreadLedger<Mask>>(&link);
        fs::remove_file(link).unwrap();
        assert!(through_link.is_empty());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&left, Some(65_534), None).unwrap();
            assert!(place.left().is_empty());
        }
    }

    #[test]
    fn log_16_a_rewritten_journal_contains_the_new_records_and_no_old_record() {
        let mut journal = MaskJournal::without_name().unwrap();
        (1..=9).for_each(|thread| journal.append(&record(thread)).unwrap());
        assert_eq!((threads(&journal), journal.records()), ((1..=9).collect(), 9));
        journal.rewrite([record(4), record(5)].into_iter()).unwrap();
        journal.append(&record(10)).unwrap();
        assert_eq!((threads(&journal), journal.records()), (vec![4, 5, 10], 3));
    }

    #[test]
    fn log_16_a_change_is_undone_once_and_half_a_record_does_not_count() {
        let mut journal = MaskJournal::without_name().unwrap();
        journal.append(&record(1)).unwrap();
        journal.file.write_all_at(&record(2).to_bytes()[..100], journal.end).unwrap();
        assert_eq!(threads(&journal), [1]);
        assert_eq!(journal.undo().unwrap(), Some(Restored { ended: 1, ..Restored::default() }));
        assert_eq!(journal.undo().unwrap(), None);
    }

    #[test]
    fn log_16_ended_threads_are_forgotten_except_one_of_each_kind() {
        let mut ledger = ThreadLedger::<Mask>::default();
        (1_000_001..1_000_009).for_each(|thread| ledger.note(record(thread)));
        let other = ThreadRecord { domain: DomainId::new(3), ..record(1_000_009) };
        ledger.note(other);
        assert!(ledger.has(&other) && !ledger.has(&ThreadRecord { domain: DomainId::new(2), ..other }));
        ledger.forget_ended();
        assert_eq!(
            ledger.records().map(|record| record.domain).collect::<Vec<_>>(),
            [2, 3].map(DomainId::new)
        );
    }
}
