//! The recorder's own events that have fields: their layouts, and the words of a mark that an event is
//! switched.

use super::layout::{Description, EventLayout, FieldKind, FieldLayout};
use crate::record::{HEADER_BYTES, MISSED_RUNS, SWITCHED_OFF, SWITCHED_ON};

/// Bytes of the event's name in a mark. Of a longer name the mark has the beginning.
const NAME_BYTES: usize = 64;
/// Words of a mark after the record's header: the event's number and its name.
pub const SWITCH_WORDS: usize = 1 + NAME_BYTES / 8;

impl Description {
    /// Adds the marks of switched events, for a recording whose events may be switched.
    pub fn with_switches(mut self) -> Description {
        self.events.extend(switch_layouts());
        self
    }

    /// Adds the mark of runs that the kernel left out, for a recording of programs in the kernel.
    pub fn with_missed_runs(mut self) -> Description {
        self.events.push(missed_layout());
        self
    }
}

/// Whether this is exactly the layout of one of the marks.
pub fn is_mark(event: &EventLayout) -> bool {
    switch_layouts().contains(event) || missed_layout() == *event
}

/// The layouts of SWITCHED_ON and SWITCHED_OFF.
fn switch_layouts() -> [EventLayout; 2] {
    [
        (SWITCHED_ON, "SWITCHED_ON", "From here on the event is recorded."),
        (SWITCHED_OFF, "SWITCHED_OFF", "From here on the event may be missing: it is not recorded."),
    ]
    .map(|(id, name, doc)| EventLayout {
        id,
        name: name.to_owned(),
        doc: doc.to_owned(),
        fields: vec![
            field("event", FieldKind::Text, 8, NAME_BYTES, "The event's name."),
            field("number", FieldKind::Unsigned, 0, 2, "The event's number."),
        ],
    })
}

/// The layout of MISSED_RUNS.
fn missed_layout() -> EventLayout {
    let since = "The time stamp before which this had not happened.";
    let runs = "How many runs of programs were left out since then.";
    EventLayout {
        id: MISSED_RUNS,
        name: "MISSED_RUNS".to_owned(),
        doc: "The kernel left out programs: what they would have recorded is missing, on whatever processor."
            .to_owned(),
        fields: vec![
            field("since", FieldKind::Unsigned, 0, 8, since),
            field("runs", FieldKind::Unsigned, 8, 8, runs),
        ],
    }
}

/// A field that begins `at` bytes after the record's header.
fn field(name: &str, kind: FieldKind, at: usize, bytes: usize, doc: &str) -> FieldLayout {
    let offset = (HEADER_BYTES + at) as u16;
    FieldLayout { name: name.to_owned(), kind, offset, bytes: bytes as u16, doc: doc.to_owned() }
}

/// The mark that the event of this number and name is switched: the mark's own event number, and its fields.
pub fn switch_mark(event: u16, name: &str, on: bool) -> (u16, [u64; SWITCH_WORDS]) {
    (if on { SWITCHED_ON } else { SWITCHED_OFF }, switch_words(event, name))
}

fn switch_words(event: u16, name: &str) -> [u64; SWITCH_WORDS] {
    let mut bytes = [0; NAME_BYTES];
    let name = &name.as_bytes()[..name.len().min(NAME_BYTES)];
    bytes[..name.len()].copy_from_slice(name);
    let mut words = [u64::from(event); SWITCH_WORDS];
    for (word, eight) in words[1..].iter_mut().zip(bytes.as_chunks::<8>().0) {
        // The record is little endian, so that the name's bytes stand in the record in their own order.
        *word = u64::from_le_bytes(*eight);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_4_a_mark_has_the_number_and_the_beginning_of_the_name() {
        let (id, words) = switch_mark(20, "SCHEDIN", true);
        assert_eq!(id, SWITCHED_ON);
        assert_eq!((words[0], words[1], words[2]), (20, u64::from_le_bytes(*b"SCHEDIN\0"), 0));
        let long = switch_words(20, &"x".repeat(100));
        assert_eq!(long[SWITCH_WORDS - 1], u64::from_le_bytes([b'x'; 8]));
        assert!(switch_layouts().iter().all(|mark| mark.least_bytes() == HEADER_BYTES + SWITCH_WORDS * 8));
    }
}
