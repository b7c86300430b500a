//! What the virtual counters of a schema can count, by well-known names (paper §4.1).

/// A well-known name, and how this machine's counters are asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// As schemata write it.
    pub name: &'static str,
    /// As the perf tool writes it.
    pub perf: Perf,
}

/// How a counter is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Perf {
    /// The kernel knows what it is on each processor, or counts it itself.
    Everywhere(&'static str),
    /// The kernel has no name for it; the makers' numbers for it, as the perf tool writes raw events.
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

/// All of them. The paper's names come first.
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

/// The architecture that every machine is, where no other block fits.
pub const ANY: &str = "any";

/// The number in `counter0` to `counter15`.
pub fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("counter")?;
    let is_plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain && (digits == "0" || !digits.starts_with('0')))
}
