//! What can go wrong, in words for people.

use std::path::PathBuf;

use mete_kernel::KernelError;
use mete_policy::Nanoseconds;

/// Why the scheduler could not be started, or does not do what it was asked for. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExtError {
    /// The kernel has no sched_ext.
    #[error("this kernel has no sched_ext; it needs Linux 6.12 or newer with CONFIG_SCHED_CLASS_EXT=y")]
    Absent,
    /// Another scheduler rules already.
    #[error("{by} rules this machine by sched_ext already; end it first")]
    Taken {
        /// What it is, in words.
        by: String,
    },
    /// There are more processors than there is room for.
    #[error(
        "this machine may have {found} processors; the scheduler serves at most {most}: start the kernel with possible_cpus={most}, or use other means"
    )]
    TooManyProcessors {
        /// How many there may be.
        found: usize,
        /// How many the scheduler serves.
        most: usize,
    },
    /// The thread in which a policy decides could not be started.
    #[error(
        "the policy has no thread to decide in: {0}; the limit of threads may be reached (ulimit -u, pids.max)"
    )]
    Thread(#[source] std::io::Error),
    /// The thread in which a policy decides may not run on some processors.
    #[error(
        "the policy cannot decide on all processors: this process may not run on {missing}, because of the cpuset of its control group; start it outside of that"
    )]
    Bound {
        /// The processors.
        missing: String,
    },
    /// The memory that the kernel's side writes could not be mapped.
    #[error("the memory that the scheduler shares with the kernel cannot be mapped: {0}")]
    Memory(#[source] std::io::Error),
    /// The memory of a policy cannot be kept in memory.
    #[error(
        "the memory of the policy cannot be locked: {0}; raise the limit of locked memory (ulimit -l), or be root"
    )]
    Locked(#[source] std::io::Error),
    /// The deciding thread has not taken another policy.
    #[error(
        "{policy} does not rule: the thread that decides has not come to take it; it is stopped, or the policy before it hangs"
    )]
    NotTaken {
        /// The policy that was to rule.
        policy: &'static str,
    },
    /// The scheduler that was to take another policy has ended.
    #[error("{policy} does not rule: the scheduler has ended; start it again")]
    HasEnded {
        /// The policy that was to rule.
        policy: &'static str,
    },
    /// Tasks cannot be given this time at once.
    #[error("a quantum of {} ms is not possible: 1 to 100 ms are, because the kernel ends slices at its ticks", found.as_millis_f64())]
    Quantum {
        /// The quantum.
        found: Nanoseconds,
    },
    /// A directory is no cgroup that can have a share.
    #[error("the control group {}: {why}", path.display())]
    Cgroup {
        /// The directory.
        path: PathBuf,
        /// What is missing, and what to do.
        why: String,
    },
    /// The programs could not be loaded, or the kernel does not say how many processors there may be.
    #[error(transparent)]
    Load(#[from] KernelError),
    /// The kernel has ended the scheduler before it ruled.
    #[error("the scheduler ended as it began: {verdict}")]
    EndedAtOnce {
        /// Why, in one sentence.
        verdict: String,
    },
    /// The kernel does not let the scheduler rule.
    #[error("the kernel does not accept the scheduler: {0:#}")]
    Refused(#[source] libbpf_rs::Error),
}

impl ExtError {
    /// Whether no user could start a scheduler here.
    #[must_use]
    pub fn lies_in_the_machine(&self) -> bool {
        matches!(self, ExtError::Absent | ExtError::TooManyProcessors { .. })
    }
}
