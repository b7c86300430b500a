//! Where components can be found: one socket each, `PID.sock`, in a directory that only its owner
//! can write.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, io};

/// Mode bits that let somebody else add sockets.
const FOREIGN_WRITE: u32 = 0o022;

/// The directory of this user: `$METE_RUNTIME_DIR`, or `/run/mete` for root, or
/// `$XDG_RUNTIME_DIR/mete`, or `/tmp/mete-UID`. What it is at the first call, it stays.
pub fn own() -> PathBuf {
    static OWN: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        if let Some(given) = variable("METE_RUNTIME_DIR") {
            return given.into();
        }
        match (user(), variable("XDG_RUNTIME_DIR")) {
            (0, _) => "/run/mete".into(),
            (_, Some(run_time)) => Path::new(&run_time).join("mete"),
            (user, None) => format!("/tmp/mete-{user}").into(),
        }
    };
    OWN.get_or_init(find).clone()
}

/// The directories that this user may look into: the own one, and for root everybody's.
pub fn all() -> Vec<PathBuf> {
    let mut found = vec![own()];
    if user() == 0 && variable("METE_RUNTIME_DIR").is_none() {
        found.extend(entries("/run/user").map(|user| user.join("mete")));
        found.extend(entries("/tmp").filter(|path| is_named_for_a_user(path)));
        found.retain(|path| path.is_dir());
    }
    found
}

/// Makes the own directory if need be, and makes sure that it is nobody else's.
///
/// # Errors
///
/// If it cannot be made, or is a link, or belongs to or can be written by somebody else.
pub fn prepare(path: &Path) -> io::Result<()> {
    // Root's may be looked into by everybody; the sockets in it are 0600.
    let mode = if user() == 0 { 0o755 } else { 0o700 };
    match fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    check(path, user())
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

/// The sockets in a directory. One that somebody else could have planted things in is not looked
/// into.
pub fn sockets(directory: &Path) -> Vec<PathBuf> {
    let owner = fs::symlink_metadata(directory).map_or(0, |found| found.uid());
    if check(directory, owner).is_err() || (owner != user() && user() != 0) {
        return Vec::new();
    }
    entries(directory).filter(|path| path.extension().is_some_and(|extension| extension == "sock")).collect()
}

/// The user whose rights this process has.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// An environment variable, unless the program has more rights than who started it. Only for the
/// beginning of a program: later on, its other threads may be changing the environment.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    // SAFETY: a look-up in the auxiliary vector.
    let is_raised = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    std::env::var_os(name).filter(|value| !is_raised && !value.is_empty())
}

fn entries(path: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

fn is_named_for_a_user(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let user = name.and_then(|name| name.strip_prefix("mete-"));
    user.is_some_and(|user| user.parse::<u32>().is_ok())
}
