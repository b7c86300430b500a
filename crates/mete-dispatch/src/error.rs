//! What can go wrong, in words for people.

use std::path::PathBuf;

use mete_kernel::KernelError;
use mete_sched::actuator::ActuatorError;
use mete_sched::domains::DomainError;
use rustix::io::Errno;

/// Why the dispatcher could not be started, or has ended. Nothing is changed then, or all is put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The programs could not be loaded.
    #[error(transparent)]
    Load(#[from] KernelError),
    /// The kernel does not let the programs see its events.
    #[error("the kernel does not let the dispatcher see which threads run: {0:#}")]
    Attach(#[source] libbpf_rs::Error),
    /// Classes cannot be changed such that they are put back.
    #[error(transparent)]
    Classes(#[from] ActuatorError),
    /// A domain cannot be made, or selects nothing that can be found.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The dispatcher may have no real-time priority.
    #[error(
        "the dispatcher needs a real-time priority, which the kernel refuses ({0}): run it as root, or with CAP_SYS_NICE, \
         and in a control group that may have real-time threads"
    )]
    NoPriority(#[source] Errno),
    /// A thread may have no real-time priority.
    #[error(
        "thread {thread} may have no real-time priority ({source}): with CONFIG_RT_GROUP_SCHED, only threads of control \
         groups that have a cpu.rt_runtime_us may"
    )]
    Refused {
        /// The thread.
        thread: u32,
        /// The kernel's answer.
        source: Errno,
    },
    /// It has ended before, and said why.
    #[error("the dispatcher has ended")]
    Over,
    /// A domain holds the first process.
    #[error(
        "the domain {name:?} holds process 1, and so everything that it has started: name the programs or control groups that \
         are to have a share"
    )]
    FirstProcess {
        /// The domain.
        name: String,
    },
    /// Threads of a control group may have little real time.
    #[error(
        "threads of the control group {} may run in real time for {runtime_us} of {period_us} µs (cpu.rt_runtime_us), and \
         the dispatcher needs nine tenths: give control groups shares by --policy vtrr --by cgroup",
        group.display()
    )]
    LittleRealTime {
        /// The control group.
        group: PathBuf,
        /// For how long.
        runtime_us: i64,
        /// Of which time.
        period_us: i64,
    },
    /// A process in a container has other numbers than the kernel's own.
    #[error(
        "the dispatcher sees threads by other numbers than the kernel does: run it outside of the container"
    )]
    Namespace,
    /// There are more processors than there is room for.
    #[error("this machine has {found} processors; the dispatcher serves at most {most}")]
    TooManyProcessors {
        /// How many there are.
        found: usize,
        /// How many it serves.
        most: usize,
    },
    /// The system lacks something else.
    #[error("the dispatcher cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}

impl DispatchError {
    /// Whether what the dispatcher needs is missing: on this machine, to this user, or to these threads. Other means may
    /// serve the same domains then.
    #[must_use]
    pub fn lies_in_the_machine(&self) -> bool {
        !matches!(
            self,
            DispatchError::Domain(_)
                | DispatchError::FirstProcess { .. }
                | DispatchError::Classes(_)
                | DispatchError::Over
        )
    }
}
