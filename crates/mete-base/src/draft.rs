//! Files of results. Each is written completely or not at all: it is written under another name in its
//! folder, and gets its own name when all files that belong together are complete. If the program ends before
//! that, the files that were there stay as they were.
//!
//! ```text
//!   begin ──▶ .NAME.RANDOM.unfinished ──▶ write ──▶ rename to NAME
//!                 └── dropped: removed;  killed: removed by the next run that begins NAME
//! ```
//!
//! The folder is opened once and stays open, so that other users who may write there cannot make this program
//! replace a file elsewhere. A file without a name (`O_TMPFILE`) would leave nothing behind. But it cannot
//! replace another file, and whether it can get a name shows only at the end, when hours of work would be
//! lost.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, major, minor};

use crate::folder::{self, CreatedFolder, Folder, FolderEntry, PathPlace, PathTrust};

/// How the names of unfinished files end.
const UNFINISHED: &str = ".unfinished";
/// The mode of a file that all users may read; the user's umask restricts it.
const USUAL: Mode = Mode::from_raw_mode(0o666);
/// The mode of a file that only its owner may read.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Why results cannot be written into a folder.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// There is something else than a folder.
    #[error("cannot write into {path}: it is a file, not a folder", path = .0.display())]
    NoFolder(PathBuf),
    /// The folder cannot be made.
    #[error("cannot make {path}", path = folder.display())]
    Make {
        /// The folder.
        folder: PathBuf,
        /// The file system's answer.
        source: io::Error,
    },
    /// A file in the folder cannot be made or written.
    #[error("cannot write into {path}", path = folder.display())]
    Write {
        /// The folder.
        folder: PathBuf,
        /// The file system's answer.
        source: io::Error,
    },
}

/// A file that is not complete yet. When it is dropped, it is removed, and the file that had its name before
/// is as it was.
#[derive(Debug)]
pub struct Draft {
    /// Locked. The lock tells other runs that this file is still being written.
    file: File,
    /// `None` for a terminal, a pipe or a device: it is written into directly.
    beside: Option<Beside>,
}

/// The other name of a draft, beside the name that it gets.
#[derive(Debug)]
struct Beside {
    folder: Folder,
    unfinished: OsString,
    name: OsString,
    /// The mode of the file that had the name before.
    mode: Option<Mode>,
}

impl Draft {
    /// Begins a file. Call it before the work: it fails if the file cannot be written there at all.
    ///
    /// # Errors
    ///
    /// The file system's answer, and that a file of another user has the name in a folder that all users may
    /// write into.
    pub fn begin(path: &Path) -> io::Result<Draft> {
        Draft::with_mode(path, USUAL)
    }

    /// Begins a file that only its owner may read. A file that it replaces keeps its mode.
    ///
    /// # Errors
    ///
    /// As [`Draft::begin`].
    pub fn begin_private(path: &Path) -> io::Result<Draft> {
        Draft::with_mode(path, PRIVATE)
    }

    fn with_mode(path: &Path, mode: Mode) -> io::Result<Draft> {
        // If the path is a link, the file that it leads to is replaced, not the link.
        let PathPlace { folder, name, entry } = PathPlace::find(path, PathTrust::Links)?;
        let entry = entry.as_ref();
        entry.map_or(Ok(()), |entry| check_owner(&folder, entry))?;
        if let Some(entry) = entry.filter(|entry| is_itself(entry)) {
            let truncate =
                if entry.kind() == FileType::RegularFile { OFlags::TRUNC } else { OFlags::empty() };
            let file = entry.open(OFlags::WRONLY | OFlags::NOCTTY | truncate)?;
            return Ok(Draft { file, beside: None });
        }
        remove_left_over(&folder, &name);
        let unfinished = unfinished(&name);
        let file = create_locked(&folder, &unfinished, mode)?;
        // Not the mode of another user's file: that user would have chosen who may read this one.
        let mode = entry.filter(|entry| entry.is_own()).map(FolderEntry::mode);
        Ok(Draft { file, beside: Some(Beside { folder, unfinished, name, mode }) })
    }

    /// The file, for callers that write it piece by piece.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, after everything was written into [`Draft::file`].
    ///
    /// # Errors
    ///
    /// The file system's answer; the file that had the name before still has it.
    pub fn close(mut self) -> io::Result<()> {
        // Writes nothing more, but makes sure that what was written is on the disk.
        self.fill("")?;
        self.publish()
    }

    /// Writes the text to the disk; the file does not have its name yet.
    fn fill(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        match self.beside {
            None => self.file.flush(),
            // Some file systems report only here that they are full.
            Some(_) => self.file.sync_all(),
        }
    }

    /// Gives the file its name, and the mode of the file that had the name before.
    fn publish(mut self) -> io::Result<()> {
        if let Some(Beside { folder, unfinished, name, mode }) = &self.beside {
            // Before the rename: under its name, the file never has another mode than the one before it.
            mode.map_or(Ok(()), |mode| fchmod(&self.file, mode))?;
            folder.rename(unfinished, name)?;
            // From now on, dropping this draft must not remove a file.
            self.beside = None;
        }
        Ok(())
    }

    /// Writes the text and gives the file its name.
    ///
    /// # Errors
    ///
    /// The file system's answer; the file that had the name before still has it.
    pub fn finish(mut self, text: &str) -> io::Result<()> {
        self.fill(text)?;
        self.publish()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(Beside { folder, unfinished, .. }) = &self.beside {
            let _ = folder.remove(unfinished);
        }
    }
}

/// Whether it is written into instead of being replaced: a terminal, a pipe, a device, or a file that is
/// reached through `/proc`.
fn is_itself(entry: &FolderEntry) -> bool {
    entry.kind() != FileType::RegularFile || entry.is_through_proc()
}

/// Refuses a file of another user who may have put it there as a trap.
///
/// In a folder that all users may write into, such as `/tmp`, that is any file. The kernel refuses the same,
/// also to root (`fs.protected_regular`, `fs.protected_fifos`). In any other folder it is what is written
/// into instead of being replaced: a pipe, at which this program would wait until its owner reads, or a
/// terminal. Devices of root are devices.
fn check_owner(folder: &Folder, entry: &FolderEntry) -> io::Result<()> {
    if entry.is_own() || entry.is_through_proc() || is_harmless_device(entry) {
        return Ok(());
    }
    let found = fstat(folder)?;
    let owner = entry.stat().st_uid;
    let is_trap = match entry.kind() {
        FileType::RegularFile => false,
        FileType::CharacterDevice | FileType::BlockDevice => owner != 0,
        _ => true,
    };
    let why = if owner != found.st_uid && folder::is_shared(&found) {
        "it belongs to another user, in a folder where all users may write; choose another name"
    } else if is_trap {
        "it is no ordinary file and belongs to another user; choose another name"
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Whether it is a device that behaves the same for every user: null, zero, full, or the terminal of this
/// process. In a user namespace, such as a container that a user has started, root's devices seem to belong
/// to another user.
fn is_harmless_device(entry: &FolderEntry) -> bool {
    const HARMLESS: [(u32, u32); 4] = [(1, 3), (1, 5), (1, 7), (5, 0)];
    let number = entry.stat().st_rdev;
    entry.kind() == FileType::CharacterDevice && HARMLESS.contains(&(major(number), minor(number)))
}

/// Writes files into a folder, by name and text: all of them, or none if one of them cannot be written. Makes
/// the folder if it does not exist.
///
/// # Errors
///
/// The file system's answer.
pub fn write_all<'a>(
    folder: &Path,
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), DraftError> {
    let written = make(folder).and_then(|_made| {
        let drafts = drafts(folder, files)?;
        drafts.into_iter().try_for_each(Draft::publish)
    });
    written.map_err(|source| DraftError::Write { folder: folder.to_owned(), source })
}

/// The folders that were made for results. Those that are still empty when this is dropped are removed again.
#[derive(Debug)]
#[must_use = "folders that were made are removed when this is dropped, unless something is in them"]
pub struct MadeFolders(Vec<CreatedFolder>);

impl Drop for MadeFolders {
    fn drop(&mut self) {
        self.0.iter().for_each(CreatedFolder::remove);
    }
}

/// Makes a folder if it does not exist.
fn make(folder: &Path) -> io::Result<MadeFolders> {
    let made = Folder::make(folder, PathTrust::Links, Mode::from_raw_mode(0o777));
    made.map(|(_, made)| MadeFolders(made))
}

/// Writes all files completely; none of them has its name yet.
fn drafts<'a>(folder: &Path, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> io::Result<Vec<Draft>> {
    let drafts = files.into_iter().map(|(name, text)| {
        let mut draft = Draft::begin(&folder.join(name))?;
        draft.fill(text).map(|()| draft)
    });
    drafts.collect()
}

/// Makes a folder if it does not exist, and tries whether files can be made in it. Call it before the work,
/// so that the work is not lost, and keep what it returns until the files are written.
///
/// # Errors
///
/// One sentence about the folder.
pub fn check_folder(folder: &Path) -> Result<MadeFolders, DraftError> {
    if folder.exists() && !folder.is_dir() {
        return Err(DraftError::NoFolder(folder.to_owned()));
    }
    let made = make(folder).map_err(|source| DraftError::Make { folder: folder.to_owned(), source })?;
    let tried = Draft::begin(&folder.join("trial"));
    tried.map(|_tried| made).map_err(|source| DraftError::Write { folder: folder.to_owned(), source })
}

/// The same for a folder of earlier results: what lies in it is going to be replaced, so all of it is
/// checked.
///
/// # Errors
///
/// As [`check_folder`]; and that a file there belongs to another user who may have put it there as a trap.
pub fn check_results(folder: &Path) -> Result<(), DraftError> {
    let _made = check_folder(folder)?;
    check_entries(folder).map_err(|source| DraftError::Write { folder: folder.to_owned(), source })
}

fn check_entries(path: &Path) -> io::Result<()> {
    let folder = Folder::find(path, PathTrust::Links)?;
    for name in folder.names()? {
        let Some(entry) = folder.entry(&name)? else { continue };
        let said = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", name.display()));
        check_owner(&folder, &entry).map_err(said)?;
    }
    Ok(())
}

/// The name that a file or a folder has until it is complete. Other users cannot guess it.
pub(crate) fn unfinished(name: &OsStr) -> OsString {
    let random = RandomState::new().hash_one(rustix::process::getpid());
    let middle = format!(".{random:016x}");
    [OsStr::new("."), name, OsStr::new(&middle), OsStr::new(UNFINISHED)].into_iter().collect()
}

/// Makes a new file and locks it. Between the two, another run that clears up may lock and remove the file;
/// then it is made again.
fn create_locked(folder: &Folder, name: &OsStr, mode: Mode) -> io::Result<File> {
    loop {
        let file = folder.create(name, mode)?;
        // A file system without locks is no problem: there, other runs take no file for left over either.
        let _ = flock(&file, FlockOperation::LockExclusive);
        if fstat(&file)?.st_nlink > 0 {
            return Ok(file);
        }
    }
}

/// The names of unfinished files or folders of this name. They belong to runs that are at work or were
/// killed.
pub(crate) fn all_unfinished(folder: &Folder, name: &OsStr) -> Vec<OsString> {
    let beginning = [b".", name.as_bytes(), b"."].concat();
    let names = folder.names().unwrap_or_default().into_iter();
    names.filter(|found| is_unfinished(found, &beginning)).collect()
}

/// Whether [`unfinished`] can have made this name: the beginning, 16 hexadecimal digits and the end.
fn is_unfinished(found: &OsStr, beginning: &[u8]) -> bool {
    let rest = found.as_bytes().strip_prefix(beginning);
    let random = rest.and_then(|rest| rest.strip_suffix(UNFINISHED.as_bytes()));
    random.is_some_and(|random| random.len() == 16 && random.iter().all(u8::is_ascii_hexdigit))
}

/// Removes unfinished files of this name that killed runs of this user have left: those that no process has
/// locked.
fn remove_left_over(folder: &Folder, name: &OsStr) {
    for left in all_unfinished(folder, name) {
        if let Some(_lock) = lock_left_over(folder, &left, FileType::RegularFile) {
            let _ = folder.remove(left);
        }
    }
}

/// Locks an unfinished file of this user that no process has locked. The caller removes it before it lets go
/// of the lock: a run that began the file a moment ago waits for that.
pub(crate) fn lock_left_over(folder: &Folder, name: &OsStr, kind: FileType) -> Option<File> {
    let entry = folder.entry(name).ok().flatten();
    let file = entry.filter(|entry| entry.kind() == kind && entry.is_own())?.open(OFlags::RDONLY).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "before").unwrap();
        let draft = Draft::begin(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        drop(draft);
        assert_eq!(
            (names(folder.path()), fs::read_to_string(&path).unwrap()),
            (vec!["a".into()], "before".into())
        );
        Draft::begin(&path).unwrap().finish("after").unwrap();
        assert_eq!(
            (names(folder.path()), fs::read_to_string(&path).unwrap()),
            (vec!["a".into()], "after".into())
        );
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_a_living_one_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let [left, foreign] =
            [".a.0123456789abcdef.unfinished", ".a.mine.unfinished"].map(|name| folder.path().join(name));
        [&left, &foreign].into_iter().for_each(|path| fs::write(path, "torn").unwrap());
        let living = File::create(folder.path().join(".a.f123456789abcdef.unfinished")).unwrap();
        flock(&living, FlockOperation::LockExclusive).unwrap();
        drop(Draft::begin(&folder.path().join("a")).unwrap());
        assert_eq!(names(folder.path()), [".a.f123456789abcdef.unfinished", ".a.mine.unfinished"]);
    }

    #[test]
    fn of_files_that_belong_together_all_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "before").unwrap();
        // The second one cannot be begun: its folder is missing.
        assert!(write_all(folder.path(), [("a", "after"), ("none/b", "after")]).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "before");
        assert_eq!(names(folder.path()), ["a"]);
        write_all(folder.path(), [("a", "after"), ("b", "after")]).unwrap();
        assert_eq!(names(folder.path()), ["a", "b"]);
    }

    #[test]
    fn a_file_keeps_its_rights_and_a_link_to_it_stays_one() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["a", "link"].map(|name| folder.path().join(name));
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Draft::begin(&link).unwrap().finish("after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn folders_that_were_made_for_nothing_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b");
        // Its folder is missing, so the second file cannot be begun.
        assert!(write_all(&folder, [("a", "x"), ("none/b", "x")]).is_err());
        assert!(!place.path().join("a").exists());
        drop(check_folder(&folder).unwrap());
        assert!(!place.path().join("a").exists());
        let made = check_folder(&folder).unwrap();
        write_all(&folder, [("a", "x")]).unwrap();
        drop(made);
        assert_eq!(names(&folder), ["a"]);
    }

    #[test]
    fn a_pipe_of_another_user_is_refused_in_any_folder() {
        use rustix::fs::{CWD, Gid, Uid, chownat, mkfifoat};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        mkfifoat(CWD, &path, Mode::RWXU).unwrap();
        let foreign = (Some(Uid::from_raw(65_534)), Some(Gid::from_raw(65_534)));
        if chownat(CWD, &path, foreign.0, foreign.1, rustix::fs::AtFlags::empty()).is_err() {
            println!("SKIPPED: a_pipe_of_another_user_is_refused: only root gives files away");
            return;
        }
        // Opening it would wait for a reader, which never comes.
        let refused = Draft::begin(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(refused.to_string().contains("another user"), "{refused}");
        let refused = check_results(folder.path()).unwrap_err();
        assert!(format!("{:?}", refused).contains("pipe: it is no ordinary file"), "{refused:?}");
        assert!(Draft::begin(Path::new("/dev/null")).is_ok());
    }

    #[test]
    fn of_what_another_user_has_put_there_only_devices_that_are_the_same_for_all_are_written_into() {
        use rustix::fs::{CWD, Gid, Uid, chown, makedev, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // The last number is left to devices of no fixed kind.
        let devices = [("null", 1, 3), ("full", 1, 7), ("terminal", 5, 0), ("other", 240, 0)];
        let made = devices.iter().try_for_each(|(name, major, minor)| {
            mknodat(CWD, at(name), FileType::CharacterDevice, Mode::RUSR, makedev(*major, *minor))
        });
        if made.is_err() {
            println!("SKIPPED: of_what_another_user_has_put_there_only_devices: this may not make devices");
            return;
        }
        let _listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let found = ["null", "full", "terminal", "other", "socket"].map(|name| {
            chown(at(name), Some(Uid::from_raw(65_534)), Some(Gid::from_raw(65_534))).unwrap();
            let PathPlace { folder, entry, .. } = PathPlace::find(&at(name), PathTrust::Links).unwrap();
            check_owner(&folder, &entry.unwrap()).is_ok()
        });
        assert_eq!(found, [true, true, true, false, false]);
    }

    #[test]
    fn a_folder_that_is_a_file_is_said_to_be_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(check_folder(file.path()).unwrap_err().to_string().contains("it is a file, not a folder"));
    }
}
