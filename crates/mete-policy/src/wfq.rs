//! Weighted fair queueing: the smallest virtual finishing time first, by a heap or by a linear search.
//!
//! Source: Demers, Keshav and Shenker 1989; analysis: Parekh and Gallager 1993; for processors:
//! Waldspurger and Weihl 1995 and the VTRR paper, §2.3, which calls the two "WFQ [O(log N)]" and "WFQ"
//! (§5). A client's virtual time is its service divided by its share; its virtual finishing time is one
//! quantum more. The system's virtual time goes on by the service divided by the sum of shares.
//!
//! | | |
//! |---|---|
//! | selection and insertion together | O(log N), [`WfqLinear`](crate::WfqLinear) O(N); and a step for each processor |
//! | behind the ideal | less than one quantum |
//! | ahead of the ideal | up to as many quanta as there are clients |
//! | several processors | one queue serves all; at most a quantum a processor behind (Blanquer and Özden 2001) |
//!
//! The bound on several processors holds while no share is more than one processor; otherwise there is none.
//!
//! The bound behind holds for every client from its wake-up on, while others wake, stop before their
//! quantum's end, and leave, block or are given a smaller share when they are not ahead. A client that is
//! ahead and leaves has used time that the others' shares would now claim: each such exit adds its lead over
//! the remaining shares to their virtual lag. If a client's own share grows, a lag from before counts as a
//! lag of a shorter time.
//!
//! A woken client starts at the system's virtual time or at its own, whichever is later (VTRR paper, §3.2):
//! sleeping saves nothing up, and blocking does not shed what was used ahead. The system's virtual time goes
//! on while a quantum is used: a wake-up in the middle of a quantum finds counted what was used up to then.
//!
//! Deviations: partial quanta are charged by what was used. On a change of share, which the sources
//! leave open, a client's distance from the system's virtual time stays the same service. The linear
//! search goes over an array where the VTRR paper's goes over a linked list; an array is kinder to caches.

use crate::ClientId;
use crate::fair_queueing::{FairQueue, FairQueueing};
use crate::heap::Heap;
use crate::virtual_clock::VirtualClock;
use crate::virtual_time::Account;

/// Weighted fair queueing with a heap.
pub type Wfq = FairQueueing<Heap>;

impl FairQueue for Heap {
    const NAME: &'static str = "wfq";

    fn new(clients: u32) -> Heap {
        Heap::new(clients)
    }

    fn push(&mut self, client: ClientId, account: &Account) {
        // The finishing time of a waiting client does not change, so it can be the key.
        Heap::push(self, account.finish(), client);
    }

    fn pop(&mut self, _accounts: &[Account], _clock: &mut VirtualClock) -> Option<ClientId> {
        Heap::pop(self)
    }

    fn remove(&mut self, client: ClientId) {
        Heap::remove(self, client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

    /// The levels of a heap with four children a node: 1, 4, 16, ... clients.
    fn levels(clients: u32) -> u64 {
        let inner = 3 * u64::from(clients);
        u64::from(inner.ilog(4)) + 1
    }

    fn ready(clients: u32) -> Wfq {
        let mut policy = Wfq::new(&Setup::for_clients(clients));
        for client in ClientId::first(clients) {
            let share = Share::new(1 + client.get().wrapping_mul(2_654_435_761) / 7 % 100);
            policy.add(client, DomainIndex::ROOT, share.expect("in range"), Nanoseconds::ZERO);
            let _ = policy.wake(client, Nanoseconds::ZERO);
        }
        policy
    }

    /// Makes a decision; of one quantum in three only half is used.
    fn decide(policy: &mut Wfq, nth: u32) {
        let decision = policy.pick(ProcessorId::new(0), Nanoseconds::ZERO).expect("all are ready");
        let ran_ns = if nth.is_multiple_of(3) { decision.slice_ns / 2 } else { decision.slice_ns };
        policy.ran(decision.client, ran_ns, Stop::Expired, Nanoseconds::ZERO);
    }

    #[test]
    fn vtrr_5_a_wfq_decision_compares_at_most_four_keys_a_level_of_its_heap() {
        for clients in [1, 2, 5, 10, 50, 100, 200, 400, 10_000, 1_000_000] {
            let mut policy = ready(clients);
            let mut most = 0;
            for nth in 0..20_000 {
                let before = policy.queue.steps;
                decide(&mut policy, nth);
                most = most.max(policy.queue.steps - before);
            }
            let levels = levels(clients);
            assert!(most <= levels, "{most} steps with {clients} clients in {levels} levels");
            assert!(clients < 5 || 2 * most >= levels, "the steps are counted: {most} of {levels}");
        }
    }
}
