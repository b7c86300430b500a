//! A component's side of the protocol with the scheduler that has taken it: requests arrive, answers are
//! sent.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use mete_log::{DomainId, EventId, Shape};

use crate::channel::{Channel, Received};
use crate::descriptor::Descriptor;
use crate::handler::SHAPE;
use crate::wire::{Message, Name, Packet, Refusal};
use crate::{debug, directory, domain, registry, state};

/// The time that a scheduler has to accept an answer before it counts as gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// One attached scheduler. After the session's end the listener switches everything off.
#[derive(Debug)]
pub(crate) struct Session {
    channel: Channel,
}

impl Session {
    /// A session on a connection, if the user at the other end may have this component.
    pub fn new(socket: Descriptor) -> io::Result<Session> {
        let session = Session { channel: Channel::new(socket) };
        session.channel.limit_waiting(PATIENCE)?;
        let peer = session.channel.peer()?.uid.as_raw();
        if peer == 0 || peer == directory::user() {
            return Ok(session);
        }
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("a scheduler of user {peer} was turned away"),
        ))
    }

    /// Introduces this component to its scheduler.
    pub fn introduce(&self) -> io::Result<()> {
        introduction().into_iter().try_for_each(|message| self.say(message))
    }

    /// Tells a second scheduler which process has the component already.
    pub fn turn_away(&self, holder: &Session) -> io::Result<()> {
        self.say(Message::Busy { pid: holder.channel.peer()?.pid.as_raw_nonzero().get() as u32 })
    }

    fn say(&self, message: Message) -> io::Result<()> {
        self.channel.send(Packet { token: 0, message }, None)
    }

    /// The connection.
    pub fn descriptor(&self) -> &Descriptor {
        self.channel.descriptor()
    }

    /// Serves one request. An error ends the session.
    pub fn serve(&self) -> io::Result<()> {
        let (token, answer) = match self.channel.receive()? {
            Received::End => return Err(io::ErrorKind::UnexpectedEof.into()),
            Received::Garbled(error) => {
                debug::tell(|| error.to_string());
                (0, Err(Refusal::NotUnderstood))
            }
            Received::Packet(packet, descriptor) => (packet.token, obey(packet.message, descriptor)),
        };
        let message = answer.map_or_else(Message::Error, |()| Message::Ack);
        self.channel.send(Packet { token, message }, None)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        state::lock().closing(self.descriptor());
    }
}

/// Carries out a request.
fn obey(message: Message, descriptor: Option<OwnedFd>) -> Result<(), Refusal> {
    match message {
        Message::Provide { shape, processors } => provide(shape, processors, descriptor),
        Message::Enable { event } => switch(event, true),
        Message::Disable { event } => switch(event, false),
        Message::Bind { tid, domain } => bind(tid, domain),
        _ => Err(Refusal::NotUnderstood),
    }
}

fn provide(shape: Shape, processors: u32, file: Option<OwnedFd>) -> Result<(), Refusal> {
    let memory = &mut state::lock().memory;
    if memory.is_attached() {
        return Err(Refusal::HasMemory);
    }
    let is_taken = shape == SHAPE && file.is_some_and(|file| memory.attach(file, processors));
    if is_taken { Ok(()) } else { Err(Refusal::BadMemory) }
}

fn switch(event: EventId, on: bool) -> Result<(), Refusal> {
    needs_memory()?;
    let mut registry = registry::lock();
    if event.index() >= registry.published().len() {
        return Err(Refusal::NoSuchEvent);
    }
    registry.switch(event, on).map_err(|error| {
        debug::tell(|| error.to_string());
        Refusal::NotPatched
    })
}

fn bind(tid: u32, domain: DomainId) -> Result<(), Refusal> {
    needs_memory()?;
    if domain.index() >= SHAPE.domains() {
        return Err(Refusal::NoSuchDomain);
    }
    if tid == 0 {
        domain::bind_process(domain);
        return Ok(());
    }
    if domain::bind_thread(tid, domain) { Ok(()) } else { Err(Refusal::NoSuchThread) }
}

/// Refuses a request that needs memory: no probe runs without a reader.
fn needs_memory() -> Result<(), Refusal> {
    if state::lock().memory.is_attached() { Ok(()) } else { Err(Refusal::NoMemory) }
}

/// Switches everything off, as if no scheduler had ever been there.
pub(crate) fn stop_logging() {
    debug::tell_error(registry::lock().switch_all_off());
    // After the probes: no further thread enters a handler while `detach` waits for those inside.
    state::lock().memory.detach();
    domain::unbind_all();
}

fn introduction() -> Vec<Message> {
    let registry = registry::lock();
    let published = registry.published();
    let (pid, events) = (std::process::id(), published.len() as u32);
    let mut messages = vec![Message::Hello { pid, events, name: Name::new(&program()) }];
    messages.extend(published.iter().enumerate().map(|(id, event)| Message::Event {
        id: EventId::from_index(id),
        kind: event.kind,
        name: Name::new(&event.name.to_string_lossy()),
    }));
    messages
}

fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
