//! The scheduler's side: takes a component, hands it memory, and switches its events.
//!
//! Nothing here waits longer than its caller allows: a component can be stopped, slow, hostile or dead at any
//! moment (LOG-11). A caller that must not wait at all takes a component by an [`Introduction`],
//! [tells](Component::tell_to_bind) it what to do, and takes its answers [later](Component::settle).

mod introduction;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mete_log::{DomainId, EventId, Region};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{SocketAddrUnix, SocketFlags};

use crate::channel::{Channel, Received};
use crate::descriptor::Descriptor;
use crate::event::ProbeKind;
use crate::registry::MAX_EVENTS;
use crate::wire::{Message, Name, Packet, Refusal, WireError};
use crate::{directory, endpoint};

pub use crate::processors::configured_processors;
pub use introduction::{Introduction, Progress};

/// The longest time that is waited. A longer limit counts as this one.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// The most requests to one component that can wait for their answers: enough to switch each event that a
/// process can have, and the same number once more. A component that is further behind has stopped. The
/// kernel keeps that number of packets for a socket.
const MOST_ASKED: usize = 2 * MAX_EVENTS;

/// Why a component could not be taken, or did not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No process listens: the program has ended.
    #[error("{}: no process listens there (the program has ended)", path.display())]
    Gone {
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be used.
    #[error("cannot {what} component {component}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The component.
        component: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The component did not answer in time.
    #[error("component {component} did not answer within {limit:?} (is it stopped?)")]
    Silent {
        /// The component.
        component: String,
        /// The time that was waited.
        limit: Duration,
    },
    /// The component does not take the requests that are sent to it.
    #[error("component {component} takes no requests (is it stopped?), so it is released")]
    Deaf {
        /// The component.
        component: String,
    },
    /// Another scheduler reads the component.
    #[error("component {component} is already read by {}, which has to end first", process(*scheduler))]
    Busy {
        /// The component.
        component: String,
        /// The component's process.
        pid: u32,
        /// The other scheduler.
        scheduler: u32,
    },
    /// The socket belongs to a user to whose programs this user should not listen.
    #[error(
        "component {component} belongs to user {user}, not to this user; only root may read other users' components"
    )]
    NotOurs {
        /// The component.
        component: String,
        /// Its owner.
        user: u32,
    },
    /// The socket is in one user's directory, but a process of another user listens at it.
    #[error("component {component} of user {user} is in a directory of user {owner}, so it is not read")]
    Misplaced {
        /// The component.
        component: String,
        /// Its user.
        user: u32,
        /// The directory's owner.
        owner: u32,
    },
    /// The component sent something that is no packet.
    #[error("component {component} sent garbage: {source}")]
    Garbled {
        /// The component.
        component: String,
        /// What is wrong with it.
        source: WireError,
    },
    /// The component sent a message that does not belong here.
    #[error("component {component} does not keep to the protocol: it sent {message:?}")]
    Unexpected {
        /// The component.
        component: String,
        /// What it sent.
        message: Message,
    },
    /// The component refused.
    #[error("component {component} refused to {what}: {reason}")]
    Refused {
        /// The component.
        component: String,
        /// What it was asked to do.
        what: String,
        /// Its reason.
        reason: Refusal,
    },
}

/// One event of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventInfo {
    /// Its number in rows.
    pub id: EventId,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: ProbeKind,
}

/// A component that this process has taken. Once the value is dropped, the component switches its probes off
/// and waits for the next scheduler.
#[derive(Debug)]
pub struct Component {
    channel: Channel,
    limit: Duration,
    path: PathBuf,
    pid: u32,
    user: u32,
    name: String,
    events: Vec<EventInfo>,
    region: Option<Arc<Region>>,
    token: u32,
    /// The requests that it has not answered, oldest first.
    asked: VecDeque<Packet>,
    /// What it has refused since the last call of [`Component::settle`].
    refused: Vec<AttachError>,
}

impl Component {
    /// Takes the component that listens at `path`. That takes `limit` at most. Each later request to the
    /// component takes that long at most, too, whatever number of packets answers it.
    ///
    /// # Errors
    ///
    /// [`AttachError`]; the component is unchanged then.
    pub fn connect(path: &Path, limit: Duration) -> Result<Component, AttachError> {
        let deadline = end_of(limit);
        let channel = open(path, deadline).map_err(|source| cannot_connect(path, limit, source))?;
        let mut introduction = Introduction::on(channel, path, limit)?;
        loop {
            let packet = introduction.hear(deadline)?;
            match introduction.take(packet)? {
                Progress::Waiting(waiting) => introduction = *waiting,
                Progress::Taken(component) => return Ok(*component),
            }
        }
    }

    /// The path of its socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its user.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Its program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its events, in the order of their numbers.
    pub fn events(&self) -> &[EventInfo] {
        &self.events
    }

    /// The event of this name.
    pub fn event(&self, name: &str) -> Option<&EventInfo> {
        self.events.iter().find(|event| event.name == name)
    }

    /// The memory that was handed to it.
    pub fn region(&self) -> Option<&Arc<Region>> {
        self.region.as_ref()
    }

    /// Hands over memory for its logs.
    ///
    /// # Errors
    ///
    /// [`AttachError`], for example if the component already has memory.
    pub fn provide(&mut self, region: Arc<Region>) -> Result<(), AttachError> {
        let message = Message::Provide { shape: region.shape(), processors: region.processors() as u32 };
        self.ask(message, Some(region.fd()))?;
        self.region = Some(region);
        Ok(())
    }

    /// Switches an event on.
    ///
    /// # Errors
    ///
    /// [`AttachError`]; no event was switched then.
    pub fn enable(&mut self, event: EventId) -> Result<(), AttachError> {
        self.ask(Message::Enable { event }, None)
    }

    /// Switches an event off. Once this returns, no thread enters the probe any more. A thread that is
    /// already in the probe can still write its row.
    ///
    /// # Errors
    ///
    /// [`AttachError`]
    pub fn disable(&mut self, event: EventId) -> Result<(), AttachError> {
        self.ask(Message::Disable { event }, None)
    }

    /// Binds the whole process to a domain.
    ///
    /// # Errors
    ///
    /// [`AttachError`]
    pub fn bind(&mut self, domain: DomainId) -> Result<(), AttachError> {
        self.ask(Message::Bind { tid: 0, domain }, None)
    }

    /// Binds one thread to a domain, whichever domain the process is bound to.
    ///
    /// # Errors
    ///
    /// [`AttachError`], for example if it has no such thread.
    pub fn bind_thread(&mut self, tid: u32, domain: DomainId) -> Result<(), AttachError> {
        self.ask(Message::Bind { tid, domain }, None)
    }

    /// Hands over memory for its logs without waiting. This and the three calls below return as soon as the
    /// request is sent. The component carries out requests in their order, and [`Component::settle`] takes
    /// its answers.
    ///
    /// # Errors
    ///
    /// [`AttachError::Deaf`] if it has not taken earlier requests; nothing was sent then.
    pub fn tell_to_log_into(&mut self, region: Arc<Region>) -> Result<(), AttachError> {
        let message = Message::Provide { shape: region.shape(), processors: region.processors() as u32 };
        self.tell(message, Some(region.fd()))?;
        self.region = Some(region);
        Ok(())
    }

    /// [`Component::enable`] without waiting.
    ///
    /// # Errors
    ///
    /// As [`Component::tell_to_log_into`].
    pub fn tell_to_enable(&mut self, event: EventId) -> Result<(), AttachError> {
        self.tell(Message::Enable { event }, None)
    }

    /// [`Component::disable`] without waiting.
    ///
    /// # Errors
    ///
    /// As [`Component::tell_to_log_into`].
    pub fn tell_to_disable(&mut self, event: EventId) -> Result<(), AttachError> {
        self.tell(Message::Disable { event }, None)
    }

    /// [`Component::bind`] without waiting.
    ///
    /// # Errors
    ///
    /// As [`Component::tell_to_log_into`].
    pub fn tell_to_bind(&mut self, domain: DomainId) -> Result<(), AttachError> {
        self.tell(Message::Bind { tid: 0, domain }, None)
    }

    /// Takes the answers that have arrived and returns the refusals. Does not wait.
    ///
    /// # Errors
    ///
    /// [`AttachError`] if the component has ended or does not keep to the protocol.
    pub fn settle(&mut self) -> Result<Vec<AttachError>, AttachError> {
        // Bounded, because a component can send packets without end.
        for _ in 0..MOST_ASKED {
            if self.asked.is_empty() {
                break;
            }
            let Some(answer) = self.hear_now()? else { break };
            self.take_answer(answer)?;
        }
        Ok(std::mem::take(&mut self.refused))
    }

    /// Whether it has answered all requests.
    pub fn is_settled(&self) -> bool {
        self.asked.is_empty()
    }

    /// Whether it still runs. Does not wait. Its last rows can be read in both cases.
    pub fn is_alive(&self) -> bool {
        let mut poll = [PollFd::new(&self.channel, PollFlags::IN)];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let answer = rustix::event::poll(&mut poll, Some(&now));
        answer.is_ok() && !poll[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    fn check_owner(&self) -> Result<(), AttachError> {
        let own = directory::user();
        if own == 0 || self.user == own || self.user == 0 {
            return Ok(());
        }
        Err(AttachError::NotOurs { component: self.label(), user: self.user })
    }

    /// Sends one request and waits for its answer. Late answers to earlier requests, for which the caller did
    /// not wait to the end, are taken on the way.
    fn ask(&mut self, message: Message, descriptor: Option<BorrowedFd<'_>>) -> Result<(), AttachError> {
        let packet = self.next(message);
        let deadline = end_of(self.limit);
        let sent = self.channel.limit_waiting_until(deadline);
        let sent = sent.and_then(|()| self.channel.send(packet, descriptor));
        sent.map_err(|source| self.failed("send to", source))?;
        // Bounded: a component that sends other packets instead of the answer is not listened to for ever.
        for _ in 0..MOST_ASKED {
            let answer = self.hear(deadline)?;
            if answer.token == packet.token {
                return self.judge(packet, answer.message);
            }
            self.take_answer(answer)?;
        }
        Err(AttachError::Silent { component: self.label(), limit: self.limit })
    }

    /// Sends a request without waiting. [`Component::settle`] takes its answer.
    fn tell(&mut self, message: Message, descriptor: Option<BorrowedFd<'_>>) -> Result<(), AttachError> {
        if self.asked.len() >= MOST_ASKED {
            return Err(AttachError::Deaf { component: self.label() });
        }
        let packet = self.next(message);
        match self.channel.send_now(packet, descriptor) {
            Ok(()) => {
                self.asked.push_back(packet);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(AttachError::Deaf { component: self.label() })
            }
            Err(error) => Err(self.failed("send to", error)),
        }
    }

    fn next(&mut self, message: Message) -> Packet {
        // Zero is the token of the messages that the component sends unasked.
        self.token = self.token.checked_add(1).unwrap_or(1);
        Packet { token: self.token, message }
    }

    /// Takes an answer to one of the requests that wait for one, and notes a refusal.
    fn take_answer(&mut self, answer: Packet) -> Result<(), AttachError> {
        // An answer without a request is one to a request that was given up.
        let asked = self.asked.iter().position(|asked| asked.token == answer.token);
        let Some(asked) = asked.and_then(|at| self.asked.remove(at)) else { return Ok(()) };
        match self.judge(asked, answer.message) {
            Err(refused @ AttachError::Refused { .. }) => self.refused.push(refused),
            other => other?,
        }
        Ok(())
    }

    /// What an answer says about the request.
    fn judge(&self, asked: Packet, answer: Message) -> Result<(), AttachError> {
        match answer {
            Message::Ack => Ok(()),
            Message::Error(reason) => {
                let what = format!("do {:?}", asked.message);
                Err(AttachError::Refused { component: self.label(), what, reason })
            }
            message => Err(self.unexpected(message)),
        }
    }

    /// The next packet, waited for until the deadline.
    fn hear(&self, deadline: Instant) -> Result<Packet, AttachError> {
        let received = self.channel.limit_waiting_until(deadline).and_then(|()| self.channel.receive());
        self.packet(received.map_err(|source| self.failed("receive from", source))?)
    }

    /// The next packet, if one is there.
    fn hear_now(&self) -> Result<Option<Packet>, AttachError> {
        let received = self.channel.receive_now();
        let received = received.map_err(|source| self.failed("receive from", source))?;
        received.map(|received| self.packet(received)).transpose()
    }

    fn packet(&self, received: Received) -> Result<Packet, AttachError> {
        match received {
            Received::Packet(packet, _) => Ok(packet),
            Received::Garbled(source) => Err(AttachError::Garbled { component: self.label(), source }),
            Received::End => Err(AttachError::Gone { path: self.path.clone() }),
        }
    }

    fn unexpected(&self, message: Message) -> AttachError {
        AttachError::Unexpected { component: self.label(), message }
    }

    fn failed(&self, what: &'static str, source: io::Error) -> AttachError {
        match source.kind() {
            kind if is_timeout(kind) => AttachError::Silent { component: self.label(), limit: self.limit },
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                AttachError::Gone { path: self.path.clone() }
            }
            _ => system(what, self.label(), source),
        }
    }

    fn label(&self) -> String {
        if self.name.is_empty() { process(self.pid) } else { format!("{} ({})", self.name, self.pid) }
    }
}

/// A process by its program's name, as long as it runs. The process's user has chosen that name, so [`Name`]
/// keeps it from controlling the reader's terminal.
fn process(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    match Name::new(String::from_utf8_lossy(&name).trim_end()).as_str() {
        "" => format!("process {pid}"),
        name => format!("{name} ({pid})"),
    }
}

impl AsFd for Component {
    /// The connection. It hangs up when the component ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

fn open(path: &Path, deadline: Instant) -> io::Result<Channel> {
    let channel = Channel::new(Descriptor::new(endpoint::socket(SocketFlags::CLOEXEC)?)?);
    // Before connecting, because the limit holds for that, too.
    channel.limit_waiting_until(deadline)?;
    rustix::net::connect(channel.as_fd(), &SocketAddrUnix::new(path)?)?;
    Ok(channel)
}

fn cannot_connect(path: &Path, limit: Duration, source: io::Error) -> AttachError {
    match source.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            AttachError::Gone { path: path.to_owned() }
        }
        // Its queue of waiting connections is full, because it takes none of them.
        kind if is_timeout(kind) => AttachError::Silent { component: path.display().to_string(), limit },
        _ => system("connect to", path.display().to_string(), source),
    }
}

fn is_timeout(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn end_of(limit: Duration) -> Instant {
    Instant::now() + limit.min(LONGEST_WAIT)
}

fn system(what: &'static str, component: String, source: io::Error) -> AttachError {
    AttachError::System { what, component, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_11_the_name_of_a_program_controls_no_terminal() -> io::Result<()> {
        let own = std::process::id();
        let before = std::fs::read_to_string(format!("/proc/{own}/comm"))?;
        std::fs::write(format!("/proc/{own}/comm"), "r\u{1b}[31m\nX")?;
        let said = process(own);
        std::fs::write(format!("/proc/{own}/comm"), before.trim_end())?;
        assert_eq!(said, format!("r?[31m?X ({own})"));
        Ok(())
    }
}
