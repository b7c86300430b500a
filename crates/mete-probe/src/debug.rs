//! A program with probes runs unchanged whatever goes wrong in here, and without a word, unless
//! `METE_DEBUG=1` asks for them.

use std::sync::OnceLock;

use crate::directory;

/// Says something on standard error if the user asked for it.
pub(crate) fn tell(text: impl FnOnce() -> String) {
    if is_wanted() {
        eprintln!("mete[{}]: {}", std::process::id(), text());
    }
}

/// Looked up once, early: see [`directory::variable`].
pub(crate) fn is_wanted() -> bool {
    static IS_WANTED: OnceLock<bool> = OnceLock::new();
    *IS_WANTED.get_or_init(|| directory::variable("METE_DEBUG").is_some_and(|value| value == "1"))
}
