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
use crate::mounts::{self, Root, Source};
use crate::serve::Server;
use crate::tree::Tree;

/// Whether this machine has FUSE at all.
pub fn is_possible() -> bool {
    Path::new(DEVICE).exists()
}

/// A tree while it is mounted. Dropped, it is unmounted, and its directory is removed if it was made for it.
///
/// A program has one tree at a time: it goes by the process's number in the mount table.
#[derive(Debug)]
pub struct Mounted {
    directory: Directory,
    source: Source,
    /// `None` where fusermount3 mounts, until it has.
    root: Option<Root>,
    keepers: Keepers,
}

impl Mounted {
    /// Mounts a tree of these files on a directory, which is made, or must be empty. `keeper` is how this program is
    /// started, as [`keeper::this_program`](crate::keeper::this_program) says.
    ///
    /// # Errors
    ///
    /// [`MountError`]; nothing is mounted then, and no directory is left.
    pub fn new(
        at: &Path,
        files: Vec<File>,
        store: impl Store,
        keeper: impl Fn() -> Command + Send + 'static,
    ) -> Result<Mounted, MountError> {
        Mounted::with_notes(None, at, files, store, keeper)
    }

    /// The same with a note of the directories that are made, in a directory of this user's alone: with it,
    /// [`recover`](crate::recover) removes them if this program and its keepers are killed before they do.
    ///
    /// # Errors
    ///
    /// As [`Mounted::new`].
    pub fn with_notes(
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
        let source = Source::own(directory.made);
        let failed = |source| MountError::Mount { path: directory.path.clone(), source };
        let placeless = attach::placeless(source).map_err(failed).inspect_err(|_| directory.remove())?;
        let (device, root) = placeless.map_or((None, None), |it| (Some(it.device), Some(it.root)));
        let keepers = keeper::start(keeper, &directory, source, root.as_ref());
        let keepers = keepers.inspect_err(|_| directory.remove())?;
        // Dropped on failure, it takes away whatever there is by then.
        let mut mounted = Mounted { directory, source, root, keepers };
        match device {
            Some(device) => mounted.put(device, server),
            None => mounted.have_put(server),
        }
        .map_err(|source| MountError::Mount { path: mounted.directory.path.clone(), source })?;
        Ok(mounted)
    }

    /// It is served before it is in its place.
    fn put(&self, device: OwnedFd, server: Server<impl Store>) -> io::Result<()> {
        serve(device, server)?;
        self.root.as_ref().map_or(Ok(()), |root| attach::put(root, self.directory.place.as_fd()))
    }

    fn have_put(&mut self, server: Server<impl Store>) -> io::Result<()> {
        let device = attach::by_helper(&self.directory.path, self.source)?;
        serve(device, server)?;
        let root = Root::at(&self.directory.path)?;
        if !root.is_of(self.source) {
            return Err(io::Error::other("another mount is in its place"));
        }
        self.root = Some(root);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &PathBuf {
        &self.directory.path
    }
}

/// The session's thread ends when the kernel has let go of the last file that a process has open, or with this process.
fn serve(device: OwnedFd, server: Server<impl Store>) -> io::Result<()> {
    let session = Session::from_fd(server, device, SessionACL::Owner, Config::default())?;
    let thread = thread::Builder::new().name("mete-parameters".into());
    // Its own end is unmounting, which is no failure.
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
