//! What this machine can do for the kernel component, for people (design decision D11).

use std::fs;
use std::path::Path;

use libbpf_rs::Object;

use crate::attach::attach;
use crate::counter::Counter;
use crate::load::{load_object, object};
use crate::{KernelError, perf};

/// One thing that the machine can do or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// What it is called.
    pub name: &'static str,
    /// What was found, or why it is missing.
    pub finding: Result<String, String>,
    /// What of Mete depends on it.
    pub needed_for: &'static str,
    /// What to do where it is missing.
    pub remedy: &'static str,
}

impl Capability {
    /// Whether it is there.
    pub fn is_present(&self) -> bool {
        self.finding.is_ok()
    }
}

/// Finds out by trying, where trying is harmless; leaves nothing behind.
pub fn capabilities() -> Vec<Capability> {
    let mut all = vec![privilege(), pid_namespace(), type_information()];
    all.extend(programs());
    all.extend([software_counters(), hardware_counters(), kprobes(), sched_ext(), cgroups()]);
    all
}

/// The bits in the kernel's capability sets.
const CAPABILITIES: [(&str, u32); 2] = [("CAP_PERFMON", 38), ("CAP_BPF", 39)];
const SYS_ADMIN: u32 = 21;

/// Says which capabilities are missing to load programs.
pub(crate) fn check_privilege() -> Result<(), KernelError> {
    let status = String::from_utf8_lossy(&fs::read("/proc/self/status").unwrap_or_default()).into_owned();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let has = |bit: u32| effective >> bit & 1 == 1;
    let lacking: Vec<_> =
        CAPABILITIES.iter().filter(|(_, bit)| !has(*bit) && !has(SYS_ADMIN)).map(|(name, _)| *name).collect();
    if lacking.is_empty() { Ok(()) } else { Err(KernelError::Privilege { missing: lacking.join(" and ") }) }
}

/// The kernel's programs know tasks by their numbers in the first pid namespace, which has this
/// inode number in every kernel.
pub(crate) fn check_pid_namespace() -> Result<(), KernelError> {
    let own = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let is_first = own.to_str() == Some("pid:[4026531836]");
    if is_first { Ok(()) } else { Err(KernelError::PidNamespace) }
}

fn privilege() -> Capability {
    Capability {
        name: "privilege",
        finding: check_privilege().map(|()| "may load eBPF programs".into()).map_err(|e| e.to_string()),
        needed_for: "logging the kernel",
        remedy: "run as root, or give the command CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN",
    }
}

fn pid_namespace() -> Capability {
    Capability {
        name: "first pid namespace",
        finding: check_pid_namespace()
            .map(|()| "processes have the kernel's own numbers".into())
            .map_err(|e| e.to_string()),
        needed_for: "logging the kernel",
        remedy: "run outside the container, or start it with the host's pid namespace: docker run --pid=host",
    }
}

fn type_information() -> Capability {
    let path = "/sys/kernel/btf/vmlinux";
    let finding = fs::metadata(path).map(|file| format!("{path}, {} KiB", file.len() >> 10));
    Capability {
        name: "BTF",
        finding: finding.map_err(|_| KernelError::NoTypeInformation.to_string()),
        needed_for: "loading eBPF programs on a kernel that they were not built on",
        remedy: "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distributions' kernels are",
    }
}

/// Loads a program that does nothing, and attaches it for a moment.
fn try_program(name: &'static str, hook: &'static str) -> Result<(), String> {
    let others_are_left_out = |open: &mut libbpf_rs::OpenObject| {
        open.progs_mut().for_each(|mut program| {
            let is_wanted = program.name() == name;
            program.set_autoload(is_wanted);
        });
        Ok(())
    };
    check_privilege()
        .and_then(|()| load_object(object!("capability"), others_are_left_out))
        .and_then(|object: Object| attach(&object, name, "nothing", hook).map(drop))
        .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
}

fn programs() -> [Capability; 2] {
    [
        Capability {
            name: "eBPF",
            finding: try_program("try_tracepoint", "typed tracepoint")
                .map(|()| "programs load and attach to typed tracepoints".into())
                .map_err(|why| format!("{why}{}", lockdown())),
            needed_for: "logging the kernel",
            remedy: "Linux 5.17 or later, not locked down for confidentiality, outside containers that filter bpf(2)",
        },
        Capability {
            name: "fentry",
            finding: try_function().map(|()| "programs attach to kernel functions".into()),
            needed_for: "recording by schemata with points inside functions of the kernel",
            remedy: "use a kernel built with CONFIG_FUNCTION_TRACER=y; where one that has it does not permit it, whoever built it has restricted it",
        },
    ]
}

fn try_function() -> Result<(), String> {
    try_program("try_function_entry", "function entry")
}

/// Whether programs run where functions of the kernel begin, if this process may find out.
pub(crate) fn takes_functions() -> Option<bool> {
    check_privilege().ok().map(|()| try_function().is_ok())
}

/// The kernel's lockdown mode, if there is one that may explain a refusal.
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
    let processor = perf::online_processors(1).first().copied().unwrap_or(0);
    perf::open_counter(&counter, processor)
        .map(|_| format!("{name} counts"))
        .map_err(|error| error.to_string())
}

fn software_counters() -> Capability {
    Capability {
        name: "software counters",
        finding: try_counter("page-faults"),
        needed_for: "page faults, switches and migrations per domain; the tick of the run-queue length",
        remedy: "run as root, or lower /proc/sys/kernel/perf_event_paranoid to -1",
    }
}

fn hardware_counters() -> Capability {
    Capability {
        name: "hardware counters",
        finding: try_counter("cycles"),
        needed_for: "cycles, instructions and cache misses per domain",
        remedy: "run on the machine itself, or let the hypervisor pass its performance monitoring unit on",
    }
}

fn is_there(path: &str) -> Result<String, String> {
    if Path::new(path).exists() { Ok(path.into()) } else { Err(format!("there is no {path}")) }
}

const BREAKPOINTS: &str = "/sys/bus/event_source/devices/kprobe/type";

/// Whether the kernel has kprobes that programs can be put on.
pub(crate) fn has_breakpoints() -> bool {
    Path::new(BREAKPOINTS).exists()
}

fn kprobes() -> Capability {
    Capability {
        name: "kprobes",
        finding: is_there(BREAKPOINTS),
        needed_for: "recording by schemata with points inside functions of the kernel",
        remedy: "use a kernel built with CONFIG_KPROBE_EVENTS=y",
    }
}

fn sched_ext() -> Capability {
    Capability {
        name: "sched_ext",
        finding: is_there("/sys/kernel/sched_ext"),
        needed_for: "policies that replace the kernel's scheduler; without it they act by affinity and cgroups",
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
        needed_for: "domains for containers and services",
        remedy: "mount one: mount -t cgroup2 none /sys/fs/cgroup",
    }
}
