//! Remote machines: clients with think time, senders of streams, servers. They have processors of their own,
//! so their computing takes no time on this host.

use mete_policy::{ClientId, Nanoseconds};

use super::packet::{Packet, PacketKind, Peer};
use super::tcp::{Sender, Troubles};
use super::{Event, Scene};
use crate::model::Context;
use crate::queue::Ticket;
use crate::random::{Distribution, Stream};
use crate::recorder::Note;

/// What a remote machine does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remote {
    /// It asks a client, waits for the answer, thinks, and asks again.
    Asks {
        /// The client that it asks.
        to: ClientId,
        /// The client's port.
        port: u16,
        /// How much it sends, in bytes.
        bytes: Distribution,
        /// How long it thinks before each question, in nanoseconds.
        think: Distribution,
        /// `Some`: the connection is over TCP. The remote machine's kernel then acknowledges an answer by a
        /// packet of its own this number of nanoseconds after the answer came, unless the next question is
        /// earlier. A question acknowledges the answer, too.
        acknowledge_ns: Option<Nanoseconds>,
    },
    /// It sends a stream to a client.
    Sends {
        /// The client that it sends to.
        to: ClientId,
        /// The client's port.
        port: u16,
        /// How much it sends, in bytes; [`LONGEST_NS`](crate::random::LONGEST_NS) lasts for any run.
        bytes: u64,
        /// How many segments its receiver has room for.
        window: u64,
        /// The least that its timer adds to a round trip, in nanoseconds.
        patience_ns: Nanoseconds,
    },
    /// It answers requests with a stream.
    Serves {
        /// How much it answers, in bytes; at least 1 byte is sent.
        bytes: Distribution,
        /// How long it takes until the answer begins, in nanoseconds.
        think: Distribution,
        /// How many segments its receiver has room for.
        window: u64,
        /// The least that its timer adds to a round trip, in nanoseconds.
        patience_ns: Nanoseconds,
    },
}

/// A remote machine and what it has under way.
pub(super) struct RemoteMachine {
    number: u16,
    remote: Remote,
    stream: Stream,
    senders: Vec<Sender>,
    /// When it is next asked about its timers, and what cancels that.
    timer: Option<(Nanoseconds, Ticket)>,
    /// Requests that it has not begun to answer, oldest first.
    requests: Vec<Packet>,
}

impl RemoteMachine {
    pub(super) fn new(number: u16, remote: Remote, stream: Stream) -> RemoteMachine {
        RemoteMachine { number, remote, stream, senders: Vec::new(), timer: None, requests: Vec::new() }
    }

    /// It begins: a client thinks, a sender sends at once, a server waits.
    pub(super) fn start(&mut self, context: &mut Context<Scene>) {
        match self.remote {
            Remote::Asks { think, .. } => {
                self.think(think, context);
            }
            Remote::Sends { .. } => {
                context.after(Nanoseconds::ZERO, Event::Thought(self.number));
            }
            Remote::Serves { .. } => {}
        }
    }

    /// Its think time is over. The answer is what it sends then, if that is one packet.
    pub(super) fn thought(&mut self, now_ns: Nanoseconds) -> Option<Packet> {
        match self.remote {
            Remote::Asks { to, port, bytes, .. } => {
                let (from, to) = (Peer::Remote(self.number), Peer::Client { client: to, port });
                let bytes = bytes.sample(&mut self.stream);
                Some(Packet { from, to, bytes, sent_ns: now_ns, kind: PacketKind::Message { is_last: true } })
            }
            Remote::Sends { to, port, bytes, window, patience_ns } => {
                let to = Peer::Client { client: to, port };
                self.sender(to, window, patience_ns).answer(bytes, now_ns);
                None
            }
            Remote::Serves { bytes, window, patience_ns, .. } => {
                if !self.requests.is_empty() {
                    // In the order in which they came, even if a later request's think time was shorter.
                    let request = self.requests.remove(0);
                    let bytes = bytes.sample(&mut self.stream);
                    self.sender(request.from, window, patience_ns).answer(bytes, request.sent_ns);
                }
                None
            }
        }
    }

    /// A packet has come for it.
    pub(super) fn take(&mut self, packet: Packet, context: &mut Context<Scene>) {
        match (packet.kind, self.remote) {
            (PacketKind::Acknowledgement(told), _) => {
                let now_ns = context.now_ns();
                if let Some(sender) = self.senders.iter_mut().find(|sender| sender.is_to(packet.from)) {
                    sender.acknowledged(told, now_ns);
                }
            }
            (
                PacketKind::Message { is_last: true } | PacketKind::Segment { is_last: true, .. },
                Remote::Asks { think, to, port, acknowledge_ns, .. },
            ) => {
                let took_ns = context.now_ns().saturating_sub(packet.sent_ns);
                context.note(Note::Response { client: to, port, took_ns });
                let thinks_ns = self.think(think, context);
                // A later acknowledgement is left out: the question that ends the think time carries it.
                if let Some(after_ns) = acknowledge_ns.filter(|&after_ns| after_ns < thinks_ns) {
                    context.after(after_ns, Event::Acknowledge(packet.control(PacketKind::Received)));
                }
            }
            (PacketKind::Message { is_last: true }, Remote::Serves { think, .. }) => {
                self.requests.push(packet);
                self.think(think, context);
            }
            (PacketKind::Message { .. } | PacketKind::Segment { .. } | PacketKind::Received, _) => {}
        }
    }

    /// The next segment that may go, to any of its receivers.
    pub(super) fn segment(&mut self, segment_bytes: u64, now_ns: Nanoseconds) -> Option<Packet> {
        let from = Peer::Remote(self.number);
        self.senders.iter_mut().find_map(|sender| sender.segment(from, segment_bytes, now_ns))
    }

    /// Its senders check whether they have waited too long.
    pub(super) fn timer(&mut self, now_ns: Nanoseconds) {
        self.timer = None;
        self.senders.iter_mut().for_each(|sender| sender.look_at_timer(now_ns));
    }

    /// Asks to be called when the first of its senders will have waited too long. If that time is later than
    /// the time that is already set, as it is after most acknowledgements, nothing is changed: the early call
    /// finds nothing due and sets the timer again.
    pub(super) fn set_timer(&mut self, context: &mut Context<Scene>) {
        let Some(due_ns) = self.senders.iter().filter_map(|sender| sender.due_ns).min() else { return };
        if self.timer.is_some_and(|(timer_ns, _)| timer_ns <= due_ns) {
            return;
        }
        if let Some((_, ticket)) = self.timer {
            // The new time is earlier than the one that is set.
            context.cancel(ticket);
        }
        let ticket = context.after(due_ns.saturating_sub(context.now_ns()), Event::Timer(self.number));
        self.timer = Some((due_ns, ticket));
    }

    pub(super) fn troubles(&self) -> impl Iterator<Item = Troubles> {
        self.senders.iter().map(|sender| sender.troubles)
    }

    /// The sender to a port. There is one for the whole run.
    fn sender(&mut self, to: Peer, window: u64, patience_ns: Nanoseconds) -> &mut Sender {
        let at = self.senders.iter().position(|sender| sender.is_to(to)).unwrap_or_else(|| {
            self.senders.push(Sender::new(to, window, patience_ns));
            self.senders.len() - 1
        });
        &mut self.senders[at]
    }

    /// Begins to think; the answer is how long that takes.
    fn think(&mut self, think: Distribution, context: &mut Context<Scene>) -> Nanoseconds {
        let thinks_ns = think.sample_ns(&mut self.stream);
        context.after(thinks_ns, Event::Thought(self.number));
        thinks_ns
    }
}
