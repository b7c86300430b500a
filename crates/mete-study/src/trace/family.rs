//! A process and all of its descendants.

use std::collections::HashSet;

use mete_trace::NamedItem;

/// The ids of a process and of its descendants, including threads.
#[derive(Debug)]
pub struct Family {
    pids: HashSet<i32>,
}

impl Family {
    /// The family of this process, which has not started another one yet.
    pub fn of(pid: i32) -> Family {
        Family { pids: HashSet::from([pid]) }
    }

    /// Takes the next item of the trace: a child of a member becomes a member.
    pub fn next(&mut self, next: &NamedItem<'_>) {
        if let NamedItem::Event(seen) = next
            && seen.name() == "FORK"
            && self.has(seen.pid("parent"))
        {
            self.pids.insert(seen.pid("child"));
        }
    }

    /// Whether a process belongs to the family.
    pub fn has(&self, pid: i32) -> bool {
        self.pids.contains(&pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    #[test]
    fn klog_9_children_of_children_belong_to_a_family_and_others_do_not() {
        let mut written = Written::new("scheduler", 1);
        written.event(0, 10, "FORK", &[("parent", 1), ("child", 2)]);
        written.event(0, 20, "FORK", &[("parent", 2), ("child", 3)]);
        written.event(0, 30, "FORK", &[("parent", 4), ("child", 5)]);
        let mut family = Family::of(1);
        written.read().each(|next| family.next(&next));
        assert_eq!([1, 2, 3, 4, 5].map(|pid| family.has(pid)), [true, true, true, false, false]);
    }
}
