//! Finding components: those that are there, and those that come.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, Mode, OFlags, inotify};

use crate::attach::{AttachError, Component};
use crate::directory;

/// When a component that was busy or silent is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Looks for components in all directories that this user may look into.
#[derive(Debug)]
pub struct Finder {
    directories: Vec<PathBuf>,
    changes: OwnedFd,
    tried: HashMap<PathBuf, Tried>,
    /// Their locks: a directory that is watched stays, so that whoever comes is seen in it.
    _held: Vec<OwnedFd>,
}

/// What is known of a socket.
#[derive(Clone, Copy, Debug)]
struct Tried {
    inode: u64,
    retry: Option<Instant>,
}

impl Finder {
    /// Looks where this user's programs publish themselves; for root, everybody's.
    ///
    /// # Errors
    ///
    /// If the own directory cannot be made or watched.
    pub fn new() -> io::Result<Finder> {
        let held = directory::prepare_and_hold(&directory::own())?;
        let finder = Finder::in_directories(directory::all());
        drop(held);
        finder
    }

    /// Looks in the directories given.
    ///
    /// # Errors
    ///
    /// If one cannot be watched.
    pub fn in_directories(directories: Vec<PathBuf>) -> io::Result<Finder> {
        let changes = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        for directory in &directories {
            let arrivals = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
            inotify::add_watch(&changes, directory, arrivals)?;
        }
        let held = directories.iter().filter_map(|path| directory::hold(path)).collect();
        Ok(Finder { directories, changes, tried: HashMap::new(), _held: held })
    }

    /// Takes every component that is not taken yet, or says why not. Sockets of programs that have
    /// ended are removed on the way, in this user's own directories. Takes at most `limit` and a little for each component.
    pub fn take_new(&mut self, limit: Duration) -> Vec<Result<Component, AttachError>> {
        self.drain_changes();
        let found: Vec<PathBuf> = self.directories.iter().flat_map(|path| directory::sockets(path)).collect();
        self.tried.retain(|path, _| found.contains(path));
        found.into_iter().filter_map(|path| self.take(path, limit)).collect()
    }

    /// Waits until a component may have come, `timeout` at most. [`Finder::take_new`] tells.
    pub fn wait(&self, timeout: Duration) -> bool {
        let timeout = rustix::time::Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        let mut poll = [PollFd::new(&self.changes, PollFlags::IN)];
        rustix::event::poll(&mut poll, Some(&timeout)).is_ok_and(|ready| ready > 0)
    }

    fn take(&mut self, path: PathBuf, limit: Duration) -> Option<Result<Component, AttachError>> {
        let inode = fs::symlink_metadata(&path).ok()?.ino();
        if is_own(&path) || self.tried.get(&path).is_some_and(|tried| tried.holds(inode)) {
            return None;
        }
        let taken = Component::connect(&path, limit);
        if let Err(AttachError::Gone { .. }) = taken {
            // If it cannot be removed it is found stale again: no harm.
            let _ = remove_stale(&path, inode);
            return None;
        }
        let retry = matches!(taken, Err(AttachError::Busy { .. } | AttachError::Silent { .. }));
        self.tried.insert(path, Tried { inode, retry: retry.then(|| Instant::now() + RETRY) });
        Some(taken)
    }

    fn drain_changes(&self) {
        let mut space = [core::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.changes, &mut space);
        while reader.next().is_ok() {}
    }
}

impl Tried {
    fn holds(&self, inode: u64) -> bool {
        self.inode == inode && self.retry.is_none_or(|retry| retry > Instant::now())
    }
}

impl AsFd for Finder {
    /// Readable when a component may have come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }
}

/// Whether it is this process' own socket: a scheduler with probes does not read itself.
fn is_own(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem.split('-').next() == Some(std::process::id().to_string().as_str())
}

/// Removes a socket that nobody listens at, unless another has taken its name meanwhile. Never in
/// a directory of somebody else's, who could put another one in its place at any moment: root would
/// delete whatever that one leads to.
fn remove_stale(path: &Path, inode: u64) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    let is_own = rustix::fs::fstat(&folder)?.st_uid == directory::user();
    if is_own && rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_ino == inode {
        rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::DirBuilderExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A directory for a test with a socket that nobody listens at, removed when dropped.
    struct Left(PathBuf);

    impl Left {
        fn new(name: &str) -> Left {
            let path = std::env::temp_dir().join(format!("mete-finder-{}-{name}", std::process::id()));
            fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
            let left = Left(path);
            drop(UnixListener::bind(left.socket()).unwrap());
            left
        }

        fn socket(&self) -> PathBuf {
            self.0.join("1.sock")
        }

        fn inode(&self) -> u64 {
            fs::symlink_metadata(self.socket()).unwrap().ino()
        }
    }

    impl Drop for Left {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn log_11_a_socket_that_is_left_is_removed_unless_its_name_is_taken_again() {
        let left = Left::new("own");
        remove_stale(&left.socket(), left.inode() + 1).unwrap();
        assert!(left.socket().exists());
        remove_stale(&left.socket(), left.inode()).unwrap();
        assert!(!left.socket().exists());
    }

    #[test]
    fn log_11_nothing_is_removed_through_a_link_in_the_place_of_a_directory() {
        let left = Left::new("behind-link");
        let link = left.0.join("link");
        std::os::unix::fs::symlink(&left.0, &link).unwrap();
        remove_stale(&link.join("1.sock"), left.inode()).unwrap_err();
        assert!(left.socket().exists());
    }

    #[test]
    fn log_11_root_removes_nothing_in_the_directories_of_others() {
        const SOMEBODY_ELSE: u32 = 65534;
        if directory::user() != 0 {
            println!("SKIPPED: log_11_root_removes_nothing_in_the_directories_of_others: not root");
            return;
        }
        let left = Left::new("others");
        std::os::unix::fs::chown(&left.0, Some(SOMEBODY_ELSE), None).unwrap();
        let mut finder = Finder::in_directories(vec![left.0.clone()]).unwrap();
        assert!(finder.take_new(Duration::from_secs(20)).is_empty());
        assert!(left.socket().exists());
    }
}
