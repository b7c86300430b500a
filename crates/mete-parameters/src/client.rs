//! The other side of the files: another program reads and sets the values of a running one.
//!
//! It uses the files and nothing else, so that it shows what `cat` shows, and may do what `echo` may do. A
//! socket beside the files would be a second way in, which had to be guarded like the first one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mete_base::nearest::help;

use crate::patience::within_limit;
use crate::{FoundTree, Root};

/// The file in which a program says in words how it is, and why it refused what was asked last: the error
/// number of a system call holds no sentence.
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
    /// It is a directory.
    #[error("{name} has several parameters: {inside}")]
    Several {
        /// What was written.
        name: String,
        /// The names of those inside, as they are written.
        inside: String,
    },
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
    /// The program has not answered for some seconds.
    #[error("cannot {what} {asked}: the program behind {} does not answer: it is stopped, or very busy", path.display())]
    Silent {
        /// `set` or `read`.
        what: &'static str,
        /// What was asked.
        asked: String,
        /// Where its files are.
        path: PathBuf,
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

/// The values of a running program, reached through an open descriptor of their root: they stay that
/// program's even if something else is mounted at the path later.
#[derive(Debug)]
pub struct ParameterFiles {
    _root: Root,
    /// A path by which files of this tree are found, wherever it is.
    path: PathBuf,
    /// Where it was found, for people.
    shown: PathBuf,
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
        Ok(ParameterFiles { path: root.path(), _root: root, shown: tree.path.clone() })
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
        let path = self.path.join(name);
        let read =
            within_limit(|| fs::read_to_string(path)).ok_or_else(|| self.silent("read", name.into()))?;
        read.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.unknown(name),
            io::ErrorKind::PermissionDenied => ParameterError::WriteOnly(name.into()),
            io::ErrorKind::IsADirectory => self.several(name),
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
        let (path, text) = (self.path.join(name), value.to_owned());
        let written =
            within_limit(move || File::options().write(true).open(path)?.write_all(text.as_bytes()));
        let written = written.ok_or_else(|| self.silent("set", format!("{name}={value}")))?;
        written.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.unknown(name),
            io::ErrorKind::PermissionDenied => ParameterError::ReadOnly(name.into()),
            _ => self.refused("set", format!("{name}={value}"), &error),
        })
    }

    /// The names of all values that can be set and read, in their program's order. The others are requests,
    /// reports and measurements.
    ///
    /// # Errors
    ///
    /// [`ParameterError::Silent`]
    pub fn settings(&self) -> Result<Vec<String>, ParameterError> {
        let path = self.path.clone();
        let settings = within_limit(move || {
            let names = names(&path).into_iter();
            names.filter(|name| is_setting(&path.join(name))).collect()
        });
        settings.ok_or_else(|| self.silent("read", "the names of its parameters".into()))
    }

    /// What the program says of itself under this word in its status.
    #[must_use]
    pub fn said(&self, word: &str) -> Option<String> {
        let status = self.read(STATUS).ok()?;
        let said = status.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(": "));
        said.map(str::to_owned)
    }

    fn refused(&self, what: &'static str, asked: String, error: &io::Error) -> ParameterError {
        let path = self.path.join(STATUS);
        let status = within_limit(|| fs::read_to_string(path)).and_then(Result::ok).unwrap_or_default();
        let refused = status.lines().find_map(|line| line.strip_prefix(REFUSED)?.strip_prefix(&asked));
        let why = refused.and_then(|rest| rest.strip_prefix(": ").map(str::to_owned));
        ParameterError::Refused { what, asked, why: why.unwrap_or_else(|| error.to_string()) }
    }

    fn silent(&self, what: &'static str, asked: String) -> ParameterError {
        ParameterError::Silent { what, asked, path: self.shown.clone() }
    }

    fn several(&self, name: &str) -> ParameterError {
        let (folder, above) = (self.path.join(name), format!("{}/", name.trim_end_matches('/')));
        let inside = within_limit(move || {
            let mut inside = Vec::new();
            collect_names(&folder, &above, &mut inside);
            inside
        });
        ParameterError::Several { name: name.into(), inside: inside.unwrap_or_default().join(", ") }
    }

    fn unknown(&self, name: &str) -> ParameterError {
        let path = self.path.clone();
        let known = within_limit(move || names(&path)).unwrap_or_default();
        let help = help(name, known.iter().map(String::as_str), "there are");
        ParameterError::Unknown { name: name.into(), help: help.unwrap_or_else(|| known.join(", ")) }
    }
}

/// The names of all files under a path.
fn names(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    collect_names(path, "", &mut names);
    names
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
