//! Processes that no scheduler should schedule, whatever a selector says.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::process::Process;

/// The process that all others depend on.
pub const FIRST_PROCESS: u32 = 1;

/// How processes are called that put back what was changed, or unmount what was mounted, when this one ends.
const KEEPERS: [&[u8]; 2] = [b"mete-restore", b"mete-keeper"];

/// Whether a process is this program, or clears up behind it.
#[must_use]
pub fn is_ours(process: &Process) -> bool {
    process.pid == std::process::id() || is_keeper(process)
}

/// Whether a process clears up behind this one or another one like it. Any program may call itself so; these
/// run this one.
fn is_keeper(process: &Process) -> bool {
    let program = |pid: &str| fs::metadata(format!("/proc/{pid}/exe")).map(|file| (file.dev(), file.ino()));
    let is_called_so = KEEPERS.iter().any(|keeper| process.comm.as_encoded_bytes().starts_with(keeper));
    is_called_so && program(&process.pid.to_string()).ok() == program("self").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_a_keeper_is_known_by_its_name_and_what_it_runs() {
        let own = std::process::id();
        let Some(this) = Process::read(own) else { return println!("SKIPPED: no other process can be seen") };
        let mut sleep = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        for keeper in ["mete-restore-2", "mete-keeper"] {
            let called = |pid| is_keeper(&Process { pid, comm: keeper.into(), ..this.clone() });
            assert_eq!((called(own), called(sleep.id())), (true, false));
        }
        assert!(is_ours(&this));
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }
}
