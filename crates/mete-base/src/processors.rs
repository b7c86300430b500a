//! The machine's processors, and how long a thread has used them.

use std::fs;
use std::ops::RangeInclusive;

use rustix::thread::{CpuSet, sched_getaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The processors that this thread may run on, in order.
///
/// # Errors
///
/// The kernel's answer.
pub fn allowed() -> rustix::io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect())
}

/// The processor time that the calling thread has used.
pub fn thread_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The processors that are online now, of `possible` ones. No performance event can be opened on the others.
pub fn online(possible: usize) -> Vec<usize> {
    within(&online_list(), possible)
}

/// The first processor that is online now; 0 if the system does not say.
pub fn first_online() -> usize {
    first(&online_list())
}

/// What the kernel says is online. The file may be missing, in a container for example.
fn online_list() -> String {
    fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default()
}

/// The listed processors below `possible`; all of these if there is no list.
fn within(list: &str, possible: usize) -> Vec<usize> {
    let listed = parse_list(list);
    if listed.is_empty() {
        (0..possible).collect()
    } else {
        listed.into_iter().filter(|&processor| processor < possible).collect()
    }
}

fn first(list: &str) -> usize {
    parse_list(list).first().copied().unwrap_or(0)
}

/// A list as the kernel writes it: `0-3,8`.
fn parse_list(text: &str) -> Vec<usize> {
    text.trim().split(',').filter_map(parse_range).flatten().collect()
}

/// A part of such a list: `0-3` or `8`.
fn parse_range(part: &str) -> Option<RangeInclusive<usize>> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::{first, parse_list, within};

    #[test]
    fn processor_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-1\n"), [0, 1]);
        assert_eq!(parse_list("0,2-4,7"), [0, 2, 3, 4, 7]);
        assert_eq!(parse_list(""), [0; 0]);
    }

    #[test]
    fn the_first_processor_is_one_that_is_online() {
        assert_eq!(["0-3\n", "1-3\n", "2,5\n", ""].map(first), [0, 1, 2, 0]);
        assert_eq!((within("1-3\n", 3), within("", 2)), (vec![1, 2], vec![0, 1]));
    }
}
