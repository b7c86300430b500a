//! A component on its way to be taken: it has been called, and says who it is in several packets.
//! Nothing here waits, so that any number of components can be on their way at once, also those
//! that never say anything.

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

/// A component on its way to be taken, which nobody waits for. Dropped, it is as it was.
#[derive(Debug)]
pub struct Introduction {
    component: Component,
    /// How many events are to come, once it has said so.
    expected: Option<usize>,
    deadline: Instant,
}

/// How far an introduction has come.
#[derive(Debug)]
pub enum Progress {
    /// More is to come.
    Waiting(Box<Introduction>),
    /// It is complete.
    Taken(Box<Component>),
}

impl Introduction {
    /// Calls the component that listens at `path`, which has `limit` to introduce itself. Each of the
    /// component's [waiting calls](Component::enable) takes that long at most, too.
    ///
    /// # Errors
    ///
    /// [`AttachError`]; [`AttachError::Silent`] also if so many call it that one more would have to wait.
    pub fn begin(path: &Path, limit: Duration) -> Result<Introduction, AttachError> {
        let channel = call(path).map_err(|source| cannot_connect(path, limit, source))?;
        Introduction::on(channel, path, limit)
    }

    /// An introduction that is to be heard on a connection.
    pub(super) fn on(channel: Channel, path: &Path, limit: Duration) -> Result<Introduction, AttachError> {
        let failed = |source| system("connect to", path.display().to_string(), source);
        let peer = channel.peer().map_err(failed)?;
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

    /// Takes what has come so far.
    ///
    /// # Errors
    ///
    /// [`AttachError`], [`AttachError::Silent`] once its time is over.
    pub fn advance(mut self) -> Result<Progress, AttachError> {
        // A component has so many packets to send, and one that sends more is found out by then.
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

    /// When its time is over.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The next packet, waited for.
    pub(super) fn hear(&self, deadline: Instant) -> Result<Packet, AttachError> {
        self.component.hear(deadline)
    }

    pub(super) fn take(mut self, packet: Packet) -> Result<Progress, AttachError> {
        let component = &mut self.component;
        match (self.expected, packet.message) {
            (None, Message::Hello { events, name, .. }) => {
                component.name = name.as_str().to_owned();
                self.expected = Some(MAX_EVENTS.min(events as usize));
            }
            (None, Message::Busy { pid: scheduler }) => {
                let (component, pid) = (component.label(), component.pid);
                return Err(AttachError::Busy { component, pid, scheduler });
            }
            (Some(_), Message::Event { id, kind, name }) if usize::from(id) == component.events.len() => {
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
    /// Readable when more has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.component.as_fd()
    }
}

/// Connects at once or not at all: with others waiting for it already, a component takes nobody.
fn call(path: &Path) -> io::Result<Channel> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = Descriptor::new(endpoint::socket(flags)?)?;
    let connected = rustix::net::connect(socket.get()?, &SocketAddrUnix::new(path)?);
    // What is asked of it later may wait.
    rustix::io::ioctl_fionbio(socket.get()?, false)?;
    connected.map_err(io::Error::from)?;
    Ok(Channel::new(socket))
}
