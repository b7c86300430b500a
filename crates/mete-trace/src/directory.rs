//! The directory of a trace. It is its owner's alone: addresses of the kernel and names of threads are in it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::recorder::RecordError;

/// Directories that were made so that there is one, the deepest first.
#[derive(Debug, Default)]
pub(crate) struct Made(Vec<PathBuf>);

/// Makes it, or finds it empty.
pub(crate) fn make(path: &Path) -> Result<Made, RecordError> {
    let failed = |what| move |source| RecordError::Create { what, path: path.to_owned(), source };
    if path.exists() && !path.is_dir() {
        return Err(RecordError::NotDirectory(path.to_owned()));
    }
    let made = Made::missing(path);
    let created = DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.inspect_err(|_| made.remove()).map_err(failed("create"))?;
    match fs::read_dir(path).map_err(failed("look into"))?.next() {
        None => Ok(made),
        Some(_) => Err(RecordError::NotEmpty(path.to_owned())),
    }
}

/// A new file of this name, for its owner alone.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

impl Made {
    fn missing(path: &Path) -> Made {
        let missing = path.ancestors().take_while(|part| !part.as_os_str().is_empty() && !part.exists());
        // `..` is nothing that could be made.
        Made(missing.filter(|part| part.file_name().is_some()).map(Path::to_owned).collect())
    }

    /// Takes away what nothing has come into.
    pub(crate) fn remove(&self) {
        // Only an empty one goes: what is in another one is somebody's.
        self.0.iter().for_each(|part| drop(fs::remove_dir(part)));
    }
}
