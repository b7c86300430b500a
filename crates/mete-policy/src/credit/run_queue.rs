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
struct Place {
    processor: ProcessorId,
    level: u8,
}

/// All ready clients. Only those that are in it may be removed, and only those that are not put in.
pub(super) struct RunQueue {
    queues: Queues,
    places: Vec<Place>,
}

impl RunQueue {
    pub(super) fn new(clients: u32) -> RunQueue {
        RunQueue {
            queues: Queues::new(LEVELS + 1, clients),
            places: vec![Place::default(); clients as usize],
        }
    }

    /// The processor on which the client runs or ran last.
    pub(super) fn processor(&self, client: ClientId) -> ProcessorId {
        self.places.get(client as usize).map_or(0, |place| place.processor)
    }

    pub(super) fn push_back(&mut self, client: ClientId, priority: Priority) {
        self.places[client as usize].level = priority.rank() as u8;
        self.queues.push_back(priority.rank(), client);
    }

    pub(super) fn push_front(&mut self, client: ClientId, priority: Priority) {
        self.places[client as usize].level = priority.rank() as u8;
        self.queues.push_front(priority.rank(), client);
    }

    pub(super) fn remove(&mut self, client: ClientId) {
        let level = self.places[client as usize].level;
        self.queues.remove(usize::from(level), client);
    }

    /// Takes out who runs next on a processor.
    pub(super) fn take(&mut self, processor: ProcessorId) -> Option<ClientId> {
        let client = (0..LEVELS).find_map(|level| self.queues.pop_front(level))?;
        self.places[client as usize].processor = processor;
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
            self.push_back(client, priority(client));
        }
    }
}
