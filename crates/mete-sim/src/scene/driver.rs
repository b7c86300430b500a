//! A driver domain: a client that does input and output for the others (TAVS paper, §2.1).
//!
//! ```text
//!   guest ──ring, event channel──▶ driver ──▶ disk, link
//!   guest ◀──event channel──────── driver ◀── interrupts
//! ```
//!
//! What guests ask for and what devices bring stands in one queue, is worked off at a cost each, and is
//! passed on in batches: guests are notified when a batch is full or nothing is left to do, as a backend
//! does that goes over its rings before it notifies. A guest notifies the driver only when the driver
//! has taken all that it asked for before, which is how shared rings save notifications.

use std::collections::VecDeque;

use mete_policy::{ClientId, Nanoseconds, Observation, RequestId};

use super::io::{Packet, Peer, Read};
use super::send_ring::{SendRing, TellSent};
use super::{Scene, Signal};
use crate::model::{Context, Step};

/// What a driver's work costs in processor time, and how much of it makes a batch.
///
/// The default is the order of magnitude that measurements of Xen's split drivers of the paper's time
/// report for its processors (some ten thousand cycles of 3 GHz a packet; Menon et al. 2006, Santos et
/// al. 2008); the paper itself gives none. The batch is the weight of Linux's network polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverCosts {
    /// Taking a packet from the network and copying it to a guest.
    pub receive_ns: Nanoseconds,
    /// Taking a packet from a guest and giving it to the network.
    pub transmit_ns: Nanoseconds,
    /// Taking a read from a guest, mapping its memory and giving it to the disk.
    pub request_ns: Nanoseconds,
    /// Unmapping a read's memory and answering the guest.
    pub complete_ns: Nanoseconds,
    /// After so many jobs guests are notified even if there is more to do; at least 1.
    pub batch: u32,
    /// Of which packets that they have sent guests hear.
    pub tell_sent: TellSent,
    /// How many packets its network card keeps that it has not taken yet; what comes then is lost. 0: any
    /// number.
    pub receive_ring: u32,
}

impl Default for DriverCosts {
    fn default() -> Self {
        DriverCosts {
            receive_ns: 10_000,
            transmit_ns: 10_000,
            request_ns: 10_000,
            complete_ns: 10_000,
            batch: 64,
            tell_sent: TellSent::Never,
            receive_ring: 0,
        }
    }
}

/// How many packets a ring of Xen's holds; for so many there is room from the beginning.
const RING: usize = 256;

/// One thing to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    /// A packet has come for a guest.
    Receive(Packet),
    /// A guest sends a packet.
    Transmit(ClientId, Packet),
    /// A guest reads from a disk.
    Request(Read),
    /// The disk has done so.
    Complete(ClientId, RequestId),
}

impl Job {
    /// For which guest it is.
    fn client(&self) -> Option<ClientId> {
        match *self {
            Job::Receive(packet) => match packet.to {
                Peer::Client { client, .. } => Some(client),
                Peer::Remote(_) => None,
            },
            Job::Transmit(client, _) | Job::Complete(client, _) => Some(client),
            Job::Request(read) => Some(read.on),
        }
    }

    fn cost_ns(&self, costs: &DriverCosts) -> Nanoseconds {
        match self {
            Job::Receive(_) => costs.receive_ns,
            Job::Transmit(..) => costs.transmit_ns,
            Job::Request(_) => costs.request_ns,
            Job::Complete(..) => costs.complete_ns,
        }
    }
}

/// Whose network device a packet goes through: that of a guest's first virtual processor, whichever sends.
fn owner(sender: ClientId, packet: Packet) -> ClientId {
    match packet.from {
        Peer::Client { client, .. } => client,
        Peer::Remote(_) => sender,
    }
}

/// What the driver does next.
pub(super) enum Action {
    Step(Step),
    /// The job is done as far as the driver's processor time goes; the devices have to act.
    Finish(Job),
}

/// The driver's rings and how far it is.
pub(super) struct Driver {
    client: ClientId,
    costs: DriverCosts,
    jobs: VecDeque<Job>,
    current: Option<Job>,
    left_ns: Nanoseconds,
    /// What guests will be told at the end of the batch.
    answers: Vec<(ClientId, Signal)>,
    in_batch: u32,
    /// Whose packets have been sent and not answered.
    sent: VecDeque<ClientId>,
    /// It is answering them.
    is_answering: bool,
    /// How many packets its network card keeps, and how many it has thrown away.
    received: u32,
    lost: u64,
    /// How many jobs each guest has put into the queue that have not been taken.
    asked: Vec<u32>,
    /// What each guest hears of what it sends.
    rings: Vec<SendRing>,
}

impl Driver {
    pub(super) fn new(client: ClientId, costs: DriverCosts) -> Driver {
        Driver {
            client,
            costs,
            jobs: VecDeque::with_capacity(RING),
            current: None,
            left_ns: 0,
            answers: Vec::new(),
            in_batch: 0,
            sent: VecDeque::with_capacity(RING),
            is_answering: false,
            received: 0,
            lost: 0,
            asked: Vec::new(),
            rings: Vec::new(),
        }
    }

    pub(super) fn client(&self) -> ClientId {
        self.client
    }

    /// A packet has come from the network.
    pub(super) fn receive(&mut self, packet: Packet, context: &mut Context<'_, Scene>) {
        if self.costs.receive_ring > 0 && self.received == self.costs.receive_ring {
            self.lost += 1;
            return;
        }
        self.received += 1;
        self.interrupt(Job::Receive(packet), context);
    }

    /// How many packets its network card had no room for.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// A device has something; it interrupts a driver that has nothing to do.
    pub(super) fn interrupt(&mut self, job: Job, context: &mut Context<'_, Scene>) {
        if self.is_idle() {
            context.notify(self.client, Signal::Kick);
        }
        self.jobs.push_back(job);
    }

    /// A guest asks for something, through its ring and event channel.
    pub(super) fn ask(&mut self, from: ClientId, job: Job, context: &mut Context<'_, Scene>) {
        let index = from as usize;
        if self.asked.len() <= index {
            self.asked.resize(index + 1, 0);
        }
        if let Job::Transmit(_, packet) = job {
            let tell = self.costs.tell_sent;
            self.ring(owner(from, packet)).ask(tell);
        }
        self.asked[index] += 1;
        if self.asked[index] == 1 {
            context.observe(Observation::Notify { from, to: self.client });
        }
        self.interrupt(job, context);
    }

    pub(super) fn advance(&mut self, ran_ns: Nanoseconds) {
        self.left_ns = self.left_ns.saturating_sub(ran_ns);
    }

    /// What it does now that it runs.
    pub(super) fn next(&mut self, context: &mut Context<'_, Scene>) -> Action {
        if self.left_ns > 0 {
            return Action::Step(Step::Compute(self.left_ns));
        }
        if let Some(job) = self.current.take() {
            self.account(&job, context);
            return Action::Finish(job);
        }
        if self.is_answering && self.answer_sent(context) {
            return Action::Step(Step::Continue);
        }
        let is_full = self.in_batch >= self.costs.batch.max(1);
        if (is_full || self.jobs.is_empty()) && self.flush(context) {
            return Action::Step(Step::Continue);
        }
        let Some(job) = self.jobs.pop_front() else { return Action::Step(Step::Block) };
        self.take(job);
        Action::Step(if self.left_ns > 0 { Step::Compute(self.left_ns) } else { Step::Continue })
    }

    /// A guest will be told at the end of the batch.
    pub(super) fn answer(&mut self, client: ClientId, signal: Signal) {
        self.answers.push((client, signal));
    }

    /// A guest's packet is on its way.
    pub(super) fn sent(&mut self, client: ClientId, packet: Packet) {
        if self.costs.tell_sent != TellSent::Never {
            self.sent.push_back(owner(client, packet));
        }
    }

    fn ring(&mut self, client: ClientId) -> &mut SendRing {
        let index = client as usize;
        if self.rings.len() <= index {
            self.rings.resize(index + 1, SendRing::default());
        }
        &mut self.rings[index]
    }

    /// Answers packets that were sent, one after the other, up to the first that its guest wants to hear of.
    /// The guest hears at once, in the midst of the answers, and may take the processor: what is left is
    /// answered when the driver goes on. So does the backend of Linux 2.6.18 (`net_tx_action_dealloc`).
    /// Whether there was one.
    fn answer_sent(&mut self, context: &mut Context<'_, Scene>) -> bool {
        while let Some(to) = self.sent.pop_front() {
            if self.rings.get_mut(to as usize).is_some_and(SendRing::sent) {
                context.observe(Observation::Notify { from: self.client, to });
                context.notify(to, Signal::Sent);
                return true;
            }
        }
        self.is_answering = false;
        false
    }

    /// A guest takes an event of its network device.
    pub(super) fn look(&mut self, client: ClientId) {
        if let Some(ring) = self.rings.get_mut(client as usize) {
            ring.look(self.costs.tell_sent);
        }
    }

    fn is_idle(&self) -> bool {
        let is_done = self.answers.is_empty() && self.sent.is_empty();
        self.jobs.is_empty() && self.current.is_none() && is_done
    }

    fn take(&mut self, job: Job) {
        if let (Job::Transmit(..) | Job::Request(_), Some(client)) = (job, job.client()) {
            self.asked[client as usize] -= 1;
        }
        if let Job::Receive(_) = job {
            self.received = self.received.saturating_sub(1);
        }
        self.left_ns = job.cost_ns(&self.costs);
        self.current = Some(job);
    }

    fn account(&mut self, job: &Job, context: &mut Context<'_, Scene>) {
        self.in_batch += 1;
        if let Some(client) = job.client() {
            let used_ns = job.cost_ns(&self.costs);
            context.observe(Observation::DriverTime { driver: self.client, client, used_ns });
        }
    }

    /// Ends the batch: each guest concerned is notified once and finds all its answers; after that come the
    /// answers to what was sent. Whether there were any.
    fn flush(&mut self, context: &mut Context<'_, Scene>) -> bool {
        self.in_batch = 0;
        self.is_answering = !self.sent.is_empty();
        let answered = !self.answers.is_empty() || self.is_answering;
        for at in 0..self.answers.len() {
            let (to, _) = self.answers[at];
            if !self.answers[..at].iter().any(|&(earlier, _)| earlier == to) {
                context.observe(Observation::Notify { from: self.client, to });
            }
        }
        for (to, signal) in self.answers.drain(..) {
            context.notify(to, signal);
        }
        answered
    }
}
