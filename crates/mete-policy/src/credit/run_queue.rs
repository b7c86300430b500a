//! The run queue: by priority, first in first out within one.
//!
//! One queue serves all processors. Xen has a queue for each and lets a processor whose best is over its
//! credit look into the others'; that is for scaling, and leaves a better client waiting wherever a
//! processor has one of its own that is merely under its credit. One queue always gives the best.

use alloc::vec;
use alloc::vec::Vec;

use super::priority::Priority;
use crate::queue::Queues;
use crate::{ClientId, ProcessorId};

const LEVELS: usize = Priority::ALL.len();
/// Where clients wait while the queue is being sorted.
const SPARE: usize = LEVELS;

/// Where a client is in the queue, and where it ran.
#[derive(Clone, Copy, Default)]
struct QueuePlace {
    processor: ProcessorId,
    /// Where it ran before that.
    processor_before: ProcessorId,
    level: u8,
    /// Counts up with each arrival at a tail: who came first has the smaller one.
    ticket: u64,
}

/// All ready clients. Only those that are in it may be removed, and only those that are not put in.
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
        self.places.get(client as usize).map_or(0, |place| place.processor)
    }

    /// Puts a client at the tail of its priority's list.
    pub(super) fn push_back(&mut self, client: ClientId, priority: Priority) {
        self.next_ticket += 1;
        self.places[client as usize].ticket = self.next_ticket;
        self.append(client, priority);
    }

    /// Puts a client at the head; it keeps the ticket that it had.
    pub(super) fn push_front(&mut self, client: ClientId, priority: Priority) {
        self.places[client as usize].level = priority.rank() as u8;
        self.queues.push_front(priority.rank(), client);
    }

    /// Puts a client at the head, as if it had not been taken out.
    pub(super) fn give_back(&mut self, client: ClientId, priority: Priority) {
        let place = &mut self.places[client as usize];
        place.processor = place.processor_before;
        self.push_front(client, priority);
    }

    /// Puts a client where it was before it went ahead of its turn: before the first who came later.
    pub(super) fn put_back(&mut self, client: ClientId, priority: Priority) {
        let ticket = self.places[client as usize].ticket;
        let mut at = self.queues.front(priority.rank());
        while let Some(other) = at.filter(|&other| self.places[other as usize].ticket < ticket) {
            at = self.queues.next(other);
        }
        let Some(next) = at else { return self.append(client, priority) };
        self.places[client as usize].level = priority.rank() as u8;
        self.queues.insert_before(priority.rank(), next, client);
    }

    /// Moves a client to the tail of another priority's list, with the ticket that it has.
    pub(super) fn advance(&mut self, client: ClientId, priority: Priority) {
        self.remove(client);
        self.append(client, priority);
    }

    fn append(&mut self, client: ClientId, priority: Priority) {
        self.places[client as usize].level = priority.rank() as u8;
        self.queues.push_back(priority.rank(), client);
    }

    pub(super) fn remove(&mut self, client: ClientId) {
        let level = self.places[client as usize].level;
        self.queues.remove(usize::from(level), client);
    }

    /// Who runs next.
    pub(super) fn first(&self) -> Option<ClientId> {
        (0..LEVELS).find_map(|level| self.queues.front(level))
    }

    /// Takes out who runs next on a processor.
    pub(super) fn take(&mut self, processor: ProcessorId) -> Option<ClientId> {
        let client = (0..LEVELS).find_map(|level| self.queues.pop_front(level))?;
        let place = &mut self.places[client as usize];
        (place.processor_before, place.processor) = (place.processor, processor);
        Some(client)
    }

    /// Sorts the queue anew after priorities have changed, keeping the order among equals.
    pub(super) fn sort(&mut self, priority: impl Fn(ClientId) -> Priority) {
        for level in 0..LEVELS {
            while let Some(client) = self.queues.pop_front(level) {
                self.queues.push_back(SPARE, client);
            }
        }
        while let Some(client) = self.queues.pop_front(SPARE) {
            self.append(client, priority(client));
        }
    }
}
