//! What running clients have used up to now, as far as the times of events show.
//!
//! A client is charged when it stops. If virtual time went on only then, it would stand still during a
//! quantum: a client that wakes in the middle of a quantum would begin where that quantum began, and gain by
//! sleeping. So before a policy compares an arrival with the others, it asks here what every running client
//! has used since the policy asked last. The answer is an estimate by the difference of two events' times,
//! never negative and never more than a quantum. [`Progress::leave`] says how much of it was counted, so that
//! the used time that [`ran`](crate::Policy::ran) carries replaces the estimate.
//!
//! An owner may pick ahead. A client that was picked for a processor that is still occupied has not begun; it
//! begins when the client before it leaves.

use alloc::vec;
use alloc::vec::Vec;

use crate::virtual_clock::VirtualClock;
use crate::virtual_time::service;
use crate::{ClientId, Nanoseconds, ProcessorId, Setup};

#[derive(Clone, Copy)]
struct CurrentRun {
    client: ClientId,
    since_ns: Nanoseconds,
    /// How much of the run is counted.
    counted_ns: Nanoseconds,
}

#[derive(Clone, Copy, Default)]
struct RunSeat {
    latest: Option<CurrentRun>,
    /// The client that was picked before that and has not left.
    before: Option<CurrentRun>,
}

impl RunSeat {
    /// The client that has the processor: the earlier one, while it has not left.
    fn running(&mut self) -> Option<&mut CurrentRun> {
        self.before.as_mut().or(self.latest.as_mut())
    }

    /// Takes a client off, and answers how much of its run was counted.
    #[inline]
    fn leave(&mut self, client: ClientId, now: Nanoseconds) -> Nanoseconds {
        let is_client = |run: &mut CurrentRun| run.client == client;
        if let Some(run) = self.before.take_if(is_client) {
            // The client that was picked ahead begins now, whenever it was picked.
            if let Some(next) = &mut self.latest {
                next.since_ns = now;
            }
            return run.counted_ns;
        }
        let run = self.latest.take_if(is_client);
        if run.is_some() {
            // A decision that was taken ahead is given back: the client before goes on as it did.
            self.latest = self.before.take();
        }
        run.map_or(Nanoseconds::ZERO, |run| run.counted_ns)
    }
}

/// Every client that runs.
pub(crate) struct Progress {
    seats: Vec<RunSeat>,
    /// Where each client was picked last. Empty if there is one processor: with a million clients it would
    /// take a million entries' worth of cache from the decisions.
    processors: Vec<ProcessorId>,
    quantum_ns: Nanoseconds,
}

impl Progress {
    /// No client runs; a run is never taken to be longer than `quantum_ns`.
    pub(crate) fn new(setup: &Setup, quantum_ns: Nanoseconds) -> Progress {
        let clients = if setup.processors > 1 { setup.clients as usize } else { 0 };
        Progress {
            seats: vec![RunSeat::default(); usize::from(setup.processors.max(1))],
            processors: vec![ProcessorId::default(); clients],
            quantum_ns,
        }
    }

    /// A client was picked for a processor.
    #[inline]
    pub(crate) fn enter(&mut self, processor: ProcessorId, client: ClientId, now: Nanoseconds) {
        let Some(seat) = self.seats.get_mut(processor.index()) else { return };
        *seat = RunSeat {
            latest: Some(CurrentRun { client, since_ns: now, counted_ns: Nanoseconds::ZERO }),
            before: seat.latest,
        };
        if let Some(last) = self.processors.get_mut(client.index()) {
            *last = processor;
        }
    }

    /// A client stopped or was removed. Answers how much of its run was counted already.
    #[inline]
    pub(crate) fn leave(&mut self, client: ClientId, now: Nanoseconds) -> Nanoseconds {
        // With one processor there are no entries, and the default is that processor.
        let processor = self.processors.get(client.index()).copied().unwrap_or_default();
        self.seats.get_mut(processor.index()).map_or(Nanoseconds::ZERO, |seat| seat.leave(client, now))
    }

    /// Counts what every running client has used since it was counted last, and reports it to `each`. Takes a
    /// step for each processor.
    pub(crate) fn count(&mut self, now: Nanoseconds, mut each: impl FnMut(ClientId, Nanoseconds)) {
        for run in self.seats.iter_mut().filter_map(RunSeat::running) {
            // Times may go back, and an owner may report the end of a quantum late.
            let used_ns = now.saturating_sub(run.since_ns).min(self.quantum_ns);
            let more_ns = used_ns.saturating_sub(run.counted_ns);
            if !more_ns.is_zero() {
                run.counted_ns = used_ns;
                each(run.client, more_ns);
            }
        }
    }

    /// Lets a clock of all clients' service go on by what running clients have used up to now.
    #[inline]
    pub(crate) fn advance_clock(&mut self, now: Nanoseconds, clock: &mut VirtualClock) {
        self.count(now, |_, used_ns| clock.advance(service(used_ns)));
    }

    /// Reports every running client to `each`, with what it has used up to now, counted or not.
    pub(crate) fn each(&self, now: Nanoseconds, mut each: impl FnMut(ClientId, Nanoseconds)) {
        for run in self.seats.iter().filter_map(|seat| seat.before.or(seat.latest)) {
            each(run.client, now.saturating_sub(run.since_ns).min(self.quantum_ns));
        }
    }

    /// Every client that was picked and has not stopped, with what it has not used yet of its quantum: the
    /// whole quantum, if it has not begun.
    pub(crate) fn unused(&self, now: Nanoseconds) -> impl Iterator<Item = (ClientId, Nanoseconds)> {
        self.seats.iter().flat_map(move |seat| {
            let running = seat.before.or(seat.latest);
            let left = running.map(|run| {
                let used_ns = now.saturating_sub(run.since_ns).min(self.quantum_ns);
                (run.client, self.quantum_ns - used_ns)
            });
            // While the client before has not left, the latest one was picked ahead and has not begun.
            let ahead = seat.latest.filter(|_| seat.before.is_some());
            left.into_iter().chain(ahead.map(|run| (run.client, self.quantum_ns)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(processors: u16) -> Progress {
        Progress::new(&Setup { processors, ..Setup::for_clients(3) }, Nanoseconds::new(100))
    }

    fn enter(progress: &mut Progress, processor: u16, client: u32, now: u64) {
        progress.enter(ProcessorId::new(processor), ClientId::new(client), Nanoseconds::new(now));
    }

    fn counted(progress: &mut Progress, now: u64) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        progress.count(Nanoseconds::new(now), |client, used_ns| all.push((client.get(), used_ns.get())));
        all
    }

    fn unused(progress: &Progress, now: u64) -> Vec<(u32, u64)> {
        progress
            .unused(Nanoseconds::new(now))
            .map(|(client, unused_ns)| (client.get(), unused_ns.get()))
            .collect()
    }

    #[test]
    fn new_1_a_run_is_counted_once_and_never_beyond_a_quantum() {
        let mut progress = progress(2);
        enter(&mut progress, 0, 0, 10);
        enter(&mut progress, 1, 1, 30);
        assert_eq!(counted(&mut progress, 50), [(0, 40), (1, 20)]);
        assert_eq!(counted(&mut progress, 40), [], "a time that goes back");
        assert_eq!(counted(&mut progress, 1_000), [(0, 60), (1, 80)]);
        assert_eq!(progress.leave(ClientId::new(0), Nanoseconds::new(1_000)), Nanoseconds::new(100));
        assert_eq!(
            progress.leave(ClientId::new(0), Nanoseconds::new(1_000)),
            Nanoseconds::ZERO,
            "it has left already"
        );
        assert_eq!(counted(&mut progress, 2_000), []);
    }

    #[test]
    fn new_1_a_client_that_is_picked_ahead_begins_when_the_one_before_it_leaves() {
        let mut progress = progress(1);
        enter(&mut progress, 0, 0, 0);
        enter(&mut progress, 0, 1, 20);
        assert_eq!(counted(&mut progress, 50), [(0, 50)]);
        assert_eq!(unused(&progress, 50), [(0, 50), (1, 100)]);
        assert_eq!(progress.leave(ClientId::new(0), Nanoseconds::new(60)), Nanoseconds::new(50));
        assert_eq!(counted(&mut progress, 90), [(1, 30)]);
        assert_eq!(unused(&progress, 90), [(1, 70)]);
    }

    #[test]
    fn new_1_a_pick_ahead_that_is_given_back_leaves_the_run_as_it_is() {
        let mut progress = progress(1);
        enter(&mut progress, 0, 0, 0);
        enter(&mut progress, 0, 1, 20);
        assert_eq!(progress.leave(ClientId::new(1), Nanoseconds::new(30)), Nanoseconds::ZERO);
        assert_eq!(counted(&mut progress, 50), [(0, 50)]);
    }
}
