//! What the virtual counters of a schema can count, by well-known names (paper §4.1).

/// A well-known name, and how the kernel is asked for its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The name in schemata.
    pub name: &'static str,
    /// The name or number in the notation of the perf tool.
    pub perf: Perf,
}

/// How the kernel is asked for a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Perf {
    /// By name: the kernel knows the counter of each processor, or counts by itself.
    Everywhere(&'static str),
    /// By the makers' numbers, as the perf tool writes raw events, because the kernel has no name for the
    /// counter.
    ByMaker {
        /// Zen and later.
        amd: &'static str,
        /// Core processors since 2015.
        intel: &'static str,
    },
}

const fn everywhere(name: &'static str, perf: &'static str) -> Counter {
    Counter { name, perf: Perf::Everywhere(perf) }
}

/// All well-known counters. The paper's names come first.
pub const COUNTERS: [Counter; 26] = [
    everywhere("l1_cache_misses", "L1-dcache-load-misses"),
    Counter { name: "l2_cache_misses", perf: Perf::ByMaker { amd: "r964", intel: "r3f24" } },
    everywhere("cycles", "cycles"),
    everywhere("ref_cycles", "ref-cycles"),
    everywhere("bus_cycles", "bus-cycles"),
    everywhere("instructions", "instructions"),
    everywhere("branches", "branches"),
    everywhere("branch_misses", "branch-misses"),
    everywhere("cache_references", "cache-references"),
    everywhere("cache_misses", "cache-misses"),
    everywhere("l1_cache_loads", "L1-dcache-loads"),
    everywhere("l1_icache_misses", "L1-icache-load-misses"),
    everywhere("llc_loads", "LLC-loads"),
    everywhere("llc_misses", "LLC-load-misses"),
    everywhere("dtlb_misses", "dTLB-load-misses"),
    everywhere("itlb_misses", "iTLB-load-misses"),
    everywhere("node_misses", "node-load-misses"),
    everywhere("stalled_cycles_frontend", "stalled-cycles-frontend"),
    everywhere("stalled_cycles_backend", "stalled-cycles-backend"),
    everywhere("task_clock", "task-clock"),
    everywhere("cpu_clock", "cpu-clock"),
    everywhere("page_faults", "page-faults"),
    everywhere("minor_faults", "minor-faults"),
    everywhere("major_faults", "major-faults"),
    everywhere("context_switches", "context-switches"),
    everywhere("cpu_migrations", "cpu-migrations"),
];

/// The counter of this name.
pub fn by_name(name: &str) -> Option<&'static Counter> {
    COUNTERS.iter().find(|counter| counter.name == name)
}

/// The name of an architecture block that applies to every machine, for counters that no other block binds.
pub const ANY: &str = "any";

/// The number in a name such as `counter0`.
pub fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("counter")?;
    // `parse` would accept `+1`, and `counter01` would be a second name for `counter1`.
    let is_plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain && (digits == "0" || !digits.starts_with('0')))
}
