//! The channels between the dispatcher's threads. The manager never blocks on them.

use std::io;

use crate::bell::Bell;
use crate::births::Births;
use crate::mailbox::Mailbox;
use crate::memory::MOST_CLIENTS;
use crate::message::Message;

/// See the [module](self). All copies are the same channels.
#[derive(Clone, Debug)]
pub(crate) struct Channels<T> {
    /// To the manager: what is to become of clients.
    pub messages: Mailbox<Message<T>>,
    /// Wakes the manager.
    pub bell: Bell,
    /// From the manager: what clients have started.
    pub births: Births,
}

impl<T> Channels<T> {
    /// Nothing was told yet.
    ///
    /// # Errors
    ///
    /// The system's answer.
    pub fn new() -> io::Result<Channels<T>> {
        Ok(Channels {
            messages: Mailbox::with_room(MOST_CLIENTS),
            bell: Bell::new()?,
            births: Births::new()?,
        })
    }
}
