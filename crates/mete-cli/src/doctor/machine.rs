//! The machine: processors, clock, rights, and what log memory and parameter files need.

use std::{fs, io};

use mete_kernel::{Capability, Need};
use rustix::fs::{MemfdFlags, SealFlags};

use super::peers::program;

pub fn capabilities() -> Vec<Capability> {
    vec![processors(), clock(), memory_files(), placement(), lockdown(), fuse()]
}

fn processors() -> Capability {
    let online = std::thread::available_parallelism().map_or(1, usize::from);
    Capability {
        name: "processors",
        finding: if online > 1 {
            Ok(format!("{online} may be used"))
        } else {
            Err("only one: there is nothing to choose between".into())
        },
        needed_for: Need::For("mete schedule, which moves clients between processors"),
        remedy: "give the machine or the container a second processor",
    }
}

fn clock() -> Capability {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_steady = ["constant_tsc", "nonstop_tsc"].iter().all(|flag| text.contains(flag));
    Capability {
        name: "steady counter",
        finding: if is_steady {
            Ok("the time stamp counter neither stops nor changes its rate".into())
        } else {
            Err("the processor does not say that its time stamp counter is steady".into())
        },
        needed_for: Need::For("time stamps of 8 ns that can be compared between processors"),
        remedy: "an x86-64 processor with constant_tsc and nonstop_tsc; a hypervisor may hide them",
    }
}

fn memory_files() -> Capability {
    Capability {
        name: "sealed memory",
        finding: try_seal()
            .map(|()| "memory files can be made and sealed".into())
            .map_err(|error| format!("memory files cannot be sealed: {error}")),
        needed_for: Need::For("log areas shared between a scheduler and programs"),
        remedy: "Linux 3.17 or later; a container's seccomp profile must let memfd_create(2) pass",
    }
}

fn try_seal() -> rustix::io::Result<()> {
    let file = rustix::fs::memfd_create("mete-doctor", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK)
}

fn placement() -> Capability {
    const SYS_NICE: u32 = 23;
    let may = effective_capabilities() >> SYS_NICE & 1 == 1;
    Capability {
        name: "placing others",
        finding: if may {
            Ok("may set the processor affinity of any process".into())
        } else {
            Err("may set the processor affinity of this user's processes only".into())
        },
        needed_for: Need::For("mete schedule on processes of other users"),
        remedy: "run as root, or give the command CAP_SYS_NICE",
    }
}

fn effective_capabilities() -> u64 {
    let status = String::from_utf8_lossy(&fs::read("/proc/self/status").unwrap_or_default()).into_owned();
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    hex.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

fn lockdown() -> Capability {
    let text = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode = text.split(['[', ']']).nth(1).unwrap_or("none");
    Capability {
        name: "no lockdown",
        finding: if mode == "confidentiality" {
            Err("the kernel is locked down for confidentiality".into())
        } else {
            Ok(format!("lockdown: {mode}"))
        },
        needed_for: Need::For("eBPF programs that read kernel memory"),
        remedy: "boot with lockdown=integrity or less; secure boot may set it",
    }
}

fn fuse() -> Capability {
    let path = "/dev/fuse";
    Capability {
        name: "FUSE",
        // It is opened by the user, also where fusermount3 mounts.
        finding: match fs::File::options().read(true).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!("there is no {path}")),
            Err(error) => Err(format!("this user cannot open {path}: {error}")),
            Ok(_) if rustix::process::geteuid().is_root() => {
                Ok(format!("{path}, which root mounts by itself"))
            }
            Ok(_) if program("fusermount3").is_ok() => Ok(format!("{path}, mounted by fusermount3")),
            Ok(_) => Err(format!("{path} exists, but fusermount3 does not: only root can mount")),
        },
        needed_for: Need::For("mete record --parameters: parameters as files"),
        remedy: "modprobe fuse, or pass /dev/fuse into the container; for users other than root, the package fuse3 and chmod 666 /dev/fuse",
    }
}
