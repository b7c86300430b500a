//! A folder of results, written completely or not at all: like [`crate::draft::Draft`], for several files
//! together.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RawDir, flock, fstat, fsync, statat, unlinkat,
};

use crate::draft::{all_unfinished, lock_left_over, unfinished};
use crate::folder::{Folder, FolderEntry, PathPlace, PathTrust};

/// A folder that is not complete yet. Only its owner can enter it. When it is dropped, it is removed.
#[derive(Debug)]
pub struct FolderDraft {
    /// The folder, locked. The lock tells other runs that it is still being written.
    lock: OwnedFd,
    draft: Folder,
    unfinished: OsString,
    parent: Folder,
    name: OsString,
    is_closed: bool,
}

impl FolderDraft {
    /// Begins a folder. A file or a folder that has its name already is not touched.
    ///
    /// # Errors
    ///
    /// The file system's answer, and that the name is taken by something other than an empty folder.
    pub fn begin(path: &Path) -> io::Result<FolderDraft> {
        let PathPlace { folder: parent, name, entry } = PathPlace::find(path, PathTrust::Links)?;
        if entry.is_some_and(|entry| !is_empty_folder(&parent, &name, &entry)) {
            let why = "it exists already; choose another name, or remove it";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        all_unfinished(&parent, &name).iter().for_each(|left| remove_left_over(&parent, left));
        let unfinished = unfinished(&name);
        let (draft, lock) = create_locked(&parent, &unfinished)?;
        Ok(FolderDraft { lock, draft, unfinished, parent, name, is_closed: false })
    }

    /// Where to write: a path that leads to the folder as long as this draft lives.
    pub fn folder(&self) -> PathBuf {
        self.draft.path()
    }

    /// Writes all files to the disk and gives the folder its name.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn close(mut self) -> io::Result<()> {
        // Before the rename: a folder with its name is complete, even if the machine loses its power.
        for name in self.draft.names()? {
            if let Some(entry) = self.draft.entry(name)? {
                entry.open(OFlags::RDONLY)?.sync_all()?;
            }
        }
        fsync(&self.lock)?;
        self.parent.rename(&self.unfinished, &self.name)?;
        self.is_closed = true;
        Ok(())
    }
}

impl Drop for FolderDraft {
    fn drop(&mut self) {
        if !self.is_closed {
            remove(&self.parent, &self.unfinished, &self.lock);
        }
    }
}

/// Makes a new folder and locks it. Between the two, another run that clears up may lock and remove the
/// folder; then it is made again.
fn create_locked(parent: &Folder, name: &OsStr) -> io::Result<(Folder, OwnedFd)> {
    loop {
        let folder = match parent.create_folder(name, Mode::RWXU) {
            // Another run has removed it before it was opened.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            folder => folder?,
        };
        let lock = match folder.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            lock => lock.inspect_err(|_| drop(parent.remove_folder(name)))?,
        };
        // A file system without locks is no problem: there, other runs take no folder for left over either.
        let _ = flock(&lock, FlockOperation::LockExclusive);
        if fstat(&lock)?.st_nlink > 0 {
            return Ok((folder, lock));
        }
    }
}

/// Removes a folder that a killed run has left: no process has locked it, and nothing but files is in it.
fn remove_left_over(parent: &Folder, name: &OsStr) {
    if let Some(lock) = lock_left_over(parent, name, FileType::Directory) {
        remove(parent, name, &lock);
    }
}

/// Removes a folder, if there is nothing in it but files. Opens nothing, so that it also works where no more
/// files may be open.
fn remove(parent: &Folder, name: &OsStr, folder: impl AsFd) {
    let Ok(names) = names(folder.as_fd()) else { return };
    if names.iter().all(|name| is_plain_file(&folder, name)) {
        for name in &names {
            let _ = unlinkat(&folder, name, AtFlags::empty());
        }
        let _ = parent.remove_folder(name);
    }
}

/// The names in an open folder.
fn names(folder: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut memory = Vec::with_capacity(8192);
    let mut entries = RawDir::new(folder, memory.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        names.push(entry?.file_name().to_owned());
    }
    names.retain(|name| ![c".", c".."].contains(&name.as_c_str()));
    Ok(names)
}

fn is_plain_file(folder: impl AsFd, name: &CStr) -> bool {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
}

fn is_empty_folder(parent: &Folder, name: &OsStr, entry: &FolderEntry) -> bool {
    entry.kind() == FileType::Directory
        && parent.folder(name).and_then(|folder| folder.names()).is_ok_and(|names| names.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_has_its_name_only_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let names = || fs::read_dir(directory.path()).unwrap().count();
        let dropped = FolderDraft::begin(&path).unwrap();
        fs::write(dropped.folder().join("a"), "x").unwrap();
        assert!(!path.exists() && names() == 1);
        drop(dropped);
        assert_eq!(names(), 0);
        let kept = FolderDraft::begin(&path).unwrap();
        fs::write(kept.folder().join("a"), "x").unwrap();
        kept.close().unwrap();
        assert_eq!((fs::read_to_string(path.join("a")).unwrap(), names()), ("x".to_owned(), 1));
        let again = FolderDraft::begin(&path).unwrap_err();
        assert!(again.to_string().contains("it exists already"), "{again}");
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_is_not_surely_its_own_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let names = ["0123456789abcdef", "mine", "3123456789abcdef", "4123456789abcdef"]
            .map(|who| format!(".out.{who}.unfinished"));
        let [left, foreign, with_folder, file] = names.map(|name| directory.path().join(name));
        for folder in [&left, &foreign, &with_folder] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("metadata"), "torn").unwrap();
        }
        fs::create_dir(with_folder.join("below")).unwrap();
        fs::write(&file, "torn").unwrap();
        let living = FolderDraft::begin(&path).unwrap();
        assert!(!left.exists() && foreign.exists() && with_folder.join("metadata").exists() && file.exists());
        drop(FolderDraft::begin(&path).unwrap());
        assert!(living.folder().exists());
    }
}
