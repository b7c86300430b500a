//! What can be logged about the kernel, and as which events (thesis §4.3.1).

use crate::counter::Counter;

/// The events of the kernel component. Their numbers are those of `bpf/shared.h`.
pub mod event {
    use mete_log::EventId;

    use crate::skeleton::numbers::{mete_event as shared, mete_limit};

    /// Processor service time. Domain: the one that ran; correspondent: the one that runs next, none at a
    /// tick; counter: nanoseconds of the run-queue clock.
    pub const SERVICE_TIME: EventId = EventId::new(shared::METE_SERVICE_TIME.0 as u16);
    /// A wake-up, on the sender's side. Domain: that of the waking task; correspondent: that of the woken
    /// one.
    pub const IPC_SEND: EventId = EventId::new(shared::METE_IPC_SEND.0 as u16);
    /// A wake-up, on the receiver's side. Domain: that of the woken task; correspondent: that of the waking
    /// one.
    pub const IPC_RECEIVE: EventId = EventId::new(shared::METE_IPC_RECEIVE.0 as u16);
    /// Memory. Domain: the one that is charged; counter: bytes that are resident for it now.
    pub const MEMORY: EventId = EventId::new(shared::METE_MEMORY.0 as u16);
    /// Run-queue length at the tick. Domain: 0; counter: runnable tasks, the running one included.
    pub const RUN_QUEUE: EventId = EventId::new(shared::METE_RUN_QUEUE.0 as u16);
    /// The first performance counter; the others follow. Domain: the one that ran; correspondent: the one
    /// that runs next; counter: what was counted in between.
    pub const COUNTERS: EventId = EventId::new(shared::METE_COUNTERS.0 as u16);
    /// How many performance counters can be open at a time.
    pub const MAX_COUNTERS: usize = mete_limit::COUNTERS.0 as usize;

    /// The event of the performance counter at this place, below [`MAX_COUNTERS`].
    pub const fn counter(nth: usize) -> EventId {
        EventId::from_index(COUNTERS.index() + nth)
    }
}

/// One thing to log. Each costs something only while it is enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Characteristic {
    /// How long domains run: [`event::SERVICE_TIME`], at each switch between domains. While
    /// [`Characteristic::RunQueue`] is enabled, it is charged also at each of its ticks, so that the time of
    /// a task that never leaves the processor is known. Without the tick, it is charged only at the exit.
    ServiceTime,
    /// What a performance counter counts while domains run: one event, [`event::COUNTERS`] or one of those
    /// that follow. It counts on the processors that are online when it is enabled.
    Counter(Counter),
    /// Which domain wakes which: [`event::IPC_SEND`] and [`event::IPC_RECEIVE`].
    ///
    /// A wake-up counts if a task causes it itself, in a system call or by a fault, or if one of its packets
    /// does when it is delivered over the loopback device: TCP and UDP within one network namespace. Wake-ups
    /// by interrupts are dropped. So are those by packets from elsewhere, other namespaces and containers
    /// included, because their sender is not known. [`Kernel::follows_packets`] says whether this kernel lets
    /// programs follow packets.
    ///
    /// [`Kernel::follows_packets`]: crate::Kernel::follows_packets
    Ipc,
    /// How much memory is resident: [`event::MEMORY`], at each change that the kernel reports.
    ///
    /// An address space is charged as a whole, from its first change on, to the domain of the task that
    /// changed it last. When it ends, nothing of it is charged any more. Shared pages count once for each
    /// address space that maps them.
    Memory,
    /// How many tasks are runnable: [`event::RUN_QUEUE`], at regular times on each processor.
    RunQueue {
        /// How often a second: 1 to 10,000.
        hertz: u32,
    },
}
