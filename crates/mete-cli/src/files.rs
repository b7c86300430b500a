//! Files of results, whole or not at all: each is written under another name in its folder and takes its own
//! when all that belong together are complete. Whatever ends the program before leaves what was there.
//!
//! ```text
//!   begin ──▶ .NAME.PID-TIME.unfinished ──▶ write ──▶ rename to NAME
//!                 └── dropped: removed;  killed: removed by the next one to begin NAME
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{fs, process};

use anyhow::{Context, bail};
use mete_log::clock::monotonic_ns;
use rustix::fs::{FlockOperation, flock, fstat};

/// How the other names end.
const UNFINISHED: &str = ".unfinished";

/// A file that is not complete yet. Dropped, it is gone, and what had its name before is as it was.
#[derive(Debug)]
pub struct Draft {
    /// Locked, which tells other runs that somebody is at work.
    file: File,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Something that has no other name beside it: a terminal, a pipe, a device.
    Itself,
    Beside {
        unfinished: PathBuf,
        path: PathBuf,
    },
}

impl Draft {
    /// Begins a file. Done before the work, it shows whether the place can be written at all.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn begin(path: &Path) -> io::Result<Draft> {
        // Through a link, it is the file behind it that is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
            let file = OpenOptions::new().write(true).open(path)?;
            return Ok(Draft { file, place: Place::Itself });
        }
        let (folder, name) = parts(&path)?;
        remove_left_over(folder, name);
        let unfinished = folder.join(unfinished(name));
        let file = create_locked(&unfinished)?;
        Ok(Draft { file, place: Place::Beside { unfinished, path } })
    }

    /// The file, for what is written piece by piece.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// All of it was written into [`Draft::file`]: gives it its name.
    ///
    /// # Errors
    ///
    /// The file system's answer; what had the name before has it still.
    pub fn close(mut self) -> io::Result<()> {
        self.fill("")?;
        self.publish()
    }

    /// Writes all of it; it does not have its name yet.
    fn fill(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())?;
        match &self.place {
            Place::Itself => self.file.flush(),
            // Some file systems say only now that they are full.
            Place::Beside { .. } => self.file.sync_all(),
        }
    }

    /// Gives it its name, and the rights of what had it before.
    fn publish(mut self) -> io::Result<()> {
        if let Place::Beside { unfinished, path } = &self.place {
            if let Ok(before) = fs::metadata(path) {
                self.file.set_permissions(before.permissions())?;
            }
            fs::rename(unfinished, path)?;
            self.place = Place::Itself;
        }
        Ok(())
    }

    /// Writes all of it under its name.
    ///
    /// # Errors
    ///
    /// The file system's answer; what had the name before has it still.
    pub fn finish(mut self, text: &str) -> io::Result<()> {
        self.fill(text)?;
        self.publish()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Place::Beside { unfinished, .. } = &self.place {
            let _ = fs::remove_file(unfinished);
        }
    }
}

/// Writes files of a folder, by name and text: all, or none if one of them cannot be written. The folder is
/// made if need be.
///
/// # Errors
///
/// The file system's answer.
pub fn write_all<'a>(
    folder: &Path,
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> anyhow::Result<()> {
    let written = fs::create_dir_all(folder).and_then(|()| drafts(folder, files));
    let published = written.and_then(|drafts| drafts.into_iter().try_for_each(Draft::publish));
    published.with_context(|| format!("cannot write into {}", folder.display()))
}

/// All of them, complete, none with its name.
fn drafts<'a>(folder: &Path, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> io::Result<Vec<Draft>> {
    let draft = |(name, text): (&str, &str)| {
        let mut draft = Draft::begin(&folder.join(name))?;
        draft.fill(text).map(|()| draft)
    };
    files.into_iter().map(draft).collect()
}

/// Makes a folder if need be and tries whether files can be made in it: before the work, not after it.
///
/// # Errors
///
/// One sentence about the folder.
pub fn check_folder(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() && !folder.is_dir() {
        bail!("cannot write into {}: it is a file, not a folder", folder.display());
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let tried = Draft::begin(&folder.join("trial"));
    tried.map(drop).with_context(|| format!("cannot write into {}", folder.display()))
}

/// The folder that something of this path is in, and its name there.
pub fn parts(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "this is no name of a file");
    let folder =
        path.parent().map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    folder.zip(path.file_name()).ok_or_else(no_name)
}

/// The name that something of this name has until it is complete.
pub fn unfinished(name: &OsStr) -> OsString {
    let who = format!("{}-{}", process::id(), monotonic_ns());
    [OsStr::new("."), name, OsStr::new("."), OsStr::new(&who), OsStr::new(UNFINISHED)].into_iter().collect()
}

/// A new file, locked. Whoever clears up may lock and remove it in between; then it is made anew.
fn create_locked(path: &Path) -> io::Result<File> {
    loop {
        let file = File::create_new(path)?;
        // Where nothing can be locked, nothing is taken for left over either.
        let _ = flock(&file, FlockOperation::LockExclusive);
        if fstat(&file)?.st_nlink > 0 {
            return Ok(file);
        }
    }
}

/// What is there under such names: of runs that are at work, or were killed.
pub fn all_unfinished(folder: &Path, name: &OsStr) -> impl Iterator<Item = PathBuf> {
    let beginning = [b".", name.as_encoded_bytes(), b"."].concat();
    let is_one = move |found: &OsStr| {
        let rest = found.as_encoded_bytes().strip_prefix(beginning.as_slice());
        let who = rest.and_then(|rest| rest.strip_suffix(UNFINISHED.as_bytes()));
        who.is_some_and(|who| !who.is_empty() && who.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-')))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(move |entry| is_one(&entry.file_name())).map(|entry| entry.path())
}

/// Removes what runs that were killed have left of this name: what nobody has locked.
fn remove_left_over(folder: &Path, name: &OsStr) {
    for path in all_unfinished(folder, name) {
        // Only a plain file is one of ours; opening anything else might wait for ever.
        let is_plain = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        if let Some(_lock) = is_plain.then(|| lock_left_over(&path)).flatten() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Locks what nobody has locked. It is to be removed before it is let go: whoever began it a moment ago waits for that.
pub fn lock_left_over(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "before").unwrap();
        let draft = Draft::begin(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        drop(draft);
        assert_eq!(
            (names(folder.path()), fs::read_to_string(&path).unwrap()),
            (vec!["a".into()], "before".into())
        );
        Draft::begin(&path).unwrap().finish("after").unwrap();
        assert_eq!(
            (names(folder.path()), fs::read_to_string(&path).unwrap()),
            (vec!["a".into()], "after".into())
        );
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_what_a_living_one_writes_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let [left, foreign] =
            [".a.1-7.unfinished", ".a.mine.unfinished"].map(|name| folder.path().join(name));
        [&left, &foreign].into_iter().for_each(|path| fs::write(path, "torn").unwrap());
        let living = File::create(folder.path().join(".a.2-7.unfinished")).unwrap();
        flock(&living, FlockOperation::LockExclusive).unwrap();
        drop(Draft::begin(&folder.path().join("a")).unwrap());
        assert_eq!(names(folder.path()), [".a.2-7.unfinished", ".a.mine.unfinished"]);
    }

    #[test]
    fn of_files_that_belong_together_all_are_written_or_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "before").unwrap();
        // The second one cannot be begun: its folder is missing.
        assert!(write_all(folder.path(), [("a", "after"), ("none/b", "after")]).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("a")).unwrap(), "before");
        assert_eq!(names(folder.path()), ["a"]);
        write_all(folder.path(), [("a", "after"), ("b", "after")]).unwrap();
        assert_eq!(names(folder.path()), ["a", "b"]);
    }

    #[test]
    fn a_file_keeps_its_rights_and_a_link_to_it_stays_one() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["a", "link"].map(|name| folder.path().join(name));
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Draft::begin(&link).unwrap().finish("after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_folder_that_is_a_file_is_said_to_be_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(check_folder(file.path()).unwrap_err().to_string().contains("it is a file, not a folder"));
    }
}
