//! Which running program is meant, of those that have their values as files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::patience::within_limit;
use crate::{FoundTree, ParameterError, ParameterFiles, found};

/// Why no running program is meant.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// There is no mount table.
    #[error("cannot read the mount table: {0}")]
    NoTable(#[from] io::Error),
    /// There is none of this user.
    #[error(
        "no running recorder or scheduler has its parameters as files; start mete record or mete schedule with --parameters DIR"
    )]
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

/// The running programs of this user that have their values as files. Those of other users do not count: the
/// kernel lets only their owners in, and another user could mount files that only look like those of a
/// program of Mete.
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

/// The values of the program that is meant: the one with this directory of its values or of its trace, or
/// with this number; or the only one that runs.
///
/// # Errors
///
/// [`ChoiceError`]
pub fn chosen(wanted: Option<&Path>) -> Result<ParameterFiles, ChoiceError> {
    let trees = running()?;
    let fitting = match wanted {
        Some(wanted) => called(&trees, wanted),
        None => trees.iter().collect(),
    };
    match (fitting.as_slice(), wanted) {
        ([tree], _) => Ok(ParameterFiles::of(tree)?),
        ([], Some(wanted)) => Err(ChoiceError::NotCalled { wanted: wanted.into(), all: list(&trees) }),
        _ => Err(ChoiceError::Several(list(&trees))),
    }
}

fn list(trees: &[FoundTree]) -> String {
    let names = trees.iter().map(|tree| format!("{} (process {})", tree.path.display(), tree.pid));
    names.collect::<Vec<_>>().join(", ")
}

/// Those of which `wanted` is the directory of their values, or their number; or else the directory of their
/// trace. Only for the last one they are asked themselves, and one that is stopped does not answer.
fn called<'a>(trees: &'a [FoundTree], wanted: &Path) -> Vec<&'a FoundTree> {
    let path = canonical(wanted);
    let number = wanted.to_str().and_then(|text| text.parse().ok());
    let named: Vec<_> = trees.iter().filter(|tree| tree.path == path || Some(tree.pid) == number).collect();
    if !named.is_empty() {
        return named;
    }
    let trace = |tree: &FoundTree| ParameterFiles::of(tree).ok()?.said("trace");
    trees
        .iter()
        .filter(|tree| trace(tree).is_some_and(|trace| canonical(Path::new(&trace)) == path))
        .collect()
}

/// The directory of a flight recorder's trace does not exist before its first dump, and one of a stopped
/// program's values is not answered for.
fn canonical(path: &Path) -> PathBuf {
    let asked = path.to_owned();
    let found = within_limit(|| fs::canonicalize(asked)).and_then(Result::ok);
    found.or_else(|| std::path::absolute(path).ok()).unwrap_or_default()
}
