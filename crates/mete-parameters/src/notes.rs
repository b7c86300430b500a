//! Notes of directories that are made for a tree, so that they can be removed by the next start of a program of the
//! same user, where this one and its keepers are killed before they are.
//!
//! A note is there before the directories are, and goes after them. It lies in a directory of this user's alone, is
//! called after the process, and tells its namespace of processes, how many directories there are, and the path of the
//! deepest, up to a byte of zero:
//!
//! ```text
//!   4711-815.directories:   "4026531836 2 /run/above/tree\0"
//! ```

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use crate::directory;
use crate::mounts::{self, Source};

/// What their names end with.
const EXTENSION: &str = "directories";
/// The longest one: a path, and three numbers.
const MOST_BYTES: u64 = 8192;

/// What ends the path, so that a part of one is not taken for it: no path has such a byte.
const END: u8 = 0;

/// A note; dropped, it stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// `None` where none could be written: then such directories may stay.
    path: Option<PathBuf>,
}

impl Note {
    /// Notes that the directory at this path, and the others above it that are missing, are about to be made.
    pub(crate) fn write(notes: Option<&Path>, path: &Path, made: usize) -> Note {
        let Some(notes) = notes.filter(|_| made > 0) else { return Note::default() };
        let source = Source::own(made);
        let note = notes.join(format!("{}.{EXTENSION}", source.name()));
        let text = [format!("{} {made} ", source.namespace).as_bytes(), path.as_os_str().as_bytes(), &[END]]
            .concat();
        // Of a process that has ended, of a namespace with the same numbers; or half of one.
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

    /// For a keeper.
    pub(crate) fn word(&self) -> OsString {
        self.path.clone().unwrap_or_default().into()
    }

    /// A keeper's, as the program gave it.
    pub(crate) fn given(word: &OsStr) -> Note {
        Note { path: (!word.is_empty()).then(|| word.into()) }
    }

    /// What it tells of is removed.
    pub(crate) fn remove(&self) {
        if let Some(path) = &self.path {
            // Another one may have done that.
            let _ = fs::remove_file(path);
        }
    }
}

/// Removes the directories of which there are notes here, of processes that have ended. Notes are not believed where
/// another user could have written them.
pub(crate) fn remove_all_left(notes: &Path) {
    let own = rustix::process::geteuid().as_raw();
    let is_safe = |found: fs::Metadata| found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0;
    if !fs::symlink_metadata(notes).is_ok_and(is_safe) {
        return;
    }
    let entries = fs::read_dir(notes).into_iter().flatten().flatten().map(|entry| entry.path());
    for note in entries.filter(|path| path.extension() == Some(OsStr::new(EXTENSION))) {
        if let Some((source, path)) = left(&note) {
            // Missing, or in use by others: nothing more can be done about it.
            let _ = remove_made(&path, source.made);
            Note { path: Some(note) }.remove();
        }
    }
}

/// What a note tells, if its process has ended. One that was not written to its end tells of nothing that was made.
fn left(note: &Path) -> Option<(Source, PathBuf)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(note).ok()?;
    let found = file.metadata().ok()?;
    let is_own = found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
    if !is_own || found.len() > MOST_BYTES {
        return None;
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    let mut fields = text.splitn(3, |byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse::<u64>().ok();
    let (namespace, made) = (number(), number());
    let name = note.file_stem()?.to_str()?;
    let source = Source::named(
        name,
        made.unwrap_or(0).try_into().ok()?,
        namespace.unwrap_or(mounts::own_namespace()),
    )?;
    let path = fields.next().and_then(|field| field.strip_suffix(&[END])).unwrap_or_default();
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    (!source.is_alive()).then_some((source, path))
}

/// The path had no links when it was noted. Where it has some now, others have made them.
fn remove_made(path: &Path, made: usize) -> io::Result<()> {
    let mut path = path;
    // What is missing was removed, or not made any more.
    for left in (1..=made).rev() {
        match rustix::fs::openat2(CWD, path, directory::FLAGS, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(place) => {
                directory::remove(place, left);
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

    /// As of a process that has ended, with a note that its keepers would have.
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
