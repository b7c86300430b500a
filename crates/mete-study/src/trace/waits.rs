//! How long tasks waited for locks of the kernel (KLogger paper, §8).

use std::collections::HashMap;

use mete_trace::NamedItem;

/// How a task waits, in the paper's words. A task that sleeps while it waits uses no processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitKind {
    /// SPIN: the processor runs a loop.
    Spinning,
    /// READ or WRITE: the task sleeps.
    Sleeping,
}

/// A wait, or the part of a wait that was spent in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The lock's address.
    pub lock: u64,
    /// How the task waited.
    pub how: WaitKind,
    /// The kernel's own word for the kind of lock.
    pub flags: u32,
    /// How long the task waited.
    pub ns: u64,
    /// When the wait ended.
    pub to_ns: u64,
}

/// The events that are paired here.
pub const EVENTS: [&str; 4] = ["SPIN", "READ", "WRITE", "ACQUIRED"];

/// Pairs the beginnings of waits with their ends.
#[derive(Debug, Default)]
pub struct Waits {
    open: HashMap<Key, Open>,
}

/// Process id, processor and lock. A task waits for a lock only once at a time. The processor tells idle
/// tasks apart, which share the id 0; for other tasks it is 0, because they can migrate.
type Key = (i32, u32, u64);

#[derive(Clone, Copy, Debug)]
struct Open {
    how: WaitKind,
    flags: u32,
    since_ns: u64,
}

impl Waits {
    /// Takes the next item of the trace. Returns the wait, or the part of a wait, that is over.
    pub fn next(&mut self, next: &NamedItem<'_>) -> Option<Wait> {
        let seen = match next {
            // The lost event may be the end of any wait.
            NamedItem::Lost { .. } => {
                self.open.clear();
                return None;
            }
            NamedItem::Event(seen) => seen,
        };
        let how = match seen.name() {
            "SPIN" => Some(WaitKind::Spinning),
            "READ" | "WRITE" => Some(WaitKind::Sleeping),
            "ACQUIRED" => None,
            _ => return None,
        };
        let (lock, pid) = (seen.number("lock") as u64, seen.pid("pid"));
        let key = (pid, if pid == 0 { seen.processor } else { 0 }, lock);
        let ended = self.open.remove(&key);
        if let Some(how) = how {
            // A wait for a mutex begins twice: the task spins first, and then goes to sleep.
            self.open.insert(key, Open { how, flags: seen.number("flags") as u32, since_ns: seen.time_ns });
        }
        let Open { how, flags, since_ns } = ended?;
        let (ns, to_ns) = (seen.time_ns.saturating_sub(since_ns), seen.time_ns);
        Some(Wait { lock, how, flags, ns, to_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    #[test]
    fn klog_9_waits_are_paired_by_task_and_lock_and_a_mutex_spins_before_it_sleeps() {
        let mut written = Written::new("locking", 1);
        let mut event = |time, name: &str, lock, pid, flags| {
            written.event(0, time, name, &[("lock", lock), ("pid", pid), ("flags", flags)]);
        };
        event(100, "SPIN", 0xa, 7, 33);
        event(150, "SPIN", 0xb, 8, 1);
        event(250, "WRITE", 0xa, 7, 32);
        let mut end = |time, lock, pid| written.event(0, time, "ACQUIRED", &[("lock", lock), ("pid", pid)]);
        end(300, 0xb, 8);
        end(900, 0xa, 7);
        end(950, 0xc, 9);
        let (mut waits, mut all) = (Waits::default(), Vec::new());
        written.read().each(|next| all.extend(waits.next(&next)));
        let wait = |lock, how, flags, ns, to_ns| Wait { lock, how, flags, ns, to_ns };
        let expected = [
            wait(0xa, WaitKind::Spinning, 33, 150, 250),
            wait(0xb, WaitKind::Spinning, 1, 150, 300),
            wait(0xa, WaitKind::Sleeping, 32, 650, 900),
        ];
        assert_eq!(all, expected);
    }
}
