//! Trees in the mount table: who is there, and taking them away.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::mount::UnmountFlags;

/// What a tree's entry in the mount table begins with; the process's number follows.
const SOURCE: &str = "mete:";

/// A tree that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where.
    pub path: PathBuf,
    /// The number of the process whose values it has.
    pub pid: u32,
}

/// The trees that are mounted, as far as this process's mount namespace shows them.
///
/// # Errors
///
/// Whatever the system answers if it shows no mount table.
pub fn found() -> io::Result<Vec<Found>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(entry).collect())
}

/// The name by which the tree of a process goes in the mount table.
pub(crate) fn source(pid: u32) -> String {
    format!("{SOURCE}{pid}")
}

/// `36 35 0:41 / /run/x rw,nosuid - fuse mete:1234 rw`, where optional fields stand before the dash.
fn entry(line: &[u8]) -> Option<Found> {
    let mut fields = line.split(|byte| *byte == b' ');
    let path = fields.nth(4)?;
    let mut behind = fields.skip_while(|field| *field != b"-").skip(1);
    let (kind, source) = (behind.next()?, behind.next()?);
    let pid = std::str::from_utf8(source).ok()?.strip_prefix(SOURCE)?.parse().ok()?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(unescaped(path)));
    kind.starts_with(b"fuse").then_some(Found { path, pid })
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

/// Takes the tree of a process away, wherever it is mounted and whoever has a file of it open.
pub(crate) fn take_away(pid: u32) {
    for Found { path, .. } in found().unwrap_or_default().into_iter().filter(|found| found.pid == pid) {
        unmount(&path);
    }
}

/// Whoever has a file of it open keeps that file, and nobody finds the tree any more.
fn unmount(path: &Path) {
    if rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_ok() {
        return;
    }
    // Who may not unmount has not mounted: fusermount3 did, and unmounts. That there is none is said by the mount that stays.
    let mut helper = Command::new("fusermount3");
    helper.args(["-u", "-z", "-q", "--"]).arg(path);
    let _ = helper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_4_trees_are_found_in_the_mount_table_and_nothing_else_is() {
        let at = |line: &str| entry(line.as_bytes());
        let found = |path: &str, pid| Some(Found { path: path.into(), pid });
        assert_eq!(at("36 35 0:41 / /run/x rw - fuse mete:1234 rw,user_id=0"), found("/run/x", 1234));
        assert_eq!(at("36 35 0:41 / /a\\040b\\134 rw shared:1 - fuse mete:1 rw"), found("/a b\\", 1));
        for other in
            ["", "36 35", "36 35 0:41 / /x rw - ext4 mete:1 rw", "36 35 0:41 / /x rw - fuse sshfs rw"]
        {
            assert_eq!(at(other), None, "{other:?}");
        }
        assert_eq!(unescaped(b"a\\9z\\"), b"a\\9z\\");
    }
}
