//! A mounted tree.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use fuser::{Config, Session, SessionACL};
use mete_keeper::Keepers;

use crate::attach::{self, DEVICE};
use crate::directory::Directory;
use crate::error::MountError;
use crate::file::{File, Store};
use crate::keeper;
use crate::mounts::{self, Root};
use crate::serve::Server;
use crate::source::MountSource;
use crate::tree::Tree;

/// Whether FUSE is available here.
pub fn is_possible() -> bool {
    Path::new(DEVICE).exists()
}

/// A tree while it is mounted. When this is dropped, the tree is unmounted, and its directory is removed if
/// it was made for the tree.
///
/// A program has at most one tree at a time, because the mount table identifies it by the number of the
/// process.
#[derive(Debug)]
pub struct Mounted {
    directory: Directory,
    source: MountSource,
    /// `None` while fusermount3 has not mounted the tree yet.
    root: Option<Root>,
    keepers: Keepers,
}

impl Mounted {
    /// Mounts a tree of these files on a directory. The directory must be empty; if it does not exist, it is
    /// made. `keeper` returns the command that starts this program, like
    /// [`keeper::this_program`](crate::keeper::this_program).
    ///
    /// `notes` is a directory that belongs to this user alone, for a note of the directories that are made.
    /// By the note, [`recover`](crate::recover) removes them if this program and its keepers are killed
    /// before they do.
    ///
    /// # Errors
    ///
    /// [`MountError`]. Nothing is mounted then, and no directory is left behind.
    pub fn new(
        notes: Option<&Path>,
        at: &Path,
        files: Vec<File>,
        store: impl Store,
        keeper: impl Fn() -> Command + Send + 'static,
    ) -> Result<Mounted, MountError> {
        if !is_possible() {
            return Err(MountError::NoFuse);
        }
        let server = Server::new(Tree::new(&files)?, store);
        let directory = Directory::prepare(at, notes)?;
        let source = MountSource::own(directory.made);
        let unplaced = attach::unplaced(source)
            .map_err(|source| MountError::Mount { path: directory.path.clone(), source })
            .inspect_err(|_| directory.remove())?;
        let (device, root) = unplaced.map_or((None, None), |it| (Some(it.device), Some(it.root)));
        // Before the mount has a place: from then on, it must never outlive this process.
        let keepers = keeper::start(keeper, &directory, source, root.as_ref());
        let keepers = keepers.inspect_err(|_| directory.remove())?;
        // If this is dropped on a failure below, it takes away whatever exists by then.
        let mut mounted = Mounted { directory, source, root, keepers };
        match device {
            Some(device) => mounted.put(device, server),
            None => mounted.have_put(server),
        }
        .map_err(|source| MountError::Mount { path: mounted.directory.path.clone(), source })?;
        Ok(mounted)
    }

    /// Serves the mount and puts it into its place, in this order: a process that finds it there must get an
    /// answer.
    fn put(&self, device: OwnedFd, server: Server<impl Store>) -> io::Result<()> {
        serve(device, server)?;
        self.root.as_ref().map_or(Ok(()), |root| attach::put(root, self.directory.place.as_fd()))
    }

    /// Has fusermount3 mount the tree, and serves it.
    fn have_put(&mut self, server: Server<impl Store>) -> io::Result<()> {
        let device = attach::by_helper(&self.directory.path, self.source)?;
        serve(device, server)?;
        let root = Root::at(&self.directory.path)?;
        // Another user may have mounted something on it in between.
        if !root.is_of(self.source) {
            return Err(io::Error::other("another mount is in its place"));
        }
        self.root = Some(root);
        Ok(())
    }

    /// The path of the tree's directory.
    pub fn path(&self) -> &PathBuf {
        &self.directory.path
    }
}

/// Serves a mount in a thread of its own. The thread ends when the kernel has let go of the last file that a
/// process has open, or with this process.
fn serve(device: OwnedFd, server: Server<impl Store>) -> io::Result<()> {
    let session = Session::from_fd(server, device, SessionACL::Owner, Config::default())?;
    let thread = thread::Builder::new().name("mete-parameters".into());
    // The session ends when the tree is unmounted, which is no failure.
    thread.spawn(move || drop(session.run()))?;
    Ok(())
}

impl Drop for Mounted {
    fn drop(&mut self) {
        match &self.root {
            Some(root) => root.take_away(self.source),
            None => mounts::take_away(self.source),
        }
        self.directory.remove();
        self.keepers.dismiss();
    }
}
