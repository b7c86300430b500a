//! What the run queue knows about one of its clients, and its arithmetic.

use crate::id::identifier;
use crate::{ClientId, Nanoseconds};

identifier! {
    /// A member of a queue: a client's number or, in the tree of queues, a domain's (behind the clients').
    pub(super) Entity(u32)
}

impl From<ClientId> for Entity {
    #[inline]
    fn from(client: ClientId) -> Entity {
        Entity::new(client.get())
    }
}

impl Entity {
    /// The client that it is, where no domain is in the queue.
    #[inline]
    pub(super) const fn client(self) -> ClientId {
        ClientId::new(self.get())
    }
}

/// Where an entity belongs in a queue: larger shares first, ties by number (VTRR paper, §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

impl Key {
    /// Behind every entity.
    pub(super) const LAST: Key = Key(u64::MAX);
    /// Before every entity: no share is as large as this key's.
    pub(super) const FIRST: Key = Key(0);

    pub(super) const fn new(share: u32, entity: Entity) -> Key {
        // Inverted, so that the larger share has the smaller key.
        Key(((!share as u64) << 32) | entity.get() as u64)
    }

    pub(super) const fn share(self) -> u32 {
        !((self.0 >> 32) as u32)
    }
}

/// One entity in the queue. Everything that a decision reads and writes lies in these 32 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub(super) entity: Entity,
    pub(super) share: u32,
    /// The time counter: quanta that are due in this cycle.
    pub(super) counter: u32,
    /// The cycle that the counter belongs to, modulo 2³²: an older counter has still to be reset.
    pub(super) cycle: u32,
    /// How much was used of the next quantum that comes off the counter; less than a quantum.
    pub(super) used_ns: Nanoseconds,
    /// It cannot be selected: the client runs, or the domain has no client to select.
    pub(super) busy: bool,
}

impl Slot {
    pub(super) fn key(&self) -> Key {
        Key::new(self.share, self.entity)
    }

    /// The time that is due in this cycle: the counter's quanta less what was used of the next one.
    /// More than -2⁴⁰ and below 2⁶¹, because a quantum is at most [`MAX_QUANTUM_NS`].
    pub(super) fn due_ns(&self, quantum_ns: Nanoseconds) -> i64 {
        (u64::from(self.counter) * quantum_ns).get() as i64 - self.used_ns.get() as i64
    }

    /// Sets the counter to the quanta that `due_ns` begins, and notes the excess.
    pub(super) fn set_due_ns(&mut self, due_ns: i64, quantum_ns: Nanoseconds) {
        // A debt of a whole quantum would need a counter below 0.
        let due_ns = due_ns.max(1 - quantum_ns.get() as i64);
        // Rounded up (see `vtrr`): the sum is not negative, so the division rounds towards zero.
        let quanta = (due_ns + quantum_ns.get() as i64 - 1) / quantum_ns.get() as i64;
        self.counter = quanta as u32;
        self.used_ns = Nanoseconds::new((quanta * quantum_ns.get() as i64 - due_ns) as u64);
    }

    /// Sets a larger counter, and what is due to `most_ns` at most, as far as the counter allows it.
    pub(super) fn raise(&mut self, counter: u32, most_ns: i128, quantum_ns: Nanoseconds) {
        let whole_ns = i128::from(counter) * i128::from(quantum_ns);
        // Within the counter's last quantum.
        let due_ns = most_ns.clamp(whole_ns - i128::from(quantum_ns) + 1, whole_ns);
        self.counter = counter;
        self.used_ns = Nanoseconds::new((whole_ns - due_ns) as u64);
    }

    /// Takes `ran_ns` off what is due. A debt of more than a quantum beyond the counter is forgiven, so
    /// that a client is due something in every cycle.
    pub(super) fn charge(&mut self, ran_ns: Nanoseconds, quantum_ns: Nanoseconds) {
        let used_ns = self.used_ns.saturating_add(ran_ns);
        let quanta = u32::try_from(used_ns / quantum_ns).unwrap_or(u32::MAX);
        self.counter = self.counter.saturating_sub(quanta);
        self.used_ns = used_ns % quantum_ns;
    }

    /// Resets the counter for a new cycle and answers the quanta that are forfeit.
    ///
    /// As a rule nothing is left. Where clients run at the same time something may be: as much as the new
    /// cycle brings is kept, to be made up for, and the rest is not saved up.
    pub(super) fn reset(&mut self, cycle: u32) -> u32 {
        let kept = self.counter.min(self.share);
        let forfeit = self.counter - kept;
        self.counter = self.share + kept;
        self.cycle = cycle;
        forfeit
    }
}

/// The longest quantum: 2⁴⁰ ns, about 18 minutes, so that a share's worth of quanta fits 64 bits.
pub(crate) const MAX_QUANTUM_NS: Nanoseconds = Nanoseconds::new(1 << 40);

const _: () = assert!(size_of::<Slot>() == 32, "a slot never straddles a cache line");
