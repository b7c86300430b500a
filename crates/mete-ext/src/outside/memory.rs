//! The memory that the kernel's side and the policy's side share (`bpf/clients.bpf.h`, `bpf/rows.bpf.h`,
//! `bpf/answers.bpf.h`).

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use mete_kernel::{SharedNumbers, mirror};
use mete_policy::{Causes, ClientId, DomainIndex, Nanoseconds, ProcessorId};

use crate::ended::{Ended, Ending};
use crate::outside::row::{Row, RowKind, event_of};
use crate::skeleton::outside::{OutsideSkel, types};

/// The most clients at a time.
pub(crate) const CLIENTS: usize = size_of::<types::bss_tasks>() / size_of::<types::task>();
/// The most domains.
pub(crate) const DOMAINS: usize = size_of::<types::bss_domains>() / size_of::<types::domain>();
/// The most processors.
pub(crate) const PROCESSORS: usize = size_of::<types::bss_processors>() / size_of::<types::processor>();
/// Rows in the ring of a processor.
const ROWS: usize = size_of::<types::bss_rows>() / size_of::<types::row>() / PROCESSORS;

mirror!(SharedTask of types::task {
    base_ns: AtomicU64,
    ends_ns: AtomicU64,
    slice_ns: AtomicU64,
    used_ns: AtomicU64,
    allowed: AtomicU64,
    joined: AtomicU32,
    generation: AtomicU32,
    activity: AtomicU32,
    domain: AtomicU32,
    weight: AtomicU32,
    queued_in: AtomicU32,
    is_resumed: AtomicU32,
    is_handed_over: AtomicU32,
    has_yielded: AtomicU32,
    is_kernel: AtomicU32,
    is_ahead: AtomicU32,
    was_ahead: AtomicU32,
    ahead: AtomicU64,
});

mirror!(SharedDomain of types::domain {
    cgroup: AtomicU64,
    is_known: AtomicU32,
    parent: AtomicU32,
    weight: AtomicU32,
    set: AtomicU32,
});

mirror!(SharedRow of types::row {
    time_ns: AtomicU64,
    used_ns: AtomicU64,
    number: AtomicU32,
    generation: AtomicU32,
    kind: AtomicU8,
    event: AtomicU8,
    port: AtomicU16,
    sequence: AtomicU32,
});

mirror!(SharedRing of types::ring {
    begun: AtomicU32,
    lost: AtomicU32,
    rest: [AtomicU32; 14] as unused,
    taken: AtomicU32,
    other_rest: [AtomicU32; 15] as unused,
});

mirror!(SharedAnswer of types::answer {
    bits: AtomicU64,
    gives_way: AtomicU64,
    rest: [AtomicU64; 6] as unused,
});

mirror!(SharedProcessor of types::processor {
    interrupted: AtomicU32,
    cursor: AtomicU32,
    has_run: AtomicU32,
    is_turn_of_policy: AtomicU32,
    ahead: [AtomicU64; 2],
    owes_decision: AtomicU64,
    decided: AtomicU64,
    late: AtomicU64,
    alone: AtomicU64,
    undecided: AtomicU64,
    hastened: AtomicU64,
    extended: AtomicU64,
    rounds: AtomicU64,
    went_ahead: AtomicU64,
    end: [AtomicU64; 3] as unused,
});

mirror!(SharedState of types::shared {
    offered_ns: AtomicU64,
    is_pending: AtomicU32,
    is_stalled: AtomicU32,
    idle: AtomicU64,
    kept: AtomicU64,
    online: AtomicU64,
    wakes: AtomicU64,
    preempts: AtomicU64,
    is_deciding: AtomicU32,
    is_able: AtomicU32,
    seconds: AtomicU32,
    looks: AtomicU32,
    end: [AtomicU64; 7] as unused,
});

mirror!(SharedDeciding of types::deciding {
    thread: AtomicI32,
    end: [AtomicU32; 15] as unused,
});

/// In what is said of a client that goes ahead, the processor is above the slice, and the causes are above that (`bpf/ahead.bpf.h`).
const AHEAD_PROCESSOR_AT: u32 = 24;
const AHEAD_CAUSES_AT: u32 = 32;
const LONGEST_AHEAD_US: u32 = (1 << AHEAD_PROCESSOR_AT) - 1;

/// That a client goes ahead when it wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AheadView {
    pub processor: usize,
    pub slice_us: u32,
    /// By what it has to be woken.
    pub causes: Causes,
}

impl AheadView {
    fn to_bits(self) -> u64 {
        let slice = u64::from(self.slice_us.min(LONGEST_AHEAD_US));
        let causes = u64::from(self.causes.to_bits());
        causes << AHEAD_CAUSES_AT | (self.processor as u64 + 1) << AHEAD_PROCESSOR_AT | slice
    }
}

/// Both sides' memory, mapped.
pub(crate) struct Memory {
    tasks: SharedNumbers<SharedTask>,
    domains: SharedNumbers<SharedDomain>,
    rows: SharedNumbers<SharedRow>,
    rings: SharedNumbers<SharedRing>,
    answers: SharedNumbers<SharedAnswer>,
    processors: SharedNumbers<SharedProcessor>,
    state: SharedNumbers<SharedState>,
    deciding: SharedNumbers<SharedDeciding>,
    ending: Ending,
}

/// What is known of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskView {
    /// Which client of this number it is.
    pub joined: u32,
    pub generation: u32,
    pub activity: Activity,
    pub domain: DomainIndex,
    pub weight: u32,
    pub allowed: u64,
}

/// What a task does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It is no client.
    Absent,
    /// It waits for something.
    Away,
    /// It waits for a processor.
    Waiting,
    /// It has one.
    Running,
    /// It was interrupted by the deciding thread, after it had used this since it joined.
    Interrupted(Nanoseconds),
}

/// What is known of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DomainView {
    pub parent: DomainIndex,
    pub weight: u32,
}

/// What the kernel's side has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelCounts {
    pub decided: u64,
    pub late: u64,
    pub alone: u64,
    pub undecided: u64,
    pub hastened: u64,
    pub extended: u64,
    pub rounds: u64,
    pub went_ahead: u64,
    pub lost: u64,
}

impl Memory {
    pub fn of(skeleton: &OutsideSkel<'_>) -> io::Result<Memory> {
        let maps = &skeleton.maps;
        Ok(Memory {
            tasks: SharedNumbers::of(&maps.bss_tasks, CLIENTS)?,
            domains: SharedNumbers::of(&maps.bss_domains, DOMAINS)?,
            rows: SharedNumbers::of(&maps.bss_rows, ROWS * PROCESSORS)?,
            rings: SharedNumbers::of(&maps.bss_rings, PROCESSORS)?,
            answers: SharedNumbers::of(&maps.bss_answers, PROCESSORS)?,
            processors: SharedNumbers::of(&maps.bss_processors, PROCESSORS)?,
            state: SharedNumbers::of(&maps.bss_shared, 1)?,
            deciding: SharedNumbers::of(&maps.bss_deciding, 1)?,
            ending: Ending::of(&maps.bss_ending)?,
        })
    }

    /// From here on nothing that is done with this is seen by the kernel's side, and the other way round. Other mappings of the same
    /// memory go on.
    pub fn come_off(&self) -> io::Result<()> {
        // The rows and the domains are only read, and what has ended is to be seen.
        self.answers.come_off()?;
        self.rings.come_off()?;
        self.tasks.come_off()?;
        self.state.come_off()?;
        self.deciding.come_off()
    }

    /// The thread in which the policy decides from now on.
    pub fn set_deciding(&self, thread: i32) {
        self.deciding.all()[0].thread.store(thread, Ordering::Release);
    }

    /// Whether the deciding thread sleeps, which it does only if its policy does.
    pub fn is_asleep(&self) -> bool {
        self.state().is_able.load(Ordering::Relaxed) == 0
    }

    fn state(&self) -> &SharedState {
        &self.state.all()[0]
    }

    /// From here on, what happens says that it is to be decided on: rows are read after this.
    pub fn begin_round(&self) {
        // The other side writes a row, and then looks whether it has to say so. Exchanges order both sides'
        // writes before their reads, so that a row is read here or said there.
        self.state().is_pending.swap(0, Ordering::SeqCst);
        self.state().is_stalled.store(0, Ordering::Relaxed);
    }

    /// The next row of a processor's ring that is whole, and is not later than that.
    pub fn next_row(&self, processor: usize, taken: u32, latest: Nanoseconds) -> Option<Row> {
        let row = &self.rows.all()[processor * ROWS + taken as usize % ROWS];
        // Acquire: the row was written before its sequence number.
        if row.sequence.load(Ordering::Acquire) != taken.wrapping_add(1) {
            return None;
        }
        let time = Nanoseconds::new(row.time_ns.load(Ordering::Relaxed));
        (time <= latest).then(|| Row {
            time,
            used: Nanoseconds::new(row.used_ns.load(Ordering::Relaxed)),
            number: row.number.load(Ordering::Relaxed),
            generation: row.generation.load(Ordering::Relaxed),
            kind: RowKind::of(row.kind.load(Ordering::Relaxed)),
            event: event_of(row.event.load(Ordering::Relaxed), row.port.load(Ordering::Relaxed)),
        })
    }

    /// The rows of a processor's ring that were given back: the place of the next one.
    pub fn rows_taken(&self, processor: usize) -> u32 {
        self.rings.all()[processor].taken.load(Ordering::Relaxed)
    }

    /// Gives the places of rows back that were read.
    pub fn release_rows(&self, processor: usize, taken: u32) {
        // Release: they were read before.
        self.rings.all()[processor].taken.store(taken, Ordering::Release);
    }

    /// Rows for which there was no room.
    pub fn lost(&self, processors: usize) -> u64 {
        let lost = self.rings.all().iter().take(processors).map(|ring| ring.lost.load(Ordering::Relaxed));
        lost.map(u64::from).sum()
    }

    /// A client that the kernel's side knows.
    pub fn task(&self, client: ClientId) -> Option<TaskView> {
        let task = self.tasks.all().get(client.index())?;
        let activity = match types::activity(task.activity.load(Ordering::Relaxed)) {
            types::activity::AWAY => Activity::Away,
            types::activity::WAITING => Activity::Waiting,
            types::activity::RUNNING => Activity::Running,
            types::activity::INTERRUPTED => {
                Activity::Interrupted(Nanoseconds::new(task.used_ns.load(Ordering::Relaxed)))
            }
            _ => Activity::Absent,
        };
        Some(TaskView {
            joined: task.joined.load(Ordering::Relaxed),
            generation: task.generation.load(Ordering::Relaxed),
            activity,
            domain: DomainIndex::at(task.domain.load(Ordering::Relaxed) as usize),
            weight: task.weight.load(Ordering::Relaxed),
            allowed: task.allowed.load(Ordering::Relaxed),
        })
    }

    /// Says where a client that is blocked goes ahead when it wakes, if it does.
    pub fn set_ahead(&self, client: ClientId, ahead: Option<AheadView>) {
        let Some(task) = self.tasks.all().get(client.index()) else { return };
        let ahead = ahead.map_or(0, AheadView::to_bits);
        // As a rule it is so already, and the other side does not have to give the line of the cache away.
        if task.ahead.load(Ordering::Relaxed) != ahead {
            task.ahead.store(ahead, Ordering::Relaxed);
        }
    }

    /// A domain that the kernel's side knows; `None` if there is none of this number.
    pub fn domain(&self, number: DomainIndex) -> Option<DomainView> {
        let domain = self.domains.all().get(number.index())?;
        let set = domain.set.load(Ordering::Relaxed);
        (domain.is_known.load(Ordering::Relaxed) != 0).then(|| DomainView {
            parent: DomainIndex::at(domain.parent.load(Ordering::Relaxed) as usize),
            weight: if set == 0 { domain.weight.load(Ordering::Relaxed) } else { set },
        })
    }

    /// Gives a processor an answer, in place of one that may be there still.
    pub fn put_answer(&self, processor: usize, answer: u64) {
        // Release: what the answer rests on was read before. The other side takes it by an exchange.
        self.answers.all()[processor].bits.store(answer, Ordering::Release);
    }

    /// Takes an answer back; `false` if it was carried out already, or is about to be.
    pub fn take_back(&self, processor: usize) -> bool {
        let bits = &self.answers.all()[processor].bits;
        // As a rule there is none, and the other side does not have to give the line of the cache away.
        bits.load(Ordering::Relaxed) != 0 && bits.swap(0, Ordering::AcqRel) != 0
    }

    /// The processors that have nothing to run, a bit each.
    pub fn idle(&self) -> u64 {
        self.state().idle.load(Ordering::Relaxed)
    }

    /// The processors that there are at the moment, a bit each.
    pub fn online(&self) -> u64 {
        self.state().online.load(Ordering::Relaxed)
    }

    pub fn set_online(&self, processors: u64) {
        self.state().online.store(processors, Ordering::Relaxed);
    }

    /// No client keeps its processor any more, and none goes ahead: what the policy has said that was counts no more.
    pub fn forget_policy(&self) {
        self.state().kept.store(0, Ordering::Relaxed);
        for client in ClientId::first(CLIENTS as u32) {
            self.set_ahead(client, None);
        }
    }

    /// Has these processors look for an answer if they are idle, when this thread yields.
    pub fn wake(&self, processors: u64) {
        self.state().wakes.fetch_or(processors, Ordering::Release);
    }

    /// Has a client give way on its processor, when this thread yields.
    pub fn preempt(&self, processor: usize, client: ClientId) {
        self.answers.all()[processor].gives_way.store(u64::from(client.get()) + 1, Ordering::Relaxed);
        // Release: the other side reads of whom this is after it has seen this.
        self.state().preempts.fetch_or(1 << processor, Ordering::Release);
    }

    /// Whether the kernel has ended the scheduler.
    pub fn has_ended(&self) -> bool {
        self.ending.is_there()
    }

    /// Why it has, if it has.
    pub fn ended(&self) -> Option<Ended> {
        self.ending.read()
    }

    pub fn counts(&self) -> KernelCounts {
        let sum = |count: fn(&SharedProcessor) -> &AtomicU64| -> u64 {
            self.processors.all().iter().map(|processor| count(processor).load(Ordering::Relaxed)).sum()
        };
        KernelCounts {
            decided: sum(|processor| &processor.decided),
            late: sum(|processor| &processor.late),
            alone: sum(|processor| &processor.alone),
            undecided: sum(|processor| &processor.undecided),
            hastened: sum(|processor| &processor.hastened),
            extended: sum(|processor| &processor.extended),
            rounds: sum(|processor| &processor.rounds),
            went_ahead: sum(|processor| &processor.went_ahead),
            lost: self.lost(PROCESSORS),
        }
    }
}

const _: () = assert!(ProcessorId::MAX.index() >= PROCESSORS);

/// What the kernel's side does, for tests without it.
#[cfg(test)]
pub(crate) mod kernels_side {
    use mete_policy::Event;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    impl Memory {
        /// Memory that no program writes.
        pub fn of_nothing() -> io::Result<Memory> {
            let [memory] = Memory::mapped()?;
            Ok(memory)
        }

        /// The same memory, mapped this number of times.
        pub fn mapped<const TIMES: usize>() -> io::Result<[Memory; TIMES]> {
            let file = |bytes: usize| {
                let file = memfd_create("model", MemfdFlags::CLOEXEC)?;
                ftruncate(&file, bytes as u64)?;
                Ok::<_, io::Error>(file)
            };
            let tasks = file(size_of::<types::bss_tasks>())?;
            let domains = file(size_of::<types::bss_domains>())?;
            let rows = file(size_of::<types::bss_rows>())?;
            let rings = file(size_of::<types::bss_rings>())?;
            let answers = file(size_of::<types::bss_answers>())?;
            let processors = file(size_of::<types::bss_processors>())?;
            let state = file(size_of::<types::bss_shared>())?;
            let deciding = file(size_of::<types::bss_deciding>())?;
            let ending = file(size_of::<types::bss_ending>())?;
            let map = || {
                Ok(Memory {
                    tasks: SharedNumbers::of(&tasks, CLIENTS)?,
                    domains: SharedNumbers::of(&domains, DOMAINS)?,
                    rows: SharedNumbers::of(&rows, ROWS * PROCESSORS)?,
                    rings: SharedNumbers::of(&rings, PROCESSORS)?,
                    answers: SharedNumbers::of(&answers, PROCESSORS)?,
                    processors: SharedNumbers::of(&processors, PROCESSORS)?,
                    state: SharedNumbers::of(&state, 1)?,
                    deciding: SharedNumbers::of(&deciding, 1)?,
                    ending: Ending::of(&ending)?,
                })
            };
            let all = (0..TIMES).map(|_| map()).collect::<io::Result<Vec<_>>>()?;
            all.try_into().map_err(|_| io::ErrorKind::Other.into())
        }

        /// Tells something in the ring of a processor; `false` if there is no room, and it is lost.
        pub fn tell(
            &self,
            processor: usize,
            time: Nanoseconds,
            row: (types::row_kind, u32, u32, u64),
            event: Option<Event>,
        ) -> bool {
            let (kind, number, generation, used) = row;
            let ring = &self.rings.all()[processor];
            let begun = ring.begun.load(Ordering::Relaxed);
            if begun.wrapping_sub(ring.taken.load(Ordering::Relaxed)) as usize >= ROWS - 8 {
                ring.lost.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            ring.begun.store(begun.wrapping_add(1), Ordering::Relaxed);
            let row = &self.rows.all()[processor * ROWS + begun as usize % ROWS];
            row.time_ns.store(time.get(), Ordering::Relaxed);
            row.used_ns.store(used, Ordering::Relaxed);
            row.number.store(number, Ordering::Relaxed);
            row.generation.store(generation, Ordering::Relaxed);
            row.kind.store(kind.0, Ordering::Relaxed);
            let (event, port) = match event {
                None => (types::dvtrr_event::DVTRR_NO_EVENT, 0),
                Some(Event::Other) => (types::dvtrr_event::DVTRR_INTERRUPT, 0),
                Some(Event::Block(_)) => (types::dvtrr_event::DVTRR_BLOCK, 0),
                Some(Event::Packet { port }) => (types::dvtrr_event::DVTRR_PACKET, port),
            };
            row.event.store(event.0, Ordering::Relaxed);
            row.port.store(port, Ordering::Relaxed);
            row.sequence.store(begun.wrapping_add(1), Ordering::Release);
            true
        }

        pub fn set_task(&self, client: u32, activity: types::activity, view: TaskView) {
            let task = &self.tasks.all()[client as usize];
            task.joined.store(view.joined, Ordering::Relaxed);
            task.generation.store(view.generation, Ordering::Relaxed);
            task.domain.store(view.domain.get().into(), Ordering::Relaxed);
            task.weight.store(view.weight, Ordering::Relaxed);
            task.allowed.store(view.allowed, Ordering::Relaxed);
            task.activity.store(activity.0, Ordering::Relaxed);
        }

        /// What the policy has said of a client.
        pub fn ahead(&self, client: u32) -> Option<AheadView> {
            let ahead = self.tasks.all()[client as usize].ahead.load(Ordering::Relaxed);
            let processor = (ahead >> AHEAD_PROCESSOR_AT & 0xff).checked_sub(1)?;
            Some(AheadView {
                processor: processor as usize,
                slice_us: ahead as u32 & LONGEST_AHEAD_US,
                causes: Causes::from_bits((ahead >> AHEAD_CAUSES_AT) as u8),
            })
        }

        pub fn forget_ahead(&self, client: u32) {
            self.tasks.all()[client as usize].ahead.store(0, Ordering::Relaxed);
        }

        pub fn gives_way(&self, processor: usize) -> u64 {
            self.answers.all()[processor].gives_way.load(Ordering::Relaxed)
        }

        pub fn forget_domain(&self, number: u32) {
            self.domains.all()[number as usize].is_known.store(0, Ordering::Relaxed);
        }

        pub fn set_domain(&self, number: u32, parent: u32, weight: u32) {
            let domain = &self.domains.all()[number as usize];
            domain.parent.store(parent, Ordering::Relaxed);
            domain.weight.store(weight, Ordering::Relaxed);
            domain.is_known.store(1, Ordering::Relaxed);
        }

        pub fn take_answer(&self, processor: usize) -> Option<u64> {
            let answer = self.answers.all()[processor].bits.swap(0, Ordering::Relaxed);
            (answer != 0).then_some(answer)
        }

        pub fn set_idle(&self, processors: u64) {
            self.state().idle.store(processors, Ordering::Relaxed);
        }

        pub fn take_wakes(&self) -> u64 {
            self.state().wakes.swap(0, Ordering::Relaxed)
        }

        pub fn take_preempts(&self) -> u64 {
            self.state().preempts.swap(0, Ordering::Relaxed)
        }
    }
}
