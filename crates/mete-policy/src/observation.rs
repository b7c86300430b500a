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
