//! The recorder that measures clients: waits, wake-ups, switches, responses, service-time errors.

use mete_policy::{ClientId, DomainIndex, Grant, Nanoseconds, ProcessorId, Share, Stop};

use crate::client_report::{ClientReport, ServiceError};
use crate::host::{Hardware, Payer};
use crate::metrics::Fluid;
use crate::recorder::{Note, Recorder};

/// What is kept of a client while the host runs.
#[derive(Clone, Default)]
struct Watched {
    ready_since_ns: Option<Nanoseconds>,
    woke_ns: Option<Nanoseconds>,
    runs_first_since_wake: bool,
    /// Since when the present turn on a processor counts as its own service.
    serves_from_ns: Option<Nanoseconds>,
    /// Its service since measuring began. At the beginning it is below 0 by the part of a turn that was
    /// before.
    had_ns: i64,
    report: ClientReport,
}

/// The recorder behind the reports.
pub(crate) struct Watch {
    clients: Vec<Watched>,
    /// The client that ran last on each processor.
    last: Vec<Option<ClientId>>,
    hardware: Hardware,
    fluid: Fluid,
    starvation_ns: Nanoseconds,
}

impl Watch {
    /// Watches the clients that `fluid` has. A client that is ready without running for longer than
    /// `starvation_ns` starves.
    pub(crate) fn new(clients: usize, hardware: Hardware, fluid: Fluid, starvation_ns: Nanoseconds) -> Watch {
        let last = vec![None; usize::from(hardware.processors)];
        Watch { clients: vec![Watched::default(); clients], last, hardware, fluid, starvation_ns }
    }

    /// Forgets what was measured, but not which clients are ready and when they woke: a time from waking that
    /// ends in the measured time counts, and counts as a whole. A wait counts from now on.
    pub(crate) fn begin(&mut self, now_ns: Nanoseconds) {
        self.fluid.forget(now_ns);
        for client in &mut self.clients {
            client.report = ClientReport::default();
            client.ready_since_ns = client.ready_since_ns.map(|_| now_ns);
            // The whole turn is added when it ends, so its part before now is taken off here.
            client.had_ns = -client.turn_ns(now_ns);
        }
    }

    /// Ends the measurement. A client that is ready now has waited until now.
    pub(crate) fn end(&mut self, now_ns: Nanoseconds) {
        for (number, client) in (0..).zip(&mut self.clients) {
            if let Some(since_ns) = client.ready_since_ns {
                client.waited(now_ns - since_ns, self.starvation_ns);
            }
            let had_ns = client.had_ns + client.turn_ns(now_ns);
            client.report.error.is(self.fluid.error_ns(ClientId::new(number), had_ns, now_ns));
        }
    }

    fn client(&mut self, client: ClientId) -> Option<&mut Watched> {
        self.clients.get_mut(client.index())
    }

    /// What was measured of each client, by number. The caller fills in the names and what was promised.
    pub(crate) fn into_reports(self) -> impl Iterator<Item = ClientReport> {
        self.clients.into_iter().map(|client| client.report)
    }

    /// Whether the processor switches to this client, and from when on it serves the client. A switch comes
    /// first; it counts as service only if the client pays for it.
    fn serves_from_ns(
        &mut self,
        processor: ProcessorId,
        client: ClientId,
        now_ns: Nanoseconds,
    ) -> (bool, Nanoseconds) {
        let last = self.last.get_mut(processor.index()).and_then(|last| last.replace(client));
        let is_switch = last != Some(client);
        let is_lost = is_switch && self.hardware.payer == Payer::Nobody;
        (is_switch, now_ns.saturating_add(if is_lost { self.hardware.switch_ns } else { Nanoseconds::ZERO }))
    }

    /// Notes the error. It is lowest just before a turn and highest at its end, so it is noted there.
    fn note_error(&mut self, client: ClientId, now_ns: Nanoseconds) {
        if let Some(watched) = self.clients.get_mut(client.index()) {
            watched.report.error.is(self.fluid.error_ns(client, watched.had_ns, now_ns));
        }
    }
}

impl Watched {
    fn waited(&mut self, wait_ns: Nanoseconds, limit_ns: Nanoseconds) {
        self.report.longest_wait_ns = self.report.longest_wait_ns.max(wait_ns);
        if wait_ns > limit_ns {
            self.report.starved += 1;
            self.report.starved_ns += wait_ns - limit_ns;
        }
    }

    /// How much of the present turn the client has had.
    fn turn_ns(&self, now_ns: Nanoseconds) -> i64 {
        self.serves_from_ns.map_or(0, |from_ns| now_ns.saturating_sub(from_ns).get() as i64)
    }
}

impl ServiceError {
    /// The error at this moment.
    fn is(&mut self, error_ns: i64) {
        self.last_ns = error_ns;
        self.lowest_ns = self.lowest_ns.min(error_ns);
        self.highest_ns = self.highest_ns.max(error_ns);
    }
}

impl Recorder for Watch {
    fn woke(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.fluid.activate(client, now_ns);
        let Some(client) = self.client(client) else { return };
        client.ready_since_ns = Some(now_ns);
        client.woke_ns = Some(now_ns);
        client.runs_first_since_wake = true;
        client.report.wakes += 1;
    }

    fn dispatched(&mut self, processor: ProcessorId, client: ClientId, _grant: Grant, now_ns: Nanoseconds) {
        let (is_switch, from_ns) = self.serves_from_ns(processor, client, now_ns);
        self.note_error(client, now_ns);
        let starvation_ns = self.starvation_ns;
        let Some(watched) = self.client(client) else { return };
        watched.serves_from_ns = Some(from_ns);
        watched.report.switches += u64::from(is_switch);
        let Some(since_ns) = watched.ready_since_ns.take() else { return };
        let wait_ns = now_ns - since_ns;
        watched.waited(wait_ns, starvation_ns);
        // Not the wait, which measuring may have cut short at its beginning.
        if std::mem::take(&mut watched.runs_first_since_wake)
            && let Some(woke_ns) = watched.woke_ns
        {
            watched.report.wake_to_run.get_or_insert_default().record(now_ns - woke_ns);
        }
    }

    fn stopped(
        &mut self,
        _processor: ProcessorId,
        client: ClientId,
        ran_ns: Nanoseconds,
        stop: Stop,
        now_ns: Nanoseconds,
    ) {
        let Some(watched) = self.client(client) else { return };
        watched.serves_from_ns = None;
        watched.had_ns += ran_ns.get() as i64;
        // A client that was preempted or whose slice ended waits again from now on.
        if stop != Stop::Blocked {
            watched.ready_since_ns = Some(now_ns);
        } else if let Some(woke_ns) = watched.woke_ns.take() {
            watched.report.wake_to_block.get_or_insert_default().record(now_ns - woke_ns);
        }
        // The turn is over, so the service is complete; only afterwards the fluid server stops serving the
        // client.
        self.note_error(client, now_ns);
        if stop == Stop::Blocked {
            self.fluid.deactivate(client, now_ns);
        }
    }

    fn share_set(&mut self, client: ClientId, share: Share, now_ns: Nanoseconds) {
        self.fluid.set_share(client, share, now_ns);
    }

    fn domain_share_set(&mut self, domain: DomainIndex, share: Share, now_ns: Nanoseconds) {
        self.fluid.set_domain_share(domain, share, now_ns);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_from_waking_that_began_before_the_measurement_counts_as_a_whole() {
        let (client, processor, ms) = (ClientId::new(0), ProcessorId::new(0), Nanoseconds::from_millis);
        let mut fluid = Fluid::new(1);
        fluid.add(DomainIndex::ROOT, Share::ONE);
        let mut watch = Watch::new(1, Hardware::default(), fluid, Nanoseconds::MAX);
        watch.woke(client, ms(1));
        watch.begin(ms(5));
        watch.dispatched(processor, client, Grant::Share, ms(7));
        watch.stopped(processor, client, ms(2), Stop::Blocked, ms(9));
        let report = watch.into_reports().next().expect("there is one client");
        let longest_ns =
            |times: Option<crate::metrics::Latencies>| times.and_then(|times| times.longest_ns());
        assert_eq!(longest_ns(report.wake_to_run), Some(ms(6)));
        assert_eq!(longest_ns(report.wake_to_block), Some(ms(8)));
        assert_eq!(report.longest_wait_ns, ms(2), "of the wait, what was measured");
    }
}
