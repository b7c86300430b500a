//! Where components can be found: each has one socket, `PID.sock`, in a directory that only its owner can
//! write.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use std::{fs, io, thread};

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::descriptor::above_standard;

/// Mode bits that let another user add sockets.
const FOREIGN_WRITE: u32 = 0o022;
/// The most sockets of one directory that are looked at: its owner can put any number of files there.
pub const MOST_SOCKETS: usize = 4096;

/// The directory of this user: `$METE_RUNTIME_DIR`, or `/run/mete` for root, or `$XDG_RUNTIME_DIR/mete`, or
/// `/tmp/mete-UID`. It is chosen at the first call and never changes afterwards.
///
/// It is absolute, also where the environment has a relative path: keepers that put things back there run in
/// `/`.
pub fn own() -> PathBuf {
    static OWN: OnceLock<PathBuf> = OnceLock::new();
    OWN.get_or_init(|| {
        let own = own_by_environment();
        std::path::absolute(&own).unwrap_or(own)
    })
    .clone()
}

fn own_by_environment() -> PathBuf {
    if let Some(given) = variable("METE_RUNTIME_DIR") {
        return given.into();
    }
    match (user(), variable("XDG_RUNTIME_DIR")) {
        (0, _) => "/run/mete".into(),
        (_, Some(run_time)) => Path::new(&run_time).join("mete"),
        (user, None) => without_run_time_directory(user),
    }
}

/// All directories that [`own`] can be for other processes of this user: it depends on the environment.
pub fn all_own() -> Vec<PathBuf> {
    let mut found = vec![own()];
    if variable("METE_RUNTIME_DIR").is_none() && user() != 0 {
        found.extend(places_of(user()).into_iter().filter_map(owned));
    }
    found.sort();
    found.dedup();
    found
}

/// The directory of a user without a run-time directory. Only this library clears up there.
fn without_run_time_directory(user: u32) -> PathBuf {
    format!("/tmp/mete-{user}").into()
}

/// The users whose components are looked for, in addition to this process's own user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Users {
    /// All users whose components this user may look at: for root, all users.
    All,
    /// These users.
    These(BTreeSet<u32>),
}

/// The directories that this user may look into: the own one, and for root those of all users.
pub fn all() -> Vec<PathBuf> {
    of(&Users::All)
}

/// The own directory, and those of the given users if this user may look into them.
pub fn of(users: &Users) -> Vec<PathBuf> {
    let mut found = vec![own()];
    if may_look_at_others() {
        match users {
            Users::All => {
                found.extend(
                    entries("/run/user")
                        .filter_map(|path| Some((number(&path, "")?, path.join("mete"))))
                        .filter_map(owned),
                );
                found.extend(
                    entries("/tmp")
                        .filter_map(|path| Some((number(&path, "mete-")?, path)))
                        .filter_map(owned),
                );
            }
            Users::These(users) => found.extend(users.iter().copied().flat_map(places_of).filter_map(owned)),
        }
    }
    found.dedup();
    found
}

/// Whether this process may look into directories of other users.
pub fn may_look_at_others() -> bool {
    user() == 0 && variable("METE_RUNTIME_DIR").is_none()
}

/// The directories in which programs of a user publish themselves.
fn places_of(user: u32) -> [(u32, PathBuf); 2] {
    let places = [format!("/run/user/{user}/mete").into(), without_run_time_directory(user)];
    places.map(|path| (user, path))
}

/// The path, if it is a directory that belongs to the user for whom it is named. So a user has two
/// directories at most, whatever else they make.
fn owned((user, path): (u32, PathBuf)) -> Option<PathBuf> {
    let found = fs::symlink_metadata(&path).ok()?;
    (found.is_dir() && found.uid() == user).then_some(path)
}

/// The user for whom a path is named.
fn number(path: &Path, prefix: &str) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix(prefix)?.parse().ok()
}

/// Makes the own directory if it does not exist, and makes sure that it belongs to no other user.
///
/// # Errors
///
/// If the directory cannot be made, is a link, belongs to another user, or can be written by one.
pub fn prepare(path: &Path) -> io::Result<()> {
    // All users may look into root's directory; the sockets in it have mode 0600.
    let mode = if user() == 0 { 0o755 } else { 0o700 };
    match fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    check(path, user())
}

/// A shared lock on a directory. As long as it is held, [`remove_unused`] leaves the directory in its place.
/// `None` if the lock is not free now. This does not wait, because the directory can belong to another user
/// who holds an exclusive lock for ever.
pub(crate) fn hold(path: &Path) -> Option<OwnedFd> {
    lock(path, FlockOperation::NonBlockingLockShared).ok()
}

/// [`prepare`], and the lock that keeps the directory. A directory whose lock is not free after some tries is
/// used without it.
pub(crate) fn prepare_and_hold(path: &Path) -> io::Result<Option<OwnedFd>> {
    const TRIES: u32 = 50;
    for _ in 0..TRIES {
        prepare(path)?;
        if let Some(held) = hold(path) {
            return Ok(Some(held));
        }
        // Another process is removing it, which takes a moment.
        thread::sleep(Duration::from_millis(1));
    }
    prepare(path).map(|()| None)
}

/// Removes the own directory in `/tmp` if it is empty and no process is about to use it. Other places are
/// cleared up by the system or the user that made them.
pub fn remove_unused() {
    let path = own();
    // A process that takes the lock from here on finds that the directory with the lock is gone.
    if path == without_run_time_directory(user())
        && let Ok(_held) = lock(&path, FlockOperation::NonBlockingLockExclusive)
    {
        // The kernel refuses this unless the directory is empty.
        let _ = fs::remove_dir(path);
    }
}

/// Locks the directory that has this path at the moment when it is locked.
fn lock(path: &Path, operation: FlockOperation) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = above_standard(rustix::fs::open(path, flags, Mode::empty())?)?;
    rustix::fs::flock(&folder, operation)?;
    // The directory may have been removed, and made anew, between opening and locking.
    let (locked, there) = (rustix::fs::fstat(&folder)?, rustix::fs::lstat(path)?);
    let is_it = (locked.st_dev, locked.st_ino) == (there.st_dev, there.st_ino);
    is_it.then_some(folder).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Makes sure that a directory is one and belongs to `owner` alone.
fn check(path: &Path, owner: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    let is_safe = found.is_dir() && found.uid() == owner && found.mode() & FOREIGN_WRITE == 0;
    if is_safe {
        return Ok(());
    }
    let text = format!("{} must be a directory that belongs to user {owner} alone", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// The sockets in a directory, [`MOST_SOCKETS`] at most. A directory in which another user could have planted
/// files is not looked into.
pub fn sockets(directory: &Path) -> Vec<PathBuf> {
    if owner(directory).is_none() {
        return Vec::new();
    }
    entries(directory)
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .take(MOST_SOCKETS)
        .collect()
}

/// The user whose sockets are in a directory, if this user may look into it.
pub(crate) fn owner(directory: &Path) -> Option<u32> {
    let owner = fs::symlink_metadata(directory).ok()?.uid();
    let may_look = owner == user() || user() == 0;
    (may_look && check(directory, owner).is_ok()).then_some(owner)
}

/// The user whose rights this process has.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// An environment variable, unless the program has more rights than the user who started it. Only for use at
/// the beginning of a program: later, other threads can be changing the environment.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    // SAFETY: this looks up a number in the auxiliary vector.
    let is_raised = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    std::env::var_os(name).filter(|value| !is_raised && !value.is_empty())
}

fn entries(path: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn can_be_removed(path: &Path) -> bool {
        lock(path, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    #[test]
    fn a_directory_that_is_watched_or_about_to_be_used_is_not_removed() {
        let path = std::env::temp_dir().join(format!("mete-probe-directory-{}", std::process::id()));
        let held = prepare_and_hold(&path).unwrap();
        assert!(held.is_some() && !can_be_removed(&path));
        drop(held);
        assert!(can_be_removed(&path));
        let finder = crate::finder::Finder::in_directories(vec![path.clone()]).unwrap();
        assert!(!can_be_removed(&path));
        drop(finder);
        assert!(can_be_removed(&path));
        fs::remove_dir(&path).unwrap();
        assert!(hold(&path).is_none());
    }
}
