//! The queue of future events: a heap on (time, sequence).
//!
//! Events of one instant come out in the order in which they were put in, so a run has one order and
//! no other. An event can be cancelled by its ticket, in constant time; its entry stays in the heap
//! until its time has come and is dropped there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mete_policy::Nanoseconds;

/// What cancels an event.
///
/// It stays harmless for ever: sequence numbers are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    slot: u32,
    sequence: u64,
}

impl Ticket {
    /// A ticket for no event.
    pub const NONE: Ticket = Ticket { slot: u32::MAX, sequence: u64::MAX };
}

/// Ordered by time, then by sequence; the slot never decides, because sequences differ.
type Entry = Reverse<(Nanoseconds, u64, u32)>;

struct Slot<E> {
    sequence: u64,
    /// `None` once it is cancelled.
    event: Option<E>,
}

/// Future events, earliest first.
///
/// Invariant: every slot is either in `free` or in exactly one entry of the heap.
pub struct Queue<E> {
    heap: BinaryHeap<Entry>,
    slots: Vec<Slot<E>>,
    free: Vec<u32>,
    next_sequence: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Queue { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), next_sequence: 0 }
    }
}

impl<E> Queue<E> {
    /// Puts an event at a time. It allocates only while the queue is longer than it ever was.
    pub fn push(&mut self, at_ns: Nanoseconds, event: E) -> Ticket {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let slot = self.occupy(Slot { sequence, event: Some(event) });
        self.heap.push(Reverse((at_ns, sequence, slot)));
        Ticket { slot, sequence }
    }

    fn occupy(&mut self, content: Slot<E>) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = content;
                slot
            }
            None => {
                self.slots.push(content);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// Takes an event out before its time; `None` if it has happened, or was cancelled.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<E> {
        let slot = self.slots.get_mut(ticket.slot as usize)?;
        if slot.sequence == ticket.sequence { slot.event.take() } else { None }
    }

    /// The next event, if its time is before `end_ns`.
    pub fn pop_before(&mut self, end_ns: Nanoseconds) -> Option<(Nanoseconds, E)> {
        loop {
            let &Reverse((at_ns, _, slot)) = self.heap.peek()?;
            if at_ns >= end_ns {
                return None;
            }
            self.heap.pop();
            self.free.push(slot);
            if let Some(event) = self.slots[slot as usize].event.take() {
                return Some((at_ns, event));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &mut Queue<char>) -> String {
        std::iter::from_fn(|| queue.pop_before(u64::MAX)).map(|(_, event)| event).collect()
    }

    #[test]
    fn events_come_by_time_and_within_an_instant_in_the_order_they_were_put_in() {
        let mut queue = Queue::default();
        for (at_ns, event) in [(5, 'd'), (1, 'a'), (3, 'b'), (5, 'e'), (3, 'c')] {
            queue.push(at_ns, event);
        }
        assert_eq!(drain(&mut queue), "abcde");
    }

    #[test]
    fn a_cancelled_event_does_not_happen_and_its_ticket_cancels_no_other() {
        let mut queue = Queue::default();
        let first = queue.push(1, 'a');
        queue.push(2, 'b');
        assert_eq!((queue.cancel(first), queue.cancel(first)), (Some('a'), None));
        assert_eq!(drain(&mut queue), "b");
        queue.push(3, 'c');
        queue.push(3, 'd');
        assert_eq!(queue.cancel(first), None, "the slot is used again, the ticket is not");
        assert_eq!(drain(&mut queue), "cd");
    }

    #[test]
    fn events_at_the_end_or_after_it_wait() {
        let mut queue = Queue::default();
        queue.push(7, 'a');
        assert_eq!(queue.pop_before(7), None);
        assert_eq!(queue.pop_before(8), Some((7, 'a')));
    }
}
