//! Trees in the mount table: which there are, and taking them away.
//!
//! What a mount is called and where it is can be chosen by every user: an ordinary one mounts a tree with the name of
//! root's, and puts a link in the place of a directory above it. So neither is believed. A tree is one of ours if the
//! kernel says that this user has mounted it ([`Found::user`]), and it is known by its number in the mount table. It is
//! taken away through a descriptor of its own root ([`Root`]), which leads to this mount and to no other.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::mount::UnmountFlags;

use crate::{directory, notes};

/// What a tree's entry in the mount table begins with.
const SOURCE: &str = "mete:";
/// Mounts that may lie on a tree's root, one on the other.
const MAX_COVERS: usize = 16;

/// A tree that is mounted by this user or by root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where, when the table was read.
    pub path: PathBuf,
    /// The number of the process whose values it has.
    pub pid: u32,
    /// The user who mounted it, as the kernel has it: the only one whom it lets in.
    pub user: u32,
    /// Its number in the mount table.
    mount: u64,
    source: Source,
}

/// By which a process's tree goes in the mount table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pid: u32,
    /// When the process began: with its number, its identity.
    start: u64,
    /// How many directories were made for it, from its own upwards.
    pub made: usize,
    /// The namespace of processes in which it has that number.
    pub namespace: u64,
}

impl Source {
    /// This process's.
    pub(crate) fn own(made: usize) -> Source {
        let pid = std::process::id();
        Source { pid, start: start_of(pid).unwrap_or(0), made, namespace: own_namespace() }
    }

    pub(crate) fn text(self) -> String {
        format!("{SOURCE}{}:{}:{}:{}", self.pid, self.start, self.made, self.namespace)
    }

    pub(crate) fn parse(text: &str) -> Option<Source> {
        let mut fields = text.strip_prefix(SOURCE)?.split(':');
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (pid, start, made, namespace) = (number()?, number()?, number()?, number()?);
        let source = Source { pid: pid.try_into().ok()?, start, made: made.try_into().ok()?, namespace };
        fields.next().is_none().then_some(source)
    }

    /// By which a process goes in the names of files.
    pub(crate) fn name(self) -> String {
        format!("{}-{}", self.pid, self.start)
    }

    /// The process of such a name.
    pub(crate) fn named(name: &str, made: usize, namespace: u64) -> Option<Source> {
        let (pid, start) = name.split_once('-')?;
        Some(Source { pid: pid.parse().ok()?, start: start.parse().ok()?, made, namespace })
    }

    /// Whether its process may live. One that has ended is not there, whether or not its parent has taken note of that.
    /// Of other namespaces, as a container's or that of the machine around it, nothing is known here.
    pub(crate) fn is_alive(self) -> bool {
        self.namespace != own_namespace() || start_of(self.pid) == Some(self.start)
    }
}

/// The number of this process's namespace of processes; 0 if that cannot be found out.
pub(crate) fn own_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

/// When a process began, in ticks since boot; `None` if it has ended.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last parenthesis may have all kinds of bytes.
    let behind = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(text.get(behind + 2..)?).ok()?.split(' ');
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

/// The trees that this user or root has mounted, as far as this process's mount namespace shows them. Only the user who
/// mounted one gets in.
///
/// # Errors
///
/// Whatever the system answers if it shows no mount table.
pub fn found() -> io::Result<Vec<Found>> {
    let own = rustix::process::getuid().as_raw();
    Ok(all()?.into_iter().filter(|found| [0, own].contains(&found.user)).collect())
}

/// Whatever looks like one, of all users.
fn all() -> io::Result<Vec<Found>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(entry).collect())
}

/// Those that this user has mounted.
fn own() -> impl Iterator<Item = Found> {
    let own = rustix::process::getuid().as_raw();
    all().unwrap_or_default().into_iter().filter(move |found| found.user == own)
}

/// `36 35 0:41 / /run/x rw,nosuid - fuse mete:1234:5678:1:9 rw,user_id=0,group_id=0`, where optional fields stand before
/// the dash.
fn entry(line: &[u8]) -> Option<Found> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mount = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let path = fields.nth(3)?;
    let mut behind = fields.skip_while(|field| *field != b"-").skip(1);
    let (kind, source, options) = (behind.next()?, behind.next()?, behind.next()?);
    let source = Source::parse(std::str::from_utf8(source).ok()?)?;
    let path = PathBuf::from(OsString::from_vec(unescaped(path)));
    (kind == b"fuse").then_some(Found { path, pid: source.pid, user: user(options)?, mount, source })
}

/// Who has mounted it. The kernel sets that, and lets nobody but root name another user; the option stands there once.
fn user(options: &[u8]) -> Option<u32> {
    let mut users = options.split(|byte| *byte == b',').filter_map(|option| option.strip_prefix(b"user_id="));
    let user = std::str::from_utf8(users.next()?).ok()?.parse().ok()?;
    users.next().is_none().then_some(user)
}

/// White space and backslashes stand in the table as a backslash and three octal digits.
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

impl Found {
    /// A descriptor of the tree's root, whatever is at its path by now.
    ///
    /// # Errors
    ///
    /// The system's answer; that it is not found, if something else is at its path.
    pub fn open(&self) -> io::Result<Root> {
        let root = Root::at(&self.path)?;
        if root.mount()? == self.mount { Ok(root) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Whether the process whose values it has lives.
    pub fn is_alive(&self) -> bool {
        self.source.is_alive()
    }

    /// Takes it away, with the directories that were made for it.
    fn take_away(&self) -> io::Result<()> {
        let root = self.open()?;
        // The directory that it is in, from below: not what is now at that path.
        let above = rustix::fs::openat(&root, "..", directory::FLAGS, Mode::empty())?;
        root.take_away(self.source);
        let Some(name) = self.path.file_name() else { return Ok(()) };
        let covered = rustix::fs::openat(&above, name, directory::FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
        directory::remove(covered, self.source.made);
        Ok(())
    }
}

/// A descriptor of the root of a mounted tree. As long as it is there, the mount's number belongs to no other one.
#[derive(Debug)]
pub struct Root(OwnedFd);

impl Root {
    pub(crate) fn new(root: OwnedFd) -> Root {
        Root(root)
    }

    /// What is mounted at a path, or the directory there.
    pub(crate) fn at(path: &Path) -> io::Result<Root> {
        Ok(Root(rustix::fs::open(path, directory::FLAGS | OFlags::NOFOLLOW, Mode::empty())?))
    }

    pub(crate) fn try_clone(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// By which programs of this process find it, wherever it is.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    /// The number of its mount. It is asked of the descriptor; the file system, whose process may have ended, has no
    /// say.
    pub(crate) fn mount(&self) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd()))?;
        let number = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
        number.and_then(|number| number.trim().parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Unmounts it, if it is mounted. A process that has a file of it open keeps that file, and no process finds the
    /// tree any more. What has been mounted on its root goes with it, as what has been mounted below does.
    pub(crate) fn take_away(&self, source: Source) {
        for _ in 0..MAX_COVERS {
            let Some(found) = self.found() else { return };
            if found.source != source {
                return;
            }
            // The link leads to the root of this mount, so it is to be followed.
            if rustix::mount::unmount(self.path(), UnmountFlags::DETACH).is_err() {
                unmount_by_helper(&found);
                return;
            }
        }
    }

    /// Whether it is the root of the tree that this user has mounted in this name.
    pub(crate) fn is_of(&self, source: Source) -> bool {
        self.found().is_some_and(|found| found.source == source)
    }

    /// Its entry among this user's.
    fn found(&self) -> Option<Found> {
        let mount = self.mount().ok()?;
        own().find(|found| found.mount == mount)
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A user who may not unmount has not mounted: fusermount3 did, and unmounts what this user has mounted, and nothing
/// else. That it is not there is said by the mount that stays.
fn unmount_by_helper(found: &Found) {
    let mut helper = Command::new("fusermount3");
    helper.args(["-u", "-z", "-q", "--"]).arg(&found.path);
    let _ = helper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Takes the trees of a process of this user away, wherever they are.
pub(crate) fn take_away(source: Source) {
    for found in own().filter(|found| found.source == source) {
        if let Ok(root) = found.open() {
            root.take_away(source);
        }
    }
}

/// Takes away what recorders of this user have left that were killed together with their keepers, or before they had
/// any: trees, and directories of which there are notes in one of these directories. Answers where trees were.
pub fn recover(notes: &[PathBuf]) -> Vec<PathBuf> {
    let left = own().filter(|found| !found.is_alive());
    let trees = left.filter(|found| found.take_away().is_ok()).map(|found| found.path).collect();
    notes.iter().for_each(|notes| notes::remove_all_left(notes));
    trees
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
    fn klog_4_a_process_is_known_by_its_number_and_its_beginning() {
        let own = Source::own(2);
        assert_eq!(Source::parse(&own.text()), Some(own));
        assert!(own.is_alive() && !Source { start: own.start + 1, ..own }.is_alive());
    }

    #[test]
    fn klog_4_what_runs_in_another_namespace_of_processes_is_not_taken_for_ended() {
        let own = Source::own(2);
        let other = Source { namespace: own.namespace + 1, start: own.start + 1, ..own };
        assert!(own.namespace != 0 && other.is_alive());
    }
}
