//! The scheduler's side: find components, take one, hand it memory, switch its events.
//!
//! Nothing here waits longer than it was told to: a component may be stopped, slow, hostile or dead
//! at any moment (LOG-11). What must not wait at all has two halves: a component is taken by an
//! [`Introduction`], and [told](Component::tell_to_bind) something whose answer is taken
//! [later](Component::settle).

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
use crate::event::Kind;
use crate::registry::MAX_EVENTS;
use crate::wire::{Message, Name, Packet, Refusal, WireError};
use crate::{directory, endpoint};

pub use introduction::{Introduction, Progress};

/// Whoever wants to wait longer waits so long.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Requests of a component that wait for their answers: to switch each event that there can be, and as many more. A
/// component that is behind by more has stopped. The kernel keeps that number of packets for a socket.
const MOST_ASKED: usize = 2 * MAX_EVENTS;

/// Why a component could not be taken or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Nobody listens: the program has ended.
    #[error("{}: nobody listens there (the program has ended)", path.display())]
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
        /// How long was waited.
        limit: Duration,
    },
    /// The component does not take what it is told.
    #[error("component {component} does not take what it is told (is it stopped?), so it is let go")]
    Deaf {
        /// The component.
        component: String,
    },
    /// Another scheduler has the component.
    #[error("component {component} is already read by {}, which has to end first", process(*scheduler))]
    Busy {
        /// The component.
        component: String,
        /// The component's process.
        pid: u32,
        /// The other scheduler.
        scheduler: u32,
    },
    /// The socket belongs to somebody whom this user should not listen to.
    #[error(
        "component {component} belongs to user {user}, not to this one; only root may read others' components"
    )]
    NotOurs {
        /// The component.
        component: String,
        /// Its owner.
        user: u32,
    },
    /// The socket lies in one user's directory, and a process of another user listens at it.
    #[error("component {component} of user {user} is in a directory of user {owner}, so it is left alone")]
    Misplaced {
        /// The component.
        component: String,
        /// Its user.
        user: u32,
        /// The directory's owner.
        owner: u32,
    },
    /// What came back makes no sense.
    #[error("component {component} sent garbage: {source}")]
    Garbled {
        /// The component.
        component: String,
        /// In which way.
        source: WireError,
    },
    /// What came back does not belong here.
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
        /// What it was asked.
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
    pub kind: Kind,
}

/// A component that this process has taken. Dropped, it switches its probes off and waits for the
/// next scheduler.
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
    /// What it was asked and has not answered, oldest first.
    asked: VecDeque<Packet>,
    /// What it has refused since [`Component::settle`] was called last.
    refused: Vec<AttachError>,
}

impl Component {
    /// Takes the component that listens at `path`. That takes `limit` at most, and so does each
    /// request to it from then on, however many packets it is answered by.
    ///
    /// # Errors
    ///
    /// [`AttachError`]; the component is as it was then.
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

    /// Where it was found.
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

    /// The event of that name.
    pub fn event(&self, name: &str) -> Option<&EventInfo> {
        self.events.iter().find(|event| event.name == name)
    }

    /// The memory that it was given.
    pub fn region(&self) -> Option<&Arc<Region>> {
        self.region.as_ref()
    }

    /// Hands over memory for its logs.
    ///
    /// # Errors
    ///
    /// [`AttachError`], for example if it has memory already.
    pub fn provide(&mut self, region: Arc<Region>) -> Result<(), AttachError> {
        let message = Message::Provide { shape: region.shape(), processors: region.processors() as u32 };
        self.ask(message, Some(region.fd()))?;
        self.region = Some(region);
        Ok(())
    }

    /// Has an event logged from now on.
    ///
    /// # Errors
    ///
    /// [`AttachError`]; nothing was switched then.
    pub fn enable(&mut self, event: EventId) -> Result<(), AttachError> {
        self.ask(Message::Enable { event }, None)
    }

    /// Has an event logged no longer. Once this returns no thread enters the probe; one that was in
    /// it already may still write its row.
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

    /// Binds one thread to a domain, whatever the process is bound to.
    ///
    /// # Errors
    ///
    /// [`AttachError`], for example if it has no such thread.
    pub fn bind_thread(&mut self, tid: u32, domain: DomainId) -> Result<(), AttachError> {
        self.ask(Message::Bind { tid, domain }, None)
    }

    /// Hands over memory for its logs without waiting. This and the four calls below it answer as soon as the request
    /// is on its way; the component carries requests out in their order, and [`Component::settle`] takes its answers.
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

    /// Takes the answers that have come, and says what was refused. Does not wait.
    ///
    /// # Errors
    ///
    /// [`AttachError`] if it has ended or does not keep to the protocol.
    pub fn settle(&mut self) -> Result<Vec<AttachError>, AttachError> {
        // Bounded: a component may talk without end.
        for _ in 0..MOST_ASKED {
            if self.asked.is_empty() {
                break;
            }
            let Some(answer) = self.hear_now()? else { break };
            self.take_answer(answer)?;
        }
        Ok(std::mem::take(&mut self.refused))
    }

    /// Whether it has answered everything that it was told.
    pub fn is_settled(&self) -> bool {
        self.asked.is_empty()
    }

    /// Whether it still runs. Does not wait. Its last rows can be read in any case.
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

    /// One request and its answer. Late answers to requests that were given up are skipped.
    fn ask(&mut self, message: Message, descriptor: Option<BorrowedFd<'_>>) -> Result<(), AttachError> {
        let packet = self.next(message);
        let deadline = end_of(self.limit);
        let sent = self.channel.limit_waiting_until(deadline);
        let sent = sent.and_then(|()| self.channel.send(packet, descriptor));
        sent.map_err(|source| self.failed("send to", source))?;
        // Bounded: a component that talks without answering is not listened to for ever.
        for _ in 0..MOST_ASKED {
            let answer = self.hear(deadline)?;
            if answer.token == packet.token {
                return self.judge(packet, answer.message);
            }
            self.take_answer(answer)?;
        }
        Err(AttachError::Silent { component: self.label(), limit: self.limit })
    }

    /// Sends a request, whose answer [`Component::settle`] takes.
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
        // Zero is the token of what it says unasked.
        self.token = self.token.checked_add(1).unwrap_or(1);
        Packet { token: self.token, message }
    }

    fn take_answer(&mut self, answer: Packet) -> Result<(), AttachError> {
        let asked = self.asked.iter().position(|asked| asked.token == answer.token);
        let Some(asked) = asked.and_then(|at| self.asked.remove(at)) else { return Ok(()) };
        match self.judge(asked, answer.message) {
            Err(refused @ AttachError::Refused { .. }) => self.refused.push(refused),
            other => other?,
        }
        Ok(())
    }

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

/// A process by its program's name, as long as it runs. Its user has chosen the name, which may not steer the terminal
/// of whoever reads this.
fn process(pid: u32) -> String {
    let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    match Name::new(String::from_utf8_lossy(&name).trim_end()).as_str() {
        "" => format!("process {pid}"),
        name => format!("{name} ({pid})"),
    }
}

impl AsFd for Component {
    /// The connection; it hangs up when the component ends.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// Processors that threads may ever run on, one more than the highest number: how many areas a
/// component's region needs. It refuses fewer.
pub fn configured_processors() -> usize {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    highest(&possible).map_or_else(counted_processors, |last| last + 1).clamp(1, 4096)
}

/// The last number of a list as the kernel writes it: numbers and ranges, in order.
fn highest(list: &str) -> Option<usize> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// Where the kernel's files cannot be read.
fn counted_processors() -> usize {
    // SAFETY: a query.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    usize::try_from(configured).unwrap_or(1)
}

fn open(path: &Path, deadline: Instant) -> io::Result<Channel> {
    let channel = Channel::new(Descriptor::new(endpoint::socket(SocketFlags::CLOEXEC)?)?);
    // Before connecting: the limit holds for that, too.
    channel.limit_waiting_until(deadline)?;
    rustix::net::connect(channel.as_fd(), &SocketAddrUnix::new(path)?)?;
    Ok(channel)
}

fn cannot_connect(path: &Path, limit: Duration, source: io::Error) -> AttachError {
    match source.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            AttachError::Gone { path: path.to_owned() }
        }
        // Many wait for it already: it does not take anybody.
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
    fn log_9_a_region_has_room_for_the_highest_possible_processor() {
        for (list, expected) in
            [("0\n", Some(0)), ("0-3\n", Some(3)), ("0-3,8-11\n", Some(11)), ("0,2\n", Some(2))]
        {
            assert_eq!(highest(list), expected, "{list}");
        }
        assert_eq!(["", "\n", "none"].map(highest), [None; 3], "then they are counted");
    }

    #[test]
    fn log_11_name_of_a_program_steers_no_terminal() -> io::Result<()> {
        let own = std::process::id();
        let before = std::fs::read_to_string(format!("/proc/{own}/comm"))?;
        std::fs::write(format!("/proc/{own}/comm"), "r\u{1b}[31m\nX")?;
        let said = process(own);
        std::fs::write(format!("/proc/{own}/comm"), before.trim_end())?;
        assert_eq!(said, format!("r?[31m?X ({own})"));
        Ok(())
    }
}
