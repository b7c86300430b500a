//! What a scheduler reports while it works.

use std::io;

use mete_kernel::KernelError;
use mete_policy::Move;
use mete_probe::attach::AttachError;

use crate::actuator::ActuatorError;
use crate::domains::EmptyDomain;
use crate::sources::{SourceError, Unavailable};

/// A fact that the user may want to know.
#[derive(Debug)]
pub enum Notice {
    /// The kernel component is not there. The logs of the components have to do.
    NoKernel(KernelError),
    /// The scheduler cannot look for user-level components.
    NoDiscovery(io::Error),
    /// A characteristic is not logged.
    Unavailable(Unavailable),
    /// A domain has no members so far.
    Empty(EmptyDomain),
    /// A component is read from now on.
    Component(String),
    /// A component has ended.
    Ended(String),
    /// A component cannot be read, or cannot be told about a process.
    Refused(SourceError),
    /// A domain was moved. The number counts its threads that changed.
    Moved(Move, usize),
    /// A domain would be moved by a scheduler that [acts](crate::Settings::acts).
    WouldMove(Move),
    /// A domain could not be moved.
    NotMoved(Move, ActuatorError),
    /// A process that has come to a placed domain could not be moved to the domain's processor.
    NotFollowed(u32, ActuatorError),
    /// If this process and both of its watchers are killed at the same moment, nothing is put back. The text
    /// is the reason.
    NotForTheNextStart(String),
}

impl Notice {
    /// What is missing, in words, if this notice reports something missing.
    pub fn missing(&self) -> Option<String> {
        match self {
            Notice::NoKernel(why) => Some(format!("the kernel is not logged: {why}")),
            Notice::NoDiscovery(why) => Some(format!("programs with probes are not looked for: {why}")),
            Notice::Unavailable(what) => Some(what.to_string()),
            // The program ended after it was found and before it was attached: nothing is missing.
            Notice::Refused(SourceError::Component(AttachError::Gone { .. })) => None,
            Notice::Refused(why) => Some(why.to_string()),
            Notice::Empty(empty) => Some(empty.to_string()),
            Notice::NotFollowed(pid, why) => Some(format!("process {pid} was not placed: {why}")),
            Notice::NotForTheNextStart(why) => Some(not_for_the_next_start(why)),
            Notice::Component(_)
            | Notice::Ended(_)
            | Notice::Moved(..)
            | Notice::WouldMove(_)
            | Notice::NotMoved(..) => None,
        }
    }
}

/// The warning that is printed before anything is moved.
pub fn not_for_the_next_start(why: &str) -> String {
    format!(
        "changes cannot be noted in a file ({why}): if this process and the two that watch it are killed at the same \
         moment, nothing is put back"
    )
}
