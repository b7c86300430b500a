//! Mounting: by the kernel's own calls if this user may, else by fusermount3.
//!
//! If this user may mount, the mount exists before it has a place. It is made without a place, so that its
//! descriptor can be given to the keepers, and is put into its place last. If this process is killed before
//! that, the mount ends with its descriptors.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, move_mount,
};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::mounts::Root;
use crate::source::MountSource;

pub(crate) const DEVICE: &str = "/dev/fuse";
/// The mode of the root: a directory that only its owner may look into.
const ROOT_MODE: &str = "40700";

/// A mount that has no place yet, with the device by which it is served.
pub(crate) struct UnplacedMount {
    pub device: OwnedFd,
    pub root: Root,
}

/// Makes a mount without a place; `None` if this user may not mount.
pub(crate) fn unplaced(source: MountSource) -> io::Result<Option<UnplacedMount>> {
    let context = match fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC) {
        Ok(context) => context,
        // A kernel without these calls, or a filter that hides them: fusermount3 may know another way.
        Err(Errno::PERM | Errno::NOSYS) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let device = rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let options = [
        ("source", source.text()),
        ("fd", device.as_raw_fd().to_string()),
        ("rootmode", ROOT_MODE.to_owned()),
        // Without `allow_other`, the kernel lets no other user in, not even root.
        ("user_id", user.as_raw().to_string()),
        ("group_id", group.as_raw().to_string()),
    ];
    for (name, value) in options {
        fsconfig_set_string(&context, name, value)?;
    }
    match fsconfig_create(&context) {
        Ok(()) => {}
        Err(Errno::PERM) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let root = Root::new(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?);
    Ok(Some(UnplacedMount { device, root }))
}

/// Puts a mount into its place.
pub(crate) fn put(root: &Root, place: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(root, "", place, "", flags)?)
}

/// Has fusermount3 mount. Returns the device by which the mount is served.
pub(crate) fn by_helper(path: &Path, source: MountSource) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut helper = Command::new("fusermount3");
    helper.arg("-o").arg(format!("fsname={},nosuid,nodev,noexec", source.text())).arg("--").arg(path);
    helper.env("_FUSE_COMMFD", theirs.as_raw_fd().to_string());
    helper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let number = theirs.as_raw_fd();
    // SAFETY: the closure makes one system call, on the parent's own file, which is open in the child's copy,
    // too.
    unsafe {
        helper
            .pre_exec(move || Ok(rustix::io::fcntl_setfd(BorrowedFd::borrow_raw(number), FdFlags::empty())?))
    };
    let helper = helper.spawn()?;
    // Now the helper alone has the other side, so its end ends the wait below.
    drop(theirs);
    let device = receive(&ours);
    let ended = helper.wait_with_output()?;
    device?.ok_or_else(|| io::Error::other(String::from_utf8_lossy(&ended.stderr).trim().to_owned()))
}

/// The descriptor that comes with a message; `None` if the other side has ended without one.
fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut byte)];
    rustix::io::retry_on_intr(|| recvmsg(socket.as_fd(), &mut into, &mut control, RecvFlags::CMSG_CLOEXEC))?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok(files.flatten().next())
}
