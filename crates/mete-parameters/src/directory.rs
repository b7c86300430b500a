//! The directory that a tree is mounted on.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::MountError;
use crate::mounts;

/// A directory to mount on.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Without links and dots.
    pub path: PathBuf,
    /// It and those above it, as far as they were made for this and are to be removed: the deepest first.
    pub made: Vec<PathBuf>,
}

impl Directory {
    /// Makes it if it does not exist; otherwise it must be empty.
    pub(crate) fn prepare(path: &Path) -> Result<Directory, MountError> {
        let failed = |what| move |source| MountError::Directory { what, path: path.to_owned(), source };
        refuse_taken(path)?;
        let missing = missing(path);
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        created.inspect_err(|_| remove(&missing)).map_err(failed("make"))?;
        let canonical = |part: &PathBuf| part.canonicalize().map_err(failed("find"));
        let made = missing.iter().map(canonical).collect::<Result<_, _>>()?;
        let directory = Directory { path: canonical(&path.to_owned())?, made };
        match fs::read_dir(&directory.path).map_err(failed("look into"))?.next() {
            None => Ok(directory),
            Some(_) => Err(MountError::NotEmpty(directory.path)),
        }
    }

    /// Removes what was made.
    pub(crate) fn remove(&self) {
        remove(&self.made);
    }
}

/// What is to be made so that there is a directory, the deepest first.
fn missing(path: &Path) -> Vec<PathBuf> {
    let missing = path.ancestors().take_while(|part| !part.as_os_str().is_empty() && !part.exists());
    // `..` is nothing that could be made.
    missing.filter(|part| part.file_name().is_some()).map(Path::to_owned).collect()
}

/// Somebody may have put something there, or have removed it.
pub(crate) fn remove(made: &[PathBuf]) {
    made.iter().for_each(|part| drop(fs::remove_dir(part)));
}

/// The path as the mount table has it. What nobody answers for any more cannot be looked at; what it is in can be.
fn place(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let parent = absolute.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, absolute.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => absolute,
    }
}

/// Another tree is there. That of a process that was killed together with its keeper is nobody's, and goes.
fn refuse_taken(path: &Path) -> Result<(), MountError> {
    let place = place(path);
    let all = mounts::found().unwrap_or_default();
    let Some(found) = all.into_iter().find(|found| found.path == place) else { return Ok(()) };
    if Path::new("/proc").join(found.pid.to_string()).exists() {
        return Err(MountError::Taken { path: found.path, pid: found.pid });
    }
    mounts::take_away(found.pid);
    Ok(())
}
