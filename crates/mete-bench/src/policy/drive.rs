//! Policies with clients that are always ready, decision after decision.

use std::time::{Duration, Instant};

use mete_measure::reason::Reason;
use mete_measure::statistics::median;
use mete_policy::{
    ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop,
};
use mete_sim::random::Stream;

use crate::user::loops::{keep, timed};

/// The largest share of a client here. Shares are random up to it.
const LARGEST_SHARE: u32 = 100;

/// The duration that a piece of a sample should have, and the number of pieces. Their median counts, because
/// most pieces are undisturbed.
const PIECE_NS: f64 = 500_000.0;
const PIECES: usize = 9;

/// How long decisions are made before the first one counts, for each client and within limits. A policy whose
/// clients have all just arrived is in a state to which it does not return.
const WARM_UP_A_CLIENT: Duration = Duration::from_micros(30);
const WARM_UP: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(300));

/// Makes the given number of decisions.
type Decide = Box<dyn FnMut(u64)>;

/// A maker of decisions, and the number of decisions in a piece.
pub struct Subject {
    decide: Decide,
    times: u64,
    warm_up: Duration,
}

impl Subject {
    /// `decide` makes the number of decisions that it is given. `clients` says for how long to warm up.
    pub fn new(clients: u32, decide: impl FnMut(u64) + 'static) -> Subject {
        let warm_up = WARM_UP_A_CLIENT.saturating_mul(clients).clamp(WARM_UP.0, WARM_UP.1);
        Subject { decide: Box::new(decide), times: 0, warm_up }
    }

    /// Nanoseconds for a decision.
    pub fn sample(&mut self) -> Result<f64, Reason> {
        if self.times == 0 {
            self.times = self.warm_up();
        }
        let pieces: Vec<f64> = (0..PIECES).map(|_| timed(self.times, &mut *self.decide)).collect();
        median(&pieces).ok_or_else(|| Reason::new("no piece was measured"))
    }

    /// Makes decisions for the time of the warm-up. Returns the number of decisions that takes as long as a
    /// piece should.
    fn warm_up(&mut self) -> u64 {
        let begin = Instant::now();
        let mut times = 1;
        loop {
            let ns = timed(times, &mut *self.decide) * times as f64;
            if begin.elapsed() >= self.warm_up {
                return ((times as f64 * PIECE_NS / ns) as u64).max(1);
            }
            // Calls get longer up to the length of a piece, so that the last one gives a good estimate.
            if ns < PIECE_NS {
                times *= 2;
            }
        }
    }
}

/// A policy whose clients have random shares and are all ready. For each decision, the policy picks a client,
/// the client runs its slice, and the policy charges it. Where `P` is a concrete policy, the compiler makes a
/// loop for this policy alone.
pub fn ready<P: Policy + 'static>(clients: u32, make: impl FnOnce(&Setup) -> P) -> Subject {
    let mut policy = make(&Setup::for_clients(clients));
    for (client, share) in shares(clients) {
        policy.add(client, DomainIndex::ROOT, share, Nanoseconds::ZERO);
        // No client runs yet that could be preempted.
        let _ = policy.wake(client, Nanoseconds::ZERO);
    }
    let mut now = Nanoseconds::ZERO;
    Subject::new(clients, move |times| now = decide(&mut policy, now, times))
}

/// Clients with random shares, the same ones at each call.
pub fn shares(clients: u32) -> impl Iterator<Item = (ClientId, Share)> {
    let mut random = Stream::new(1, "shares");
    ClientId::first(clients).map(move |client| {
        // Never zero, and at most the limit, so that the fallback below is not reached.
        let share = 1 + random.below(LARGEST_SHARE.into()) as u32;
        (client, Share::new(share).unwrap_or(Share::ONE))
    })
}

#[inline(never)]
fn decide<P: Policy>(policy: &mut P, mut now: Nanoseconds, times: u64) -> Nanoseconds {
    let tick_ns = policy.tick_ns();
    for _ in 0..times {
        let Some(Decision { client, slice_ns, .. }) = policy.pick(ProcessorId::new(0), now) else {
            return now;
        };
        keep(client.get().into());
        let end = now + slice_ns;
        if let Some(tick_ns) = tick_ns {
            // The ticks after `now` up to `end`. A tick at `now` belonged to the slice before.
            for tick in now / tick_ns + 1..=end / tick_ns {
                // The client runs its slice to the end, even if the policy asks for preemption.
                let _ = policy.tick(ProcessorId::new(0), tick * tick_ns);
            }
        }
        now = end;
        policy.ran(client, slice_ns, Stop::Expired, now);
    }
    now
}

/// Always picks the first client. This shows what the loop itself costs.
pub struct FirstClient;

impl Policy for FirstClient {
    fn name(&self) -> &'static str {
        "none"
    }

    fn add(&mut self, _: ClientId, _: DomainIndex, _: Share, _: Nanoseconds) {}

    fn remove(&mut self, _: ClientId, _: Nanoseconds) {}

    fn set_share(&mut self, _: ClientId, _: Share, _: Nanoseconds) {}

    fn wake(&mut self, _: ClientId, _: Nanoseconds) -> Option<ProcessorId> {
        None
    }

    fn pick(&mut self, _: ProcessorId, _: Nanoseconds) -> Option<Decision> {
        Some(Decision { client: ClientId::new(0), slice_ns: Nanoseconds::new(1), grant: Grant::Share })
    }

    fn ran(&mut self, _: ClientId, _: Nanoseconds, _: Stop, _: Nanoseconds) {}
}
