//! The directory of a trace. Only its owner may read it, because the trace holds addresses of the kernel and
//! names of threads. The recorder finds the directory once and holds it open, so that it never writes into
//! something that another user has put in its place.
//!
//! A trace that gives way to a new one is set aside first, under other names:
//!
//! ```text
//!   processor-0.trace ──▶ former.processor-0.trace ──▶ removed, when it is certain that there is a new trace
//!                                                  ──▶ put back, when there is none
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mete_base::folder::{CreatedFolder, Folder, PathTrust};
use rustix::fs::{FileType, FlockOperation, Mode, flock};
use rustix::io::Errno;

use crate::description::{
    FILE_NAME, FORMER_FILE_NAME, NEW_FILE_NAME, OF_FILE, TraceDescription, is_block_file,
};
use crate::error::RecordError;

/// A directory that a trace is written into.
#[derive(Debug)]
pub(crate) struct Directory {
    pub folder: Folder,
    pub path: PathBuf,
    /// Directories that were made for this one, the deepest first.
    made: Vec<CreatedFolder>,
    /// Files of the trace that gives way. They are set aside until it is certain that there is a new trace.
    former: Vec<OsString>,
    /// The lock tells other recorders that this one is at work.
    _lock: OwnedFd,
}

/// What happens to a trace that is in the directory already. A recorder never touches any other file there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormerTrace {
    /// It stays, and nothing is recorded.
    #[default]
    Stays,
    /// It is replaced.
    GivesWay,
}

/// Makes the directory, or finds it empty. A trace that gives way is set aside.
pub(crate) fn make(path: &Path, former: FormerTrace) -> Result<Directory, RecordError> {
    if path.exists() && !path.is_dir() {
        return Err(RecordError::NotDirectory(path.to_owned()));
    }
    let made = Folder::make(path, PathTrust::Links, Mode::RWXU);
    let (folder, made) = made.map_err(|source| failed("create", path, source))?;
    // The directories that were made would stay, and they would be of no use.
    let reserved =
        reserve(&folder, path, former).inspect_err(|_| made.iter().for_each(CreatedFolder::remove));
    let (lock, former) = reserved?;
    Ok(Directory { folder, path: path.to_owned(), made, former, _lock: lock })
}

/// Locks the directory and sets the trace that gives way aside. Returns the lock and the names of that
/// trace's files.
fn reserve(
    folder: &Folder,
    path: &Path,
    former: FormerTrace,
) -> Result<(OwnedFd, Vec<OsString>), RecordError> {
    let lock = take(folder, path)?;
    let former = replaced(folder, path, former)?;
    set_aside(folder, &former).map_err(|source| failed("replace the trace in", path, source))?;
    Ok((lock, former))
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> RecordError {
    RecordError::Create { what, path: path.to_owned(), source }
}

/// Reserves the directory for this recorder as long as the returned lock is held.
fn take(folder: &Folder, path: &Path) -> Result<OwnedFd, RecordError> {
    let lock = folder.open().map_err(|source| failed("look into", path, source))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Err(RecordError::InUse(path.to_owned())),
        Ok(()) => remove_left_over(folder),
        // Where nothing can be locked, another recorder may be at work. So no file there is treated as left
        // over.
        Err(_) => {}
    }
    Ok(lock)
}

/// Whether `make` would refuse a directory because of its content. A directory that does not exist yet is
/// free.
///
/// # Errors
///
/// [`RecordError`] that says what is there.
pub fn check(path: &Path, former: FormerTrace) -> Result<(), RecordError> {
    if path.exists() && !path.is_dir() {
        return Err(RecordError::NotDirectory(path.to_owned()));
    }
    // If the path to it is wrong, `make` reports that.
    let Ok(folder) = Folder::find(path, PathTrust::Links) else { return Ok(()) };
    let _lock = take(&folder, path)?;
    replaced(&folder, path, former).map(drop)
}

/// The files that have to give way. The descriptions come last, so that the files that are left are a trace
/// until all are gone.
fn replaced(folder: &Folder, path: &Path, former: FormerTrace) -> Result<Vec<OsString>, RecordError> {
    let mut names = folder.names().map_err(|source| failed("look into", path, source))?;
    if names.is_empty() {
        return Ok(names);
    }
    let foreign = names.iter().find(|name| !is_part_of_trace(folder, name)).cloned();
    // Reads the description, so it is asked only where the answer counts.
    let is_trace = || TraceDescription::is_there(&folder.path());
    match (foreign, former) {
        (None, FormerTrace::GivesWay) if is_trace() => {}
        (None, FormerTrace::Stays) if is_trace() => return Err(RecordError::TraceThere(path.to_owned())),
        (Some(name), FormerTrace::GivesWay) => {
            return Err(RecordError::NotReplaced { path: path.to_owned(), name: name.into() });
        }
        _ => return Err(RecordError::NotEmpty(path.to_owned())),
    }
    names.sort_by_key(|name| !is_block_file(name));
    Ok(names)
}

/// Whether a file is one that recorders make.
fn is_part_of_trace(folder: &Folder, name: &OsStr) -> bool {
    let entry = if is_name(name) { folder.entry(name).ok().flatten() } else { None };
    entry.is_some_and(|entry| entry.kind() == FileType::RegularFile)
}

/// Whether a file of this name may be part of a trace.
fn is_name(name: &OsStr) -> bool {
    [FILE_NAME, FORMER_FILE_NAME, NEW_FILE_NAME].iter().any(|known| name == *known) || is_block_file(name)
}

/// The beginning of the name of a file that is set aside.
const ASIDE: &str = "former.";

fn aside(name: &OsStr) -> OsString {
    [OsStr::new(ASIDE), name].into_iter().collect()
}

/// The name that a file had before it was set aside, if this is the name of such a file.
fn original(name: &OsString) -> Option<OsString> {
    name.to_str()?.strip_prefix(ASIDE).map(OsString::from).filter(|name| is_name(name))
}

/// Makes room for a new trace. If that fails, everything is as it was.
fn set_aside(folder: &Folder, names: &[OsString]) -> io::Result<()> {
    let moved = names.iter().try_for_each(|name| folder.rename(name, aside(name)));
    moved.inspect_err(|_| restore(folder, names))
}

fn restore(folder: &Folder, names: &[OsString]) {
    names.iter().for_each(|name| drop(folder.rename(aside(name), name)));
}

/// Removes what a killed recorder has left. There are two cases.
///
/// * It was killed before it recorded anything: its first description may be incomplete, and is removed.
/// * It was killed while an older trace gave way: that trace is put back if there is no new one, and removed
///   if there is.
fn remove_left_over(folder: &Folder) {
    let names = folder.names().unwrap_or_default();
    let former: Vec<_> = names.iter().filter_map(original).collect();
    let is_described = names.iter().any(|name| name == FILE_NAME);
    // With any other file in the directory, it is not certain that a recorder has left these.
    let is_all = names.len() == former.len() + usize::from(names.iter().any(|name| name == NEW_FILE_NAME));
    if is_all && is_own(folder, OsStr::new(NEW_FILE_NAME)) {
        let _ = folder.remove(NEW_FILE_NAME);
    }
    if is_described {
        former
            .iter()
            .map(|name| aside(name))
            .filter(|name| is_own(folder, name))
            .for_each(|name| drop(folder.remove(name)));
    } else if is_all {
        restore(folder, &former);
    }
}

/// Whether a file is a regular one and belongs to the user that asks.
fn is_own(folder: &Folder, name: &OsStr) -> bool {
    let entry = folder.entry(name).ok().flatten();
    entry.is_some_and(|entry| entry.kind() == FileType::RegularFile && entry.is_own())
}

/// A new file of this name, for its owner alone.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(OF_FILE.bits()).open(path)
}

impl Directory {
    /// Removes the trace that gave way. From here on it is certain that there is a new trace.
    pub(crate) fn remove_former(&mut self) {
        self.former.drain(..).for_each(|name| drop(self.folder.remove(aside(&name))));
    }

    /// Removes these files, puts the trace that gave way back, and removes the directories that were made for
    /// the new trace, unless other files have been put into them.
    pub(crate) fn remove(&self, names: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        names.into_iter().for_each(|name| drop(self.folder.remove(name)));
        restore(&self.folder, &self.former);
        self.made.iter().for_each(CreatedFolder::remove);
    }
}
