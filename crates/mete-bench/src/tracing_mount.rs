//! Access to the tracing file system, which describes the records of tracepoints, where it is not mounted.

use std::path::Path;
use std::thread;

use mete_measure::reason::Reason;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

const PLACE: &str = "/sys/kernel/tracing";

/// Does `work` with the tracing file system at its usual place. If it is not mounted there, `work` runs in a
/// thread with a mount of its own, which ends with the thread. If it cannot be mounted, `work` fails with its
/// own error.
pub fn with_tracing_file_system<T: Send>(
    work: impl FnOnce() -> Result<T, Reason> + Send,
) -> Result<T, Reason> {
    if Path::new(PLACE).join("events").exists() {
        return work();
    }
    let ended = thread::scope(|scope| {
        scope
            .spawn(|| {
                // Without the right to mount, the file system stays absent, and `work` reports that.
                let _ = mount_for_this_thread();
                work()
            })
            .join()
    });
    ended.unwrap_or_else(|_| Err(Reason::new("the thread that reads the kernel's tracepoints has failed")))
}

fn mount_for_this_thread() -> rustix::io::Result<()> {
    // SAFETY: a mount namespace is not memory. The call takes nothing from other threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("tracefs", PLACE, "tracefs", MountFlags::empty(), c"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_a_mount_for_one_piece_of_work_is_not_visible_elsewhere() -> Result<(), Reason> {
        let mounts = || std::fs::read_to_string("/proc/self/mounts");
        let before = mounts()?;
        assert_eq!(with_tracing_file_system(|| Ok(7))?, 7);
        assert_eq!(mounts()?, before);
        Ok(())
    }
}
