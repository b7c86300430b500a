//! The other side of the files: another program reads and sets the values of a running one.
//!
//! It uses the files and nothing else, so that it shows what `cat` shows, and may do what `echo` may do. A socket beside
//! the files would be a second way in, which had to be guarded like the first one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mete_base::nearest::help;

use crate::{FoundTree, Root};

/// The file in which a program says in words how it is, and why it refused what was asked last: the error number of a
/// system call holds no sentence.
pub const STATUS: &str = "status";
/// What a line of that file begins with that says what was refused, and why.
pub const REFUSED: &str = "refused: ";

/// Why a value was not read or set.
#[derive(Debug, thiserror::Error)]
pub enum ParameterError {
    /// There is no such file.
    #[error("there is no parameter {name:?}; {help}")]
    Unknown {
        /// What was written.
        name: String,
        /// What may have been meant.
        help: String,
    },
    /// The file cannot be set.
    #[error("{0} can be read only")]
    ReadOnly(String),
    /// The file cannot be read.
    #[error("{0} can be written only")]
    WriteOnly(String),
    /// The program refused, or is gone.
    #[error("cannot {what} {asked}: {why}")]
    Refused {
        /// `set` or `read`.
        what: &'static str,
        /// What was asked.
        asked: String,
        /// The program's sentence, or the kernel's.
        why: String,
    },
    /// The tree cannot be looked into.
    #[error("cannot look into {}: {source}", path.display())]
    Closed {
        /// Where it is.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// The values of a running program, reached through an open descriptor of their root: they stay that program's even if
/// something else is mounted at the path later.
#[derive(Debug)]
pub struct ParameterFiles {
    _root: Root,
    /// A path by which files of this tree are found, wherever it is.
    path: PathBuf,
}

impl ParameterFiles {
    /// Those of a tree that was found.
    ///
    /// # Errors
    ///
    /// [`ParameterError::Closed`]
    pub fn of(tree: &FoundTree) -> Result<ParameterFiles, ParameterError> {
        let closed = |source| ParameterError::Closed { path: tree.path.clone(), source };
        let root = tree.open().map_err(closed)?;
        Ok(ParameterFiles { path: root.path(), _root: root })
    }

    /// Reads a value, with its line break.
    ///
    /// # Errors
    ///
    /// [`ParameterError`]
    pub fn read(&self, name: &str) -> Result<String, ParameterError> {
        if !is_name(name) {
            return Err(self.unknown(name));
        }
        fs::read_to_string(self.path.join(name)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.unknown(name),
            io::ErrorKind::PermissionDenied => ParameterError::WriteOnly(name.into()),
            _ => self.refused("read", name.into(), &error),
        })
    }

    /// Sets a value.
    ///
    /// # Errors
    ///
    /// [`ParameterError`]
    pub fn set(&self, name: &str, value: &str) -> Result<(), ParameterError> {
        if !is_name(name) {
            return Err(self.unknown(name));
        }
        let file = File::options().write(true).open(self.path.join(name));
        let written = file.and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.unknown(name),
            io::ErrorKind::PermissionDenied => ParameterError::ReadOnly(name.into()),
            _ => self.refused("set", format!("{name}={value}"), &error),
        })
    }

    /// The names of all values that can be set and read, in their program's order. The others are requests, reports and
    /// measurements.
    #[must_use]
    pub fn settings(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| is_setting(&self.path.join(name))).collect()
    }

    /// What the program says of itself under this word in its status.
    #[must_use]
    pub fn said(&self, word: &str) -> Option<String> {
        let status = fs::read_to_string(self.path.join(STATUS)).ok()?;
        let said = status.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(": "));
        said.map(str::to_owned)
    }

    fn refused(&self, what: &'static str, asked: String, error: &io::Error) -> ParameterError {
        let status = fs::read_to_string(self.path.join(STATUS)).unwrap_or_default();
        let refused = status.lines().find_map(|line| line.strip_prefix(REFUSED)?.strip_prefix(&asked));
        let why = refused.and_then(|rest| rest.strip_prefix(": ").map(str::to_owned));
        ParameterError::Refused { what, asked, why: why.unwrap_or_else(|| error.to_string()) }
    }

    fn unknown(&self, name: &str) -> ParameterError {
        let known = self.names();
        let help = help(name, known.iter().map(String::as_str), "there are");
        ParameterError::Unknown { name: name.into(), help: help.unwrap_or_else(|| known.join(", ")) }
    }

    /// The names of all files.
    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect_names(&self.path, "", &mut names);
        names
    }
}

fn collect_names(folder: &Path, above: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{above}{}", entry.file_name().to_string_lossy());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect_names(&entry.path(), &format!("{name}/"), names),
            Ok(_) => names.push(name),
            Err(_) => {}
        }
    }
}

/// Whether this can be a parameter's name. No such name leads out of the directory.
#[must_use]
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('/') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn is_setting(parameter: &Path) -> bool {
    fs::metadata(parameter).is_ok_and(|found| found.permissions().mode() & 0o600 == 0o600)
}
