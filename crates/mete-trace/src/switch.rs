//! Events that are switched on and off while recording (KLogger §4.3). The trace has a mark for each switch,
//! and the description has a list of them. So no reader takes the absence of an event's records for the
//! absence of the event.
//!
//! SWITCHED_OFF stands before the first event that may be missing, and SWITCHED_ON after the last one. What
//! lies between the two marks says nothing about that event. Everything else is complete as far as the serial
//! numbers say so.

pub use crate::description::marks::{SWITCH_WORDS as WORDS, switch_mark as mark};
pub use crate::description::switches::{Switch, Switches};
use crate::record::{HEADER_BYTES, Record, SWITCHED_OFF, SWITCHED_ON};

impl Record<'_> {
    /// If this record is a mark of a switch: the number of the event that is switched, and whether it is
    /// switched on.
    pub fn switches(&self) -> Option<(u16, bool)> {
        let number = self.bytes.get(HEADER_BYTES..HEADER_BYTES + 2).and_then(|bytes| bytes.try_into().ok());
        match self.event {
            SWITCHED_ON => Some((u16::from_le_bytes(number?), true)),
            SWITCHED_OFF => Some((u16::from_le_bytes(number?), false)),
            _ => None,
        }
    }
}
