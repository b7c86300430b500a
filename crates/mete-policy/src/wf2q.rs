//! WF²Q+: of the clients that are not ahead, the one with the smallest virtual finishing time.
//!
//! Source: Bennett and Zhang, "Hierarchical Packet Fair Queueing Algorithms", 1996, whose one-level server is
//! WF²Q+ (a cheaper virtual time for the WF²Q of their "Worst-case Fair Weighted Fair Queueing", 1996). A
//! client may be chosen when its virtual time (its next quantum's start) is not beyond the system's; among
//! those the smallest virtual finishing time is first. When no client may be chosen, the system's virtual
//! time jumps to the least start, so no time is lost.
//!
//! | | |
//! |---|---|
//! | selection and insertion together | O(log N) amortised, and a step for each processor |
//! | behind the ideal, ahead of it | less than one quantum each, among clients that stay ready |
//! | several processors | one queue serves all, and the clock also jumps past clients that run |
//!
//! The cost is amortised because a client is set aside as too early once a quantum at most; one decision may
//! move many. On several processors, while no share is more than one processor, random trials found no error
//! beyond a quantum a processor either way (not proved); otherwise there is no bound.
//!
//! The bounds hold from a client's wake-up on while others wake and stop before their quantum's end. A client
//! that leaves while ahead adds its lead, less than a quantum, over the remaining shares to the others' lag.
//! A client that leaves while behind leaves the others ahead by that much, and the clock jumps.
//!
//! A woken client starts at the system's virtual time or at its own, whichever is later (the source's
//! rule for a packet that finds its session empty): sleeping saves nothing up.
//!
//! Deviations: the source's clock goes by reserved rates, this one by the shares of the clients that are
//! runnable, so that all time is shared out. Partial quanta are charged by what was used. On a change of
//! share a client's distance from the system's virtual time stays the same service.

use crate::eligible::Eligible;
use crate::fair_queueing::FairQueueing;

/// The WF²Q+ policy.
pub type Wf2q = FairQueueing<Eligible>;
