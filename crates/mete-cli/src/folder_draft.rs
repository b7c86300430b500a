//! A folder of results, whole or not at all: like [`crate::files::Draft`], for what is several files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use mete_base::folder::{Folder, FolderEntry, PathPlace, PathTrust};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock, fstat, fsync};

use crate::files::{all_unfinished, lock_left_over, unfinished};

/// A folder that is not complete yet, which its owner alone can enter. Dropped, it is gone.
#[derive(Debug)]
pub struct FolderDraft {
    /// Locked, which tells other runs that somebody is at work.
    lock: OwnedFd,
    draft: Folder,
    unfinished: OsString,
    parent: Folder,
    name: OsString,
    is_closed: bool,
}

impl FolderDraft {
    /// Begins a folder; what has its name already is left alone.
    ///
    /// # Errors
    ///
    /// The file system's answer, and if there is something of this name that is no empty folder.
    pub fn begin(path: &Path) -> io::Result<FolderDraft> {
        let PathPlace { folder: parent, name, entry } = PathPlace::find(path, PathTrust::Links)?;
        if entry.is_some_and(|entry| !is_empty_folder(&parent, &name, &entry)) {
            let why = "it is there already; choose another name, or remove it";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        all_unfinished(&parent, &name).iter().for_each(|left| remove_left_over(&parent, left));
        let unfinished = unfinished(&name);
        let (draft, lock) = create_locked(&parent, &unfinished)?;
        Ok(FolderDraft { lock, draft, unfinished, parent, name, is_closed: false })
    }

    /// Where to write: a path that leads there as long as this lives.
    pub fn folder(&self) -> PathBuf {
        self.draft.path()
    }

    /// Gives it its name; what is in it is on the disk then.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn close(mut self) -> io::Result<()> {
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
            remove(&self.parent, &self.unfinished, &self.draft);
        }
    }
}

/// A new folder, locked. Whoever clears up may lock and remove it in between; then it is made anew.
fn create_locked(parent: &Folder, name: &OsStr) -> io::Result<(Folder, OwnedFd)> {
    loop {
        let made = parent.create_folder(name, Mode::RWXU).and_then(|folder| Ok((folder.open()?, folder)));
        let (lock, folder) = match made {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            made => made?,
        };
        // Where nothing can be locked, nothing is taken for left over either.
        let _ = flock(&lock, FlockOperation::LockExclusive);
        if fstat(&lock)?.st_nlink > 0 {
            return Ok((folder, lock));
        }
    }
}

/// Removes what a run that was killed has left: a folder that nobody has locked, with nothing in it but files.
fn remove_left_over(parent: &Folder, name: &OsStr) {
    let Some(_lock) = lock_left_over(parent, name, FileType::Directory) else { return };
    if let Ok(folder) = parent.folder(name) {
        remove(parent, name, &folder);
    }
}

/// Removes a folder, if there is nothing in it but files.
fn remove(parent: &Folder, name: &OsStr, folder: &Folder) {
    let Ok(names) = folder.names() else { return };
    let is_file = |name: &OsString| {
        folder.entry(name).is_ok_and(|entry| entry.is_some_and(|it| it.kind() == FileType::RegularFile))
    };
    if names.iter().all(is_file) {
        names.iter().for_each(|name| drop(folder.remove(name)));
        let _ = parent.remove_folder(name);
    }
}

fn is_empty_folder(parent: &Folder, name: &OsStr, entry: &FolderEntry) -> bool {
    let is_empty = || parent.folder(name)?.names().map(|names| names.is_empty());
    entry.kind() == FileType::Directory && is_empty().unwrap_or(false)
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
        assert!(again.to_string().contains("it is there already"), "{again}");
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
