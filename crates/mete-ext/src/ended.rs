//! Why the kernel has ended a scheduler.

use std::fmt;

/// Why the kernel has ended the scheduler. It rules all tasks itself again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The kernel's word for it, such as *runnable task stall*.
    pub reason: String,
    /// What exactly happened, such as which task waited for how long; empty if the kernel says no more.
    pub message: String,
    /// What the kernel printed of all processors and all tasks that waited.
    pub dump: String,
}

impl Ended {
    /// From what the kernel's side has kept.
    pub(crate) fn of(reason: &[i8], message: &[i8], dump: &[i8]) -> Ended {
        Ended { reason: sentence(reason), message: sentence(message), dump: sentence(dump) }
    }
}

/// In the kernel's words, with what it printed.
impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ended { reason, message, dump } = self;
        f.write_str(reason)?;
        if !message.is_empty() {
            write!(f, ": {message}")?;
        }
        if !dump.is_empty() {
            write!(f, "\nThe kernel's report:\n{dump}")?;
        }
        Ok(())
    }
}

/// The text in front of the first zero.
fn sentence(letters: &[i8]) -> String {
    let bytes: Vec<u8> =
        letters.iter().map(|&letter| letter.cast_unsigned()).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
