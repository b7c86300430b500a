//! The clients: what the policy knows of each, and where each stands.

use mete_policy::{ClientId, DomainIndex, Nanoseconds};
use rustix::io::Errno;

use crate::memory::Memory;
use crate::threads::{Standing, Threads};

/// A thread that is dispatched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client<T> {
    pub thread: T,
    pub domain: DomainIndex,
    /// On which of the first 64 processors it may run.
    pub allowed: u64,
    standing: Option<Standing>,
    /// Whether the kernel would run it. The policy may take a client for ready that has blocked: it is told
    /// when it chooses the client.
    pub can_run: bool,
    /// Whether the policy takes it for blocked.
    pub is_away: bool,
    /// The kernel has refused to put it in front. It runs among ordinary threads.
    pub is_refused: bool,
    /// What the policy was told that it used.
    pub charged: Nanoseconds,
    /// What tasks that are no clients had in its steps back; only the difference between two clients of a domain means anything.
    pub gave: Nanoseconds,
}

impl<T: Copy> Client<T> {
    /// A client of which the policy knows only that it is there.
    pub fn new(thread: T, domain: DomainIndex, allowed: u64) -> Client<T> {
        Client {
            thread,
            domain,
            allowed,
            standing: None,
            can_run: false,
            is_away: true,
            is_refused: false,
            charged: Nanoseconds::ZERO,
            gave: Nanoseconds::ZERO,
        }
    }

    /// Nothing is known about where it stands.
    pub fn forget_standing(&mut self) {
        self.standing = None;
    }

    /// Whether it stands in front, as far as is known.
    pub fn is_in_front(&self) -> bool {
        self.standing == Some(Standing::Front)
    }

    /// Has it stand there.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn stand(&mut self, threads: &mut impl Threads<Thread = T>, standing: Standing) -> Result<(), Errno> {
        if self.standing == Some(standing) {
            return Ok(());
        }
        // From real time straight to SCHED_IDLE, a kernel may lose count of the weight of the thread's group,
        // and let other groups wait for minutes, also after the thread has its own class again:
        // docs/limits.md. And it would keep there the slice of a thread that has stepped aside.
        if standing == Standing::Behind {
            threads.stand(&self.thread, Standing::Own)?;
        }
        threads.stand(&self.thread, standing)?;
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
pub(crate) struct Clients<T>(Vec<Option<Client<T>>>);

impl<T: Copy> Clients<T> {
    /// With room for this number of them.
    pub fn with_room(most: usize) -> Clients<T> {
        Clients(vec![None; most])
    }

    pub fn put(&mut self, number: ClientId, client: Client<T>) {
        if let Some(place) = self.0.get_mut(number.index()) {
            *place = Some(client);
        }
    }

    pub fn take(&mut self, number: ClientId) -> Option<Client<T>> {
        self.0.get_mut(number.index())?.take()
    }

    pub fn get(&mut self, number: ClientId) -> Option<&mut Client<T>> {
        self.0.get_mut(number.index())?.as_mut()
    }

    /// A client, to be looked at only.
    pub fn look_at(&self, number: ClientId) -> Option<&Client<T>> {
        self.0.get(number.index())?.as_ref()
    }

    /// The domain of a client.
    pub fn domain_of(&self, number: ClientId) -> Option<DomainIndex> {
        Some(self.look_at(number)?.domain)
    }

    /// The client whose thread is this one.
    pub fn of_thread(&self, is_it: impl Fn(&T) -> bool) -> Option<ClientId> {
        let place =
            self.0.iter().position(|client| client.as_ref().is_some_and(|client| is_it(&client.thread)));
        place.map(ClientId::at)
    }

    /// The numbers that clients have.
    pub fn numbers(&self) -> Vec<ClientId> {
        (0..self.0.len()).filter(|&at| self.0[at].is_some()).map(ClientId::at).collect()
    }
}
