//! A component that is about to be taken: this process has connected, and the component introduces itself in
//! several packets. Nothing here waits, so any number of components can be introducing themselves at once,
//! even those that never send anything.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{SocketAddrUnix, SocketFlags};

use super::{AttachError, Component, EventInfo, cannot_connect, end_of, system};
use crate::channel::Channel;
use crate::descriptor::Descriptor;
use crate::endpoint;
use crate::registry::MAX_EVENTS;
use crate::wire::{Message, Packet};

/// A component that introduces itself, without a caller that waits for it. If the value is dropped, the
/// component is unchanged.
#[derive(Debug)]
pub struct Introduction {
    component: Component,
    /// The number of events that it will send, once it has said so.
    expected: Option<usize>,
    deadline: Instant,
}

/// How far an introduction has got.
#[derive(Debug)]
pub enum Progress {
    /// There are more packets to come.
    Waiting(Box<Introduction>),
    /// It is complete.
    Taken(Box<Component>),
}

impl Introduction {
    /// Connects to the component that listens at `path`, which has `limit` to introduce itself. Each of the
    /// component's [waiting calls](Component::enable) also takes that long at most.
    ///
    /// # Errors
    ///
    /// [`AttachError`]; it is [`AttachError::Silent`] also if the component's queue of connections is full,
    /// so that a further one would have to wait.
    pub fn begin(path: &Path, limit: Duration) -> Result<Introduction, AttachError> {
        let channel = call(path).map_err(|source| cannot_connect(path, limit, source))?;
        Introduction::on(channel, path, limit)
    }

    /// An introduction on a connection.
    pub(super) fn on(channel: Channel, path: &Path, limit: Duration) -> Result<Introduction, AttachError> {
        let peer = channel.peer();
        let peer = peer.map_err(|source| system("connect to", path.display().to_string(), source))?;
        let component = Component {
            channel,
            limit,
            path: path.to_owned(),
            pid: peer.pid.as_raw_nonzero().get() as u32,
            user: peer.uid.as_raw(),
            name: String::new(),
            events: Vec::new(),
            region: None,
            token: 0,
            asked: Default::default(),
            refused: Vec::new(),
        };
        component.check_owner()?;
        Ok(Introduction { component, expected: None, deadline: end_of(limit) })
    }

    /// Its user.
    pub fn user(&self) -> u32 {
        self.component.user
    }

    /// Takes the packets that have arrived so far.
    ///
    /// # Errors
    ///
    /// [`AttachError`]; it is [`AttachError::Silent`] once the component's time is over.
    pub fn advance(mut self) -> Result<Progress, AttachError> {
        // An introduction has that number of packets at most. A component that sends more is noticed by then.
        for _ in 0..=MAX_EVENTS {
            let Some(packet) = self.component.hear_now()? else { break };
            match self.take(packet)? {
                Progress::Waiting(waiting) => self = *waiting,
                taken => return Ok(taken),
            }
        }
        if Instant::now() >= self.deadline {
            let Component { limit, .. } = self.component;
            return Err(AttachError::Silent { component: self.component.label(), limit });
        }
        Ok(Progress::Waiting(Box::new(self)))
    }

    /// The end of the time that it has.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The next packet, waited for until the deadline.
    pub(super) fn hear(&self, deadline: Instant) -> Result<Packet, AttachError> {
        self.component.hear(deadline)
    }

    /// Takes one packet of the introduction.
    pub(super) fn take(mut self, packet: Packet) -> Result<Progress, AttachError> {
        let component = &mut self.component;
        match (self.expected, packet.message) {
            (None, Message::Hello { events, name, .. }) => {
                component.name = name.as_str().to_owned();
                // More events than a log area has room for cannot be logged.
                self.expected = Some(MAX_EVENTS.min(events as usize));
            }
            (None, Message::Busy { pid: scheduler }) => {
                let (component, pid) = (component.label(), component.pid);
                return Err(AttachError::Busy { component, pid, scheduler });
            }
            // Events come in the order of their numbers, so that a number is an index.
            (Some(_), Message::Event { id, kind, name }) if id.index() == component.events.len() => {
                component.events.push(EventInfo { id, name: name.as_str().to_owned(), kind });
            }
            (_, message) => return Err(component.unexpected(message)),
        }
        if self.expected == Some(self.component.events.len()) {
            return Ok(Progress::Taken(Box::new(self.component)));
        }
        Ok(Progress::Waiting(Box::new(self)))
    }
}

impl AsFd for Introduction {
    /// Readable when more packets have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.component.as_fd()
    }
}

/// Connects at once or not at all: if the component's queue of connections is full, this does not wait for a
/// place in it.
fn call(path: &Path) -> io::Result<Channel> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = Descriptor::new(endpoint::socket(flags)?)?;
    let connected = rustix::net::connect(socket.get()?, &SocketAddrUnix::new(path)?);
    // Later requests are allowed to wait.
    rustix::io::ioctl_fionbio(socket.get()?, false)?;
    connected.map_err(io::Error::from)?;
    Ok(Channel::new(socket))
}
