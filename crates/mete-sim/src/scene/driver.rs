//! A driver domain: a client that does input and output for the others (TAVS paper, §2.1).
//!
//! ```text
//!   guest ──ring, event channel──▶ driver ──▶ disk, link
//!   guest ◀──event channel──────── driver ◀── interrupts
//! ```
//!
//! The requests of guests and the news of devices stand in one queue. The driver works through them at a cost
//! each and passes the results on in batches: it notifies guests when a batch is full or no job is left. A
//! backend that goes over its rings before it notifies does the same. A guest notifies the driver only when
//! the driver has taken all that the guest asked for before, which is how shared rings save notifications.

use std::collections::VecDeque;

use mete_policy::{ClientId, Nanoseconds, Observation, RequestId};

use super::packet::{Packet, Peer};
use super::read::Read;
use super::send_ring::{SendRing, TellSent};
use super::{Scene, Signal};
use crate::model::{Context, Step};

/// What a driver's work costs in processor time, and how many jobs make a batch.
///
/// The default is the order of magnitude that measurements of Xen's split drivers of the paper's time report
/// for the processors of that time (some ten thousand cycles of 3 GHz a packet; Menon et al. 2006, Santos et
/// al. 2008). The paper itself gives no costs. The batch is the weight of Linux's network polling.
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
    /// After this number of jobs guests are notified even if more jobs wait; at least 1.
    pub batch: u32,
    /// Which of the packets that they have sent are reported to guests.
    pub tell_sent: TellSent,
    /// How many packets the network card keeps until the driver takes them. Packets that come when it is full
    /// are lost. 0: any number.
    pub receive_ring: u32,
}

impl Default for DriverCosts {
    fn default() -> Self {
        DriverCosts {
            receive_ns: Nanoseconds::new(10_000),
            transmit_ns: Nanoseconds::new(10_000),
            request_ns: Nanoseconds::new(10_000),
            complete_ns: Nanoseconds::new(10_000),
            batch: 64,
            tell_sent: TellSent::Never,
            receive_ring: 0,
        }
    }
}

/// How many packets one of Xen's rings holds; the queues have room for this number from the beginning.
const RING: usize = 256;

/// One thing that the driver has to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum DriverJob {
    /// A packet has come for a guest.
    Receive(Packet),
    /// A guest sends a packet.
    Transmit(ClientId, Packet),
    /// A guest reads from a disk.
    Request(Read),
    /// A disk has completed a guest's read.
    Complete(ClientId, RequestId),
}

impl DriverJob {
    /// The guest that it is for.
    fn client(&self) -> Option<ClientId> {
        match *self {
            DriverJob::Receive(packet) => match packet.to {
                Peer::Client { client, .. } => Some(client),
                Peer::Remote(_) => None,
            },
            DriverJob::Transmit(client, _) | DriverJob::Complete(client, _) => Some(client),
            DriverJob::Request(read) => Some(read.on),
        }
    }

    fn cost_ns(&self, costs: &DriverCosts) -> Nanoseconds {
        match self {
            DriverJob::Receive(_) => costs.receive_ns,
            DriverJob::Transmit(..) => costs.transmit_ns,
            DriverJob::Request(_) => costs.request_ns,
            DriverJob::Complete(..) => costs.complete_ns,
        }
    }
}

/// The guest through whose network device a packet goes: the client of a guest's first virtual processor,
/// even if another of its virtual processors sends.
fn owner(sender: ClientId, packet: Packet) -> ClientId {
    match packet.from {
        Peer::Client { client, .. } => client,
        Peer::Remote(_) => sender,
    }
}

/// What the driver does next.
pub(super) enum DriverAction {
    Step(Step),
    /// The driver has spent its processor time on the job; now the devices have to act.
    Finish(DriverJob),
}

/// The driver's rings, and how far it has come with its work.
#[derive(Default)]
pub(super) struct Driver {
    pub(super) client: ClientId,
    costs: DriverCosts,
    jobs: VecDeque<DriverJob>,
    current: Option<DriverJob>,
    left_ns: Nanoseconds,
    /// What guests are told at the end of the batch.
    answers: Vec<(ClientId, Signal)>,
    in_batch: u32,
    /// The guests whose packets have been sent and not answered, a packet each.
    sent: VecDeque<ClientId>,
    /// The driver is answering them.
    is_answering: bool,
    /// How many packets the network card keeps, and how many it had no room for.
    received: u32,
    pub(super) lost: u64,
    /// How many jobs of each guest are in the queue and not taken.
    asked: Vec<u32>,
    /// What each guest has asked to hear of its packets.
    rings: Vec<SendRing>,
}

impl Driver {
    pub(super) fn new(client: ClientId, costs: DriverCosts) -> Driver {
        let (jobs, sent) = (VecDeque::with_capacity(RING), VecDeque::with_capacity(RING));
        Driver { client, costs, jobs, sent, ..Driver::default() }
    }

    /// A packet has come from the network.
    pub(super) fn receive(&mut self, packet: Packet, context: &mut Context<Scene>) {
        // The network card drops the packet before the driver has any work with it.
        if self.costs.receive_ring > 0 && self.received == self.costs.receive_ring {
            self.lost += 1;
            return;
        }
        self.received += 1;
        self.interrupt(DriverJob::Receive(packet), context);
    }

    /// A device has something. It interrupts a driver that has nothing to do.
    pub(super) fn interrupt(&mut self, job: DriverJob, context: &mut Context<Scene>) {
        // Checked before the job is in the queue: a driver that has work needs no interrupt.
        if self.is_idle() {
            context.notify(self.client, Signal::Kick);
        }
        self.jobs.push_back(job);
    }

    /// A guest asks for something, through its ring and event channel.
    pub(super) fn ask(&mut self, from: ClientId, job: DriverJob, context: &mut Context<Scene>) {
        let index = from.index();
        if self.asked.len() <= index {
            self.asked.resize(index + 1, 0);
        }
        if let DriverJob::Transmit(_, packet) = job {
            let tell = self.costs.tell_sent;
            self.ring(owner(from, packet)).ask(tell);
        }
        self.asked[index] += 1;
        // Only the first request that the driver has not taken rings: while it has work, it looks at the ring
        // by itself.
        if self.asked[index] == 1 {
            context.observe(Observation::Notify { from, to: self.client });
        }
        self.interrupt(job, context);
    }

    pub(super) fn advance(&mut self, ran_ns: Nanoseconds) {
        self.left_ns = self.left_ns.saturating_sub(ran_ns);
    }

    /// What it does now that it has a processor.
    pub(super) fn next(&mut self, context: &mut Context<Scene>) -> DriverAction {
        if !self.left_ns.is_zero() {
            return DriverAction::Step(Step::Compute(self.left_ns));
        }
        // The order matters: a job ends before the next begins, answers that have begun go out before others
        // are prepared, and a full batch is passed on before another job is taken.
        if let Some(job) = self.current.take() {
            self.account(&job, context);
            return DriverAction::Finish(job);
        }
        if self.is_answering && self.answer_sent(context) {
            return DriverAction::Step(Step::Continue);
        }
        let is_full = self.in_batch >= self.costs.batch.max(1);
        if (is_full || self.jobs.is_empty()) && self.flush(context) {
            return DriverAction::Step(Step::Continue);
        }
        let Some(job) = self.jobs.pop_front() else { return DriverAction::Step(Step::Block) };
        self.take(job);
        DriverAction::Step(if self.left_ns.is_zero() { Step::Continue } else { Step::Compute(self.left_ns) })
    }

    /// A guest is told this at the end of the batch.
    pub(super) fn answer(&mut self, client: ClientId, signal: Signal) {
        self.answers.push((client, signal));
    }

    /// A guest's packet is on its way.
    pub(super) fn sent(&mut self, client: ClientId, packet: Packet) {
        // Where guests are told of no packet, there is nothing to answer.
        if self.costs.tell_sent != TellSent::Never {
            self.sent.push_back(owner(client, packet));
        }
    }

    fn ring(&mut self, client: ClientId) -> &mut SendRing {
        let index = client.index();
        if self.rings.len() <= index {
            self.rings.resize(index + 1, SendRing::default());
        }
        &mut self.rings[index]
    }

    /// Answers packets that were sent, one after another, up to the first of which the guest wants to hear.
    /// The guest gets its event at once, before the other packets are answered, and may take the processor.
    /// The driver answers the others when it goes on. The backend of Linux 2.6.18 does the same
    /// (`net_tx_action_dealloc`). The result says whether there was such a packet.
    fn answer_sent(&mut self, context: &mut Context<Scene>) -> bool {
        while let Some(to) = self.sent.pop_front() {
            if self.rings.get_mut(to.index()).is_some_and(SendRing::sent) {
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
        if let Some(ring) = self.rings.get_mut(client.index()) {
            ring.look(self.costs.tell_sent);
        }
    }

    fn is_idle(&self) -> bool {
        let is_done = self.answers.is_empty() && self.sent.is_empty();
        self.jobs.is_empty() && self.current.is_none() && is_done
    }

    fn take(&mut self, job: DriverJob) {
        if let (DriverJob::Transmit(..) | DriverJob::Request(_), Some(client)) = (job, job.client()) {
            // `ask` has counted this job, so the guest has an entry, and it is not 0.
            self.asked[client.index()] -= 1;
        }
        if let DriverJob::Receive(_) = job {
            self.received = self.received.saturating_sub(1);
        }
        self.left_ns = job.cost_ns(&self.costs);
        self.current = Some(job);
    }

    fn account(&mut self, job: &DriverJob, context: &mut Context<Scene>) {
        self.in_batch += 1;
        if let Some(client) = job.client() {
            // With it the policy can charge the guest for the driver's work.
            let used_ns = job.cost_ns(&self.costs);
            context.observe(Observation::DriverTime { driver: self.client, client, used_ns });
        }
    }

    /// Ends the batch. Each guest concerned is notified once and finds all its answers. After that come the
    /// answers to packets that were sent. The result says whether there were any answers.
    fn flush(&mut self, context: &mut Context<Scene>) -> bool {
        self.in_batch = 0;
        self.is_answering = !self.sent.is_empty();
        let answered = !self.answers.is_empty() || self.is_answering;
        for at in 0..self.answers.len() {
            let (to, _) = self.answers[at];
            // The policy sees one notification for each guest, at its first answer.
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
