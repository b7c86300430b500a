//! The clients: what the policy knows of each, and where each stands.

use mete_policy::{ClientId, Nanoseconds};
use mete_sched::actuator::classes::Adopted;
use rustix::io::Errno;

use crate::memory::Memory;

/// Where a thread stands beside all ordinary ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Before them: it has the processor.
    Front,
    /// Among them: it has the processor, and has stepped back for others.
    Among,
    /// Behind them.
    Behind,
}

/// A thread that is dispatched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    pub adopted: Adopted,
    standing: Option<Standing>,
    /// Whether the kernel would run it. The policy may take a client for ready that has blocked: it is told when it
    /// chooses the client.
    pub can_run: bool,
    /// Whether the policy takes it for blocked.
    pub is_away: bool,
    /// What the policy was told that it used.
    pub charged: Nanoseconds,
}

impl Client {
    /// A client of which the policy knows only that it is there.
    pub fn new(adopted: Adopted) -> Client {
        let charged = Nanoseconds::ZERO;
        Client { adopted, standing: None, can_run: false, is_away: true, charged }
    }

    /// Nothing is known about where it stands.
    pub fn forget_standing(&mut self) {
        self.standing = None;
    }

    /// Has it stand there.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn stand(&mut self, standing: Standing) -> Result<(), Errno> {
        if self.standing == Some(standing) {
            return Ok(());
        }
        match standing {
            Standing::Front => self.adopted.put_in_front(),
            Standing::Among => self.adopted.release(),
            Standing::Behind => self.adopted.put_behind(),
        }?;
        self.standing = Some(standing);
        Ok(())
    }

    /// What it has used since the policy was last told.
    pub fn charge(&mut self, memory: &Memory, number: ClientId, now: Nanoseconds) -> Nanoseconds {
        let used = memory.used(number, now);
        let ran = used.saturating_sub(self.charged);
        self.charged = self.charged.max(used);
        ran
    }
}

/// All clients, by number.
#[derive(Debug)]
pub(crate) struct Clients(Vec<Option<Client>>);

impl Clients {
    /// With room for this number of them.
    pub fn with_room(most: usize) -> Clients {
        Clients(vec![None; most])
    }

    pub fn put(&mut self, number: ClientId, client: Client) {
        if let Some(place) = self.0.get_mut(number.index()) {
            *place = Some(client);
        }
    }

    pub fn take(&mut self, number: ClientId) -> Option<Client> {
        self.0.get_mut(number.index())?.take()
    }

    pub fn get(&mut self, number: ClientId) -> Option<&mut Client> {
        self.0.get_mut(number.index())?.as_mut()
    }

    /// The client of this number, if its thread is still this one.
    pub fn of_thread(&mut self, number: ClientId, thread: u32) -> Option<&mut Client> {
        self.get(number).filter(|client| client.adopted.thread == thread)
    }

    /// The numbers that clients have.
    pub fn numbers(&self) -> Vec<ClientId> {
        (0..self.0.len()).filter(|&at| self.0[at].is_some()).map(ClientId::at).collect()
    }
}
