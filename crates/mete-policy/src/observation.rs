//! What a host sees of its guests from outside, without their help (TAVS paper, §3.2, §3.5, §4.2), and a kernel of its tasks.

use crate::{ClientId, RequestId, TaskId};

/// What a pending event is about, as far as the host can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A timer, a completed write, an inter-processor interrupt: no task waits for it as a reader does.
    Other,
    /// A block read is complete.
    Block(RequestId),
    /// A packet has arrived for this destination port.
    Packet {
        /// The destination port in the packet's header.
        port: u16,
    },
}

/// How many kinds of events policies tell apart by which a client is woken: none, for another client; those of [`Event`]; and the ports of
/// packets are divided among what is left. Few clients serve many ports, and those that fall together are taken for one.
const CAUSES: u16 = 8;
const FIRST_PORT: u16 = 3;
pub(crate) const PORTS: u16 = CAUSES - FIRST_PORT;

/// What wakes a client, as far as policies tell that apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cause(u8);

impl Cause {
    pub const COUNT: usize = CAUSES as usize;

    /// That of an event; of none, that another client does.
    pub fn of(event: Option<Event>) -> Cause {
        match event {
            None => Cause(0),
            Some(Event::Other) => Cause(1),
            Some(Event::Block(_)) => Cause(2),
            Some(Event::Packet { port }) => Cause((FIRST_PORT + port % PORTS) as u8),
        }
    }

    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// A set of events by which a client is woken; none is that another client wakes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes(u8);

impl Causes {
    /// Nothing.
    pub const NONE: Causes = Causes(0);
    /// Whatever it is.
    pub const ALL: Causes = Causes(u8::MAX);

    /// The set with this number, which the kernel's side of a policy has, too: a bit for each kind.
    pub const fn from_bits(bits: u8) -> Causes {
        Causes(bits)
    }

    /// Its number.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Whether it has this one. Ports of packets fall together.
    pub fn has(self, event: Option<Event>) -> bool {
        self.0 >> Cause::of(event).index() & 1 == 1
    }
}

/// One observation. The client in it is a virtual processor; but what wakes a client is seen of any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// The guest loaded another address space: `task` runs on `client` from now on.
    TaskSwitch {
        /// The virtual processor.
        client: ClientId,
        /// The task that runs now.
        task: TaskId,
    },
    /// The guest destroyed one of its address spaces; the number may be used again for another task.
    TaskExit {
        /// The virtual processor.
        client: ClientId,
        /// The task that has ended.
        task: TaskId,
    },
    /// The guest asked for a block to be read.
    BlockRead {
        /// The virtual processor that asked.
        client: ClientId,
        /// The request.
        request: RequestId,
    },
    /// An event is pending for a client; `wake` follows if it was blocked.
    EventPending {
        /// The client that the event is for.
        client: ClientId,
        /// What it is about.
        event: Event,
    },
    /// One virtual processor notified another through an event channel: a guest its driver domain (a
    /// request), or a driver a guest (a completion). `wake` follows if the receiver was blocked.
    Notify {
        /// The sender.
        from: ClientId,
        /// The receiver.
        to: ClientId,
    },
    /// This virtual processor belongs to a driver domain, which does input and output for others. Reported
    /// once, after `add`; it holds until the client is removed.
    Driver {
        /// The driver's virtual processor.
        client: ClientId,
    },
    /// A driver domain worked for a client: `used_ns` of the driver's processor time belong to it.
    DriverTime {
        /// The driver's virtual processor.
        driver: ClientId,
        /// The client that it worked for.
        client: ClientId,
        /// How long it worked, in nanoseconds.
        used_ns: crate::Nanoseconds,
    },
}
