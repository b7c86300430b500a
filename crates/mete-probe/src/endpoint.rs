//! The socket at which a component waits for its scheduler.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::descriptor::{Descriptor, above_standard};
use crate::directory;
use crate::state::{self, ProcessState};

/// Two copies of this library in one process (in two shared objects, for example) are two components.
const MAX_COPIES: u32 = 8;

/// A listening socket in the directory of this user.
#[derive(Debug)]
pub(crate) struct Endpoint {
    socket: Descriptor,
}

impl Endpoint {
    /// Binds the socket and shows it. It is bound under a hidden name and renamed once it listens. So a
    /// scheduler whose connection is refused knows that the socket's process is gone.
    pub fn open() -> io::Result<Endpoint> {
        let directory = directory::own();
        let state = &mut *state::lock();
        let socket = Descriptor::new(socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?)?;
        // So that no other process removes the directory as empty before the socket is in it.
        let _held = directory::prepare_and_hold(&directory)?;
        // The address of the state tells copies of this library in one process apart.
        let hidden = directory.join(format!(".{}.{:p}", std::process::id(), state));
        let _ = fs::remove_file(&hidden);
        rustix::net::bind(socket.get()?, &SocketAddrUnix::new(&hidden)?)?;
        let shown = allow_owner_only(&hidden)
            .and_then(|()| Ok(rustix::net::listen(socket.get()?, 8)?))
            .and_then(|()| show(&hidden, &directory));
        state.socket_file = Some(shown.inspect_err(|_| drop(fs::remove_file(&hidden)))?);
        state.opened(&socket);
        Ok(Endpoint { socket })
    }

    /// Accepts a scheduler that has connected, and notes the connection in the state.
    pub fn accept(&self, state: &mut ProcessState) -> io::Result<Descriptor> {
        let socket = rustix::net::accept_with(self.socket.get()?, SocketFlags::CLOEXEC)?;
        let socket = Descriptor::new(socket)?;
        state.opened(&socket);
        Ok(socket)
    }

    /// The socket itself.
    pub fn descriptor(&self) -> &Descriptor {
        &self.socket
    }
}

/// A socket of the kind that components and schedulers use.
pub(crate) fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    Ok(above_standard(socket)?)
}

/// Removes the process's socket file, and the directory if this was the last file in it, because the process
/// exits.
pub(crate) fn remove() {
    if let Some(path) = state::lock().socket_file.take() {
        let _ = fs::remove_file(path);
    }
    directory::remove_unused();
}

fn allow_owner_only(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

/// Renames the socket to the first name at which no other copy of this library listens.
fn show(hidden: &Path, directory: &Path) -> io::Result<PathBuf> {
    let pid = std::process::id();
    let names = (0..MAX_COPIES).map(|copy| directory.join(socket_name(pid, copy)));
    let path = names.into_iter().find(|path| is_free(path)).ok_or(io::ErrorKind::AddrInUse)?;
    fs::rename(hidden, &path)?;
    Ok(path)
}

/// The first copy of the library has the plain name.
fn socket_name(pid: u32, copy: u32) -> String {
    if copy == 0 { format!("{pid}.sock") } else { format!("{pid}-{copy}.sock") }
}

/// Whether no process listens there: no file is there, or one that another process left behind.
fn is_free(path: &Path) -> bool {
    let Ok(address) = SocketAddrUnix::new(path) else { return false };
    let Ok(socket) = socket(SocketFlags::CLOEXEC) else { return false };
    rustix::net::connect(&socket, &address).is_err()
}
