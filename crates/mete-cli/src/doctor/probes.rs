//! What probes in programs need: restartable sequences, patching, and a directory in which programs are
//! found.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mete_kernel::{Capability, Need};
use mete_probe::directory;
use mete_sched::domains::process::Process;
use rustix::fs::Access;

pub fn capabilities() -> Vec<Capability> {
    vec![sequences(), barriers(), patching(), runtime_directory(), user_events()]
}

fn sequences() -> Capability {
    // SAFETY: a look-up by name. glibc documents that the symbol is an unsigned int, which is constant while
    // a program runs.
    let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>().as_ref() };
    Capability {
        name: "rseq",
        finding: match size {
            Some(0) => Err("the C library was told not to register it, or the kernel refused".into()),
            Some(_) => Ok("the C library registers each thread".into()),
            None => Err("the C library does not register it".into()),
        },
        needed_for: Need::For("rows without a locked instruction; without it, rows cost a locked add"),
        remedy: "glibc 2.35 or later without glibc.pthread.rseq=0, and Linux 4.18 or later",
    }
}

fn barriers() -> Capability {
    const QUERY: libc::c_int = 0;
    const SYNC_CORE: libc::c_long = 1 << 5;
    // SAFETY: the call only asks which commands exist, and passes no memory.
    let known = unsafe { libc::syscall(libc::SYS_membarrier, QUERY, 0, 0) };
    Capability {
        name: "membarrier",
        finding: if known > 0 && known & SYNC_CORE != 0 {
            Ok("serialises all threads of a program (SYNC_CORE)".into())
        } else {
            Err("the kernel cannot serialise all threads of a program".into())
        },
        needed_for: Need::For("switching probes while threads run through them"),
        remedy: "Linux 4.16 or later built with CONFIG_MEMBARRIER=y; on other machines probes test a flag",
    }
}

fn patching() -> Capability {
    Capability {
        name: "patched probes",
        finding: if cfg!(target_arch = "x86_64") {
            Ok("disabled probes are a no-op instruction".into())
        } else {
            Err("on this architecture a disabled probe tests a flag".into())
        },
        needed_for: Need::For("disabled probes that cost no measurable time"),
        remedy: "run on x86-64",
    }
}

fn runtime_directory() -> Capability {
    let path = directory::own();
    Capability {
        name: "runtime directory",
        finding: check_directory(&path).map_err(|error| format!("{}: {error}", path.display())),
        needed_for: Need::For("programs with probes and schedulers to find each other"),
        remedy: "set METE_RUNTIME_DIR to a directory of your own, with mode 0700",
    }
}

/// Checks that the directory can be written. If it does not exist yet, the directory above must be writable.
fn check_directory(path: &Path) -> rustix::io::Result<String> {
    if path.exists() {
        rustix::fs::access(path, Access::WRITE_OK)?;
        return Ok(format!("{} can be written; programs found now: {}", path.display(), programs()));
    }
    let above = path.parent().unwrap_or(Path::new("/"));
    rustix::fs::access(above, Access::WRITE_OK)?;
    Ok(format!("{} will be made when the first program starts", path.display()))
}

/// The number of programs that can be found. The socket of a program that was killed stays and is not
/// counted.
fn programs() -> usize {
    let sockets = directory::all().into_iter().flat_map(|directory| directory::sockets(&directory));
    let alive: BTreeSet<u32> = sockets.filter_map(|socket| process_of(&socket)).filter(is_alive).collect();
    alive.len()
}

/// The process id in the name of a socket: `PID.sock`, or `PID-COPY.sock`.
fn process_of(socket: &Path) -> Option<u32> {
    socket.file_stem()?.to_str()?.split('-').next()?.parse().ok()
}

fn is_alive(pid: &u32) -> bool {
    Process::read(*pid).is_some()
}

fn user_events() -> Capability {
    let path = "/sys/kernel/tracing/user_events_data";
    Capability {
        name: "user_events",
        finding: fs::metadata(path).map(|_| path.into()).map_err(|_| format!("there is no {path}")),
        needed_for: Need::NothingYet("probes that perf and ftrace can see, too"),
        remedy: "Linux 6.4 or later built with CONFIG_USER_EVENTS=y, and tracefs mounted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_programs_that_were_killed_are_not_counted() {
        let own = format!("/run/mete/{}-1.sock", std::process::id());
        let is_counted = |socket: &str| process_of(Path::new(socket)).is_some_and(|pid| is_alive(&pid));
        assert!(is_counted(&own));
        assert!(!is_counted("/run/mete/4294967295.sock") && !is_counted("/run/mete/x.sock"));
    }
}
