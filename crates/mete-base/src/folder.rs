//! Folders that are held by descriptor. A path is walked once, part by part. The folder that was found is
//! held, and all further work is done in it. So it does not matter what other users put in the place of a
//! part in the meantime.
//!
//! ```text
//!   path ──▶ part ──▶ part ──▶ … ──▶ PathPlace { folder, name, entry }
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

/// The most links on the way. The kernel has the same limit.
const MOST_LINKS: u32 = 40;
/// Holds a file without opening it and without following a link.
const FIND: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Which parts of a path a walk may pass through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathTrust {
    /// For outputs. A link is followed only where the kernel follows it with `fs.protected_symlinks`: in a
    /// folder such as `/tmp`, where every user may write, the link must belong to this user or to the
    /// folder's owner. In every folder, a link at the last name must belong to this user or to root.
    Links,
    /// For files whose content is trusted. Each part must belong to this user or to root, and no other user
    /// may be able to exchange it.
    Own,
}

/// A folder that was found once, and is held since.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// A file of any kind that has a name in a folder. It is held but not opened, so that a device does not
/// notice.
#[derive(Debug)]
pub struct FolderEntry {
    descriptor: OwnedFd,
    stat: Stat,
    /// Whether it was found through a link of the `/proc` file system, as `/dev/stdout` is one. Then it may
    /// have no other name.
    is_through_proc: bool,
}

/// Where a path leads.
#[derive(Debug)]
pub struct PathPlace {
    /// The folder of the last name.
    pub folder: Folder,
    /// The last name.
    pub name: OsString,
    /// The file that has this name, if there is one.
    pub entry: Option<FolderEntry>,
}

/// A folder that was created on the way: the folder that contains it, and its name there.
#[derive(Debug)]
pub struct CreatedFolder(Folder, OsString);

impl CreatedFolder {
    /// Removes the folder, if it is empty.
    pub fn remove(&self) {
        // If it is not empty, another process uses it by now, and it stays.
        let _ = fs::unlinkat(&self.0, &self.1, fs::AtFlags::REMOVEDIR);
    }
}

impl PathPlace {
    /// Walks a path. The file with the last name may be missing; the folder may not.
    ///
    /// # Errors
    ///
    /// The file system's error, or the reason why a part is not trusted.
    pub fn find(path: &Path, trust: PathTrust) -> io::Result<PathPlace> {
        let mut walk = Walk::begin(path, trust)?;
        let Some((name, entry)) = walk.last()? else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is not the name of a file"));
        };
        Ok(PathPlace { folder: Folder(walk.at), name, entry })
    }
}

impl FolderEntry {
    /// Finds the file that a path leads to. The kernel walks the path and follows all links.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn at(path: &Path) -> io::Result<FolderEntry> {
        let descriptor = fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        FolderEntry::new(descriptor, false)
    }

    fn new(descriptor: OwnedFd, is_through_proc: bool) -> io::Result<FolderEntry> {
        let stat = fs::fstat(&descriptor)?;
        Ok(FolderEntry { descriptor, stat, is_through_proc })
    }

    /// The metadata that the file system has of it.
    pub fn stat(&self) -> &Stat {
        &self.stat
    }

    /// The kind of file.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// The permissions of the owner, the group and others.
    pub fn mode(&self) -> Mode {
        Mode::from_raw_mode(self.stat.st_mode & 0o777)
    }

    /// Whether it belongs to this user.
    pub fn is_own(&self) -> bool {
        self.stat.st_uid == geteuid().as_raw()
    }

    /// Whether a link of the `/proc` file system led to it.
    pub fn is_through_proc(&self) -> bool {
        self.is_through_proc
    }

    /// Opens exactly this file, even if another file has its name by now.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn open(&self, flags: OFlags) -> io::Result<File> {
        // A descriptor that only holds a file can be opened for reading or writing by this path alone.
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
    /// The file system's error, or the reason why a part is not trusted.
    pub fn find(path: &Path, trust: PathTrust) -> io::Result<Folder> {
        let mut walk = Walk::begin(path, trust)?;
        walk.all()?;
        Ok(Folder(walk.at))
    }

    /// Finds a folder, and creates those parts of its path that are missing. Returns the folders that were
    /// created, the deepest one first.
    ///
    /// # Errors
    ///
    /// As [`Folder::find`]. The folders that were created are removed again.
    pub fn make(path: &Path, trust: PathTrust, mode: Mode) -> io::Result<(Folder, Vec<CreatedFolder>)> {
        let mut walk = Walk::begin(path, trust)?;
        walk.missing = Some(mode);
        let found = walk.all();
        // The deepest one first, so that each folder is empty when it is removed.
        walk.made.reverse();
        found.inspect_err(|_| walk.made.iter().for_each(CreatedFolder::remove))?;
        Ok((Folder(walk.at), walk.made))
    }

    /// The file with this name in the folder; `None` if there is none. A link is not followed.
    ///
    /// # Errors
    ///
    /// The file system's error, unless it is that the file does not exist.
    pub fn entry(&self, name: impl AsRef<OsStr>) -> io::Result<Option<FolderEntry>> {
        match fs::openat(self, name.as_ref(), FIND, Mode::empty()) {
            Ok(descriptor) => FolderEntry::new(descriptor, false).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a file in the folder, for writing and reading. The name must be free.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn create(&self, name: impl AsRef<OsStr>, mode: Mode) -> io::Result<File> {
        // `EXCL` refuses a link at the name, too.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(fs::openat(self, name.as_ref(), flags, mode)?))
    }

    /// Creates a folder in the folder. The name must be free.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn create_folder(&self, name: impl AsRef<OsStr>, mode: Mode) -> io::Result<Folder> {
        let name = name.as_ref();
        fs::mkdirat(self, name, mode)?;
        // Where no more files may be open, the folder is there but cannot be held.
        let made = self.folder(name).inspect_err(|_| drop(self.remove_folder(name)))?;
        // Between the two calls, another user may exchange the new folder, where the folder around it allows
        // that.
        if fs::fstat(&made)?.st_uid == geteuid().as_raw() {
            return Ok(made);
        }
        Err(io::Error::other("another user has replaced the folder that was just created"))
    }

    /// The folder with this name in the folder. A link is not followed.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Folder> {
        Ok(Folder(fs::openat(self, name.as_ref(), FIND | OFlags::DIRECTORY, Mode::empty())?))
    }

    /// Renames a file in the folder. It replaces a file that has the new name already.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(fs::renameat(self, from.as_ref(), self, to.as_ref())?)
    }

    /// Removes a file from the folder.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(fs::unlinkat(self, name.as_ref(), fs::AtFlags::empty())?)
    }

    /// Removes an empty folder from the folder.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn remove_folder(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(fs::unlinkat(self, name.as_ref(), fs::AtFlags::REMOVEDIR)?)
    }

    /// The names of all files in the folder.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let entries =
            fs::Dir::new(self.open()?)?.map(|entry| entry.map(|entry| entry.file_name().to_owned()));
        let names = entries.collect::<Result<Vec<_>, _>>()?.into_iter();
        let names = names.map(|name| OsString::from_vec(name.into_bytes()));
        Ok(names.filter(|name| name != "." && name != "..").collect())
    }

    /// Opens the folder itself. The descriptor that holds it is not enough for reading it, locking it, or
    /// writing it to the disk.
    ///
    /// # Errors
    ///
    /// The file system's error.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(fs::openat(self, ".", flags, Mode::empty())?)
    }

    /// A path that leads to this folder and to no other one, as long as this value is held. It is valid in
    /// this process and in a child that it has just forked.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

impl From<Folder> for OwnedFd {
    fn from(folder: Folder) -> OwnedFd {
        folder.0
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether other users may create files in a folder, but each may remove only its own, as in `/tmp`.
pub fn is_shared(folder: &Stat) -> bool {
    let mode = Mode::from_raw_mode(folder.st_mode);
    mode.contains(Mode::SVTX) && mode.intersects(Mode::WOTH | Mode::WGRP)
}

/// A walk along a path.
struct Walk {
    /// The folder that has been reached.
    at: OwnedFd,
    stat: Stat,
    /// Its path, for messages.
    shown: PathBuf,
    /// The parts that are left; `/`, `..` and `.` stand for themselves.
    left: VecDeque<OsString>,
    links: u32,
    trust: PathTrust,
    /// The permissions of folders that are created where the path has none; `None` if none are created.
    missing: Option<Mode>,
    made: Vec<CreatedFolder>,
}

impl Walk {
    fn begin(path: &Path, trust: PathTrust) -> io::Result<Walk> {
        // A trusted path must be trusted from the root on.
        let absolute = if trust == PathTrust::Own { std::path::absolute(path)? } else { path.to_owned() };
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

    /// Walks to the folder that the whole path names.
    fn all(&mut self) -> io::Result<()> {
        while let Some(part) = self.left.pop_front() {
            let is_last = self.left.is_empty();
            if let Some(entry) = self.step(&part, is_last)? {
                self.enter(entry, &part)?;
            }
        }
        Ok(())
    }

    /// Walks to the folder of the last name. Returns the name, and the file that has it; `None` if the path
    /// does not end with a name.
    fn last(&mut self) -> io::Result<Option<(OsString, Option<FolderEntry>)>> {
        while let Some(part) = self.left.pop_front() {
            // Asked anew for each part, because a link adds the parts of its target.
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

    /// Finds the file that a part names. `None` if it is a link: the parts of its target are next then.
    fn step(&mut self, part: &OsStr, is_last: bool) -> io::Result<Option<FolderEntry>> {
        // The target of a link may begin with `/`, for which `openat` begins at the root again.
        let flags = if part == "/" { FIND | OFlags::DIRECTORY } else { FIND };
        let entry = match fs::openat(&self.at, part, flags, Mode::empty()) {
            Err(Errno::NOENT) if self.missing.is_some() => self.fill_in(part)?,
            found => FolderEntry::new(found?, false)?,
        };
        if entry.kind() != FileType::Symlink {
            return Ok(Some(entry));
        }
        let shown = self.shown.join(part);
        self.check_link(&entry.stat, &shown, is_last)?;
        // Links may form a circle.
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        if fs::fstatfs(&self.at)?.f_type == PROC_SUPER_MAGIC {
            // The kernel follows these: some of them lead to files that no path leads to.
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            return FolderEntry::new(fs::openat(&self.at, part, flags, Mode::empty())?, true).map(Some);
        }
        let target = fs::readlinkat(&entry.descriptor, "", Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        parts(&target).rev().for_each(|part| self.left.push_front(part));
        Ok(None)
    }

    /// Creates a missing folder.
    fn fill_in(&mut self, part: &OsStr) -> io::Result<FolderEntry> {
        let folder = Folder(self.at.try_clone()?);
        let made = match folder.create_folder(part, self.missing.unwrap_or(Mode::RWXU)) {
            // Another process has created it a moment ago.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return FolderEntry::new(fs::openat(&self.at, part, FIND, Mode::empty())?, false);
            }
            made => made?,
        };
        self.made.push(CreatedFolder(folder, part.to_owned()));
        FolderEntry::new(made.0, false)
    }

    /// Continues in this folder.
    fn enter(&mut self, entry: FolderEntry, part: &OsStr) -> io::Result<()> {
        let shown = self.shown.join(part);
        if entry.kind() != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        self.check_folder(&entry.stat, &shown)?;
        (self.at, self.stat, self.shown) = (entry.descriptor, entry.stat, shown);
        Ok(())
    }

    /// Checks that only this user and root may exchange the files in a folder. In a folder such as `/tmp`,
    /// another user may exchange only files of its own, which the check of the next part finds.
    fn check_folder(&self, stat: &Stat, shown: &Path) -> io::Result<()> {
        if self.trust == PathTrust::Links {
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

    /// Checks that the link may be followed.
    fn check_link(&self, link: &Stat, shown: &Path, is_last: bool) -> io::Result<()> {
        let is_followed = match self.trust {
            PathTrust::Own => is_trusted(link.st_uid),
            PathTrust::Links if is_last => is_trusted(link.st_uid),
            // The rule of `fs.protected_symlinks`.
            PathTrust::Links => {
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

/// The parts of a path, each in a form that can be opened.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().map(|part| match part {
        Component::RootDir => OsString::from("/"),
        part => part.as_os_str().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;

    #[test]
    fn a_path_leads_where_the_kernel_says_it_does() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
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
            let place = PathPlace::find(&at(path), PathTrust::Links).unwrap();
            assert!(place.entry.is_none(), "{path}");
            place.folder.create(&place.name, Mode::RUSR).unwrap();
            assert!(at(expected).is_file(), "{path}");
            assert!(PathPlace::find(&at(path), PathTrust::Links).unwrap().entry.is_some(), "{path}");
            fs::remove_file(at(expected)).unwrap();
        }
        let error = |path: &str| PathPlace::find(&at(path), PathTrust::Links).unwrap_err().raw_os_error();
        let [nothing, no_folder, round] =
            [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(|error| Some(error.raw_os_error()));
        fs::write(at("file"), "").unwrap();
        assert_eq!((error("none/new"), error("file/new"), error("round")), (nothing, no_folder, round));
        assert!(PathPlace::find(Path::new("/"), PathTrust::Links).is_err());
    }

    #[test]
    fn a_folder_that_was_found_stays_the_same_when_another_one_takes_its_place() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        fs::create_dir_all(at("mine")).unwrap();
        fs::create_dir_all(at("other")).unwrap();
        let place = PathPlace::find(&at("mine/new"), PathTrust::Links).unwrap();
        fs::rename(at("mine"), at("moved")).unwrap();
        symlink("other", at("mine")).unwrap();
        place.folder.create("x", Mode::RUSR).unwrap();
        place.folder.rename("x", &place.name).unwrap();
        assert!(at("moved/new").is_file() && fs::read_dir(at("other")).unwrap().next().is_none());
    }

    #[test]
    fn folders_are_created_for_their_owner_and_removed_again() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a/b/c");
        let (_, made) = Folder::make(&path, PathTrust::Own, Mode::RWXU).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(made.len(), 3);
        made.iter().for_each(CreatedFolder::remove);
        assert!(fs::read_dir(scratch.path()).unwrap().next().is_none());
        assert!(Folder::make(&path, PathTrust::Own, Mode::RWXU).unwrap().1.len() == 3);
        assert!(Folder::make(&path, PathTrust::Own, Mode::RWXU).unwrap().1.is_empty());
    }

    #[test]
    fn links_of_another_user_are_followed_where_the_kernel_would_and_at_the_last_name_nowhere() {
        const OTHER: u32 = 65_534;
        if !geteuid().is_root() {
            println!("SKIPPED: links_of_another_user_are_followed_where_the_kernel_would: not root");
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let shared = scratch.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::create_dir(scratch.path().join("target")).unwrap();
        symlink("../target", shared.join("link")).unwrap();
        lchown(shared.join("link"), Some(OTHER), None).unwrap();
        for (mode, owner, is_followed) in [(0o1777, 0, false), (0o1777, OTHER, true), (0o755, 0, true)] {
            chown(&shared, Some(owner), None).unwrap();
            fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
            let through = PathPlace::find(&shared.join("link/new"), PathTrust::Links);
            assert_eq!(through.is_ok(), is_followed, "{mode:o} of {owner}: {through:?}");
            let at = PathPlace::find(&shared.join("link"), PathTrust::Links).unwrap_err();
            assert!(at.to_string().contains("is a link of another user"), "{at}");
            for trust in [PathTrust::Own, PathTrust::Links] {
                assert!(Folder::find(&shared.join("link"), trust).is_err());
                assert!(Folder::make(&shared.join("link"), trust, Mode::RWXU).is_err());
            }
        }
    }

    #[test]
    fn a_folder_that_others_may_exchange_is_not_trusted() {
        let scratch = tempfile::tempdir().unwrap();
        let open = scratch.path().join("open");
        fs::create_dir_all(open.join("mine")).unwrap();
        for (mode, is_believed) in [(0o777, false), (0o775, false), (0o1777, true), (0o755, true)] {
            fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
            let found = Folder::find(&open.join("mine"), PathTrust::Own);
            assert_eq!(found.is_ok(), is_believed, "{mode:o}: {found:?}");
        }
    }
}
