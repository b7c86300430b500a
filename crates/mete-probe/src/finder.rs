//! Finding components: those that are there, and those that come.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify;

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
        directory::prepare(&directory::own())?;
        Finder::in_directories(directory::all())
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
        Ok(Finder { directories, changes, tried: HashMap::new() })
    }

    /// Takes every component that is not taken yet, or says why not. Sockets of programs that have
    /// ended are removed on the way. Takes at most `limit` and a little for each component.
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
            remove_stale(&path, inode);
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

/// Removes a socket that nobody listens at, unless another has taken its name meanwhile.
fn remove_stale(path: &Path, inode: u64) {
    if fs::symlink_metadata(path).is_ok_and(|now| now.ino() == inode) {
        // If it cannot be removed it is found stale again: no harm.
        let _ = fs::remove_file(path);
    }
}
