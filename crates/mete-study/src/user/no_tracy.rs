//! In place of Tracy's client where that is not linked.

use crate::reason::Reason;

/// There is none.
pub enum Peer {}

impl Peer {
    /// Nothing is measured; the reason says all.
    pub const NOTE: &str = "";

    /// Says how to get it.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn start() -> Result<Peer, Reason> {
        Err(Reason::new(
            "not built in: `make bench FEATURES=tracy` compiles its client, in C++, and links it",
        ))
    }

    /// Never called.
    ///
    /// # Errors
    ///
    /// None.
    pub fn ask(&mut self, _times: u64) -> Result<f64, Reason> {
        match *self {}
    }
}
