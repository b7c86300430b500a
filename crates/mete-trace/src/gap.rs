//! What is missing in a trace.

use mete_log::Ticks;

/// Events that occurred and are not in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The processor.
    pub processor: u32,
    /// The number of the file in which they would be.
    pub file: u32,
    /// Serial number of the first of them.
    pub first_serial: u64,
    /// The number of events.
    pub events: u64,
    /// Time stamp of the last record before the gap; `None` if there is none.
    pub after: Option<Ticks>,
    /// Time stamp of the first record after the gap; `None` if there is none.
    pub before: Option<Ticks>,
    /// Whether the trace has lost them: they were recorded, but their block cannot be read. If false, they
    /// found no room in the buffer when they occurred.
    pub unreadable: bool,
}
