//! A folder of results, whole or not at all: like [`crate::files::Draft`], for what is several files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io, process};

use mete_log::clock::monotonic_ns;

/// A folder that is not complete yet. Dropped, it is gone.
#[derive(Debug)]
pub struct FolderDraft {
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
        let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "this is no name of a folder");
        let name = path.file_name().ok_or_else(no_name)?;
        let mut unfinished = OsString::from(".");
        unfinished.push(name);
        unfinished.push(format!(".{}-{}.unfinished", process::id(), monotonic_ns()));
        let unfinished = path.with_file_name(unfinished);
        fs::create_dir(&unfinished)?;
        Ok(FolderDraft { unfinished, path: path.to_owned(), is_closed: false })
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
}
