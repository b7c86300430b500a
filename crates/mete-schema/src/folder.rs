//! Folders by descriptor. A path is gone through once, part by part; what was found is held open, and everything
//! after that is done in it. So it does not matter what other users put in the place of a part meanwhile.
//!
//! ```text
//!   path ──▶ part ──▶ part ──▶ … ──▶ Place { folder, name, entry }
//!             └ each opened without following it, then looked at: owner, mode, link
//! ```

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// As many links as the kernel follows.
const MOST_LINKS: u32 = 40;
const FIND: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Which parts of a path are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// For outputs. Links only where the kernel follows them with `fs.protected_symlinks`: in a folder like `/tmp`,
    /// where everybody may write, those of this user and of the folder's owner. A link at the last name must be this
    /// user's or root's wherever it is.
    Links,
    /// For what is believed. Each part must be this user's or root's, and nobody else may exchange it.
    Own,
}

/// An open folder, found once.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// What has a name in a folder: held, but not opened, so that a device does not notice.
#[derive(Debug)]
pub struct Entry {
    descriptor: OwnedFd,
    stat: Stat,
    /// Whether it was found through a link of the `/proc` file system, as `/dev/stdout` is one: it has no other name.
    is_through_proc: bool,
}

/// Where a path leads.
#[derive(Debug)]
pub struct Place {
    /// The folder.
    pub folder: Folder,
    /// The name in it.
    pub name: OsString,
    /// What has the name already.
    pub entry: Option<Entry>,
}

/// A folder that was made on the way: the folder that it is in, and its name there.
#[derive(Debug)]
pub struct Made(Folder, OsString);

impl Made {
    /// Takes it away, if nothing has come into it.
    pub fn remove(&self) {
        let _ = fs::unlinkat(&self.0, &self.1, fs::AtFlags::REMOVEDIR);
    }
}

impl Place {
    /// Goes through a path. What has its last name may be missing; the folder may not.
    ///
    /// # Errors
    ///
    /// The file system's answer, or why a part is not gone through.
    pub fn find(path: &Path, trust: Trust) -> io::Result<Place> {
        let mut walk = Walk::begin(path, trust)?;
        let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "this is no name of a file");
        let (name, entry) = walk.last()?.ok_or_else(no_name)?;
        Ok(Place { folder: Folder(walk.at), name, entry })
    }
}

impl Entry {
    /// Finds what a path leads to, as the kernel would.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn at(path: &Path) -> io::Result<Entry> {
        let descriptor = fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Entry::new(descriptor, false)
    }

    fn new(descriptor: OwnedFd, is_through_proc: bool) -> io::Result<Entry> {
        let stat = fs::fstat(&descriptor)?;
        Ok(Entry { descriptor, stat, is_through_proc })
    }

    /// What the file system says of it.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// What kind of thing it is.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// The rights of owner, group and others.
    pub fn mode(&self) -> Mode {
        Mode::from_raw_mode(self.stat.st_mode & 0o777)
    }

    /// Whether it is this user's.
    pub fn is_own(&self) -> bool {
        self.stat.st_uid == geteuid().as_raw()
    }

    /// Whether a link of the `/proc` file system led to it.
    pub fn is_through_proc(&self) -> bool {
        self.is_through_proc
    }

    /// Opens this very thing.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        let path = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        let opened = fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
        let opened = opened.map_err(|error| match error {
            Errno::NOENT => io::Error::other("it cannot be opened, because /proc is not mounted"),
            error => error.into(),
        });
        Ok(File::from(opened?))
    }
}

impl Folder {
    /// Finds a folder.
    ///
    /// # Errors
    ///
    /// The file system's answer, or why a part is not gone through.
    pub fn find(path: &Path, trust: Trust) -> io::Result<Folder> {
        let mut walk = Walk::begin(path, trust)?;
        walk.all()?;
        Ok(Folder(walk.at))
    }

    /// Finds a folder, and makes what is missing of it; says what, the deepest first.
    ///
    /// # Errors
    ///
    /// As [`Folder::find`]; what was made is taken away then.
    pub fn make(path: &Path, trust: Trust, mode: Mode) -> io::Result<(Folder, Vec<Made>)> {
        let mut walk = Walk::begin(path, trust)?;
        walk.missing = Some(mode);
        let found = walk.all();
        walk.made.reverse();
        found.inspect_err(|_| walk.made.iter().for_each(Made::remove))?;
        Ok((Folder(walk.at), walk.made))
    }

    /// What has a name in it; a link is not followed.
    ///
    /// # Errors
    ///
    /// The file system's answer, but for a name that nothing has.
    pub fn entry(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Entry>> {
        match fs::openat(self, name.as_ref(), FIND, Mode::empty()) {
            Ok(descriptor) => Entry::new(descriptor, false).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A new file in it, to be written and read; nothing may have its name.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn create(&self, name: impl AsRef<OsStr>, mode: Mode) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(fs::openat(self, name.as_ref(), flags, mode)?))
    }

    /// A new folder in it; nothing may have its name.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn create_folder(&self, name: impl AsRef<OsStr>, mode: Mode) -> io::Result<Folder> {
        fs::mkdirat(self, name.as_ref(), mode)?;
        let made = self.folder(name)?;
        if fs::fstat(&made)?.st_uid == geteuid().as_raw() {
            return Ok(made);
        }
        Err(io::Error::other("another user has put something else in the place of what was made"))
    }

    /// The folder of this name in it; a link is not followed.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        Ok(Folder(fs::openat(self, name.as_ref(), FIND | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Gives what has one name in it another one; what had that is replaced.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(fs::renameat(self, from.as_ref(), self, to.as_ref())?)
    }

    /// Takes a file out of it.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(fs::unlinkat(self, name.as_ref(), fs::AtFlags::empty())?)
    }

    /// Takes an empty folder out of it.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn remove_folder(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(fs::unlinkat(self, name.as_ref(), fs::AtFlags::REMOVEDIR)?)
    }

    /// The names of what is in it.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let entries =
            fs::Dir::new(self.open()?)?.map(|entry| entry.map(|entry| entry.file_name().to_owned()));
        let names = entries.collect::<Result<Vec<_>, _>>()?.into_iter();
        let names = names.map(|name| OsString::from_vec(name.into_bytes()));
        Ok(names.filter(|name| name != "." && name != "..").collect())
    }

    /// The folder, open for what a mere descriptor of its place is not enough for: reading it, locking it, and having
    /// it on the disk.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(fs::openat(self, ".", flags, Mode::empty())?)
    }

    /// A path to it that leads nowhere else as long as this is held, for this process and what it has just forked.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether everybody may make something in a folder, and remove only what is theirs, as in `/tmp`.
pub fn is_shared(folder: &Stat) -> bool {
    let mode = Mode::from_raw_mode(folder.st_mode);
    mode.contains(Mode::SVTX) && mode.intersects(Mode::WOTH | Mode::WGRP)
}

/// On the way through a path.
struct Walk {
    at: OwnedFd,
    stat: Stat,
    /// Where that is, for people.
    shown: PathBuf,
    /// The parts that are left; `/`, `..` and `.` stand for themselves.
    left: VecDeque<OsString>,
    links: u32,
    trust: Trust,
    /// How what is missing is made.
    missing: Option<Mode>,
    made: Vec<Made>,
}

impl Walk {
    fn begin(path: &Path, trust: Trust) -> io::Result<Walk> {
        // What is believed is so from the top.
        let absolute = if trust == Trust::Own { std::path::absolute(path)? } else { path.to_owned() };
        let path = absolute.as_path();
        let (at, shown) = if path.is_absolute() { ("/", "/") } else { (".", "") };
        let at = fs::open(at, FIND | OFlags::DIRECTORY, Mode::empty())?;
        let stat = fs::fstat(&at)?;
        let left = parts(path).collect();
        let walk =
            Walk { at, stat, shown: shown.into(), left, links: 0, trust, missing: None, made: Vec::new() };
        walk.check_folder(&walk.stat, &walk.shown)?;
        Ok(walk)
    }

    /// To the folder that the whole path names.
    fn all(&mut self) -> io::Result<()> {
        while let Some(part) = self.left.pop_front() {
            if let Some(entry) = self.step(&part, false)? {
                self.enter(entry, &part)?;
            }
        }
        Ok(())
    }

    /// To the folder of the last name, which is held with what has it.
    fn last(&mut self) -> io::Result<Option<(OsString, Option<Entry>)>> {
        while let Some(part) = self.left.pop_front() {
            let is_last = self.left.is_empty();
            let is_name = !["/", "..", "."].iter().any(|other| part == *other);
            match self.step(&part, is_last) {
                Err(error) if is_last && is_name && error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Some((part, None)));
                }
                Ok(Some(entry)) if is_last && is_name => return Ok(Some((part, Some(entry)))),
                Ok(Some(entry)) => self.enter(entry, &part)?,
                Ok(None) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// What this part is; `None` if it is a link, which is to be gone through now.
    fn step(&mut self, part: &OsStr, is_last: bool) -> io::Result<Option<Entry>> {
        let flags = if part == "/" { FIND | OFlags::DIRECTORY } else { FIND };
        let entry = match fs::openat(&self.at, part, flags, Mode::empty()) {
            Err(Errno::NOENT) if self.missing.is_some() => self.fill_in(part)?,
            found => Entry::new(found?, false)?,
        };
        if entry.kind() != FileType::Symlink {
            return Ok(Some(entry));
        }
        let shown = self.shown.join(part);
        self.check_link(&entry.stat, &shown, is_last)?;
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        if fs::fstatfs(&self.at)?.f_type == PROC_SUPER_MAGIC {
            // Some of these say no path of what they lead to.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            return Entry::new(fs::openat(&self.at, part, flags, Mode::empty())?, true).map(Some);
        }
        let target = fs::readlinkat(&entry.descriptor, "", Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        parts(&target).rev().for_each(|part| self.left.push_front(part));
        Ok(None)
    }

    fn fill_in(&mut self, part: &OsStr) -> io::Result<Entry> {
        let folder = Folder(self.at.try_clone()?);
        let made = match folder.create_folder(part, self.missing.unwrap_or(Mode::RWXU)) {
            // By another process, a moment ago.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Entry::new(fs::openat(&self.at, part, FIND, Mode::empty())?, false);
            }
            made => made?,
        };
        self.made.push(Made(folder, part.to_owned()));
        Entry::new(made.0, false)
    }

    fn enter(&mut self, entry: Entry, part: &OsStr) -> io::Result<()> {
        let shown = self.shown.join(part);
        if entry.kind() != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        self.check_folder(&entry.stat, &shown)?;
        (self.at, self.stat, self.shown) = (entry.descriptor, entry.stat, shown);
        Ok(())
    }

    /// Nobody but this user and root may exchange what is in it. In one like `/tmp` others can do that only with what
    /// is theirs, which is seen at the next part.
    fn check_folder(&self, stat: &Stat, shown: &Path) -> io::Result<()> {
        if self.trust == Trust::Links {
            return Ok(());
        }
        let mode = Mode::from_raw_mode(stat.st_mode);
        if !is_trusted(stat.st_uid) {
            return Err(refusal(shown, "is another user's"));
        }
        if mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX) {
            return Err(refusal(shown, "can be written by others; chmod go-w it"));
        }
        Ok(())
    }

    fn check_link(&self, link: &Stat, shown: &Path, is_last: bool) -> io::Result<()> {
        let is_followed = match self.trust {
            Trust::Own => is_trusted(link.st_uid),
            Trust::Links if is_last => is_trusted(link.st_uid),
            Trust::Links => {
                !is_shared(&self.stat) || link.st_uid == geteuid().as_raw() || link.st_uid == self.stat.st_uid
            }
        };
        if is_followed {
            Ok(())
        } else {
            Err(refusal(shown, "is a link of another user, and is not followed"))
        }
    }
}

fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

fn refusal(shown: &Path, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{} {why}", shown.display()))
}

/// The parts of a path, each as it can be opened.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().map(|part| match part {
        Component::RootDir => OsString::from("/"),
        part => part.as_os_str().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
    use std::{env, fs, process};

    use super::*;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Scratch {
            let path = env::temp_dir().join(format!("mete-folder-{}-{test}", process::id()));
            fs::create_dir(&path).unwrap();
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_path_leads_where_the_kernel_says_it_does() {
        let scratch = Scratch::new("path");
        let at = |name: &str| scratch.0.join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        symlink("a", at("relative")).unwrap();
        symlink(at("a/b"), at("absolute")).unwrap();
        symlink("../relative/./b/new", at("a/to-new")).unwrap();
        symlink("round", at("round")).unwrap();
        for (path, expected) in [
            ("a/b/new", "a/b/new"),
            ("relative/b/../b/new", "a/b/new"),
            ("absolute/new", "a/b/new"),
            ("a/to-new", "a/b/new"),
            ("absolute/../new", "a/new"),
        ] {
            let place = Place::find(&at(path), Trust::Links).unwrap();
            assert!(place.entry.is_none(), "{path}");
            place.folder.create(&place.name, Mode::RUSR).unwrap();
            assert!(at(expected).is_file(), "{path}");
            assert!(Place::find(&at(path), Trust::Links).unwrap().entry.is_some(), "{path}");
            fs::remove_file(at(expected)).unwrap();
        }
        let error = |path: &str| Place::find(&at(path), Trust::Links).unwrap_err().raw_os_error();
        let [nothing, no_folder, round] =
            [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(|error| Some(error.raw_os_error()));
        fs::write(at("file"), "").unwrap();
        assert_eq!((error("none/new"), error("file/new"), error("round")), (nothing, no_folder, round));
        assert!(Place::find(Path::new("/"), Trust::Links).is_err());
    }

    #[test]
    fn what_was_found_stays_what_it_was_whatever_takes_its_place() {
        let scratch = Scratch::new("exchange");
        let at = |name: &str| scratch.0.join(name);
        fs::create_dir_all(at("mine")).unwrap();
        fs::create_dir_all(at("other")).unwrap();
        let place = Place::find(&at("mine/new"), Trust::Links).unwrap();
        fs::rename(at("mine"), at("moved")).unwrap();
        symlink("other", at("mine")).unwrap();
        place.folder.create("x", Mode::RUSR).unwrap();
        place.folder.rename("x", &place.name).unwrap();
        assert!(at("moved/new").is_file() && fs::read_dir(at("other")).unwrap().next().is_none());
    }

    #[test]
    fn folders_are_made_for_their_owner_and_taken_away_again() {
        let scratch = Scratch::new("make");
        let path = scratch.0.join("a/b/c");
        let (_, made) = Folder::make(&path, Trust::Own, Mode::RWXU).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(made.len(), 3);
        made.iter().for_each(Made::remove);
        assert!(fs::read_dir(&scratch.0).unwrap().next().is_none());
        assert!(Folder::make(&path, Trust::Own, Mode::RWXU).unwrap().1.len() == 3);
        assert!(Folder::make(&path, Trust::Own, Mode::RWXU).unwrap().1.is_empty());
    }

    #[test]
    fn links_of_another_user_are_followed_where_the_kernel_would_and_at_the_last_name_nowhere() {
        const OTHER: u32 = 65_534;
        if !geteuid().is_root() {
            println!("SKIPPED: links_of_another_user_are_followed_where_the_kernel_would: not root");
            return;
        }
        let scratch = Scratch::new("links");
        let shared = scratch.0.join("shared");
        fs::create_dir(&shared).unwrap();
        fs::create_dir(scratch.0.join("target")).unwrap();
        symlink("../target", shared.join("link")).unwrap();
        lchown(shared.join("link"), Some(OTHER), None).unwrap();
        for (mode, owner, is_followed) in [(0o1777, 0, false), (0o1777, OTHER, true), (0o755, 0, true)] {
            chown(&shared, Some(owner), None).unwrap();
            fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
            let through = Place::find(&shared.join("link/new"), Trust::Links);
            assert_eq!(through.is_ok(), is_followed, "{mode:o} of {owner}: {through:?}");
            let at = Place::find(&shared.join("link"), Trust::Links).unwrap_err();
            assert!(at.to_string().contains("is a link of another user"), "{at}");
            assert!(Folder::find(&shared.join("link"), Trust::Own).is_err());
        }
    }

    #[test]
    fn what_others_may_exchange_is_not_believed() {
        let scratch = Scratch::new("own");
        let open = scratch.0.join("open");
        fs::create_dir_all(open.join("mine")).unwrap();
        for (mode, is_believed) in [(0o777, false), (0o775, false), (0o1777, true), (0o755, true)] {
            fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
            let found = Folder::find(&open.join("mine"), Trust::Own);
            assert_eq!(found.is_ok(), is_believed, "{mode:o}: {found:?}");
        }
    }
}
