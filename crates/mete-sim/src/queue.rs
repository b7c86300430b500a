//! The queue of future events: a heap on (time, class, sequence).
//!
//! Events of one instant come out by their class, and events of one class in the order in which they were put
//! in, so there is exactly one order. An event can be cancelled by its ticket. It is gone at once, so that
//! cancelled events never fill the heap.

use mete_policy::Nanoseconds;

/// The order of what falls on one instant; the [host](crate::host) gives the reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The periodic interrupt of a processor.
    Tick,
    /// A wake-up, a signal, or news of a device or a remote user.
    Outside,
    /// A processor's switch, burst or slice is over.
    Processor,
}

/// The bits of a moment for the sequence: no run has more events than they can count.
const SEQUENCE_BITS: u32 = 62;

/// A place in the order of events: by time, then by class, then by the sequence in which they were put in.
///
/// It is one number, because one comparison takes fewer steps than three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u128);

impl Moment {
    /// After all other moments.
    pub const NEVER: Moment = Moment(u128::MAX);

    /// The moment of an event.
    pub fn new(at_ns: Nanoseconds, class: Class, sequence: u64) -> Moment {
        let order = (class as u64) << SEQUENCE_BITS | sequence;
        Moment(u128::from(at_ns) << 64 | u128::from(order))
    }

    /// Its time.
    pub fn at_ns(self) -> Nanoseconds {
        Nanoseconds::new((self.0 >> 64) as u64)
    }
}

/// Cancels an event.
///
/// A ticket stays harmless for ever, because sequence numbers are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    slot: u32,
    sequence: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    moment: Moment,
    slot: u32,
}

struct Slot<E> {
    sequence: u64,
    /// The index of its entry in the heap.
    place: u32,
    /// `None` while the slot is free.
    event: Option<E>,
}

/// Future events, earliest first.
///
/// Invariant: a slot is free, or `place` is the index of the one entry that names it. No entry is before the
/// one above it.
pub struct Queue<E> {
    heap: Vec<Entry>,
    slots: Vec<Slot<E>>,
    free: Vec<u32>,
    next_sequence: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Queue { heap: Vec::new(), slots: Vec::new(), free: Vec::new(), next_sequence: 0 }
    }
}

/// The children of an entry: four, so that the heap is flat and siblings share a cache line or two.
const WIDTH: usize = 4;

impl<E> Queue<E> {
    /// Puts in an event for this time. It allocates only when the queue becomes longer than it ever was.
    pub fn push(&mut self, at_ns: Nanoseconds, class: Class, event: E) -> Ticket {
        let sequence = self.take_sequence();
        let slot = self.occupy(Slot { sequence, place: 0, event: Some(event) });
        let entry = Entry { moment: Moment::new(at_ns, class, sequence), slot };
        self.heap.push(entry);
        self.rise(self.heap.len() - 1, entry);
        Ticket { slot, sequence }
    }

    /// A moment at this time for an event that is kept elsewhere. It is after all moments of its time and
    /// class that exist so far.
    pub fn moment(&mut self, at_ns: Nanoseconds, class: Class) -> Moment {
        Moment::new(at_ns, class, self.take_sequence())
    }

    fn take_sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence - 1
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

    /// Takes an event out before its time; `None` if it has happened or was cancelled.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<E> {
        let slot = self.slots.get(ticket.slot as usize)?;
        // The slot may hold another event by now.
        if slot.sequence != ticket.sequence || slot.event.is_none() {
            return None;
        }
        self.remove(slot.place as usize)
    }

    /// The moment of the next event.
    pub fn first(&self) -> Moment {
        self.heap.first().map_or(Moment::NEVER, |entry| entry.moment)
    }

    /// The next event, if its time is before `end_ns`.
    pub fn pop_before(&mut self, end_ns: Nanoseconds) -> Option<(Nanoseconds, E)> {
        let at_ns = self.heap.first()?.moment.at_ns();
        if at_ns >= end_ns {
            return None;
        }
        Some((at_ns, self.remove(0)?))
    }

    fn remove(&mut self, place: usize) -> Option<E> {
        let entry = self.heap.swap_remove(place);
        if let Some(&moved) = self.heap.get(place) {
            // The last entry has taken this place, and may belong above or below it.
            if place > 0 && moved.moment < self.heap[(place - 1) / WIDTH].moment {
                self.rise(place, moved);
            } else {
                self.sink(place, moved);
            }
        }
        self.free.push(entry.slot);
        self.slots[entry.slot as usize].event.take()
    }

    /// Puts an entry at a free place or above it, where it belongs.
    fn rise(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let above = (place - 1) / WIDTH;
            if entry.moment >= self.heap[above].moment {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, entry);
    }

    /// Puts an entry at a free place or below it, where it belongs.
    fn sink(&mut self, mut place: usize, entry: Entry) {
        while let Some(first) =
            self.first_below(place).filter(|&first| self.heap[first].moment < entry.moment)
        {
            self.put(place, self.heap[first]);
            place = first;
        }
        self.put(place, entry);
    }

    fn first_below(&self, place: usize) -> Option<usize> {
        let begin = place * WIDTH + 1;
        let end = (begin + WIDTH).min(self.heap.len());
        (begin..end).min_by_key(|&place| self.heap[place].moment)
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.slots[entry.slot as usize].place = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn drain(queue: &mut Queue<char>) -> String {
        std::iter::from_fn(|| queue.pop_before(Nanoseconds::MAX)).map(|(_, event)| event).collect()
    }

    #[test]
    fn events_come_by_time_and_within_an_instant_by_class_and_in_the_order_they_were_put_in() {
        let mut queue = Queue::default();
        let (tick, outside, processor) = (Class::Tick, Class::Outside, Class::Processor);
        let events = [
            (5, outside, 'e'),
            (1, processor, 'a'),
            (3, outside, 'b'),
            (5, processor, 'g'),
            (5, outside, 'f'),
            (5, tick, 'd'),
            (3, outside, 'c'),
        ];
        for (at_ns, class, event) in events {
            queue.push(Nanoseconds::new(at_ns), class, event);
        }
        assert_eq!(drain(&mut queue), "abcdefg");
    }

    #[test]
    fn a_cancelled_event_does_not_happen_and_its_ticket_cancels_no_other() {
        let mut queue = Queue::default();
        let first = queue.push(Nanoseconds::new(1), Class::Outside, 'a');
        queue.push(Nanoseconds::new(2), Class::Outside, 'b');
        assert_eq!((queue.cancel(first), queue.cancel(first)), (Some('a'), None));
        assert_eq!(drain(&mut queue), "b");
        queue.push(Nanoseconds::new(3), Class::Outside, 'c');
        queue.push(Nanoseconds::new(3), Class::Outside, 'd');
        assert_eq!(queue.cancel(first), None, "the slot is used again, the ticket is not");
        assert_eq!(drain(&mut queue), "cd");
    }

    #[test]
    fn events_at_the_end_or_after_it_wait() {
        let mut queue = Queue::default();
        queue.push(Nanoseconds::new(7), Class::Outside, 'a');
        assert_eq!(queue.pop_before(Nanoseconds::new(7)), None);
        assert_eq!(queue.pop_before(Nanoseconds::new(8)), Some((Nanoseconds::new(7), 'a')));
    }

    proptest! {
        #[test]
        fn events_come_out_as_from_a_sorted_list_with_any_of_them_cancelled(
            calls in prop::collection::vec((0u64..20, 0usize..5, 0usize..50), 1..300)
        ) {
            let (mut queue, mut tickets, mut list) = (Queue::default(), Vec::new(), Vec::new());
            for (number, (at_ns, call, which)) in calls.into_iter().enumerate() {
                let at_ns = Nanoseconds::new(at_ns);
                match call {
                    0 if !tickets.is_empty() => {
                        let which = which % tickets.len();
                        let place = list.iter().position(|&(_, listed)| listed == which);
                        prop_assert_eq!(queue.cancel(tickets[which]), place.map(|place| list.remove(place).1));
                    }
                    1 => {
                        let first = list.iter().copied().min().filter(|&(first_ns, _)| first_ns < at_ns);
                        list.retain(|&listed| Some(listed) != first);
                        prop_assert_eq!(queue.pop_before(at_ns), first);
                    }
                    _ => {
                        list.push((at_ns, tickets.len()));
                        tickets.push(queue.push(at_ns, Class::Outside, tickets.len()));
                    }
                }
                prop_assert_eq!(queue.heap.len(), list.len(), "after call {}", number);
            }
            list.sort_unstable();
            prop_assert_eq!(std::iter::from_fn(|| queue.pop_before(Nanoseconds::MAX)).collect::<Vec<_>>(), list);
        }
    }
}
