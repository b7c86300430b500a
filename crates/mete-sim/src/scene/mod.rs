//! What a scenario puts on a host: tasks, guest kernels, devices. It is the [`Model`] of most runs.
//!
//! ```text
//!   client ── ClientBody ─┬─ Single: one task
//!                         ├─ Driver: does input and output for the others
//!                         └─ Guest: a kernel with a scheduler of its own over many tasks
//!                              │
//!                    Task: a Program, its position in it, what it waits for
//!                              │ read, send, lock
//!                            World: disks, network, driver's rings, remote machines, locks
//! ```

mod driver;
pub mod guest;
mod inbox;
mod io;
mod locks;
mod packet;
mod program;
mod read;
mod remote;
mod send_ring;
mod single;
mod task;
mod tcp;

use std::sync::Arc;

use mete_policy::{ClientId, DomainIndex, Nanoseconds, RequestId, Share};

use crate::model::{Context, Model, Reaction, Step};
use crate::random::Stream;
pub use driver::DriverCosts;
use guest::Guest;
use inbox::Inbox;
pub use io::{Disk, Io, Network};
use locks::Locks;
pub use packet::{Acknowledgement, Packet, PacketKind, Peer, Run};
pub use program::{Op, Program};
pub use read::TaskId;
pub use remote::Remote;
pub use send_ring::TellSent;
use single::Single;
pub use task::Awaited;
use task::Task;
pub use tcp::Troubles;

/// The signals that clients get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A task's sleep is over.
    Timer {
        /// The task.
        task: u16,
    },
    /// A read is complete.
    Read {
        /// The read's number.
        request: RequestId,
    },
    /// A packet has come from a device.
    Packet {
        /// The port that it is for.
        port: u16,
        /// The packet.
        packet: Packet,
    },
    /// One of the client's own tasks has sent it a packet, which neither a device nor the host sees.
    Local {
        /// The port that it is for.
        port: u16,
        /// The packet.
        packet: Packet,
    },
    /// One of the client's own tasks has made room at a port that was full.
    Room {
        /// The port.
        port: u16,
    },
    /// There is something to do: for the driver, or for a virtual processor that another one of its guest has
    /// found a task for.
    Kick,
    /// The driver has sent packets.
    Sent,
    /// Something of a stream has waited too long for its acknowledgement.
    Unacknowledged {
        /// The port where the stream arrives.
        port: u16,
    },
    /// A task has got the lock that it waits for.
    Granted {
        /// The task.
        task: u16,
    },
    /// A lock is free for which one of the client's tasks spins.
    Released,
}

/// The events that the world sends to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet has arrived at its receiver's machine.
    Arrive(Packet),
    /// A disk has completed a read.
    ReadDone {
        /// The client that reads.
        client: ClientId,
        /// The read's number.
        request: RequestId,
    },
    /// A remote machine's think time is over.
    Thought(u16),
    /// A remote machine's kernel sends this acknowledgement.
    Acknowledge(Packet),
    /// A remote machine's timers may have run out.
    Timer(u16),
    /// A client's kernel checks for acknowledgements that it has not sent.
    Unacknowledged {
        /// The client.
        client: ClientId,
        /// The port that it checks.
        port: u16,
    },
    /// A client's share changes.
    SetShare {
        /// The client.
        client: ClientId,
        /// Its new share.
        share: Share,
    },
    /// A domain's share changes.
    SetDomainShare {
        /// The domain.
        domain: DomainIndex,
        /// Its new share.
        share: Share,
    },
}

/// What all tasks share.
pub(crate) struct World {
    io: Io,
    locks: Locks,
}

enum ClientBody {
    Single(Single),
    Guest(Guest),
    /// A virtual processor of the guest with this number, other than its first.
    Sibling(ClientId),
    /// The driver's rings are shared memory, so they are in the [`World`].
    Driver,
}

/// The bodies of all clients, and the world around them.
pub struct Scene {
    bodies: Vec<ClientBody>,
    world: World,
}

impl Scene {
    /// A scene without clients; tasks may use locks below `locks`.
    pub fn new(io: Io, locks: usize) -> Scene {
        Scene { bodies: Vec::new(), world: World { io, locks: Locks::new(locks) } }
    }

    /// Adds a client that is one task. Clients are numbered in the order in which they are added.
    pub fn add_task(&mut self, program: Arc<Program>, stream: Stream) -> ClientId {
        let ports: Vec<_> = program.ports().collect();
        self.add(ClientBody::Single(Single::new(Task::new(program, stream), ports)))
    }

    /// Adds a guest, whose virtual processors are clients with consecutive numbers, and returns the first
    /// number. Packets come to the first virtual processor; the answer to a read, and a task's timer, come to
    /// the one that asked.
    pub fn add_guest(&mut self, mut guest: Guest) -> ClientId {
        let (first, vcpus) = (ClientId::at(self.bodies.len()), guest.vcpus());
        guest.first = first;
        self.add(ClientBody::Guest(guest));
        // The siblings only refer to the guest at its first number.
        for _ in 1..vcpus {
            self.add(ClientBody::Sibling(first));
        }
        first
    }

    /// Adds a client that does input and output for all others from now on. A driver that is added later
    /// takes its place.
    pub fn add_driver(&mut self, costs: DriverCosts) -> ClientId {
        let client = self.add(ClientBody::Driver);
        self.world.io.set_driver(client, costs);
        client
    }

    /// Reports the driver to the host and lets the remote machines begin.
    /// [`Host::prepare`](crate::Host::prepare) has to call it when all clients are added.
    pub fn start(&mut self, context: &mut Context<Scene>) {
        self.world.io.start(context);
    }

    /// A client's kernel checks a port for acknowledgements that it has not sent. It gets a signal if one has
    /// waited too long.
    fn unacknowledged(&mut self, client: ClientId, port: u16, context: &mut Context<Scene>) {
        let now_ns = context.now_ns();
        let inbox = match self.bodies.get_mut(client.index()) {
            Some(ClientBody::Single(single)) => &mut single.inbox,
            Some(ClientBody::Guest(guest)) => &mut guest.inbox,
            // Packets come only to a guest's first virtual processor.
            Some(ClientBody::Sibling(_) | ClientBody::Driver) | None => return,
        };
        match inbox.owes(port, now_ns) {
            (true, _) => context.notify(client, Signal::Unacknowledged { port }),
            (false, Some(at_ns)) => ask_at(client, port, at_ns, context),
            (false, None) => {}
        }
    }

    /// What the senders of streams had to do in addition to sending, and how many packets the driver's
    /// network card had no room for.
    pub fn troubles(&self) -> (Troubles, u64) {
        self.world.io.troubles()
    }

    fn add(&mut self, body: ClientBody) -> ClientId {
        self.bodies.push(body);
        ClientId::at(self.bodies.len() - 1)
    }

    /// The guest that a client is, or is a virtual processor of.
    pub fn guest(&self, client: ClientId) -> Option<&Guest> {
        match self.bodies.get(client.index())? {
            ClientBody::Guest(guest) => Some(guest),
            ClientBody::Sibling(first) => self.guest(*first),
            ClientBody::Single(_) | ClientBody::Driver => None,
        }
    }

    /// The tasks of a client that wait for what others have to do: the task's number, what it waits for, and
    /// since when.
    pub fn awaited(&self, client: ClientId) -> Vec<(u16, Awaited, Nanoseconds)> {
        match self.bodies.get(client.index()) {
            Some(ClientBody::Single(single)) => {
                single.awaited().map(|(awaited, since_ns)| (0, awaited, since_ns)).into_iter().collect()
            }
            Some(ClientBody::Guest(guest)) => guest.awaited().collect(),
            Some(ClientBody::Sibling(_) | ClientBody::Driver) | None => Vec::new(),
        }
    }

    /// How long a client has spun for locks.
    pub fn spun_ns(&self, client: ClientId) -> Nanoseconds {
        match self.bodies.get(client.index()) {
            Some(ClientBody::Single(single)) => single.spun_ns,
            Some(ClientBody::Guest(_) | ClientBody::Sibling(_)) => {
                self.guest(client).map_or(Nanoseconds::ZERO, |guest| guest.spun_ns(client))
            }
            Some(ClientBody::Driver) | None => Nanoseconds::ZERO,
        }
    }

    /// How many packets a client has thrown away because no task listened on their ports.
    pub fn dropped(&self, client: ClientId) -> u64 {
        self.bodies.get(client.index()).map_or(0, |body| match body {
            ClientBody::Single(single) => single.inbox.dropped(),
            ClientBody::Guest(guest) => guest.inbox.dropped(),
            ClientBody::Sibling(_) | ClientBody::Driver => 0,
        })
    }
}

/// Schedules the next check of a port for acknowledgements that have not been sent.
fn ask_at(client: ClientId, port: u16, at_ns: Nanoseconds, context: &mut Context<Scene>) {
    let event = Event::Unacknowledged { client, port };
    context.after(at_ns.saturating_sub(context.now_ns()), event);
}

/// A client's body; that of its guest for a virtual processor other than the first.
fn body_of(bodies: &mut [ClientBody], client: ClientId) -> &mut ClientBody {
    let at = if let ClientBody::Sibling(first) = bodies[client.index()] { first } else { client };
    &mut bodies[at.index()]
}

impl World {
    /// Handles a packet that has come for a client; `on` is the client that sends what has to be sent back.
    /// The result says whether a task can take something.
    fn put(
        &mut self,
        on: ClientId,
        inbox: &mut Inbox,
        (port, packet): (u16, Packet),
        context: &mut Context<Scene>,
    ) -> bool {
        let arrived = inbox.put(port, packet, context.now_ns());
        if let Some(acknowledgement) = arrived.acknowledgement {
            self.io.send(on, acknowledgement, context);
        }
        if let Some(at_ns) = arrived.ask_at_ns {
            ask_at(on, port, at_ns, context);
        }
        arrived.is_heard
    }

    /// Sends the acknowledgements that have waited long enough at a port.
    fn acknowledge(&mut self, on: ClientId, inbox: &mut Inbox, port: u16, context: &mut Context<Scene>) {
        while let Some(acknowledgement) = inbox.overdue(port, context.now_ns()) {
            self.io.send(on, acknowledgement, context);
        }
    }
}

impl Model for Scene {
    type Signal = Signal;
    type Event = Event;

    fn next(&mut self, client: ClientId, context: &mut Context<Self>) -> Step {
        let Scene { bodies, world } = self;
        match body_of(bodies, client) {
            ClientBody::Single(single) => single.next(client, world, context),
            ClientBody::Guest(guest) => guest.next(client, world, context),
            // A sibling always names a guest; this answer is never used.
            ClientBody::Sibling(_) => Step::Exit,
            ClientBody::Driver => world.io.drive(context),
        }
    }

    fn advance(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        match body_of(&mut self.bodies, client) {
            ClientBody::Single(single) => single.advance(ran_ns),
            ClientBody::Guest(guest) => guest.advance(client, ran_ns),
            ClientBody::Sibling(_) => {}
            ClientBody::Driver => self.world.io.driver_advance(ran_ns),
        }
    }

    fn deliver(&mut self, client: ClientId, signal: Signal, context: &mut Context<Self>) -> Reaction {
        match body_of(&mut self.bodies, client) {
            ClientBody::Single(single) => single.deliver(client, signal, &mut self.world, context),
            ClientBody::Guest(guest) => guest.deliver(client, signal, context.now_ns()),
            ClientBody::Sibling(_) => Reaction::Pending,
            // The driver looks at its rings after any signal.
            ClientBody::Driver => Reaction::Wake,
        }
    }

    fn event(&mut self, event: Event, context: &mut Context<Self>) {
        match event {
            Event::Arrive(packet) => self.world.io.arrive(packet, context),
            Event::ReadDone { client, request } => self.world.io.read_done(client, request, context),
            Event::Thought(remote) => self.world.io.thought(remote, context),
            Event::Acknowledge(packet) => self.world.io.transmit(packet, context),
            Event::Timer(remote) => self.world.io.timer(remote, context),
            Event::Unacknowledged { client, port } => self.unacknowledged(client, port, context),
            Event::SetShare { client, share } => context.set_share(client, share),
            Event::SetDomainShare { domain, share } => context.set_domain_share(domain, share),
        }
    }

    fn seen(&self, client: ClientId, signal: Signal) -> Option<mete_policy::Event> {
        match (self.bodies.get(client.index())?, signal) {
            (ClientBody::Single(_), _)
            | (_, Signal::Granted { .. } | Signal::Local { .. } | Signal::Room { .. } | Signal::Released) => {
                None
            }
            (ClientBody::Driver, _)
            | (_, Signal::Kick | Signal::Sent | Signal::Timer { .. } | Signal::Unacknowledged { .. }) => {
                Some(mete_policy::Event::Other)
            }
            (_, Signal::Read { request }) => Some(mete_policy::Event::Block(request)),
            (_, Signal::Packet { port, .. }) => Some(mete_policy::Event::Packet { port }),
        }
    }
}
