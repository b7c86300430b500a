//! A program with probes runs unchanged whatever goes wrong in here, and without a word, unless
//! `METE_DEBUG=1` asks for them.

use crate::directory;

/// Says something on standard error if the user asked for it.
pub(crate) fn tell(text: impl FnOnce() -> String) {
    if directory::variable("METE_DEBUG").is_some_and(|value| value == "1") {
        eprintln!("mete[{}]: {}", std::process::id(), text());
    }
}
