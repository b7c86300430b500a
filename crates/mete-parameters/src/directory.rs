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
    /// Whether it was made for this, and is to be removed.
    pub is_ours: bool,
}

impl Directory {
    /// Makes it if it does not exist; otherwise it must be empty.
    pub(crate) fn prepare(path: &Path) -> Result<Directory, MountError> {
        let failed = |what| move |source| MountError::Directory { what, path: path.to_owned(), source };
        refuse_taken(path)?;
        let is_ours = !path.exists();
        if is_ours {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed("make"))?;
        }
        let path = path.canonicalize().map_err(failed("find"))?;
        let directory = Directory { path, is_ours };
        match fs::read_dir(&directory.path).map_err(failed("look into"))?.next() {
            None => Ok(directory),
            Some(_) => Err(MountError::NotEmpty(directory.path)),
        }
    }

    /// Removes what was made.
    pub(crate) fn remove(&self) {
        if self.is_ours {
            // Somebody may have put something there, or have removed it.
            let _ = fs::remove_dir(&self.path);
        }
    }
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
