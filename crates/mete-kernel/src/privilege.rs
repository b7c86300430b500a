//! What this process must be allowed before programs can be loaded.

use std::fs;

use crate::KernelError;

/// The bits of the capabilities that loading needs, in the kernel's sets.
const NEEDED: [(&str, u32); 2] = [("CAP_PERFMON", 38), ("CAP_BPF", 39)];
/// The bit of `CAP_SYS_ADMIN`, which includes both.
const SYS_ADMIN: u32 = 21;

/// Checks that this process has the capabilities that loading programs needs.
///
/// # Errors
///
/// [`KernelError::Privilege`] says which ones it lacks.
pub fn check_capabilities() -> Result<(), KernelError> {
    let status = String::from_utf8_lossy(&fs::read("/proc/self/status").unwrap_or_default()).into_owned();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    if effective >> SYS_ADMIN & 1 == 1 {
        return Ok(());
    }
    let missing = NEEDED.iter().filter(|(_, bit)| effective >> bit & 1 == 0);
    let missing: Vec<_> = missing.map(|(name, _)| *name).collect();
    if missing.is_empty() { Ok(()) } else { Err(KernelError::Privilege { missing: missing.join(" and ") }) }
}

/// Checks that this is the first pid namespace, because the kernel's programs know tasks by their numbers
/// there.
///
/// # Errors
///
/// [`KernelError::PidNamespace`] if it is not.
pub fn check_pid_namespace() -> Result<(), KernelError> {
    let own = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    // The first pid namespace has this inode number in every kernel.
    let is_first = own.to_str() == Some("pid:[4026531836]");
    if is_first { Ok(()) } else { Err(KernelError::PidNamespace) }
}
