//! A mounted tree.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use fuser::{Config, MountOption, Session};

use crate::directory::Directory;
use crate::error::MountError;
use crate::file::{File, Store};
use crate::keeper::Keeper;
use crate::mounts;
use crate::serve::Server;
use crate::tree::Tree;

const DEVICE: &str = "/dev/fuse";

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
    keeper: Keeper,
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
        keeper: Command,
    ) -> Result<Mounted, MountError> {
        if !is_possible() {
            return Err(MountError::NoFuse);
        }
        let tree = Tree::new(&files)?;
        let directory = Directory::prepare(at)?;
        let keeper = Keeper::start(keeper, &directory).inspect_err(|_| directory.remove())?;
        // Dropped on failure, it takes away whatever there is by then.
        let mounted = Mounted { directory, keeper };
        mounted.serve(Server::new(tree, store))?;
        Ok(mounted)
    }

    /// The session's thread ends when the kernel has let go of the last file that somebody has open, or with the process.
    fn serve(&self, server: Server<impl Store>) -> Result<(), MountError> {
        let failed = |source| MountError::Mount { path: self.directory.path.clone(), source };
        let session = Session::new(server, &self.directory.path, &config()).map_err(failed)?;
        let thread = thread::Builder::new().name("mete-parameters".into());
        // Its own end is unmounting, which is no failure.
        thread.spawn(move || drop(session.run())).map_err(failed)?;
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &PathBuf {
        &self.directory.path
    }
}

/// Without `allow_other`, the kernel lets nobody in but who mounted it.
fn config() -> Config {
    let mut config = Config::default();
    let name = MountOption::FSName(mounts::source(std::process::id()));
    config.mount_options = vec![name, MountOption::NoSuid, MountOption::NoDev, MountOption::NoExec];
    config
}

impl Drop for Mounted {
    fn drop(&mut self) {
        mounts::take_away(std::process::id());
        self.keeper.let_go();
        self.directory.remove();
    }
}
