//! Watches one task closely: what it answers, how long its events wait, what it gets done, and whether the
//! boosts of its virtual processor went to it.

use mete_policy::{ClientId, Event, Grant, Nanoseconds, Observation, ProcessorId, Stop};
use mete_sim::metrics::{Boosts, Latencies};
use mete_sim::{Note, Recorder};

/// All scenarios have the watched task listen here.
pub(super) const PORT: u16 = 7;
/// TAVS has inferred by then who is I/O-bound, if it ever does.
const INFERRED_NS: Nanoseconds = 10_000_000_000;

/// What was seen of the watched task and its client.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Probe {
    client: ClientId,
    task: u16,
    from_ns: Nanoseconds,
    /// From asking to being answered, at the watched port.
    pub responses: Latencies,
    /// The same, without the first ten seconds.
    pub settled: Latencies,
    /// From an event's arrival at the guest to the task's being runnable.
    pub latencies: Latencies,
    /// Units of work of the watched task.
    pub done: u64,
    /// Units of work of the other tasks of its client.
    pub done_beside: u64,
    /// Partial boostings of the client; one hits if the watched task says "done" meanwhile.
    pub boosts: Boosts,
    /// Those of them that began with packets for the watched port pending and nothing else.
    pub boosts_alone: Boosts,
    boost: Option<Boost>,
    /// What has come for the client since it ran last.
    pending: Pending,
}

/// A partial boosting under way.
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
    pub(super) fn new(client: ClientId, task: u16, from_ns: Nanoseconds) -> Probe {
        let none = Latencies::default;
        Probe {
            client,
            task,
            from_ns,
            responses: none(),
            settled: none(),
            latencies: none(),
            done: 0,
            done_beside: 0,
            boosts: Boosts::default(),
            boosts_alone: Boosts::default(),
            boost: None,
            pending: Pending::Nothing,
        }
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
