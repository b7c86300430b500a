//! TAVS-5, block devices: was an I/O-bound task near when a read was requested? (§3.5.1)
//!
//! Guests send requests late, when another task runs than the one that reads. So the last few tasks of
//! the slice are inspected, and one I/O-bound task among them marks the request. The paper looks at
//! the beliefs when the driver maps the request's memory. Here the beliefs are read when the guest sends the
//! request, which is the same moment to a host that sees only requests.

use alloc::vec;
use alloc::vec::Vec;

use crate::{ClientId, RequestId};

/// The marks of all pending requests of all tracked virtual processors.
pub(super) struct BlockCorrelation {
    marks: Vec<bool>,
    clients: u32,
    requests: usize,
}

impl BlockCorrelation {
    pub(super) fn new(clients: u32, requests: u16) -> BlockCorrelation {
        let requests = usize::from(requests);
        BlockCorrelation { marks: vec![false; clients as usize * requests], clients, requests }
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        if client.get() < self.clients {
            let begin = client.index() * self.requests;
            self.marks[begin..begin + self.requests].fill(false);
        }
    }

    pub(super) fn requested(&mut self, client: ClientId, request: RequestId, io_bound: bool) {
        if let Some(place) = self.place(client, request) {
            self.marks[place] = io_bound;
        }
    }

    /// The read is complete. Answers whether an I/O-bound task waits for it.
    pub(super) fn completed(&mut self, client: ClientId, request: RequestId) -> bool {
        // The mark is taken: the request's number may be used again for another read.
        self.place(client, request).is_some_and(|place| core::mem::take(&mut self.marks[place]))
    }

    fn place(&self, client: ClientId, request: RequestId) -> Option<usize> {
        let tracked = client.get() < self.clients && request.index() < self.requests;
        // The client's requests lie in a row of their own, so both parts are checked.
        tracked.then(|| client.index() * self.requests + request.index())
    }
}
