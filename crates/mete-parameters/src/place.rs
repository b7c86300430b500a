//! Where a tree must not be mounted.

use std::path::{Path, PathBuf};

use crate::MountError;

/// Mounted on or above the directory in which programs with probes have their sockets, the tree would hide
/// them. Then no program could be found, and none could remove its socket at its end.
///
/// # Errors
///
/// [`MountError::Hides`]
pub fn refuse_hiding(at: &Path, sockets: &[PathBuf]) -> Result<(), MountError> {
    let at = resolved(at);
    match sockets.iter().find(|sockets| resolved(sockets).starts_with(&at)) {
        Some(hidden) => Err(MountError::Hides { sockets: hidden.clone(), at }),
        None => Ok(()),
    }
}

/// Without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = absolute.ancestors().find_map(|part| Some((part, part.canonicalize().ok()?)));
    let Some((part, there)) = there else { return absolute };
    match absolute.strip_prefix(part) {
        Ok(rest) if !rest.as_os_str().is_empty() => there.join(rest),
        _ => there,
    }
}
