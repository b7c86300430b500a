//! Notes of directories that are made for a tree. By a note, the next start of a program of the same user can
//! remove the directories, if this program and its keepers are killed before they do.
//!
//! A note is written before the directories are made, and is removed after them. It lies in a directory that
//! belongs to this user alone. It is named after the process. It contains the process's namespace, the number
//! of directories, and the path of the deepest one, which a zero byte ends:
//!
//! ```text
//!   4711-815.directories:   "4026531836 2 /run/above/tree\0"
//! ```

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use mete_keeper::{files_left, open_left};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use crate::made;
use crate::source::{self, MountSource};

/// The extension of the names of notes.
const EXTENSION: &str = "directories";
/// The size of the longest note: a path, and three numbers.
const MOST_BYTES: u64 = 8192;

/// Ends the path, so that a part of a note is not mistaken for a shorter path. No path contains this byte.
const END: u8 = 0;

/// A note. It stays when this is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// `None` if no note could be written. Then such directories may stay.
    path: Option<PathBuf>,
}

impl Note {
    /// Notes that the directory at this path, and the others above it that are missing, are about to be made.
    pub(crate) fn write(notes: Option<&Path>, path: &Path, made: usize) -> Note {
        let Some(notes) = notes.filter(|_| made > 0) else { return Note::default() };
        let source = MountSource::own(made);
        let note = notes.join(format!("{}.{EXTENSION}", source.name()));
        let text = [format!("{} {made} ", source.namespace).as_bytes(), path.as_os_str().as_bytes(), &[END]]
            .concat();
        // A note with this name is that of an ended process of a namespace with the same numbers, or half a
        // note.
        let _ = fs::remove_file(&note);
        let written = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&note);
        let written = written.and_then(|mut file| file.write_all(&text));
        let note = Note { path: Some(note) };
        match written {
            Ok(()) => note,
            Err(_) => {
                note.remove();
                Note::default()
            }
        }
    }

    /// The word by which a keeper gets the note.
    pub(crate) fn word(&self) -> OsString {
        self.path.clone().unwrap_or_default().into()
    }

    /// A keeper's note, from the word that the program gave to it.
    pub(crate) fn given(word: &OsStr) -> Note {
        Note { path: (!word.is_empty()).then(|| word.into()) }
    }

    /// Removes the note, after the directories that it names.
    pub(crate) fn remove(&self) {
        if let Some(path) = &self.path {
            // An error is of no consequence: another process may have removed it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the directories that are noted here by processes that have ended. Notes are not believed if
/// another user could have written them.
pub(crate) fn remove_all_left(notes: &Path) {
    for note in files_left(notes, EXTENSION) {
        if let Some((source, path)) = left(&note) {
            // An error means that they are missing, or that other processes use them. Nothing more can be
            // done then.
            let _ = remove_made(&path, source.made);
            Note { path: Some(note) }.remove();
        }
    }
}

/// What a note says, if its process has ended. A note that was not written to its end says nothing: no
/// directory was made.
fn left(note: &Path) -> Option<(MountSource, PathBuf)> {
    let file = open_left(note, OFlags::RDONLY).ok()??;
    let mut text = Vec::new();
    if file.take(MOST_BYTES + 1).read_to_end(&mut text).ok()? as u64 > MOST_BYTES {
        return None;
    }
    let mut fields = text.splitn(3, |byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse::<u64>().ok();
    let (namespace, made) = (number(), number());
    let name = note.file_stem()?.to_str()?;
    let namespace = namespace.unwrap_or(source::own_namespace());
    let source = MountSource::named(name, made.unwrap_or(0).try_into().ok()?, namespace)?;
    let path = fields.next().and_then(|field| field.strip_suffix(&[END])).unwrap_or_default();
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    (!source.is_alive()).then_some((source, path))
}

/// Removes the directories of a note. Their path had no links when it was noted. If it has any now, other
/// users have made them.
fn remove_made(path: &Path, made: usize) -> io::Result<()> {
    let mut path = path;
    // A directory that is missing was removed, or was never made.
    for left in (1..=made).rev() {
        match rustix::fs::openat2(CWD, path, made::FLAGS, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(place) => {
                made::remove(place, left);
                return Ok(());
            }
            Err(rustix::io::Errno::NOENT) => path = path.parent().ok_or(io::ErrorKind::NotFound)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{DirBuilderExt, symlink};

    use super::*;

    /// Leaves the note of a process that has ended, as its keepers would have it.
    fn killed(place: &Path, tree: &Path, made: usize) {
        let notes = place.join("notes");
        let _ = fs::DirBuilder::new().mode(0o700).create(&notes);
        let note = Note::write(Some(&notes), tree, made).path.unwrap();
        fs::rename(&note, notes.join(format!("{}-1.{EXTENSION}", std::process::id()))).unwrap();
    }

    fn is_left(place: &Path) -> bool {
        fs::read_dir(place.join("notes")).unwrap().next().is_some()
    }

    #[test]
    fn klog_4_directories_that_were_noted_are_removed_however_many_of_them_were_made() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for made in ["", "above", "above/tree"] {
            fs::create_dir_all(place.join(made)).unwrap();
            killed(&place, &place.join("above/tree"), 2);
            remove_all_left(&place.join("notes"));
            assert!(!place.join("above").exists() && !is_left(&place), "{made}");
        }
    }

    #[test]
    fn klog_4_directories_of_a_process_that_lives_and_those_in_use_stay() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let tree = place.join("tree");
        fs::create_dir_all(tree.join("other")).unwrap();
        fs::DirBuilder::new().mode(0o700).create(place.join("notes")).unwrap();
        let note = Note::write(Some(&place.join("notes")), &tree, 1);
        remove_all_left(&place.join("notes"));
        assert!(tree.exists() && is_left(&place));
        note.remove();
        killed(&place, &tree, 1);
        remove_all_left(&place.join("notes"));
        assert!(tree.join("other").exists() && !is_left(&place));
    }

    #[test]
    fn klog_4_half_a_note_is_not_taken_for_one_of_a_shorter_path() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        fs::create_dir_all(place.join("some")).unwrap();
        killed(&place, &place.join("some/tree"), 2);
        let note = fs::read_dir(place.join("notes")).unwrap().next().unwrap().unwrap().path();
        let whole = fs::read(&note).unwrap();
        fs::write(&note, &whole[..whole.len() - "/tree\0".len()]).unwrap();
        remove_all_left(&place.join("notes"));
        assert!(place.join("some").exists() && !is_left(&place));
    }

    #[test]
    fn klog_4_nothing_is_removed_through_a_link_that_has_come_meanwhile() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        fs::create_dir_all(place.join("elsewhere/tree")).unwrap();
        symlink("elsewhere", place.join("above")).unwrap();
        killed(&place, &place.join("above/tree"), 1);
        remove_all_left(&place.join("notes"));
        assert!(place.join("elsewhere/tree").exists());
    }
}
