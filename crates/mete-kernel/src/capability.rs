//! What this machine can do for the kernel component, in words for people (design decision D11).

use std::path::Path;
use std::{fmt, fs};

use mete_base::processors;

use crate::counter::Counter;
use crate::load::load_skeleton;
use crate::privilege::{check_capabilities, check_pid_namespace};
use crate::skeleton::capability::CapabilitySkelBuilder;
use crate::skeleton::program;
use crate::{KernelError, perf};

/// One ability that the machine has or lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its name.
    pub name: &'static str,
    /// The details, or why it is missing.
    pub finding: Result<String, String>,
    /// What of Mete depends on it.
    pub needed_for: Need,
    /// What to do where it is missing.
    pub remedy: &'static str,
}

/// What of Mete depends on a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// This depends on it.
    For(&'static str),
    /// Nothing depends on it so far. This may later.
    NothingYet(&'static str),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::For(what) => f.write_str(what),
            Need::NothingYet(later) => write!(f, "nothing yet; {later}"),
        }
    }
}

impl Capability {
    /// Whether it is there.
    pub fn is_present(&self) -> bool {
        self.finding.is_ok()
    }

    /// Whether anything of Mete depends on it.
    pub fn is_needed(&self) -> bool {
        matches!(self.needed_for, Need::For(_))
    }
}

/// Finds out what the machine can do, by trying where that is harmless. Leaves nothing behind.
pub fn capabilities() -> Vec<Capability> {
    let mut all = vec![privilege(), pid_namespace(), type_information()];
    all.extend(programs());
    all.extend([software_counters(), hardware_counters(), kprobes(), sched_ext(), cgroups()]);
    all
}

fn privilege() -> Capability {
    Capability {
        name: "privilege",
        finding: check_capabilities().map(|()| "may load eBPF programs".into()).map_err(|e| e.to_string()),
        needed_for: Need::For("logging the kernel"),
        remedy: "run as root, or give the command CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN",
    }
}

fn pid_namespace() -> Capability {
    Capability {
        name: "first pid namespace",
        finding: check_pid_namespace()
            .map(|()| "processes have the kernel's own numbers".into())
            .map_err(|e| e.to_string()),
        needed_for: Need::For("logging the kernel"),
        remedy: "run outside the container, or start it with the host's pid namespace: docker run --pid=host",
    }
}

fn type_information() -> Capability {
    let path = "/sys/kernel/btf/vmlinux";
    let finding = fs::metadata(path).map(|file| format!("{path}, {} KiB", file.len() >> 10));
    Capability {
        name: "BTF",
        finding: finding.map_err(|_| KernelError::NoTypeInformation.to_string()),
        needed_for: Need::For("loading eBPF programs on a kernel that they were not built on"),
        remedy: "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' kernels are",
    }
}

/// Loads a program that does nothing, and attaches it to a typed tracepoint for a moment.
fn try_tracepoint() -> Result<(), KernelError> {
    check_capabilities()?;
    let skeleton = load_skeleton::<CapabilitySkelBuilder>(|open| {
        open.progs.try_function_entry.set_autoload(false);
        Ok(())
    })?;
    program!(skeleton, try_tracepoint).attach("nothing", "typed tracepoint").map(drop)
}

/// The same at the beginning of a function.
fn try_function() -> Result<(), KernelError> {
    check_capabilities()?;
    let skeleton = load_skeleton::<CapabilitySkelBuilder>(|open| {
        open.progs.try_tracepoint.set_autoload(false);
        Ok(())
    })?;
    program!(skeleton, try_function_entry).attach("nothing", "function entry").map(drop)
}

/// The first line of an error: the others are what the loader library says.
fn first_line(error: KernelError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn programs() -> [Capability; 2] {
    [
        Capability {
            name: "eBPF",
            finding: try_tracepoint()
                .map(|()| "programs load and attach to typed tracepoints".into())
                .map_err(|error| format!("{}{}", first_line(error), lockdown())),
            needed_for: Need::For("logging the kernel"),
            remedy: "Linux 5.17 or later, not locked down for confidentiality, outside containers that filter bpf(2)",
        },
        Capability {
            name: "fentry",
            finding: try_function()
                .map(|()| "programs attach to kernel functions".into())
                .map_err(first_line),
            needed_for: Need::For("recording by schemata with points inside functions of the kernel"),
            remedy: "use a kernel built with CONFIG_FUNCTION_TRACER=y; if this kernel has it, its builder has restricted it",
        },
    ]
}

/// Whether this kernel runs programs where its functions begin; `None` if this process may not find out.
pub(crate) fn takes_functions() -> Option<bool> {
    check_capabilities().ok().map(|()| try_function().is_ok())
}

/// The kernel's lockdown mode, if it may explain a refusal.
fn lockdown() -> String {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if text.contains("[confidentiality]") {
        " (the kernel is locked down: confidentiality)".into()
    } else {
        String::new()
    }
}

fn try_counter(name: &str) -> Result<String, String> {
    let counter: Counter = name.parse().map_err(|error: KernelError| error.to_string())?;
    // Processor 0 may be offline.
    perf::open_counter(&counter, processors::first_online())
        .map(|_| format!("{name} counts"))
        .map_err(|error| error.to_string())
}

fn software_counters() -> Capability {
    Capability {
        name: "software counters",
        finding: try_counter("page-faults"),
        needed_for: Need::For(
            "page faults, switches and migrations per domain; the tick of the run-queue length",
        ),
        remedy: "run as root, or lower /proc/sys/kernel/perf_event_paranoid to -1",
    }
}

fn hardware_counters() -> Capability {
    Capability {
        name: "hardware counters",
        finding: try_counter("cycles"),
        needed_for: Need::For("cycles, instructions and cache misses per domain"),
        remedy: "run on the machine itself, or let the hypervisor pass its performance monitoring unit on",
    }
}

fn is_there(path: &str) -> Result<String, String> {
    if Path::new(path).exists() { Ok(path.into()) } else { Err(format!("there is no {path}")) }
}

const BREAKPOINTS: &str = "/sys/bus/event_source/devices/kprobe/type";

/// Whether the kernel has kprobes for programs.
pub(crate) fn has_breakpoints() -> bool {
    Path::new(BREAKPOINTS).exists()
}

fn kprobes() -> Capability {
    Capability {
        name: "kprobes",
        finding: is_there(BREAKPOINTS),
        needed_for: Need::For("recording by schemata with points inside functions of the kernel"),
        remedy: "use a kernel built with CONFIG_KPROBE_EVENTS=y",
    }
}

fn sched_ext() -> Capability {
    Capability {
        name: "sched_ext",
        finding: is_there("/sys/kernel/sched_ext"),
        needed_for: Need::For("mete schedule --by sched_ext; shares by other means go without"),
        remedy: "use Linux 6.12 or later, built with CONFIG_SCHED_CLASS_EXT=y",
    }
}

fn cgroups() -> Capability {
    let mounts = String::from_utf8_lossy(&fs::read("/proc/self/mountinfo").unwrap_or_default()).into_owned();
    let is_mounted = |kind: &str| mounts.lines().any(|line| line.contains(&format!(" - {kind} ")));
    let finding = match (is_mounted("cgroup"), is_mounted("cgroup2")) {
        (false, false) => Err("no cgroup file system is mounted".into()),
        (true, false) => Ok("version 1".into()),
        (false, true) => Ok("version 2".into()),
        (true, true) => Ok("versions 1 and 2".into()),
    };
    Capability {
        name: "cgroups",
        finding,
        needed_for: Need::For("domains for containers and services"),
        remedy: "mount one: mount -t cgroup2 none /sys/fs/cgroup",
    }
}
