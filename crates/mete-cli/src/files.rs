//! Files of results, whole or not at all: each is written under another name in its folder and takes its own
//! when all that belong together are complete. Whatever ends the program before leaves what was there.
//!
//! ```text
//!   begin ──▶ .NAME.RANDOM.unfinished ──▶ write ──▶ rename to NAME
//!                 └── dropped: removed;  killed: removed by the next one to begin NAME
//! ```
//!
//! The folder is found once and held, so that other users who may write there cannot have something else replaced. A
//! file without a name, as Linux has them, would leave nothing at all behind; but it cannot replace another one, and
//! that it can get a name shows only at the end, when hours of work are at stake.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, bail};
use mete_base::folder::{self, Folder, FolderEntry, PathPlace, PathTrust};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat};

/// How the other names end.
const UNFINISHED: &str = ".unfinished";
/// The rights of what everybody may read, but for what the user's umask takes away.
const USUAL: Mode = Mode::from_raw_mode(0o666);
/// The rights of what its owner alone may read.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A file that is not complete yet. Dropped, it is gone, and what had its name before is as it was.
#[derive(Debug)]
pub struct Draft {
    /// Locked, which tells other runs that somebody is at work.
    file: File,
    beside: Option<Beside>,
}

/// Where a draft waits. What has no other name beside it has none: a terminal, a pipe, a device.
#[derive(Debug)]
struct Beside {
    folder: Folder,
    unfinished: OsString,
    name: OsString,
    /// The rights of the file that had the name before.
    mode: Option<Mode>,
}

impl Draft {
    /// Begins a file. Done before the work, it shows whether the place can be written at all.
    ///
    /// # Errors
    ///
    /// The file system's answer, and what is another user's at its name.
    pub fn begin(path: &Path) -> io::Result<Draft> {
        Draft::with_mode(path, USUAL)
    }

    /// The same for what only its owner may read, unless it replaces a file that others may.
    ///
    /// # Errors
    ///
    /// As [`Draft::begin`].
    pub fn begin_private(path: &Path) -> io::Result<Draft> {
        Draft::with_mode(path, PRIVATE)
    }

    fn with_mode(path: &Path, mode: Mode) -> io::Result<Draft> {
        // Through a link, it is the file behind it that is replaced.
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
        // Others would have chosen who may read it.
        let mode = entry.filter(|entry| entry.is_own()).map(FolderEntry::mode);
        Ok(Draft { file, beside: Some(Beside { folder, unfinished, name, mode }) })
    }

    /// The file, for what is written piece by piece.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// All of it was written into [`Draft::file`]: gives it its name.
    ///
    /// # Errors
    ///
    /// The file system's answer; what had the name before has it still.
    pub fn close(mut self) -> io::Result<()> {
        self.fill("")?;
        self.publish()
    }

    /// Writes all of it; it does not have its name yet.
    fn fill(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        match self.beside {
            None => self.file.flush(),
            // Some file systems say only now that they are full.
            Some(_) => self.file.sync_all(),
        }
    }

    /// Gives it its name, and the rights of what had it before.
    fn publish(mut self) -> io::Result<()> {
        if let Some(Beside { folder, unfinished, name, mode }) = &self.beside {
            mode.map_or(Ok(()), |mode| fchmod(&self.file, mode))?;
            folder.rename(unfinished, name)?;
            self.beside = None;
        }
        Ok(())
    }

    /// Writes all of it under its name.
    ///
    /// # Errors
    ///
    /// The file system's answer; what had the name before has it still.
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

/// Whether it is written into, and not replaced.
fn is_itself(entry: &FolderEntry) -> bool {
    entry.kind() != FileType::RegularFile || entry.is_through_proc()
}

/// In a folder like `/tmp` the kernel keeps root, too, from writing into what another user has put there for it to be
/// found (`fs.protected_regular`, `fs.protected_fifos`).
fn check_owner(folder: &Folder, entry: &FolderEntry) -> io::Result<()> {
    let found = fstat(folder)?;
    let is_foreign = !entry.is_own() && entry.stat().st_uid != found.st_uid;
    if is_foreign && folder::is_shared(&found) && !entry.is_through_proc() {
        let why = "it is another user's, in a folder where everybody may write; choose another name";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

/// Writes files of a folder, by name and text: all, or none if one of them cannot be written. The folder is
/// made if need be.
///
/// # Errors
///
/// The file system's answer.
pub fn write_all<'a>(
    folder: &Path,
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> anyhow::Result<()> {
    let written = make(folder).and_then(|()| drafts(folder, files));
    let published = written.and_then(|drafts| drafts.into_iter().try_for_each(Draft::publish));
    published.with_context(|| format!("cannot write into {}", folder.display()))
}

/// Makes a folder if need be.
fn make(folder: &Path) -> io::Result<()> {
    Folder::make(folder, PathTrust::Links, Mode::from_raw_mode(0o777)).map(drop)
}

/// All of them, complete, none with its name.
fn drafts<'a>(folder: &Path, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> io::Result<Vec<Draft>> {
    let draft = |(name, text): (&str, &str)| {
        let mut draft = Draft::begin(&folder.join(name))?;
        draft.fill(text).map(|()| draft)
    };
    files.into_iter().map(draft).collect()
}

/// Makes a folder if need be and tries whether files can be made in it: before the work, not after it.
///
/// # Errors
///
/// One sentence about the folder.
pub fn check_folder(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() && !folder.is_dir() {
        bail!("cannot write into {}: it is a file, not a folder", folder.display());
    }
    make(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let tried = Draft::begin(&folder.join("trial"));
    tried.map(drop).with_context(|| format!("cannot write into {}", folder.display()))
}

/// The name that something of this name has until it is complete. Other users cannot guess it.
pub fn unfinished(name: &OsStr) -> OsString {
    let random = RandomState::new().hash_one(rustix::process::getpid());
    let middle = format!(".{random:016x}");
    [OsStr::new("."), name, OsStr::new(&middle), OsStr::new(UNFINISHED)].into_iter().collect()
}

/// A new file, locked. Whoever clears up may lock and remove it in between; then it is made anew.
fn create_locked(folder: &Folder, name: &OsStr, mode: Mode) -> io::Result<File> {
    loop {
        let file = folder.create(name, mode)?;
        // Where nothing can be locked, nothing is taken for left over either.
        let _ = flock(&file, FlockOperation::LockExclusive);
        if fstat(&file)?.st_nlink > 0 {
            return Ok(file);
        }
    }
}

/// What is there under such names: of runs that are at work, or were killed.
pub fn all_unfinished(folder: &Folder, name: &OsStr) -> Vec<OsString> {
    let beginning = [b".", name.as_bytes(), b"."].concat();
    let is_one = move |found: &OsString| {
        let rest = found.as_bytes().strip_prefix(beginning.as_slice());
        let who = rest.and_then(|rest| rest.strip_suffix(UNFINISHED.as_bytes()));
        who.is_some_and(|who| who.len() == 16 && who.iter().all(u8::is_ascii_hexdigit))
    };
    folder.names().unwrap_or_default().into_iter().filter(is_one).collect()
}

/// Removes unfinished files of this name that killed runs of this user have left: those that no process has locked.
fn remove_left_over(folder: &Folder, name: &OsStr) {
    for left in all_unfinished(folder, name) {
        if let Some(_lock) = lock_left_over(folder, &left, FileType::RegularFile) {
            let _ = folder.remove(left);
        }
    }
}

/// Locks an unfinished file of this user that no process has locked. The caller removes it before it lets go of the
/// lock: a run that began the file a moment ago waits for that.
pub fn lock_left_over(folder: &Folder, name: &OsStr, kind: FileType) -> Option<File> {
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
    fn a_folder_that_is_a_file_is_said_to_be_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(check_folder(file.path()).unwrap_err().to_string().contains("it is a file, not a folder"));
    }
}
