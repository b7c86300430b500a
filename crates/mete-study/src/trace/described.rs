//! The tracing file system, which describes the records of tracepoints, where nobody has mounted it.

use std::path::Path;
use std::thread;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::reason::Reason;

const PLACE: &str = "/sys/kernel/tracing";

/// Does this where the tracing file system is at its place. If it is not, it is mounted for a thread of its own, and
/// gone with it. If it cannot be mounted, the work finds that out in its own words.
pub fn with_tracing_file_system<T: Send>(
    work: impl FnOnce() -> Result<T, Reason> + Send,
) -> Result<T, Reason> {
    if Path::new(PLACE).join("events").exists() {
        return work();
    }
    let ended = thread::scope(|scope| {
        scope
            .spawn(|| {
                // Without rights it is not there, as before.
                let _ = mount_for_this_thread();
                work()
            })
            .join()
    });
    ended.unwrap_or_else(|_| Err(Reason::new("the thread that reads the kernel's tracepoints has failed")))
}

fn mount_for_this_thread() -> rustix::io::Result<()> {
    // SAFETY: a mount namespace is no memory; nothing that this thread has is taken from others.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("tracefs", PLACE, "tracefs", MountFlags::empty(), c"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_a_mount_for_one_piece_of_work_is_seen_by_nobody_else() -> Result<(), Reason> {
        let mounts = || std::fs::read_to_string("/proc/self/mounts");
        let before = mounts()?;
        assert_eq!(with_tracing_file_system(|| Ok(7))?, 7);
        assert_eq!(mounts()?, before);
        Ok(())
    }
}
