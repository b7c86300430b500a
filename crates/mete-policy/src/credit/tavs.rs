//! The TAVS parts together: what is known about the guests, and what follows from an observation.

use alloc::vec;
use alloc::vec::Vec;

use super::block::BlockCorrelation;
use super::boosting::Boosting;
use super::counters::Counters;
use super::inference::Inference;
use super::keep::KeepOnRunQueue;
use super::network::NetworkCorrelation;
use super::settings::TavsSettings;
use super::tracking::Tracking;
use crate::{ClientId, DomainIndex, Event, Nanoseconds, RequestId, Setup, TaskId};

/// All parts. A part that is off has no clients and answers nothing.
pub(super) struct Tavs {
    pub(super) settings: TavsSettings,
    pub(super) boosting: Boosting,
    pub(super) keep: KeepOnRunQueue,
    pub(super) inference: Inference,
    pub(super) network: NetworkCorrelation,
    tracking: Tracking,
    block: BlockCorrelation,
    thresholds_ns: Vec<Nanoseconds>,
    drivers: Vec<bool>,
}

impl Tavs {
    pub(super) fn new(setup: &Setup, settings: TavsSettings) -> Tavs {
        let all = |on: bool| if on { setup.clients } else { 0 };
        // Tables are indexed by client: a part tracks the clients with the smallest numbers.
        let tracked = |on: bool| all(on).min(settings.tracked_clients);
        Tavs {
            settings,
            boosting: Boosting::new(tracked(settings.partial_boosting), &settings),
            keep: KeepOnRunQueue::new(all(settings.keep_on_run_queue)),
            inference: Inference::new(tracked(settings.inference), &settings),
            network: NetworkCorrelation::new(tracked(settings.network_correlation), &settings),
            tracking: Tracking::new(tracked(settings.inference)),
            block: BlockCorrelation::new(tracked(settings.block_correlation), settings.requests_per_client),
            thresholds_ns: vec![settings.io_threshold_ns; usize::from(setup.domains.max(1))],
            drivers: vec![false; all(!settings.is_off()) as usize],
        }
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        self.boosting.forget(client);
        self.keep.forget(client);
        self.inference.forget(client);
        self.network.forget(client);
        self.tracking.forget(client);
        self.block.forget(client);
        self.set_driver(client, false);
    }

    pub(super) fn set_driver(&mut self, client: ClientId, is_driver: bool) {
        if let Some(entry) = self.drivers.get_mut(client.index()) {
            *entry = is_driver;
        }
    }

    pub(super) fn is_driver(&self, client: ClientId) -> bool {
        self.drivers.get(client.index()).copied().unwrap_or(false)
    }

    pub(super) fn set_io_threshold(&mut self, domain: DomainIndex, threshold_ns: Nanoseconds) {
        if let Some(entry) = self.thresholds_ns.get_mut(domain.index()) {
            *entry = threshold_ns;
        }
    }

    pub(super) fn io_threshold_ns(&self, domain: DomainIndex) -> Nanoseconds {
        let set = self.thresholds_ns.get(domain.index());
        set.copied().unwrap_or(self.settings.io_threshold_ns)
    }

    pub(super) fn dispatched(&mut self, client: ClientId, boosted: bool, now: Nanoseconds) {
        // Before the parts below, which change both of these.
        let resumes = self.tracking.was_preempted(client) && !self.inference.is_input_pending(client);
        let keeps = !boosted && self.keep.has_left(client);
        self.tracking.dispatched(client, resumes, keeps, now);
        self.inference.dispatched(client, resumes);
        self.network.dispatched(client, resumes);
        self.boosting.dispatched(client, boosted);
    }

    pub(super) fn stopped(&mut self, client: ClientId, preempted: bool, now: Nanoseconds) {
        self.tracking.stopped(client, preempted, now);
    }

    /// A client did not run after all. If it was seen to switch tasks, it did run, for no time.
    pub(super) fn given_back(&mut self, client: ClientId, now: Nanoseconds) {
        if self.tracking.given_back(client) {
            self.inference.given_back(client);
            self.network.given_back(client);
        } else {
            self.tracking.stopped(client, true, now);
        }
    }

    /// Another task is switched in. Answers whether that task is I/O-bound.
    pub(super) fn switched(
        &mut self,
        client: ClientId,
        task: TaskId,
        io_threshold_ns: Nanoseconds,
        now: Nanoseconds,
        counters: &mut Counters,
    ) -> bool {
        if let Some(run) = self.tracking.switch(client, task, now)
            && let Some(evidence) = self.inference.judge(client, run, io_threshold_ns)
        {
            counters.count(evidence);
        }
        let io_bound = self.inference.is_io_bound(client, task);
        counters.portmap_updates += self.network.woken(client, io_bound);
        counters.partial_boost_hits += u64::from(io_bound && self.boosting.hit(client));
        io_bound
    }

    pub(super) fn task_exited(&mut self, client: ClientId, task: TaskId) {
        self.tracking.exited(client, task);
        self.inference.exited(client, task);
    }

    pub(super) fn block_requested(&mut self, client: ClientId, request: RequestId) {
        let window = self.tracking.window(client, self.settings.inspection_window);
        let io_bound = window.iter().any(|&task| self.inference.is_io_bound(client, task));
        self.block.requested(client, request, io_bound);
    }

    /// An event is pending for a virtual processor, or was delivered at once because the virtual processor
    /// runs. Answers whether the event is for an I/O-bound task, as far as is known.
    pub(super) fn is_for_io_bound(&mut self, client: ClientId, event: Event, delivered: bool) -> bool {
        let settings = &self.settings;
        match event {
            Event::Block(request) if settings.block_correlation => self.block.completed(client, request),
            Event::Packet { port } if settings.network_correlation => {
                !delivered && self.network.arrived(client, port)
            }
            // With a correlation on, only what it knows counts; without one, any event may be for such a
            // task.
            Event::Other => !(settings.block_correlation || settings.network_correlation),
            Event::Block(_) | Event::Packet { .. } => true,
        }
    }
}
