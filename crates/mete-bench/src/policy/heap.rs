//! The least cost of a sorted queue: pops and pushes of the standard library's binary heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::drive::{Subject, shares};
use crate::user::loops::keep;

/// A heap of clients by virtual time. Each decision pops the client with the least time and pushes it again,
/// later by a step that its share determines.
pub(super) fn bare(clients: u32) -> Subject {
    const QUANTUM: u64 = 1 << 20;
    let steps: Vec<u64> = shares(clients).map(|(_, share)| QUANTUM / u64::from(share.get())).collect();
    let mut heap: BinaryHeap<_> = (0..).zip(&steps).map(|(client, &step)| Reverse((step, client))).collect();
    Subject::new(clients, move |times| pop_and_push(&mut heap, &steps, times))
}

#[inline(never)]
fn pop_and_push(heap: &mut BinaryHeap<Reverse<(u64, u32)>>, steps: &[u64], times: u64) {
    for _ in 0..times {
        let Some(Reverse((time, client))) = heap.pop() else { return };
        keep(client.into());
        // The heap has the clients of `steps`, so the place exists.
        heap.push(Reverse((time + steps[client as usize], client)));
    }
}
