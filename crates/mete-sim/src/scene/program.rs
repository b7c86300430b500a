//! Tasks as small programs.

use crate::random::Distribution;

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Compute for this long, in nanoseconds.
    Compute(Distribution),
    /// Wait for this long, in nanoseconds.
    Sleep(Distribution),
    /// Read from a disk and wait for the data.
    Read {
        /// The disk's number.
        disk: usize,
        /// How many bytes.
        bytes: Distribution,
        /// It reads where this task's last read ended: the disk needs no positioning unless it has served
        /// another task since.
        goes_on: bool,
    },
    /// Ask a remote machine; its answer comes to this port.
    Request {
        /// The remote machine's number.
        remote: u16,
        /// The port.
        port: u16,
        /// How many bytes the request has.
        bytes: Distribution,
    },
    /// Wait for a whole message or stream to this port, and compute for each packet of it.
    ReceiveAll {
        /// The port.
        port: u16,
        /// What each packet takes, in nanoseconds.
        each: Distribution,
    },
    /// Wait for a packet to this port and take it.
    Receive {
        /// The port.
        port: u16,
    },
    /// Send bytes to the sender of the last packet.
    Reply {
        /// How many bytes.
        bytes: Distribution,
    },
    /// Send bytes to a client's port.
    Send {
        /// The client.
        to: mete_policy::ClientId,
        /// The port.
        port: u16,
        /// How many bytes.
        bytes: Distribution,
    },
    /// Take a lock; sleep until it is this task's turn.
    Lock(usize),
    /// Take a lock; spin until it is free. A task that holds the lock or spins keeps its virtual processor
    /// from the guest's other tasks; only the host takes the processor away.
    SpinLock(usize),
    /// Hand a lock on; nothing happens if another task holds it.
    Unlock(usize),
    /// Give way and stay runnable.
    Yield,
    /// Go back to instruction `start` until the body has run `times` times.
    Repeat {
        /// Where the loop's body begins.
        start: usize,
        /// How often the body runs.
        times: u64,
        /// Which of the task's counters counts the rounds.
        counter: usize,
    },
    /// One unit of work is done.
    Done,
}

/// What a task does, over and over.
///
/// Invariant: `start` of every [`Op::Repeat`] is at or before it, and `counter` is below `counters`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    ops: Vec<Op>,
    counters: usize,
    /// How often the whole program runs; `None`: for ever.
    times: Option<u64>,
}

impl Program {
    /// An empty program that runs `times` times, or for ever.
    pub fn new(times: Option<u64>) -> Program {
        Program { ops: Vec::new(), counters: 0, times }
    }

    /// Appends an instruction.
    pub fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// Appends the instructions that `body` appends, to be done `times` times.
    ///
    /// # Errors
    ///
    /// The error of `body`.
    pub fn repeat<E>(
        &mut self,
        times: u64,
        body: impl FnOnce(&mut Program) -> Result<(), E>,
    ) -> Result<(), E> {
        let (start, counter) = (self.ops.len(), self.counters);
        self.counters += 1;
        body(self)?;
        self.ops.push(Op::Repeat { start, times, counter });
        Ok(())
    }

    /// Whether every way through the program takes time, or may take time.
    pub fn takes_time(&self) -> bool {
        self.ops.iter().any(|op| match op {
            Op::Compute(length) | Op::Sleep(length) => !length.is_zero(),
            Op::Read { .. } | Op::Receive { .. } | Op::ReceiveAll { .. } => true,
            // All others may be done at one instant.
            _ => false,
        })
    }

    /// Whether the program, while it holds a spin lock, only computes and counts what is done, and unlocks
    /// each lock before it takes the next and before it ends.
    pub fn keeps_spin_locks_briefly(&self) -> bool {
        let mut held = None;
        for (at, op) in self.ops.iter().enumerate() {
            match (op, held) {
                (&Op::SpinLock(lock), None) => held = Some((lock, at)),
                (Op::Unlock(lock), Some((of, _))) if *lock == of => held = None,
                // A loop that ends with the lock in hand and began without it would take the lock a second
                // time.
                (Op::Repeat { start, .. }, Some((_, since))) if *start <= since => return false,
                (Op::Compute(_) | Op::Done | Op::Repeat { .. }, _) | (_, None) => {}
                _ => return false,
            }
        }
        held.is_none()
    }

    pub(super) fn op(&self, at: usize) -> Option<&Op> {
        self.ops.get(at)
    }

    pub(super) fn counters(&self) -> usize {
        self.counters
    }

    pub(super) fn times(&self) -> Option<u64> {
        self.times
    }

    /// The ports that the program listens on.
    pub fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.ops.iter().filter_map(|op| match op {
            Op::Receive { port } | Op::ReceiveAll { port, .. } => Some(*port),
            _ => None,
        })
    }
}
