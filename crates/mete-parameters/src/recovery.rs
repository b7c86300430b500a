//! What is left of programs that were killed together with their keepers.

use std::path::PathBuf;

use crate::{mounts, notes};

/// Takes away what programs of this user have left behind that were killed together with their keepers, or
/// before they had any: trees, and directories of which there are notes in one of these directories. Returns
/// where trees were.
pub fn recover(notes: &[PathBuf]) -> Vec<PathBuf> {
    let left = mounts::own().filter(|found| !found.is_alive());
    let trees = left.filter(|found| found.take_away().is_ok()).map(|found| found.path).collect();
    notes.iter().for_each(|notes| notes::remove_all_left(notes));
    trees
}
