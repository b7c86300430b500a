//! What a scenario puts on a host: tasks, guest kernels, devices. The [`Model`] of most runs.
//!
//! ```text
//!   client ── Body ─┬─ Single: one task
//!                   ├─ Driver: does input and output for the others
//!                   └─ Guest: a kernel with a scheduler of its own over many tasks
//!                        │
//!              Task: a Program, where it stands, what it waits for
//!                        │ read, send, lock
//!                      World: disks, network, driver's rings, remote machines, locks
//! ```

mod driver;
pub mod guest;
mod inbox;
mod io;
mod locks;
mod program;
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
pub use io::{Disk, Io, Kind, Network, Packet, Peer};
use locks::Locks;
pub use program::{Op, Program};
pub use remote::Remote;
pub use send_ring::TellSent;
use single::Single;
use task::Task;
pub use task::{Awaited, Who};
pub use tcp::{Acknowledgement, Run, Troubles};

/// What clients are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A task's sleep is over.
    Timer {
        /// The task.
        task: u16,
    },
    /// A read is complete.
    Read {
        /// Which.
        request: RequestId,
    },
    /// A packet has come.
    Packet {
        /// To which port.
        port: u16,
        /// The packet.
        packet: Packet,
    },
    /// One of its own tasks has sent a packet, which neither a device nor the host sees.
    Local {
        /// To which port.
        port: u16,
        /// The packet.
        packet: Packet,
    },
    /// One of its own tasks has made room at a port that was full.
    Room {
        /// Which.
        port: u16,
    },
    /// There is something to do: for the driver, or for a virtual processor whose guest's other one says so.
    Kick,
    /// The driver has sent packets.
    Sent,
    /// Something of a stream has waited for its acknowledgement.
    Unacknowledged {
        /// At which port.
        port: u16,
    },
    /// A task has got the lock that it waits for.
    Granted {
        /// The task.
        task: u16,
    },
    /// A lock is free for which one of its tasks spins.
    Released,
}

/// What the world sends to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet is where it was sent to.
    Arrive(Packet),
    /// A disk has read.
    ReadDone {
        /// For whom.
        client: ClientId,
        /// Which request.
        request: RequestId,
    },
    /// A remote machine has thought.
    Thought(u16),
    /// A remote machine's kernel acknowledges what came.
    Acknowledge(Packet),
    /// A remote machine's timers may have run out.
    Timer(u16),
    /// A client's kernel looks what it has not acknowledged.
    Unacknowledged {
        /// Whose.
        client: ClientId,
        /// At which port.
        port: u16,
    },
    /// A client's share changes.
    SetShare {
        /// Whose.
        client: ClientId,
        /// To what.
        share: Share,
    },
    /// A domain's share changes.
    SetDomainShare {
        /// Whose.
        domain: DomainIndex,
        /// To what.
        share: Share,
    },
}

/// What all tasks share.
pub(crate) struct World {
    io: Io,
    locks: Locks,
}

enum Body {
    Single(Single),
    Guest(Guest),
    /// A virtual processor of this guest, not its first.
    Sibling(ClientId),
    /// Its rings are shared memory, so they are in the [`World`].
    Driver,
}

/// The bodies of all clients, and the world around them.
pub struct Scene {
    bodies: Vec<Body>,
    world: World,
}

impl Scene {
    /// A scene without clients; tasks may use locks below `locks`.
    #[must_use]
    pub fn new(io: Io, locks: usize) -> Scene {
        Scene { bodies: Vec::new(), world: World { io, locks: Locks::new(locks) } }
    }

    /// Adds a client that is one task; clients are numbered in the order in which they are added.
    pub fn add_task(&mut self, program: Arc<Program>, stream: Stream) -> ClientId {
        let ports: Vec<_> = program.ports().collect();
        self.add(Body::Single(Single::new(Task::new(program, stream), ports)))
    }

    /// Adds a guest, whose virtual processors are clients with numbers one after another, and answers the
    /// first. Packets come to that one; the answer to a read, and a task's timer, to the one that asked.
    pub fn add_guest(&mut self, mut guest: Guest) -> ClientId {
        let (first, vcpus) = (self.bodies.len() as ClientId, guest.vcpus());
        guest.begin_at(first);
        self.add(Body::Guest(guest));
        for _ in 1..vcpus {
            self.add(Body::Sibling(first));
        }
        first
    }

    /// Adds a client that does input and output for all others from now on; a later one takes its place.
    pub fn add_driver(&mut self, costs: DriverCosts) -> ClientId {
        let client = self.add(Body::Driver);
        self.world.io.set_driver(client, costs);
        client
    }

    /// Lets the host know the driver, and remote machines begin: to be called by
    /// [`Host::prepare`](crate::Host::prepare) when all clients are added.
    pub fn start(&mut self, context: &mut Context<'_, Scene>) {
        self.world.io.start(context);
    }

    /// A client's kernel looks what it has not acknowledged, and gets a signal if that has waited too long.
    fn unacknowledged(&mut self, client: ClientId, port: u16, context: &mut Context<'_, Scene>) {
        let now_ns = context.now_ns();
        let inbox = match self.bodies.get_mut(client as usize) {
            Some(Body::Single(single)) => single.inbox(),
            Some(Body::Guest(guest)) => guest.inbox(),
            Some(Body::Sibling(_) | Body::Driver) | None => return,
        };
        match inbox.owes(port, now_ns) {
            (true, _) => context.notify(client, Signal::Unacknowledged { port }),
            (false, Some(at_ns)) => ask_at(client, port, at_ns, context),
            (false, None) => {}
        }
    }

    /// What the senders of streams have had to do besides sending, and how many packets the driver's
    /// network card had no room for.
    #[must_use]
    pub fn troubles(&self) -> (Troubles, u64) {
        self.world.io.troubles()
    }

    fn add(&mut self, body: Body) -> ClientId {
        self.bodies.push(body);
        (self.bodies.len() - 1) as ClientId
    }

    /// The guest that a client is, or is a virtual processor of.
    #[must_use]
    pub fn guest(&self, client: ClientId) -> Option<&Guest> {
        match self.bodies.get(client as usize)? {
            Body::Guest(guest) => Some(guest),
            Body::Sibling(first) => self.guest(*first),
            Body::Single(_) | Body::Driver => None,
        }
    }

    /// The tasks of a client that wait for what others have to do: their numbers, for what, since when.
    pub fn awaited(&self, client: ClientId) -> Vec<(u16, Awaited, Nanoseconds)> {
        match self.bodies.get(client as usize) {
            Some(Body::Single(single)) => {
                single.awaited().map(|(awaited, since_ns)| (0, awaited, since_ns)).into_iter().collect()
            }
            Some(Body::Guest(guest)) => guest.awaited().collect(),
            Some(Body::Sibling(_) | Body::Driver) | None => Vec::new(),
        }
    }

    /// How long a client has turned in circles for spin locks.
    #[must_use]
    pub fn spun_ns(&self, client: ClientId) -> Nanoseconds {
        match self.bodies.get(client as usize) {
            Some(Body::Single(single)) => single.spun_ns(),
            Some(Body::Guest(_) | Body::Sibling(_)) => {
                self.guest(client).map_or(0, |guest| guest.spun_ns(client))
            }
            Some(Body::Driver) | None => 0,
        }
    }

    /// How many packets a client has thrown away because nobody listened on their ports.
    #[must_use]
    pub fn dropped(&self, client: ClientId) -> u64 {
        self.bodies.get(client as usize).map_or(0, |body| match body {
            Body::Single(single) => single.dropped(),
            Body::Guest(guest) => guest.dropped(),
            Body::Sibling(_) | Body::Driver => 0,
        })
    }
}

/// A client's kernel is going to look what it has not acknowledged at a port.
fn ask_at(client: ClientId, port: u16, at_ns: Nanoseconds, context: &mut Context<'_, Scene>) {
    let event = Event::Unacknowledged { client, port };
    context.after(at_ns.saturating_sub(context.now_ns()), event);
}

/// The guest whose first virtual processor that is.
fn guest_at(bodies: &mut [Body], first: ClientId) -> Option<&mut Guest> {
    match bodies.get_mut(first as usize) {
        Some(Body::Guest(guest)) => Some(guest),
        _ => None,
    }
}

impl World {
    /// A packet has come for a client: what follows at once. Whether a task can take it. `on` is the client
    /// that sends what has to be sent.
    fn put(
        &mut self,
        on: ClientId,
        inbox: &mut Inbox,
        (port, packet): (u16, Packet),
        context: &mut Context<'_, Scene>,
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
    fn acknowledge(&mut self, on: ClientId, inbox: &mut Inbox, port: u16, context: &mut Context<'_, Scene>) {
        while let Some(acknowledgement) = inbox.overdue(port, context.now_ns()) {
            self.io.send(on, acknowledgement, context);
        }
    }
}

impl Model for Scene {
    type Signal = Signal;
    type Event = Event;

    fn next(&mut self, client: ClientId, context: &mut Context<'_, Self>) -> Step {
        let Scene { bodies, world } = self;
        match &mut bodies[client as usize] {
            Body::Single(single) => single.next(client, world, context),
            Body::Guest(guest) => guest.next(client, world, context),
            &mut Body::Sibling(first) => {
                guest_at(bodies, first).map_or(Step::Exit, |guest| guest.next(client, world, context))
            }
            Body::Driver => world.io.drive(context),
        }
    }

    fn advance(&mut self, client: ClientId, ran_ns: Nanoseconds) {
        match &mut self.bodies[client as usize] {
            Body::Single(single) => single.advance(ran_ns),
            Body::Guest(guest) => guest.advance(client, ran_ns),
            &mut Body::Sibling(first) => {
                if let Some(guest) = guest_at(&mut self.bodies, first) {
                    guest.advance(client, ran_ns);
                }
            }
            Body::Driver => self.world.io.driver_advance(ran_ns),
        }
    }

    fn deliver(&mut self, client: ClientId, signal: Signal, context: &mut Context<'_, Self>) -> Reaction {
        let now_ns = context.now_ns();
        match &mut self.bodies[client as usize] {
            Body::Single(single) => single.deliver(client, signal, &mut self.world, context),
            Body::Guest(guest) => guest.deliver(client, signal, now_ns),
            &mut Body::Sibling(first) => guest_at(&mut self.bodies, first)
                .map_or(Reaction::Pending, |guest| guest.deliver(client, signal, now_ns)),
            Body::Driver => Reaction::Wake,
        }
    }

    fn event(&mut self, event: Event, context: &mut Context<'_, Self>) {
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
        match (self.bodies.get(client as usize)?, signal) {
            (Body::Single(_), _)
            | (_, Signal::Granted { .. } | Signal::Local { .. } | Signal::Room { .. } | Signal::Released) => {
                None
            }
            (Body::Driver, _)
            | (_, Signal::Kick | Signal::Sent | Signal::Timer { .. } | Signal::Unacknowledged { .. }) => {
                Some(mete_policy::Event::Other)
            }
            (_, Signal::Read { request }) => Some(mete_policy::Event::Block(request)),
            (_, Signal::Packet { port, .. }) => Some(mete_policy::Event::Packet { port }),
        }
    }
}
