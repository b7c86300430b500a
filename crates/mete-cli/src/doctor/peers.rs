//! Other tools, which the bench measures in the same run if they are installed.

use std::path::{Path, PathBuf};

use mete_kernel::{Capability, Need};

pub fn capabilities() -> Vec<Capability> {
    vec![
        Capability {
            name: "perf",
            finding: program("perf"),
            needed_for: Need::For("perf bench sched pipe, and perf record as a peer"),
            remedy: "apt-get install linux-perf, or linux-tools-generic on Ubuntu",
        },
        Capability {
            name: "LTTng-UST",
            finding: header("lttng/tracepoint.h").and_then(|_| program("lttng")),
            needed_for: Need::For("the user-level tracer as a peer"),
            remedy: "apt-get install liblttng-ust-dev lttng-tools",
        },
        Capability {
            name: "tracefs",
            finding: exists(&["/sys/kernel/tracing/trace", "/sys/kernel/debug/tracing/trace"]),
            needed_for: Need::For("ftrace as a peer"),
            remedy: "as root: mount -t tracefs none /sys/kernel/tracing",
        },
    ]
}

/// Where a program is installed.
pub fn program(name: &str) -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file());
    found.map(|path| path.display().to_string()).ok_or_else(|| format!("{name} is not in PATH"))
}

/// Looks for a header, which may be in a directory for all architectures or in one for this architecture.
fn header(name: &str) -> Result<String, String> {
    let architecture = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let directories =
        [PathBuf::from("/usr/include"), PathBuf::from(architecture), "/usr/local/include".into()];
    let found = directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file());
    found.map(|path| path.display().to_string()).ok_or_else(|| format!("the header {name} is not installed"))
}

fn exists(paths: &[&str]) -> Result<String, String> {
    let found = paths.iter().find(|path| Path::new(path).exists());
    found.map(|path| (*path).to_owned()).ok_or_else(|| format!("there is no {}", paths[0]))
}
