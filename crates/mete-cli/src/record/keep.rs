//! How much a flight recorder keeps.

use std::fs;

use anyhow::bail;
use mete_trace::block::DEFAULT_BYTES;

use super::Options;
use crate::{failure, table};

/// Refuses what the machine's memory cannot hold now: it would be taken piece by piece, until the machine ends somebody.
pub fn check_memory(options: &Options) -> anyhow::Result<()> {
    let Some(keep) = options.keep else { return Ok(()) };
    // Where an event is waited for, as much again is kept of what comes after it.
    let most = if options.dump_on.is_empty() { keep } else { keep.saturating_mul(2) };
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match available(&meminfo) {
        Some(available) if most > available => bail!(
            "--keep takes up to {} of memory, and {} are available; keep less",
            table::bytes(most),
            table::bytes(available)
        ),
        _ => Ok(()),
    }
}

/// Bytes that there are without taking anybody's.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// As much as was asked for, and at least a block of each buffer; says so if that is more.
pub fn at_least_blocks(keep: u64, buffers: usize) -> u64 {
    let least = u64::from(DEFAULT_BYTES) * buffers as u64;
    if keep < least {
        let (asked, kept) = (table::bytes(keep), table::bytes(least));
        failure::say(&format!(
            "{kept} are kept instead of {asked}: less than a block of each buffer cannot be"
        ));
    }
    keep.max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_6_memory_that_is_available_is_read_as_the_kernel_writes_it() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available(meminfo), Some(2 << 20));
        assert_eq!(available("MemTotal: 1 kB"), None);
    }
}
