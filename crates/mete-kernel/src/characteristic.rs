//! What can be logged about the kernel, and the events that it is logged as (thesis §4.3.1).

use crate::counter::Counter;

/// The kernel component's events; `bpf/area.h` says the same in C.
pub mod event {
    use mete_log::EventId;

    /// Processor service time. Domain: who ran; correspondent: who runs next, none at a tick;
    /// counter: nanoseconds of the run-queue clock.
    pub const SERVICE_TIME: EventId = 0;
    /// A wake-up, on the sender's side. Domain: the waking task's; correspondent: the woken one's.
    pub const IPC_SEND: EventId = 1;
    /// A wake-up, on the receiver's side. Domain: the woken task's; correspondent: the waking one's.
    pub const IPC_RECEIVE: EventId = 2;
    /// Memory. Domain: who is charged; counter: bytes that are now resident for it.
    pub const MEMORY: EventId = 3;
    /// Run-queue length at the tick. Domain 0; counter: runnable tasks, the running one included.
    pub const RUN_QUEUE: EventId = 4;
    /// The first performance counter; the others follow. Domain: who ran; correspondent: who runs
    /// next; counter: what was counted in between.
    pub const COUNTERS: EventId = 8;
    /// How many performance counters can be open at a time.
    pub const MAX_COUNTERS: usize = 16;
}

/// One thing to log. Each costs something only while it is enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Characteristic {
    /// How long domains run: [`event::SERVICE_TIME`], at each switch between domains, and while
    /// [`Characteristic::RunQueue`] is enabled also at each of its ticks, so that the time of a task
    /// that never leaves the processor is known. Without the tick it is charged at the exit only.
    ServiceTime,
    /// What a performance counter counts while domains run: one event from [`event::COUNTERS`] on,
    /// on the processors that are online when it is enabled.
    Counter(Counter),
    /// Who wakes whom: [`event::IPC_SEND`] and [`event::IPC_RECEIVE`].
    ///
    /// What a task does itself counts, in a system call or by a fault, and what its packets do when they
    /// are delivered over the loopback device: TCP and UDP within one network namespace. Wake-ups by
    /// interrupts are dropped, and with them those by packets from elsewhere, other namespaces and
    /// containers among them, whose sender is not known. [`Kernel::follows_packets`] says whether this
    /// kernel lets packets be followed.
    ///
    /// [`Kernel::follows_packets`]: crate::Kernel::follows_packets
    Ipc,
    /// How much memory is resident: [`event::MEMORY`], at each change that the kernel reports.
    ///
    /// An address space is charged as a whole, from its first change on, to the domain of the task
    /// that changed it last, and leaves it when it ends. Shared pages count once for each address
    /// space that maps them.
    Memory,
    /// How many tasks are runnable: [`event::RUN_QUEUE`], this often a second on each processor.
    RunQueue {
        /// 1 to 10,000.
        hertz: u32,
    },
}
