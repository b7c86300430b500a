//! What the dispatcher did, in numbers.

use mete_policy::Nanoseconds;

/// What the dispatcher has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often the policy was asked who runs next.
    pub decisions: u64,
    /// How often a client gave way at once to one that woke.
    pub preempted: u64,
    /// How often a task that is no client was seen to wait behind a chosen client, which steps back for it.
    pub waited: u64,
    /// Rows that found no room in the ring. All clients were looked at then.
    pub lost: u64,
    /// Threads that the kernel does not let stand in front at present.
    pub refused: u64,
    /// How often the dispatcher was stopped, or the machine.
    pub absences: u64,
    /// By how much the end of a quantum was noticed late, at most.
    pub late_ns: Nanoseconds,
    /// The processor time that the manager's thread has used, and the one that takes up what clients start.
    pub own_ns: Nanoseconds,
}
