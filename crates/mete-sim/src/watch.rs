//! The recorder that measures clients: waits, wake-ups, switches, responses.

use mete_policy::{ClientId, Grant, Nanoseconds, ProcessorId, Stop};

use crate::recorder::{Note, Recorder};
use crate::report::ClientReport;

/// What is kept of a client while the host runs.
#[derive(Clone, Default)]
struct Watched {
    ready_since_ns: Option<Nanoseconds>,
    woke_ns: Option<Nanoseconds>,
    runs_first_since_wake: bool,
    report: ClientReport,
}

/// The recorder behind the reports.
pub(crate) struct Watch {
    clients: Vec<Watched>,
    /// Who ran last on each processor.
    last: Vec<Option<ClientId>>,
}

impl Watch {
    pub(crate) fn new(clients: usize, processors: ProcessorId) -> Watch {
        Watch { clients: vec![Watched::default(); clients], last: vec![None; usize::from(processors)] }
    }

    /// Forgets what was measured, but not who is ready.
    pub(crate) fn begin(&mut self, now_ns: Nanoseconds) {
        for client in &mut self.clients {
            client.report = ClientReport::default();
            client.ready_since_ns = client.ready_since_ns.map(|_| now_ns);
        }
    }

    /// Who is ready now has waited, too.
    pub(crate) fn end(&mut self, now_ns: Nanoseconds) {
        for client in &mut self.clients {
            if let Some(since_ns) = client.ready_since_ns {
                client.waited(now_ns - since_ns);
            }
        }
    }

    fn client(&mut self, client: ClientId) -> Option<&mut Watched> {
        self.clients.get_mut(client as usize)
    }

    /// What was measured of each client, by number; names and promises are the caller's to fill in.
    pub(crate) fn into_reports(self) -> impl Iterator<Item = ClientReport> {
        self.clients.into_iter().map(|client| client.report)
    }
}

impl Watched {
    fn waited(&mut self, wait_ns: Nanoseconds) {
        self.report.longest_wait_ns = self.report.longest_wait_ns.max(wait_ns);
    }
}

impl Recorder for Watch {
    fn woke(&mut self, client: ClientId, now_ns: Nanoseconds) {
        let Some(client) = self.client(client) else { return };
        client.ready_since_ns = Some(now_ns);
        client.woke_ns = Some(now_ns);
        client.runs_first_since_wake = true;
        client.report.wakes += 1;
    }

    fn dispatched(&mut self, processor: ProcessorId, client: ClientId, _grant: Grant, now_ns: Nanoseconds) {
        let last = self.last.get_mut(usize::from(processor)).and_then(|last| last.replace(client));
        let Some(watched) = self.client(client) else { return };
        watched.report.switches += u64::from(last != Some(client));
        let Some(since_ns) = watched.ready_since_ns.take() else { return };
        let wait_ns = now_ns - since_ns;
        watched.waited(wait_ns);
        if std::mem::take(&mut watched.runs_first_since_wake) {
            watched.report.wake_to_run.get_or_insert_default().record(wait_ns);
        }
    }

    fn stopped(
        &mut self,
        _processor: ProcessorId,
        client: ClientId,
        _ran_ns: Nanoseconds,
        stop: Stop,
        now_ns: Nanoseconds,
    ) {
        let Some(client) = self.client(client) else { return };
        if stop != Stop::Blocked {
            client.ready_since_ns = Some(now_ns);
        } else if let Some(woke_ns) = client.woke_ns.take() {
            client.report.wake_to_block.get_or_insert_default().record(now_ns - woke_ns);
        }
    }

    fn noted(&mut self, note: Note, _now_ns: Nanoseconds) {
        match note {
            Note::Response { client, took_ns, .. } => {
                let Some(client) = self.client(client) else { return };
                client.report.response.get_or_insert_default().record(took_ns);
            }
            Note::Done { client, .. } => {
                if let Some(client) = self.client(client) {
                    client.report.done += 1;
                }
            }
            Note::TaskWoke { .. } => {}
        }
    }
}
