//! How a description is written into a trace's directory and read from it.
//!
//! ```text
//!   description.json.new ── written, synced ──▶ renamed to description.json
//!                           description.json, before that ──▶ also linked as description.before.json
//! ```

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use mete_base::folder::{Folder, PathTrust};
use mete_base::regular;
use rustix::fs::{AtFlags, fsync, linkat};

use super::files::{FILE_NAME, FORMER_FILE_NAME, NEW_FILE_NAME, OF_FILE, is_block_file};
use super::trace::TraceDescription;

/// The size of the largest description that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Why a description could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionFileError {
    /// The system refused.
    #[error("cannot {what} {path}: {source}", path = path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file on which it was tried.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no description.
    #[error("cannot read {path}: {why}", path = path.display())]
    Absent {
        /// The file that was looked for.
        path: PathBuf,
        /// What may have happened.
        why: &'static str,
    },
    /// The file is not what a recorder writes.
    #[error("{path} does not describe a trace: {why}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl TraceDescription {
    /// Writes the description into a directory. At any moment the directory has a whole description or none,
    /// also if the machine stops.
    ///
    /// # Errors
    ///
    /// [`DescriptionFileError`] if the system refuses. The old description is still there then.
    pub fn write(&self, directory: &Path) -> Result<(), DescriptionFileError> {
        match Folder::find(directory, PathTrust::Links) {
            Ok(folder) => self.write_into(&folder, directory),
            Err(source) => Err(DescriptionFileError::File { what: "find", path: directory.into(), source }),
        }
    }

    /// The same, into a directory that is held open. `directory` is its path in messages.
    pub(crate) fn write_into(&self, folder: &Folder, directory: &Path) -> Result<(), DescriptionFileError> {
        let written = serde_json::to_vec_pretty(self).map_err(io::Error::other);
        match written.and_then(|bytes| replace(folder, &bytes)) {
            Ok(()) => {
                sync_directory(folder);
                Ok(())
            }
            Err(source) => {
                // The unfinished file is of no use. If it cannot be removed, the first error is still the one
                // to report.
                let _ = folder.remove(NEW_FILE_NAME);
                Err(DescriptionFileError::File { what: "write", path: directory.join(FILE_NAME), source })
            }
        }
    }

    /// Reads and checks the description of a directory.
    ///
    /// # Errors
    ///
    /// [`DescriptionFileError`] if it cannot be read or cannot be right.
    pub fn read(directory: &Path) -> Result<TraceDescription, DescriptionFileError> {
        match TraceDescription::read_file(&directory.join(FILE_NAME)) {
            Err(DescriptionFileError::File { path, source, .. })
                if source.kind() == io::ErrorKind::NotFound && directory.is_dir() =>
            {
                Err(DescriptionFileError::Absent { path, why: absence(directory) })
            }
            read => read,
        }
    }

    /// Reads the description that was replaced. What was known when recording began is enough to read a
    /// trace.
    pub(crate) fn read_former(directory: &Path) -> Option<TraceDescription> {
        TraceDescription::read_file(&directory.join(FORMER_FILE_NAME)).ok()
    }

    /// Whether a directory has a description that can be read.
    pub(crate) fn is_there(directory: &Path) -> bool {
        TraceDescription::read(directory).is_ok() || TraceDescription::read_former(directory).is_some()
    }

    fn read_file(path: &Path) -> Result<TraceDescription, DescriptionFileError> {
        let bytes = read_at_most(path, MAX_FILE_BYTES + 1).map_err(|source| DescriptionFileError::File {
            what: "read",
            path: path.to_owned(),
            source,
        })?;
        let parsed = if bytes.len() as u64 > MAX_FILE_BYTES {
            Err(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20))
        } else {
            TraceDescription::parse(&bytes)
        };
        parsed.map_err(|why| DescriptionFileError::Content { path: path.to_owned(), why })
    }
}

/// The beginning of a regular file. A caller that asks for one byte beyond its limit sees whether the limit
/// is exceeded.
fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts a new description in the place of the old one, which stays under its second name.
fn replace(folder: &Folder, bytes: &[u8]) -> io::Result<()> {
    write_synced(folder, bytes)?;
    keep_former(folder);
    folder.rename(NEW_FILE_NAME, FILE_NAME)
}

/// Not a [draft](mete_base::draft), although that is written in the same way. The unfinished file has a fixed
/// name, by which a directory is known in which nothing was recorded; between the sync and the rename, the
/// old description gets its second name; and the directory is one that is held open, not a path.
fn write_synced(folder: &Folder, bytes: &[u8]) -> io::Result<()> {
    // A file that a killed recorder has left is of no use, and may belong to any user.
    let _ = folder.remove(NEW_FILE_NAME);
    let mut file = folder.create(NEW_FILE_NAME, OF_FILE)?;
    file.write_all(bytes)?;
    // Without the sync, a machine that stops after the rename may keep the name and lose the content. The old
    // description would be lost with it.
    file.sync_all()
}

/// Keeps the old description under a second name. Without it, one damaged file would leave blocks that no
/// description belongs to. Where it cannot be kept there is no second description.
fn keep_former(folder: &Folder) {
    let _ = folder.remove(FORMER_FILE_NAME);
    let _ = linkat(folder, FILE_NAME, folder, FORMER_FILE_NAME, AtFlags::empty());
}

/// Makes the names in a directory, and the directory's own name, survive a stop of the machine. Not every
/// file system can do that. The content of the files is safe in any case.
fn sync_directory(folder: &Folder) {
    for directory in
        [folder.open().ok(), folder.folder("..").and_then(|above| above.open()).ok()].into_iter().flatten()
    {
        let _ = fsync(directory);
    }
}

/// Why there is no description in a directory.
fn absence(directory: &Path) -> &'static str {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    if names.iter().any(|name| is_block_file(name)) {
        return "it is missing, and without it the blocks that are there cannot be read; a dump that was killed leaves a directory like this";
    }
    match names.as_slice() {
        [name] if name == NEW_FILE_NAME => {
            "it is missing: the recorder was killed before it recorded anything; the directory can be recorded into again"
        }
        [] => "the directory is empty; nothing was recorded into it",
        _ => "it is missing: the directory does not belong to a trace",
    }
}
