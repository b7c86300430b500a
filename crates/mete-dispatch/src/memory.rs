//! The memory that the programs in the kernel write while it is read here, and the rows of their ring.

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mete_policy::{ClientId, Nanoseconds};

use crate::skeleton::{DispatchSkel, types};

/// The most clients at a time.
pub(crate) const MOST_CLIENTS: usize = size_of::<types::bss_clients>() / size_of::<types::client>();
/// The most processors.
pub(crate) const MOST_PROCESSORS: usize = size_of::<types::bss_processors>() / size_of::<types::processor>();

/// `struct client`, of which both sides read what the other one writes.
#[repr(C)]
struct Client {
    used_ns: AtomicU64,
    since_ns: AtomicU64,
    processor: AtomicU32,
    is_chosen: AtomicU32,
}

/// `struct processor`.
#[repr(C)]
struct Processor {
    rest_ns: AtomicU64,
    since_ns: AtomicU64,
    client: AtomicU32,
    is_told: AtomicU32,
}

const _: () = assert!(
    size_of::<Client>() == size_of::<types::client>()
        && size_of::<Processor>() == size_of::<types::processor>()
        && offset_of!(Client, since_ns) == offset_of!(types::client, since_ns)
        && offset_of!(Client, is_chosen) == offset_of!(types::client, is_chosen)
        && offset_of!(Processor, client) == offset_of!(types::processor, client)
        && offset_of!(Processor, is_told) == offset_of!(types::processor, is_told)
);

/// The clients' and the processors' accounts. It may be used as long as the skeleton lives that it was made of.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    clients: NonNull<[Client]>,
    processors: NonNull<[Processor]>,
    lost: NonNull<AtomicU64>,
}

// SAFETY: it leads to atomic numbers only, which any thread may use.
unsafe impl Send for Memory {}

impl Memory {
    /// `None` if the loader library has not mapped it, which it does when it loads.
    pub fn of(skeleton: &mut DispatchSkel<'_>) -> Option<Memory> {
        let clients = NonNull::from(&mut skeleton.maps.bss_clients_data.as_mut()?.clients);
        let processors = NonNull::from(&mut skeleton.maps.bss_processors_data.as_mut()?.processors);
        let lost = NonNull::from(&mut skeleton.maps.bss_data.as_mut()?.lost);
        Some(Memory {
            clients: NonNull::slice_from_raw_parts(clients.cast(), MOST_CLIENTS),
            processors: NonNull::slice_from_raw_parts(processors.cast(), MOST_PROCESSORS),
            lost: lost.cast(),
        })
    }

    /// A client's account. The number comes from the dispatcher itself.
    fn client(&self, client: ClientId) -> &Client {
        // SAFETY: the memory lives as long as the skeleton, has this layout, and is used by atomic operations only.
        let clients = unsafe { self.clients.as_ref() };
        &clients[client.index()]
    }

    fn processor(&self, processor: usize) -> &Processor {
        // SAFETY: as for the clients.
        let processors = unsafe { self.processors.as_ref() };
        &processors[processor]
    }

    /// Forgets what a client of this number did.
    pub fn clear(&self, client: ClientId) {
        let Client { used_ns, since_ns, is_chosen, .. } = self.client(client);
        used_ns.store(0, Ordering::Relaxed);
        since_ns.store(0, Ordering::Relaxed);
        is_chosen.store(0, Ordering::Relaxed);
    }

    /// The time that a client has had the processor until now.
    pub fn used(&self, client: ClientId, now: Nanoseconds) -> Nanoseconds {
        let Client { used_ns, since_ns, .. } = self.client(client);
        loop {
            let since = since_ns.load(Ordering::Acquire);
            let used = used_ns.load(Ordering::Acquire);
            // The same beginning again: no stint has ended in between, which would be counted twice or not at all.
            if since_ns.load(Ordering::Acquire) == since {
                let present = if since == 0 { 0 } else { now.get().saturating_sub(since) };
                return Nanoseconds::new(used + present);
            }
        }
    }

    /// The processor on which a client runs now.
    pub fn place(&self, client: ClientId) -> Option<usize> {
        let Client { since_ns, processor, .. } = self.client(client);
        let runs = since_ns.load(Ordering::Acquire) != 0;
        runs.then(|| processor.load(Ordering::Relaxed) as usize)
    }

    /// Has the programs tell at once that the client blocks, or no longer.
    pub fn choose(&self, client: ClientId, is_chosen: bool) {
        self.client(client).is_chosen.store(is_chosen.into(), Ordering::Relaxed);
    }

    /// The client that has a processor.
    pub fn client_on(&self, processor: usize) -> Option<ClientId> {
        let client = self.processor(processor).client.load(Ordering::Relaxed);
        ((client as usize) < MOST_CLIENTS).then(|| ClientId::new(client))
    }

    /// The time that tasks had on a processor that are no clients.
    pub fn rest(&self, processor: usize) -> Nanoseconds {
        Nanoseconds::new(self.processor(processor).rest_ns.load(Ordering::Relaxed))
    }

    /// Has the programs tell again when a task waits on a processor that is no client.
    pub fn ask_about_rest(&self, processor: usize) {
        self.processor(processor).is_told.store(0, Ordering::Relaxed);
    }

    /// How many rows were lost.
    pub fn lost(&self) -> u64 {
        // SAFETY: as for the clients.
        unsafe { self.lost.as_ref() }.load(Ordering::Relaxed)
    }
}

/// A row of the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub time: Nanoseconds,
    pub what: What,
    /// The number of a client, or of a processor.
    pub number: u32,
    pub thread: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Woke,
    Blocked,
    Ended,
    /// A task that is no client waits behind a client.
    Waited,
}

impl Row {
    /// `None` for bytes that are no row.
    pub fn from_bytes(bytes: &[u8]) -> Option<Row> {
        let number = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let time = u64::from_ne_bytes(*bytes.first_chunk()?);
        let what = match types::what(number(offset_of!(types::row, what))?) {
            types::what::WOKE => What::Woke,
            types::what::BLOCKED => What::Blocked,
            types::what::ENDED => What::Ended,
            types::what::WAITED => What::Waited,
            _ => return None,
        };
        let (of, thread) = (number(offset_of!(types::row, number))?, number(offset_of!(types::row, thread))?);
        Some(Row { time: Nanoseconds::new(time), what, number: of, thread })
    }
}
