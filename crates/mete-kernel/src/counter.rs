//! Performance counters by the names that the perf tool uses.

use std::fmt;
use std::str::FromStr;

use crate::KernelError;

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;

/// A performance counter that the kernel knows. Whether this machine has it is found out when it is enabled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counter {
    name: String,
    kind: u32,
    config: u64,
}

/// The number within the kind, the name, and the second name or an empty one.
type Named = (u64, &'static str, &'static str);

const HARDWARE_NAMES: [Named; 10] = [
    (0, "cycles", "cpu-cycles"),
    (1, "instructions", ""),
    (2, "cache-references", ""),
    (3, "cache-misses", ""),
    (4, "branches", "branch-instructions"),
    (5, "branch-misses", ""),
    (6, "bus-cycles", ""),
    (7, "stalled-cycles-frontend", "idle-cycles-frontend"),
    (8, "stalled-cycles-backend", "idle-cycles-backend"),
    (9, "ref-cycles", ""),
];

const SOFTWARE_NAMES: [Named; 10] = [
    (0, "cpu-clock", ""),
    (1, "task-clock", ""),
    (2, "page-faults", "faults"),
    (3, "context-switches", "cs"),
    (4, "cpu-migrations", "migrations"),
    (5, "minor-faults", ""),
    (6, "major-faults", ""),
    (7, "alignment-faults", ""),
    (8, "emulation-faults", ""),
    (11, "cgroup-switches", ""),
];

const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];

/// What can be counted of a cache: the name, and the kernel's numbers of the operation and of its result.
const CACHE_RESULTS: [(&str, u64, u64); 6] = [
    ("loads", 0, 0),
    ("load-misses", 0, 1),
    ("stores", 1, 0),
    ("store-misses", 1, 1),
    ("prefetches", 2, 0),
    ("prefetch-misses", 2, 1),
];

impl Counter {
    /// The name by which it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the kernel itself counts it, so that every machine has it.
    pub fn is_software(&self) -> bool {
        self.kind == SOFTWARE
    }

    pub(crate) fn kind(&self) -> u32 {
        self.kind
    }

    pub(crate) fn config(&self) -> u64 {
        self.config
    }
}

/// The main names of the counters that every machine with a performance monitoring unit has, and of those
/// that the kernel itself counts.
pub fn names() -> impl Iterator<Item = &'static str> {
    HARDWARE_NAMES.iter().chain(&SOFTWARE_NAMES).map(|(_, name, _)| *name)
}

fn find(table: &[Named], name: &str) -> Option<u64> {
    table
        .iter()
        .find(|(_, main, other)| name == *main || (name == *other && !other.is_empty()))
        .map(|entry| entry.0)
}

/// A counter of a cache, such as `L1-dcache-load-misses`.
fn find_cache(name: &str) -> Option<u64> {
    let (cache, what) = CACHES.iter().enumerate().find_map(|(number, cache)| {
        let what = name.strip_prefix(cache)?.strip_prefix('-')?;
        Some((number as u64, what))
    })?;
    let (_, operation, result) = CACHE_RESULTS.iter().find(|(name, ..)| *name == what)?;
    // The layout of `config` for PERF_TYPE_HW_CACHE, see perf_event_open(2).
    Some(cache | operation << 8 | result << 16)
}

/// `r1a8`: a number from the processor's manual, in hexadecimal.
fn find_raw(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix('r')?, 16).ok()
}

impl FromStr for Counter {
    type Err = KernelError;

    fn from_str(name: &str) -> Result<Counter, KernelError> {
        let found = [
            (HARDWARE, find(&HARDWARE_NAMES, name)),
            (SOFTWARE, find(&SOFTWARE_NAMES, name)),
            (CACHE, find_cache(name)),
            (RAW, find_raw(name)),
        ];
        let known = found.into_iter().find_map(|(kind, config)| Some((kind, config?)));
        let (kind, config) = known.ok_or_else(|| KernelError::UnknownCounter(name.into()))?;
        Ok(Counter { name: name.into(), kind, config })
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> (u32, u64) {
        let counter: Counter = name.parse().unwrap();
        (counter.kind, counter.config)
    }

    #[test]
    fn log_13_counters_have_the_names_of_the_perf_tool() {
        assert_eq!(parsed("cycles"), (HARDWARE, 0));
        assert_eq!(parsed("branch-instructions"), (HARDWARE, 4));
        assert_eq!(parsed("faults"), (SOFTWARE, 2));
        assert_eq!(parsed("cs"), (SOFTWARE, 3));
        assert_eq!(parsed("LLC-load-misses"), (CACHE, 0x1_0002));
        assert_eq!(parsed("dTLB-stores"), (CACHE, 0x103));
        assert_eq!(parsed("r1a8"), (RAW, 0x1a8));
    }

    #[test]
    fn log_13_an_unknown_counter_is_refused_by_name() {
        for name in ["", "cycle", "r", "rxyz", "LLC", "LLC-", "LLC-hits"] {
            let error = name.parse::<Counter>().unwrap_err();
            assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
        }
    }
}
