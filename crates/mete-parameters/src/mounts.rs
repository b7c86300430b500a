//! Trees in the mount table: how to find them, and how to take them away.
//!
//! Every user can choose the name and the place of a mount. For example, an ordinary user can mount a tree
//! with the name of root's tree, and put a link in the place of a directory above it. So neither the name nor
//! the place is believed. A tree is ours if the kernel says that this user has mounted it
//! ([`FoundTree::user`]). It is identified by its number in the mount table. It is taken away through a
//! descriptor of its own root ([`Root`]), which leads to this mount and to no other.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::mount::UnmountFlags;

use crate::made;
use crate::source::MountSource;

/// The largest number of mounts that may lie on a tree's root, one on the other.
const MAX_COVERS: usize = 16;

/// A tree that is mounted by this user or by root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundTree {
    /// Where the tree was when the mount table was read.
    pub path: PathBuf,
    /// The number of the process whose values it has.
    pub pid: u32,
    /// The user who mounted the tree, as the kernel has it. The kernel lets no other user in.
    pub user: u32,
    /// The tree's number in the mount table.
    mount: u64,
    source: MountSource,
}

/// The trees that this user or root has mounted, as far as this process's mount namespace shows them. Only
/// the user who mounted a tree may look into it.
///
/// # Errors
///
/// The error of the system, if it shows no mount table.
pub fn found() -> io::Result<Vec<FoundTree>> {
    let own = rustix::process::getuid().as_raw();
    Ok(all()?.into_iter().filter(|found| [0, own].contains(&found.user)).collect())
}

/// Every entry that looks like a tree, of all users.
fn all() -> io::Result<Vec<FoundTree>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(entry).collect())
}

/// The trees that this user has mounted.
pub(crate) fn own() -> impl Iterator<Item = FoundTree> {
    let own = rustix::process::getuid().as_raw();
    all().unwrap_or_default().into_iter().filter(move |found| found.user == own)
}

/// Reads one line of the mount table, such as `36 35 0:41 / /run/x rw,nosuid - fuse mete:1234:5678:1:9
/// rw,user_id=0,group_id=0`. Optional fields stand before the dash.
fn entry(line: &[u8]) -> Option<FoundTree> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mount = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let path = fields.nth(3)?;
    let mut behind = fields.skip_while(|field| *field != b"-").skip(1);
    let (kind, source, options) = (behind.next()?, behind.next()?, behind.next()?);
    let source = MountSource::parse(std::str::from_utf8(source).ok()?)?;
    let path = PathBuf::from(OsString::from_vec(unescaped(path)));
    (kind == b"fuse").then_some(FoundTree { path, pid: source.pid, user: user(options)?, mount, source })
}

/// The user who mounted an entry. The kernel sets this option, and lets only root name another user. It
/// stands there once.
fn user(options: &[u8]) -> Option<u32> {
    let mut users = options.split(|byte| *byte == b',').filter_map(|option| option.strip_prefix(b"user_id="));
    let user = std::str::from_utf8(users.next()?).ok()?.parse().ok()?;
    // With two of them, it is not certain which one the kernel set.
    users.next().is_none().then_some(user)
}

/// The text of a field. White space and backslashes stand in the table as a backslash and three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        let octal = (first == b'\\').then(|| behind.get(..3)).flatten();
        let code = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        plain.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    plain
}

impl FoundTree {
    /// A descriptor of the tree's root, even if something else is at its path by now.
    ///
    /// # Errors
    ///
    /// The error of the system; `NotFound` if something else is at the tree's path.
    pub fn open(&self) -> io::Result<Root> {
        let root = Root::at(&self.path)?;
        if root.mount()? == self.mount { Ok(root) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Whether the process whose values the tree has is alive.
    pub fn is_alive(&self) -> bool {
        self.source.is_alive()
    }

    /// Takes the tree away, with the directories that were made for it.
    pub(crate) fn take_away(&self) -> io::Result<()> {
        let root = self.open()?;
        // The directory that the tree is in, found from below: another directory may be at that path now.
        let above = rustix::fs::openat(&root, "..", made::FLAGS, Mode::empty())?;
        root.take_away(self.source);
        let Some(name) = self.path.file_name() else { return Ok(()) };
        // Opened after the unmounting: before, the name leads to the tree and not to the directory under it.
        let covered = rustix::fs::openat(&above, name, made::FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
        made::remove(covered, self.source.made);
        Ok(())
    }
}

/// A descriptor of the root of a mounted tree. As long as it is open, the mount's number belongs to no other
/// mount.
#[derive(Debug)]
pub struct Root(OwnedFd);

impl Root {
    pub(crate) fn new(root: OwnedFd) -> Root {
        Root(root)
    }

    /// The root of what is mounted at a path, or the directory there.
    pub(crate) fn at(path: &Path) -> io::Result<Root> {
        Ok(Root(rustix::fs::open(path, made::FLAGS | OFlags::NOFOLLOW, Mode::empty())?))
    }

    pub(crate) fn try_clone(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// A path by which programs that this process starts find the root, wherever it is.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    /// The number of its mount. The descriptor says it, and not the file system, whose process may have
    /// ended.
    pub(crate) fn mount(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd()))?;
        let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
        number.and_then(|number| number.trim().parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Unmounts the tree, if it is mounted. A process that has a file of it open keeps that file, but no
    /// process finds the tree any more. What has been mounted on its root, or below, is unmounted with it.
    pub(crate) fn take_away(&self, source: MountSource) {
        for _ in 0..MAX_COVERS {
            let Some(found) = self.found() else { return };
            if found.source != source {
                return;
            }
            // The link leads to the root of this mount, so the call must follow it.
            if rustix::mount::unmount(self.path(), UnmountFlags::DETACH).is_err() {
                unmount_by_helper(&found);
                return;
            }
        }
    }

    /// Whether it is the root of the tree that this user has mounted with this name.
    pub(crate) fn is_of(&self, source: MountSource) -> bool {
        self.found().is_some_and(|found| found.source == source)
    }

    /// Its entry among the trees of this user.
    fn found(&self) -> Option<FoundTree> {
        let mount = self.mount().ok()?;
        own().find(|found| found.mount == mount)
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Has fusermount3 unmount a tree. A user who may not unmount did not mount the tree: fusermount3 did. It
/// unmounts what this user has mounted, and nothing else. If fusermount3 is missing, that is not reported
/// here, but the mount stays.
fn unmount_by_helper(found: &FoundTree) {
    let mut helper = Command::new("fusermount3");
    helper.args(["-u", "-z", "-q", "--"]).arg(&found.path);
    let _ = helper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Takes away the trees of a process of this user, wherever they are.
pub(crate) fn take_away(source: MountSource) {
    for found in own().filter(|found| found.source == source) {
        if let Ok(root) = found.open() {
            root.take_away(source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_4_trees_are_found_in_the_mount_table_and_nothing_else_is() {
        let at =
            |line: &str| entry(line.as_bytes()).map(|found| (found.path, found.pid, found.user, found.mount));
        let found = |path: &str, pid, user, mount| Some((path.into(), pid, user, mount));
        assert_eq!(
            at("36 35 0:41 / /run/x rw - fuse mete:1234:7:1:9 rw,user_id=0,group_id=0"),
            found("/run/x", 1234, 0, 36)
        );
        assert_eq!(
            at("37 35 0:41 / /a\\040b\\134 rw shared:1 - fuse mete:1:8:0:9 rw,user_id=1000"),
            found("/a b\\", 1, 1000, 37)
        );
        for other in [
            "",
            "36 35",
            "36 35 0:41 / /x rw - ext4 mete:1:1:1:1 rw,user_id=0",
            "36 35 0:41 / /x rw - fuseblk mete:1:1:1:1 rw,user_id=0",
            "36 35 0:41 / /x rw - fuse sshfs rw,user_id=0",
            "36 35 0:41 / /x rw - fuse mete:1 rw,user_id=0",
            "36 35 0:41 / /x rw - fuse mete:1:1:1 rw,user_id=0",
            "36 35 0:41 / /x rw - fuse mete:1:1:1:1:1 rw,user_id=0",
            "36 35 0:41 / /x rw - fuse mete:1:1:1:1 rw",
            "36 35 0:41 / /x rw - fuse mete:1:1:1:1 rw,user_id=0,user_id=1000",
        ] {
            assert_eq!(at(other), None, "{other:?}");
        }
        assert_eq!(unescaped(b"a\\9z\\"), b"a\\9z\\");
    }

    #[test]
    fn klog_4_what_runs_in_another_namespace_of_processes_is_not_taken_for_ended() {
        let own = MountSource::own(2);
        let other = MountSource { namespace: own.namespace + 1, start: own.start + 1, ..own };
        assert!(own.namespace != 0 && other.is_alive());
    }
}
