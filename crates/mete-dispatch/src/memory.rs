//! The memory that the programs in the kernel write while it is read here, and the rows of their ring.

use std::io;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mete_kernel::{SharedNumbers, mirror};
use mete_policy::{ClientId, Nanoseconds};

use crate::skeleton::{DispatchSkel, types};

/// The most clients at a time.
pub(crate) const MOST_CLIENTS: usize = size_of::<types::bss_clients>() / size_of::<types::client>();
/// The most processors.
pub(crate) const MOST_PROCESSORS: usize = size_of::<types::bss_processors>() / size_of::<types::processor>();

// Both sides read what the other one writes.
mirror!(Client of types::client {
    account: AtomicU64,
    joined_ns: AtomicU64,
    processor: AtomicU32,
    is_chosen: AtomicU32,
    activity: AtomicU32,
    end: AtomicU32 as unused,
});

mirror!(Processor of types::processor {
    rest_ns: AtomicU64,
    since_ns: AtomicU64,
    client: AtomicU32,
    told: AtomicU32,
    gives_way: AtomicU32,
    has_rest: AtomicU32,
    untold: AtomicU32,
    end: [AtomicU32; 3] as unused,
});

const _: () = assert!(offset_of!(types::bss, lost) == 0);

/// The clients' and the processors' accounts.
///
/// Each number means something by itself, and no other memory is ordered by it: so `Relaxed` everywhere.
#[derive(Clone)]
pub(crate) struct Memory(Arc<Maps>);

struct Maps {
    clients: SharedNumbers<Client>,
    processors: SharedNumbers<Processor>,
    lost: SharedNumbers<AtomicU64>,
}

impl Memory {
    pub fn of(skeleton: &DispatchSkel<'_>) -> io::Result<Memory> {
        let maps = &skeleton.maps;
        Ok(Memory(Arc::new(Maps {
            clients: SharedNumbers::of(&maps.bss_clients, MOST_CLIENTS)?,
            processors: SharedNumbers::of(&maps.bss_processors, MOST_PROCESSORS)?,
            lost: SharedNumbers::of(&maps.bss, 1)?,
        })))
    }

    /// A client's account. The number comes from the dispatcher itself.
    fn client(&self, client: ClientId) -> &Client {
        &self.0.clients.all()[client.index()]
    }

    fn processors(&self) -> &[Processor] {
        self.0.processors.all()
    }

    /// Begins the account of a client, and forgets what a former one of this number did. The processor is
    /// where it was last.
    pub fn begin(&self, client: ClientId, processor: usize, now: Nanoseconds) {
        let of = self.client(client);
        of.account.store(0, Ordering::Relaxed);
        of.joined_ns.store(now.get(), Ordering::Relaxed);
        of.processor.store(processor as u32, Ordering::Relaxed);
        of.is_chosen.store(0, Ordering::Relaxed);
        of.activity.store(types::activity::UNSEEN.0, Ordering::Relaxed);
    }

    /// Notes whether a client can run as it was found, unless the programs know better already.
    pub fn suppose(&self, client: ClientId, can_run: bool) {
        let found = if can_run { types::activity::ABLE_TO_RUN } else { types::activity::AWAY };
        let activity = &self.client(client).activity;
        // An error means that they do.
        let _ = activity.compare_exchange(
            types::activity::UNSEEN.0,
            found.0,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Whether a client has the processor or waits for it.
    pub fn can_run(&self, client: ClientId) -> bool {
        self.client(client).activity.load(Ordering::Relaxed) != types::activity::AWAY.0
    }

    /// The time that a client has had the processor until now.
    pub fn used(&self, client: ClientId, now: Nanoseconds) -> Nanoseconds {
        used(self.client(client).account.load(Ordering::Relaxed), now)
    }

    /// What a client's account says. It changes when the client gets the processor, and when it loses it.
    pub fn account(&self, client: ClientId) -> u64 {
        self.client(client).account.load(Ordering::Relaxed)
    }

    /// The processor that a client has, or had last.
    pub fn place(&self, client: ClientId) -> usize {
        self.client(client).processor.load(Ordering::Relaxed) as usize
    }

    /// Whether the programs tell at once when the client blocks.
    pub fn choose(&self, client: ClientId, is_chosen: bool) {
        self.client(client).is_chosen.store(is_chosen.into(), Ordering::Relaxed);
    }

    /// The time that tasks had on a processor that are no clients, until now.
    pub fn rest(&self, processor: usize, now: Nanoseconds) -> Nanoseconds {
        let Some(it) = self.processors().get(processor) else { return Nanoseconds::ZERO };
        loop {
            let before = it.rest_ns.load(Ordering::Acquire);
            // In this order, the other one than that of the program: else the stint may be the client's before it.
            let is_running = it.has_rest.load(Ordering::Acquire) != 0;
            let since = Nanoseconds::new(it.since_ns.load(Ordering::Acquire));
            // A switch in between would count the present stint twice.
            if it.rest_ns.load(Ordering::Acquire) == before {
                let running = if is_running { now.saturating_sub(since) } else { Nanoseconds::ZERO };
                return Nanoseconds::new(before).saturating_add(running);
            }
        }
    }

    /// Whether a task that is no client has a processor.
    pub fn has_rest(&self, processor: usize) -> bool {
        self.processors().get(processor).is_some_and(|it| it.has_rest.load(Ordering::Relaxed) != 0)
    }

    /// Has the programs tell again when a task waits on a processor that is no client.
    pub fn ask_about_rest(&self, processor: usize) {
        let told = self.processors().get(processor).map(|it| &it.told);
        told.into_iter().for_each(|told| told.store(0, Ordering::Relaxed));
    }

    /// The same for all processors.
    pub fn ask_about_all(&self) {
        self.processors().iter().for_each(|it| it.told.store(0, Ordering::Relaxed));
    }

    /// Has the programs tell at once, or not any more, when a task on a processor that is no client has blocked.
    pub fn give_way(&self, processor: usize, gives_way: bool) {
        let told = self.processors().get(processor).map(|it| &it.gives_way);
        told.into_iter().for_each(|told| told.store(gives_way.into(), Ordering::Relaxed));
    }

    /// Why tasks on a processor wait that are no clients, of which the programs have not told and tell no more: whether any was left,
    /// and whether any has woken.
    pub fn take_untold(&self, processor: usize) -> (bool, bool) {
        let untold = self.processors().get(processor).map_or(0, |it| it.untold.swap(0, Ordering::AcqRel));
        (untold & types::why::HAS_LOST.0 != 0, untold & types::why::HAS_WOKEN.0 != 0)
    }

    /// How many rows were lost.
    pub fn lost(&self) -> u64 {
        self.0.lost.all()[0].load(Ordering::Relaxed)
    }
}

/// What an account says (`struct client`).
fn used(account: u64, now: Nanoseconds) -> Nanoseconds {
    let ns = account.cast_signed() >> 1;
    let ns = if account & 1 == 1 { ns.wrapping_add_unsigned(now.get()) } else { ns };
    // The clock may have been read before the stint began.
    Nanoseconds::new(u64::try_from(ns).unwrap_or(0))
}

/// A row of the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub time: Nanoseconds,
    pub what: What,
    pub number: ClientId,
    pub thread: u32,
    pub processor: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Woke,
    Blocked,
    Ended,
    /// A task that is no client waits behind a client; whether it has woken.
    Waited {
        has_woken: bool,
    },
    /// A task that is no client has blocked where a client gives way.
    Served,
    /// The client has started a thread.
    Born(Birth),
    /// A thread has the number of the first one of its process now.
    Renumbered(Birth),
}

/// A thread that a client has started; or one that has another number now, because it has started another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Birth {
    /// The client's thread; or the number that the thread itself had.
    pub parent: u32,
    pub thread: u32,
    pub process: u32,
    pub is_renumbered: bool,
}

impl Row {
    /// `None` for bytes that are no row.
    pub fn from_bytes(bytes: &[u8]) -> Option<Row> {
        let number = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let time = u64::from_ne_bytes(*bytes.first_chunk()?);
        let (of, thread) = (number(offset_of!(types::row, number))?, number(offset_of!(types::row, thread))?);
        let processor = number(offset_of!(types::row, processor))? as usize;
        let born = number(offset_of!(types::row, born))?;
        let process = number(offset_of!(types::row, process))?;
        let why = number(offset_of!(types::row, why))?;
        let birth = |is_renumbered| Birth { parent: thread, thread: born, process, is_renumbered };
        let what = match types::what(number(offset_of!(types::row, what))?) {
            types::what::WOKE => What::Woke,
            types::what::BLOCKED => What::Blocked,
            types::what::ENDED => What::Ended,
            types::what::WAITED => What::Waited { has_woken: why & types::why::HAS_WOKEN.0 != 0 },
            types::what::SERVED => What::Served,
            types::what::BORN => What::Born(birth(false)),
            types::what::RENUMBERED => What::Renumbered(birth(true)),
            _ => return None,
        };
        Some(Row { time: Nanoseconds::new(time), what, number: ClientId::new(of), thread, processor })
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    /// What the programs do.
    impl Memory {
        /// Memory that no program writes.
        pub fn of_nothing() -> io::Result<Memory> {
            let file = |bytes: usize| {
                let file = memfd_create("model", MemfdFlags::CLOEXEC)?;
                ftruncate(&file, bytes as u64)?;
                Ok::<_, io::Error>(file)
            };
            Ok(Memory(Arc::new(Maps {
                clients: SharedNumbers::of(file(size_of::<types::bss_clients>())?, MOST_CLIENTS)?,
                processors: SharedNumbers::of(file(size_of::<types::bss_processors>())?, MOST_PROCESSORS)?,
                lost: SharedNumbers::of(file(size_of::<AtomicU64>())?, 1)?,
            })))
        }

        pub fn set_account(&self, client: ClientId, used: Nanoseconds, processor: usize) {
            self.client(client).account.store(used.get() << 1, Ordering::Relaxed);
            self.client(client).processor.store(processor as u32, Ordering::Relaxed);
        }

        pub fn set_can_run(&self, client: ClientId, can_run: bool) {
            self.client(client).activity.store(types::activity::UNSEEN.0, Ordering::Relaxed);
            self.suppose(client, can_run);
        }

        pub fn is_chosen(&self, client: ClientId) -> bool {
            self.client(client).is_chosen.load(Ordering::Relaxed) != 0
        }

        pub fn gives_way(&self, processor: usize) -> bool {
            self.processors()[processor].gives_way.load(Ordering::Relaxed) != 0
        }

        pub fn charge_rest(&self, processor: usize, ns: u64) {
            self.processors()[processor].rest_ns.fetch_add(ns, Ordering::Relaxed);
        }

        /// A task that waits there is not told of.
        pub fn withhold(&self, processor: usize, has_woken: bool) {
            let why = if has_woken { types::why::HAS_WOKEN } else { types::why::HAS_LOST };
            self.processors()[processor].untold.fetch_or(why.0, Ordering::Relaxed);
        }

        /// Whether a task that waits there is told of. It is told of once.
        pub fn tells_of_rest(&self, processor: usize, has_woken: bool) -> bool {
            let why = if has_woken { types::why::HAS_WOKEN.0 } else { types::why::HAS_LOST.0 };
            self.processors()[processor].told.fetch_or(why, Ordering::Relaxed) & why == 0
        }

        pub fn lose(&self) {
            self.0.lost.all()[0].fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written_and_half_a_one_is_none() {
        let read = |kind: types::what, why: u32| {
            let mut bytes = [0; size_of::<types::row>()];
            let mut write = |at: usize, number: u32| bytes[at..][..4].copy_from_slice(&number.to_ne_bytes());
            write(offset_of!(types::row, time_ns), 5);
            write(offset_of!(types::row, what), kind.0);
            write(offset_of!(types::row, number), 1);
            write(offset_of!(types::row, thread), 2);
            write(offset_of!(types::row, processor), 3);
            write(offset_of!(types::row, born), 4);
            write(offset_of!(types::row, process), 6);
            write(offset_of!(types::row, why), why);
            assert!(Row::from_bytes(&bytes[..offset_of!(types::row, why)]).is_none());
            Row::from_bytes(&bytes)
        };
        for (sum, has_woken) in [(1, false), (2, true), (3, true)] {
            let row = read(types::what::WAITED, sum).unwrap();
            assert_eq!(row.what, What::Waited { has_woken });
            assert_eq!((row.time.get(), row.number.get(), row.thread, row.processor), (5, 1, 2, 3));
        }
        let birth = Birth { parent: 2, thread: 4, process: 6, is_renumbered: false };
        assert_eq!(read(types::what::BORN, 0).unwrap().what, What::Born(birth));
        let renumbered = What::Renumbered(Birth { is_renumbered: true, ..birth });
        assert_eq!(read(types::what::RENUMBERED, 0).unwrap().what, renumbered);
        assert!(read(types::what(99), 0).is_none());
    }

    #[test]
    fn an_account_says_what_was_used_whether_or_not_the_client_runs() {
        let at = |account: i64, now: u64| used(account.cast_unsigned(), Nanoseconds::new(now)).get();
        assert_eq!(at(2 * 700, 5000), 700);
        // It had 700 when it got the processor at 4000.
        let running = (700 - 4000) * 2 + 1;
        assert_eq!([at(running, 4000), at(running, 5000)], [700, 1700]);
        assert_eq!(at(running, 3000), 0);
    }
}
