//! What can go wrong, in words for people.

use mete_sched::actuator::ActuatorError;
use mete_sched::domains::DomainError;

/// Why the dispatcher could not be started, or has ended. Nothing is paused then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PausingError {
    /// Processes cannot be paused such that they go on in any case.
    #[error(transparent)]
    Pauses(#[from] ActuatorError),
    /// A domain cannot be made, or selects nothing that can be found.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// A domain holds the first process.
    #[error(
        "the domain {name:?} holds process 1, and so everything that it has started: name the programs or control groups that \
         are to have a share"
    )]
    FirstProcess {
        /// The domain.
        name: String,
    },
    /// All processes belong to others.
    #[error(
        "process {pid} of the domain {name:?} may not be paused: it belongs to {owner}, and to pause processes of others takes CAP_KILL, which root has as a rule"
    )]
    NoRight {
        /// The domain.
        name: String,
        /// The first such process.
        pid: u32,
        /// Its user.
        owner: String,
    },
    /// Two processes are the least that can run in turn.
    #[error(
        "{most} descriptors are too few for pauses: {least} are the least, and one for each process beyond two (ulimit -n)"
    )]
    FewDescriptors {
        /// How many there may be.
        most: u64,
        /// How many there have to be.
        least: u64,
    },
    /// It has ended before, and said why.
    #[error("the dispatcher has ended")]
    Over,
    /// The system lacks something else.
    #[error("the pausing dispatcher cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
}
