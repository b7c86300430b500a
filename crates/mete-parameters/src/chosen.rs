//! Which running program is meant, of those that have their values as files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{FoundTree, ParameterError, ParameterFiles, found};

/// Why no running program is meant.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// There is no mount table.
    #[error("cannot read the mount table: {0}")]
    NoTable(#[from] io::Error),
    /// There is none of this user.
    #[error("none has its parameters as files; start mete record or mete schedule with --parameters DIR")]
    None,
    /// There are only those of root, which lets no other user in.
    #[error("only root's run, and only root may use them; try sudo: {0}")]
    OnlyRoots(String),
    /// There are several.
    #[error("several run; choose one by --recorder or --scheduler: {0}")]
    Several(String),
    /// None of them is called so.
    #[error("none is called {}; there are {all}", wanted.display())]
    NotCalled {
        /// What was written.
        wanted: PathBuf,
        /// All of them.
        all: String,
    },
    /// It cannot be looked into.
    #[error(transparent)]
    Closed(#[from] ParameterError),
}

/// The running programs of this user that have their values as files. Those of other users do not count: the kernel lets
/// only their owners in, and another user could mount files that only look like those of a program of Mete.
///
/// # Errors
///
/// [`ChoiceError::NoTable`]; [`ChoiceError::OnlyRoots`] and [`ChoiceError::None`] if there are none.
pub fn running() -> Result<Vec<FoundTree>, ChoiceError> {
    let user = rustix::process::getuid().as_raw();
    let (trees, of_root): (Vec<_>, Vec<_>) = found()?.into_iter().partition(|tree| tree.user == user);
    match (trees.is_empty(), of_root.is_empty()) {
        (false, _) => Ok(trees),
        (true, true) => Err(ChoiceError::None),
        (true, false) => Err(ChoiceError::OnlyRoots(list(&of_root))),
    }
}

/// The values of the program that is meant: the one with this directory of its values or of its trace, or with this
/// number; or the only one that runs.
///
/// # Errors
///
/// [`ChoiceError`]
pub fn chosen(wanted: Option<&Path>) -> Result<ParameterFiles, ChoiceError> {
    let trees = running()?;
    let mut fitting = trees.iter().filter(|tree| wanted.is_none_or(|wanted| is_called(tree, wanted)));
    match (fitting.next(), fitting.next()) {
        (Some(tree), None) => Ok(ParameterFiles::of(tree)?),
        (Some(_), Some(_)) => Err(ChoiceError::Several(list(&trees))),
        (None, _) => {
            let wanted = wanted.unwrap_or(Path::new("so")).to_owned();
            Err(ChoiceError::NotCalled { wanted, all: list(&trees) })
        }
    }
}

fn list(trees: &[FoundTree]) -> String {
    let names = trees.iter().map(|tree| format!("{} (process {})", tree.path.display(), tree.pid));
    names.collect::<Vec<_>>().join(", ")
}

/// Whether `wanted` is the directory of a program's values, its number, or the directory of its trace.
fn is_called(tree: &FoundTree, wanted: &Path) -> bool {
    // The directory of a flight recorder's trace does not exist before its first dump.
    let wanted_path = fs::canonicalize(wanted).or_else(|_| std::path::absolute(wanted)).unwrap_or_default();
    if wanted_path == tree.path || wanted.to_str().is_some_and(|text| text.parse() == Ok(tree.pid)) {
        return true;
    }
    let trace = ParameterFiles::of(tree).ok().and_then(|tree| tree.said("trace")).map(PathBuf::from);
    trace.is_some_and(|trace| fs::canonicalize(&trace).unwrap_or(trace) == wanted_path)
}
