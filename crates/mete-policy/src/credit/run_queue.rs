//! The run queue: by priority, first in first out within one.
//!
//! One queue serves all processors. Xen has a queue for each, and lets a processor whose best client is over
//! its credit look into the others' queues. That is for scaling, and leaves a better client waiting wherever
//! a processor has a client of its own that is merely under its credit. One queue always gives the best.

use alloc::vec;
use alloc::vec::Vec;

use super::priority::Priority;
use crate::queue::Queues;
use crate::{ClientId, ProcessorId};

const LEVELS: usize = Priority::ALL.len();
/// The queue through which all clients pass while the queue is sorted anew.
const SPARE: usize = LEVELS;

/// A client's place in the queue, and the processor where it ran.
#[derive(Clone, Copy, Default)]
struct QueuePlace {
    processor: ProcessorId,
    /// The processor where it ran before that.
    processor_before: ProcessorId,
    level: u8,
    /// Counts up with each arrival at a tail: the client that came first has the smaller one.
    ticket: u64,
}

/// All ready clients. Only a client that is in the queue may be removed, and only one that is not may be put
/// in.
pub(super) struct RunQueue {
    queues: Queues,
    places: Vec<QueuePlace>,
    next_ticket: u64,
}

impl RunQueue {
    pub(super) fn new(clients: u32) -> RunQueue {
        RunQueue {
            queues: Queues::new(LEVELS + 1, clients),
            places: vec![QueuePlace::default(); clients as usize],
            next_ticket: 0,
        }
    }

    /// The processor on which the client runs or ran last.
    pub(super) fn processor(&self, client: ClientId) -> ProcessorId {
        self.places.get(client.index()).map_or(ProcessorId::default(), |place| place.processor)
    }

    /// Puts a client at the tail of its priority's list.
    pub(super) fn push_back(&mut self, client: ClientId, priority: Priority) {
        self.next_ticket += 1;
        self.places[client.index()].ticket = self.next_ticket;
        self.append(client, priority);
    }

    /// Puts a client at the head; it keeps the ticket that it had.
    pub(super) fn push_front(&mut self, client: ClientId, priority: Priority) {
        self.places[client.index()].level = priority.rank() as u8;
        self.queues.push_front(priority.rank(), client);
    }

    /// Puts a client at the head, as if it had not been taken out.
    pub(super) fn give_back(&mut self, client: ClientId, priority: Priority) {
        let place = &mut self.places[client.index()];
        place.processor = place.processor_before;
        self.push_front(client, priority);
    }

    /// Puts a client where it was before it went ahead of its turn: before the first client that came later.
    pub(super) fn put_back(&mut self, client: ClientId, priority: Priority) {
        let ticket = self.places[client.index()].ticket;
        let mut at = self.queues.front(priority.rank());
        while let Some(other) = at.filter(|&other| self.places[other.index()].ticket < ticket) {
            at = self.queues.next(other);
        }
        let Some(next) = at else { return self.append(client, priority) };
        self.places[client.index()].level = priority.rank() as u8;
        self.queues.insert_before(priority.rank(), next, client);
    }

    /// Moves a client to the tail of another priority's list, with the ticket that it has.
    pub(super) fn advance(&mut self, client: ClientId, priority: Priority) {
        self.remove(client);
        self.append(client, priority);
    }

    fn append(&mut self, client: ClientId, priority: Priority) {
        self.places[client.index()].level = priority.rank() as u8;
        self.queues.push_back(priority.rank(), client);
    }

    pub(super) fn remove(&mut self, client: ClientId) {
        let level = self.places[client.index()].level;
        self.queues.remove(usize::from(level), client);
    }

    /// The client that runs next.
    pub(super) fn first(&self) -> Option<ClientId> {
        (0..LEVELS).find_map(|level| self.queues.front(level))
    }

    /// Takes out the client that runs next on a processor.
    pub(super) fn take(&mut self, processor: ProcessorId) -> Option<ClientId> {
        let client = (0..LEVELS).find_map(|level| self.queues.pop_front(level))?;
        let place = &mut self.places[client.index()];
        (place.processor_before, place.processor) = (place.processor, processor);
        Some(client)
    }

    /// Sorts the queue anew after priorities have changed, keeping the order among equals.
    pub(super) fn sort(&mut self, priority: impl Fn(ClientId) -> Priority) {
        for level in 0..LEVELS {
            // Level by level, first to last: taken from the spare queue in that order, equals keep their
            // order.
            while let Some(client) = self.queues.pop_front(level) {
                self.queues.push_back(SPARE, client);
            }
        }
        while let Some(client) = self.queues.pop_front(SPARE) {
            self.append(client, priority(client));
        }
    }
}
