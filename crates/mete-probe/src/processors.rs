//! The processors of this machine: a component has one log area for each.
//!
//! These are the *possible* ones, offline ones included. `mete-base` lists those that are online or allowed,
//! which is another question; and this crate is linked into programs in C, so that it takes in as few crates
//! as it can.

/// Processors that threads can ever run on, one more than the highest number: the number of areas
/// that a component's region needs. The component refuses fewer.
pub fn configured_processors() -> usize {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    highest(&possible).map_or_else(counted_processors, |last| last + 1).clamp(1, 4096)
}

/// The last number of a list in the kernel's format: numbers and ranges, in ascending order.
fn highest(list: &str) -> Option<usize> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// The number of processors for the case that the kernel's files cannot be read.
fn counted_processors() -> usize {
    // SAFETY: a query without pointers.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(configured).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_9_a_region_has_room_for_the_highest_possible_processor() {
        for (list, expected) in
            [("0\n", Some(0)), ("0-3\n", Some(3)), ("0-3,8-11\n", Some(11)), ("0,2\n", Some(2))]
        {
            assert_eq!(highest(list), expected, "{list}");
        }
        assert_eq!(["", "\n", "none"].map(highest), [None; 3], "then the C library counts them");
    }
}
