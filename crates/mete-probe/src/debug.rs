//! Messages for people who look for a fault. A program with probes runs unchanged and silently, whatever goes
//! wrong in this library; with `METE_DEBUG=1` it reports what does.

use std::fmt::Display;
use std::sync::OnceLock;

use crate::directory;

/// Writes a text to standard error if the user asked for it.
pub(crate) fn tell(text: impl FnOnce() -> String) {
    if is_wanted() {
        eprintln!("mete[{}]: {}", std::process::id(), text());
    }
}

/// The same for an error, if there is one.
pub(crate) fn tell_error<E: Display>(result: Result<(), E>) {
    if let Err(error) = result {
        tell(|| error.to_string());
    }
}

/// Whether the user asked for messages. Looked up once, early: see [`directory::variable`].
pub(crate) fn is_wanted() -> bool {
    static IS_WANTED: OnceLock<bool> = OnceLock::new();
    *IS_WANTED.get_or_init(|| directory::variable("METE_DEBUG").is_some_and(|value| value == "1"))
}
