//! The directory that a tree is mounted on.
//!
//! From the moment in which it is found or made, it is known by its descriptor. A directory that was made is
//! not looked up by its path again, because another user may have put a link there.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use mete_base::folder::{Folder, PathTrust};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::error::MountError;
use crate::made::{FLAGS, path_of, remove};
use crate::notes::Note;
use crate::{mounts, recovery};

/// A directory to mount on.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The path, without links and dots.
    pub path: PathBuf,
    /// The directory itself, even if something is mounted on it.
    pub place: OwnedFd,
    /// The number of directories that were made for the tree and must be removed, from this one upwards.
    pub made: usize,
    /// The note by which they are removed if no other process does it.
    pub note: Note,
}

impl Directory {
    /// Makes the directory if it does not exist, with a note in `notes`. If it exists, it must be empty.
    pub(crate) fn prepare(path: &Path, notes: Option<&Path>) -> Result<Directory, MountError> {
        let failed = |what| move |source| MountError::Directory { what, path: path.to_owned(), source };
        refuse_taken(path)?;
        let (place, made, note) = make(path, notes).map_err(failed("make"))?;
        let path = path_of(&place).map_err(failed("find"));
        let error = match path.and_then(|path| Ok((is_empty(&place).map_err(failed("look into"))?, path))) {
            Ok((true, path)) => return Ok(Directory { path, place, made, note }),
            Ok((false, path)) => MountError::NotEmpty(path),
            Err(error) => error,
        };
        remove(place, made);
        note.remove();
        Err(error)
    }

    /// Removes the directories that were made.
    pub(crate) fn remove(&self) {
        if let Ok(place) = self.place.try_clone() {
            remove(place, self.made);
            self.note.remove();
        }
    }
}

/// Makes what is missing of a path. Returns the directory, the number of directories that were made, and the
/// note of them.
fn make(path: &Path, notes: Option<&Path>) -> io::Result<(OwnedFd, usize, Note)> {
    // An empty part stands for the current directory.
    let there = path.ancestors().find(|part| part.as_os_str().is_empty() || part.exists());
    let there = there.filter(|part| !part.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Where another user has put a link, that user would choose what is covered.
    let mut place = OwnedFd::from(Folder::find(there, PathTrust::Links)?);
    let mut made = 0;
    let missing = path.strip_prefix(there).unwrap_or(path);
    let names = missing.components().filter(|part| matches!(part, Component::Normal(_)));
    // The note comes first: if this process is killed between two directories, they are noted already.
    let note = Note::write(notes, &path_of(&place)?.join(missing), names.count());
    for part in missing.components() {
        let next = match part {
            Component::Normal(name) => make_one(place.as_fd(), name),
            Component::CurDir => continue,
            // `..` behind a directory that does not exist leads nowhere.
            _ => Err(Errno::NOENT),
        };
        match next {
            Ok(next) => {
                (place, made) = (next, made + 1);
            }
            Err(error) => {
                remove(place, made);
                note.remove();
                return Err(error.into());
            }
        }
    }
    Ok((place, made, note))
}

fn make_one(above: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    rustix::fs::mkdirat(above, name, Mode::RWXU)?;
    let made = rustix::fs::openat(above, name, FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
    // Another user who may write here may have put another directory in its place meanwhile.
    let is_own = rustix::fs::fstat(&made)?.st_uid == rustix::process::geteuid().as_raw();
    if is_own { Ok(made) } else { Err(Errno::ACCESS) }
}

fn is_empty(place: &OwnedFd) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::openat(place, ".", flags, Mode::empty())?;
    for entry in Dir::new(open)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The path as it stands in the mount table. A tree whose process has ended cannot be looked at, but the
/// directory that it is in can.
fn place_in_table(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let parent = absolute.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, absolute.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => absolute,
    }
}

/// An error if another tree is there. First removes trees that a process of this user has left that was
/// killed together with its keepers.
fn refuse_taken(path: &Path) -> Result<(), MountError> {
    recovery::recover(&[]);
    let place = place_in_table(path);
    let all = mounts::found().unwrap_or_default();
    match all.into_iter().find(|found| found.path == place && found.is_alive()) {
        Some(found) => Err(MountError::Taken { path: found.path, pid: found.pid }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn klog_4_what_another_keeper_had_begun_to_remove_is_removed_to_the_end() {
        let place = tempfile::tempdir().unwrap();
        let (tree, made, _) = make(&place.path().join("a/b/tree"), None).unwrap();
        assert_eq!(made, 3);
        fs::remove_dir(place.path().join("a/b/tree")).unwrap();
        remove(tree, made);
        assert!(place.path().read_dir().unwrap().next().is_none());
    }
}
