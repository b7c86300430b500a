//! What a sorted queue costs at least: the standard library's binary heap, popped and pushed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::drive::{Subject, shares};
use crate::user::loops::keep;

/// A heap of so many clients by virtual time: the least is popped and pushed again, later by what its
/// share says.
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
        heap.push(Reverse((time + steps[client as usize], client)));
    }
}
