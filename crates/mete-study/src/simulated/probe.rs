//! Watches one task closely: what it answers, how long its events wait, how much work it does, and whether
//! the boosts of its virtual processor served it.

use mete_policy::{ClientId, Event, Grant, Nanoseconds, Observation, ProcessorId, Stop};
use mete_sim::metrics::{Boosts, Latencies};
use mete_sim::{Note, Recorder};

/// The port at which the watched task listens in all scenarios.
pub(crate) const PORT: u16 = 7;
/// The time by which TAVS has inferred which task is I/O-bound, if it ever does.
const INFERRED_NS: Nanoseconds = Nanoseconds::new(10_000_000_000);

/// What was observed of the watched task and its client.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Probe {
    client: ClientId,
    task: u16,
    from_ns: Nanoseconds,
    /// The times from a request to its answer, at the watched port.
    pub responses: Latencies,
    /// The same without the first ten seconds.
    pub settled: Latencies,
    /// The times from an event's arrival at the guest until the task is runnable.
    pub latencies: Latencies,
    /// The number of units of work of the watched task.
    pub done: u64,
    /// The number of units of work of the other tasks of its client.
    pub done_beside: u64,
    /// Partial boosts of the client. A boost hits if the watched task says "done" while it lasts.
    pub boosts: Boosts,
    /// Those partial boosts that began while only packets for the watched port were pending.
    pub boosts_alone: Boosts,
    boost: Option<Boost>,
    /// What has arrived for the client since it last ran.
    pending: Pending,
}

/// A partial boost that lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Boost {
    is_alone: bool,
    has_hit: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Pending {
    #[default]
    Nothing,
    Watched,
    Others,
}

impl Probe {
    /// Watches a task from `from_ns` on.
    pub(crate) fn new(client: ClientId, task: u16, from_ns: Nanoseconds) -> Probe {
        Probe { client, task, from_ns, ..Probe::default() }
    }

    fn did(&mut self, task: u16) {
        if task != self.task {
            self.done_beside += 1;
            return;
        }
        self.done += 1;
        self.boost = self.boost.map(|boost| Boost { has_hit: true, ..boost });
    }
}

impl Recorder for Probe {
    fn dispatched(&mut self, _processor: ProcessorId, client: ClientId, grant: Grant, now_ns: Nanoseconds) {
        if client != self.client {
            return;
        }
        // What was pending until now belongs to this turn; what comes from now on to the next one.
        let is_alone = std::mem::take(&mut self.pending) == Pending::Watched;
        let counts = now_ns >= self.from_ns && grant == Grant::PartialBoost;
        self.boost = counts.then_some(Boost { is_alone, has_hit: false });
    }

    fn stopped(
        &mut self,
        _processor: ProcessorId,
        client: ClientId,
        _ran_ns: Nanoseconds,
        _stop: Stop,
        _now_ns: Nanoseconds,
    ) {
        if client == self.client
            && let Some(boost) = self.boost.take()
        {
            self.boosts.ended(boost.has_hit);
            if boost.is_alone {
                self.boosts_alone.ended(boost.has_hit);
            }
        }
    }

    fn observed(&mut self, observation: Observation, _now_ns: Nanoseconds) {
        if let Observation::EventPending { client, event } = observation
            && client == self.client
        {
            // One other event is enough: the boost may then serve another task.
            let is_watched = event == Event::Packet { port: PORT } && self.pending != Pending::Others;
            self.pending = if is_watched { Pending::Watched } else { Pending::Others };
        }
    }

    fn noted(&mut self, note: Note, now_ns: Nanoseconds) {
        if now_ns < self.from_ns {
            return;
        }
        match note {
            Note::Response { client, port: PORT, took_ns } if client == self.client => {
                self.responses.record(took_ns);
                if now_ns >= INFERRED_NS {
                    self.settled.record(took_ns);
                }
            }
            Note::TaskWoke { client, task, pending_ns } if (client, task) == (self.client, self.task) => {
                self.latencies.record(pending_ns);
            }
            Note::Done { client, task } if client == self.client => self.did(task),
            _ => {}
        }
    }
}
