//! A folder of results, whole or not at all: like [`crate::files::Draft`], for what is several files.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{FlockOperation, flock, fstat};

use crate::files::{all_unfinished, lock_left_over, parts, unfinished};

/// A folder that is not complete yet. Dropped, it is gone.
#[derive(Debug)]
pub struct FolderDraft {
    /// Locked, which tells other runs that somebody is at work.
    _lock: File,
    unfinished: PathBuf,
    path: PathBuf,
    is_closed: bool,
}

impl FolderDraft {
    /// Begins a folder; what has its name already is left alone.
    ///
    /// # Errors
    ///
    /// The file system's answer, and if there is something of this name that is no empty folder.
    pub fn begin(path: &Path) -> io::Result<FolderDraft> {
        if path.symlink_metadata().is_ok() && !is_empty_folder(path) {
            let why = "it is there already; choose another name, or remove it";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        let (folder, name) = parts(path)?;
        all_unfinished(folder, name).for_each(|left| remove_left_over(&left));
        let unfinished = folder.join(unfinished(name));
        let lock = create_locked(&unfinished)?;
        Ok(FolderDraft { _lock: lock, unfinished, path: path.to_owned(), is_closed: false })
    }

    /// Where to write.
    pub fn folder(&self) -> &Path {
        &self.unfinished
    }

    /// Gives it its name; what is in it is on the disk then.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn close(mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.unfinished)? {
            fs::File::open(entry?.path())?.sync_all()?;
        }
        fs::rename(&self.unfinished, &self.path)?;
        self.is_closed = true;
        Ok(())
    }
}

impl Drop for FolderDraft {
    fn drop(&mut self) {
        if !self.is_closed {
            let _ = fs::remove_dir_all(&self.unfinished);
        }
    }
}

/// A new folder, locked. Whoever clears up may lock and remove it in between; then it is made anew.
fn create_locked(path: &Path) -> io::Result<File> {
    loop {
        fs::create_dir(path)?;
        let folder = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        // Where nothing can be locked, nothing is taken for left over either.
        let _ = flock(&folder, FlockOperation::LockExclusive);
        if fstat(&folder)?.st_nlink > 0 {
            return Ok(folder);
        }
    }
}

/// Removes what a run that was killed has left: a folder that nobody has locked, with nothing in it but files.
fn remove_left_over(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let Some(_lock) = is_folder.then(|| lock_left_over(path)).flatten() else { return };
    let Ok(entries) = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>) else { return };
    if entries.iter().all(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())) {
        entries.iter().for_each(|entry| drop(fs::remove_file(entry.path())));
        let _ = fs::remove_dir(path);
    }
}

fn is_empty_folder(path: &Path) -> bool {
    path.is_dir() && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
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
        let names =
            [".out.1-7.unfinished", ".out.mine.unfinished", ".out.3-7.unfinished", ".out.4-7.unfinished"];
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
