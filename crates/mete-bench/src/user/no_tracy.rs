//! Stands in for Tracy's client where it is not linked.

use mete_measure::reason::Reason;

/// The client of a build without Tracy: no value of it exists.
pub enum Peer {}

impl Peer {
    /// Empty: nothing is measured, and the reason explains why.
    pub const NOTE: &str = "";

    /// Fails with a reason that says how to link the client.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn start() -> Result<Peer, Reason> {
        Err(Reason::new(
            "not built in: `make bench FEATURES=tracy` compiles its client, in C++, and links it",
        ))
    }

    /// Cannot be called, because there is no value to call it on.
    ///
    /// # Errors
    ///
    /// None.
    pub fn ask(&mut self, _times: u64) -> Result<f64, Reason> {
        match *self {}
    }
}
