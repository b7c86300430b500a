//! The directory of a trace. It is its owner's alone: addresses of the kernel and names of threads are in it. It is
//! found once and held, so that what others put in its place meanwhile is not written into.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mete_schema::folder::{Folder, Made, Trust};
use rustix::fs::{FileType, FlockOperation, Mode, flock};
use rustix::io::Errno;

use crate::description::{FILE_NAME, FORMER_FILE_NAME, NEW_FILE_NAME, TraceDescription, is_block_file};
use crate::recorder::RecordError;

/// The rights of a trace's files.
pub(crate) const OF_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A directory that a trace is written into.
#[derive(Debug)]
pub(crate) struct Directory {
    pub folder: Folder,
    pub path: PathBuf,
    /// Directories that were made so that there is one, the deepest first.
    made: Vec<Made>,
    /// Files of the trace that gives way. They are set aside until it is certain that there is a new one.
    former: Vec<OsString>,
    /// Locked, which tells other recorders that this one is at work.
    _lock: OwnedFd,
}

/// What becomes of a trace that is in the directory already. Nothing else that is in it is ever touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormerTrace {
    /// It stays, and nothing is recorded.
    #[default]
    Stays,
    /// It is replaced.
    GivesWay,
}

/// Makes it, or finds it empty; a trace that gives way is removed.
pub(crate) fn make(path: &Path, former: FormerTrace) -> Result<Directory, RecordError> {
    let failed = |what| move |source| RecordError::Create { what, path: path.to_owned(), source };
    if path.exists() && !path.is_dir() {
        return Err(RecordError::NotDirectory(path.to_owned()));
    }
    let (folder, made) = Folder::make(path, Trust::Links, Mode::RWXU).map_err(failed("create"))?;
    let lock = take(&folder, path)?;
    let former = replaced(&folder, path, former)?;
    set_aside(&folder, &former).map_err(failed("replace the trace in"))?;
    Ok(Directory { folder, path: path.to_owned(), made, former, _lock: lock })
}

/// Has it for this recorder alone as long as what this returns is held.
fn take(folder: &Folder, path: &Path) -> Result<OwnedFd, RecordError> {
    let failed = |source| RecordError::Create { what: "look into", path: path.to_owned(), source };
    let lock = folder.open().map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Err(RecordError::InUse(path.to_owned())),
        Ok(()) => remove_left_over(folder),
        // Where nothing can be locked, nothing is taken for left over either.
        Err(_) => {}
    }
    Ok(lock)
}

/// Whether `make` would refuse a directory for what is in it. One that is not there yet is free.
///
/// # Errors
///
/// [`RecordError`] that says what is there.
pub fn check(path: &Path, former: FormerTrace) -> Result<(), RecordError> {
    if path.exists() && !path.is_dir() {
        return Err(RecordError::NotDirectory(path.to_owned()));
    }
    // What is wrong with the way there is said by who makes it.
    let Ok(folder) = Folder::find(path, Trust::Links) else { return Ok(()) };
    let _lock = take(&folder, path)?;
    replaced(&folder, path, former).map(drop)
}

/// The files that have to go. The descriptions are the last of them, so that what is left is a trace until all are gone.
fn replaced(folder: &Folder, path: &Path, former: FormerTrace) -> Result<Vec<OsString>, RecordError> {
    let failed = |source| RecordError::Create { what: "look into", path: path.to_owned(), source };
    let mut names = folder.names().map_err(failed)?;
    if names.is_empty() {
        return Ok(names);
    }
    let foreign = names.iter().find(|name| !is_part_of_trace(folder, name)).cloned();
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

/// What the name of a file begins with that is set aside.
const ASIDE: &str = "former.";

fn aside(name: &OsStr) -> OsString {
    [OsStr::new(ASIDE), name].into_iter().collect()
}

/// Makes room for a new trace. Where that fails, all is as it was.
fn set_aside(folder: &Folder, names: &[OsString]) -> io::Result<()> {
    let moved = names.iter().try_for_each(|name| folder.rename(name, aside(name)));
    moved.inspect_err(|_| restore(folder, names))
}

fn restore(folder: &Folder, names: &[OsString]) {
    names.iter().for_each(|name| drop(folder.rename(aside(name), name)));
}

/// Clears up after a recorder that was killed. Before it began: of its first description nobody knows whether it is
/// whole. While a trace gave way: that trace is back where there is no new one, and gone where there is.
fn remove_left_over(folder: &Folder) {
    let own = |name: &OsStr| {
        let entry = folder.entry(name).ok().flatten();
        entry.is_some_and(|entry| entry.kind() == FileType::RegularFile && entry.is_own())
    };
    let names = folder.names().unwrap_or_default();
    let original = |name: &OsString| name.to_str()?.strip_prefix(ASIDE).map(OsString::from);
    let former: Vec<_> = names.iter().filter_map(original).filter(|name| is_name(name)).collect();
    let is_described = names.iter().any(|name| name == FILE_NAME);
    let is_all = names.len() == former.len() + usize::from(names.iter().any(|name| name == NEW_FILE_NAME));
    if is_all && own(OsStr::new(NEW_FILE_NAME)) {
        let _ = folder.remove(NEW_FILE_NAME);
    }
    if is_described {
        former
            .iter()
            .map(|name| aside(name))
            .filter(|name| own(name))
            .for_each(|name| drop(folder.remove(name)));
    } else if is_all {
        restore(folder, &former);
    }
}

/// A new file of this name, for its owner alone.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(OF_FILE.bits()).open(path)
}

impl Directory {
    /// From here on there is a new trace, and the one that gave way is gone.
    pub(crate) fn remove_former(&mut self) {
        self.former.drain(..).for_each(|name| drop(self.folder.remove(aside(&name))));
    }

    /// Takes these out of it, puts the trace that gave way back, and takes away what was made for it if nothing else has
    /// come into it.
    pub(crate) fn remove(&self, names: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        names.into_iter().for_each(|name| drop(self.folder.remove(name)));
        restore(&self.folder, &self.former);
        self.made.iter().for_each(Made::remove);
    }
}
