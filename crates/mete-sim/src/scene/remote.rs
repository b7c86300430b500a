//! Remote machines: clients with think time, senders of streams, servers. They have processors of their
//! own, so what they compute takes no time here.

use mete_policy::{ClientId, Nanoseconds};

use super::io::{Kind, Packet, Peer};
use super::transfer::Transfer;
use super::{Event, Scene};
use crate::model::Context;
use crate::random::{Distribution, Stream};
use crate::recorder::Note;

/// What a remote machine does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Remote {
    /// It asks a client, waits for the answer, thinks, and asks again.
    Asks {
        /// Whom.
        to: ClientId,
        /// At which port.
        port: u16,
        /// How much it sends, in bytes.
        bytes: Distribution,
        /// How long it thinks before each question, in nanoseconds.
        think: Distribution,
        /// `Some`: over TCP. Then its kernel acknowledges an answer by a packet of its own, in nanoseconds
        /// after it came, unless the next question, which does so, too, is earlier.
        acknowledge_ns: Option<Nanoseconds>,
    },
    /// It sends a client a stream.
    Sends {
        /// To whom.
        to: ClientId,
        /// To which port.
        port: u16,
        /// How much, in bytes; [`LONGEST_NS`](crate::random::LONGEST_NS) lasts for any run.
        bytes: u64,
        /// How many segments may be under way.
        window: u64,
    },
    /// It answers requests with a stream.
    Serves {
        /// How much, in bytes; at least 1 is sent.
        bytes: Distribution,
        /// How long it takes until the answer begins, in nanoseconds.
        think: Distribution,
        /// How many segments may be under way.
        window: u64,
    },
}

/// A remote machine and what it has under way.
pub(super) struct Machine {
    number: u16,
    remote: Remote,
    stream: Stream,
    transfers: Vec<Transfer>,
    /// Requests that it thinks about.
    requests: Vec<Packet>,
}

impl Machine {
    pub(super) fn new(number: u16, remote: Remote, stream: Stream) -> Machine {
        Machine { number, remote, stream, transfers: Vec::new(), requests: Vec::new() }
    }

    /// It begins: a client thinks, a sender sends at once.
    pub(super) fn start(&mut self, context: &mut Context<'_, Scene>) {
        match self.remote {
            Remote::Asks { think, .. } => {
                self.think(think, context);
            }
            Remote::Sends { .. } => {
                context.after(0, Event::Thought(self.number));
            }
            Remote::Serves { .. } => {}
        }
    }

    /// It has thought: what it sends then, if that is one packet.
    pub(super) fn thought(&mut self, now_ns: Nanoseconds) -> Option<Packet> {
        match self.remote {
            Remote::Asks { to, port, bytes, .. } => {
                let (from, to) = (Peer::Remote(self.number), Peer::Client { client: to, port });
                let bytes = bytes.sample(&mut self.stream);
                Some(Packet { from, to, bytes, sent_ns: now_ns, kind: Kind::Message { is_last: true } })
            }
            Remote::Sends { to, port, bytes, window } => {
                let to = Peer::Client { client: to, port };
                self.transfers.push(Transfer::new(to, bytes, window, now_ns));
                None
            }
            Remote::Serves { bytes, window, .. } => {
                if !self.requests.is_empty() {
                    let request = self.requests.remove(0);
                    let bytes = bytes.sample(&mut self.stream).max(1);
                    self.transfers.push(Transfer::new(request.from, bytes, window, request.sent_ns));
                }
                None
            }
        }
    }

    /// A packet has come for it.
    pub(super) fn take(&mut self, packet: Packet, context: &mut Context<'_, Scene>) {
        match (packet.kind, self.remote) {
            (Kind::Acknowledgement { segments }, _) => self.acknowledged(packet.from, segments),
            (
                Kind::Message { is_last: true } | Kind::Segment { is_last: true },
                Remote::Asks { think, to, port, acknowledge_ns, .. },
            ) => {
                let took_ns = context.now_ns().saturating_sub(packet.sent_ns);
                context.note(Note::Response { client: to, port, took_ns });
                let thinks_ns = self.think(think, context);
                if let Some(after_ns) = acknowledge_ns.filter(|&after_ns| after_ns < thinks_ns) {
                    context.after(after_ns, Event::Acknowledge(packet.acknowledgement(1)));
                }
            }
            (Kind::Message { is_last: true }, Remote::Serves { think, .. }) => {
                self.requests.push(packet);
                self.think(think, context);
            }
            (Kind::Message { .. } | Kind::Segment { .. }, _) => {}
        }
    }

    /// The next segment that may go, whoever it is for.
    pub(super) fn segment(&mut self, segment_bytes: u64) -> Option<Packet> {
        let from = Peer::Remote(self.number);
        self.transfers.iter_mut().find_map(|transfer| transfer.segment(from, segment_bytes))
    }

    /// How long it thinks, from now on.
    fn think(&mut self, think: Distribution, context: &mut Context<'_, Scene>) -> Nanoseconds {
        let thinks_ns = think.sample(&mut self.stream);
        context.after(thinks_ns, Event::Thought(self.number));
        thinks_ns
    }

    fn acknowledged(&mut self, from: Peer, segments: u32) {
        if let Some(transfer) = self.transfers.iter_mut().find(|transfer| transfer.awaits(from)) {
            transfer.acknowledged(segments);
        }
        self.transfers.retain(|transfer| !transfer.is_over());
    }
}
