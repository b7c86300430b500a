//! Members of queues that stand in lines: doubly linked lists over one array of links, so that moving a
//! member allocates nothing.

use alloc::vec;
use alloc::vec::Vec;

/// No member.
const NONE: u32 = u32::MAX;

/// The first and the last member of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    first: u32,
    last: u32,
}

impl Line {
    pub(super) const EMPTY: Line = Line { first: NONE, last: NONE };

    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Whether it consists of this member.
    pub(super) fn is_only(&self, member: u32) -> bool {
        self.first == member && self.last == member
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

/// The links of all members. A member stands in one line at most; its caller knows in which.
pub(super) struct Links(Vec<Link>);

impl Links {
    pub(super) fn new(members: usize) -> Links {
        Links(vec![Link { previous: NONE, next: NONE }; members])
    }

    /// The member behind this one.
    pub(super) fn next(&self, member: u32) -> Option<u32> {
        let next = self.0[member as usize].next;
        (next != NONE).then_some(next)
    }

    pub(super) fn push_back(&mut self, line: &mut Line, member: u32) {
        self.0[member as usize] = Link { previous: line.last, next: NONE };
        match line.last {
            NONE => line.first = member,
            last => self.0[last as usize].next = member,
        }
        line.last = member;
    }

    pub(super) fn push_front(&mut self, line: &mut Line, member: u32) {
        self.0[member as usize] = Link { previous: NONE, next: line.first };
        match line.first {
            NONE => line.last = member,
            first => self.0[first as usize].previous = member,
        }
        line.first = member;
    }

    pub(super) fn remove(&mut self, line: &mut Line, member: u32) {
        let Link { previous, next } = self.0[member as usize];
        match previous {
            NONE => line.first = next,
            previous => self.0[previous as usize].next = next,
        }
        match next {
            NONE => line.last = previous,
            next => self.0[next as usize].previous = previous,
        }
    }
}
