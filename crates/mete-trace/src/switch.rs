//! Events that are switched on and off while recording (KLogger §4.3): marks in the trace and a list in the description,
//! so that nobody takes the absence of an event for the absence of what it tells of.
//!
//! SWITCHED_OFF stands before the first event that may be missing, SWITCHED_ON behind the last one: what lies between
//! them says nothing of the event, and everything else is complete as the serial numbers say.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::buffer::Buffer;
use crate::description::{Description, EventLayout, FieldKind, FieldLayout};
use crate::memory::Buffers;
use crate::producer::{Outcome, Producer};
use crate::record::{HEADER_BYTES, Record, SWITCHED_OFF, SWITCHED_ON};
use crate::recorder::Recorder;
use crate::thread;

impl Record<'_> {
    /// The number of the event that this switches, and whether on, if it is a mark of that.
    pub fn switches(&self) -> Option<(u16, bool)> {
        let number = self.bytes.get(HEADER_BYTES..HEADER_BYTES + 2).and_then(|bytes| bytes.try_into().ok());
        match self.event {
            SWITCHED_ON => Some((u16::from_le_bytes(number?), true)),
            SWITCHED_OFF => Some((u16::from_le_bytes(number?), false)),
            _ => None,
        }
    }
}

/// Bytes of the event's name in a mark; of a longer one it has the beginning.
const NAME_BYTES: usize = 64;
/// Words of a mark behind the header: the event's number, and its name.
pub const WORDS: usize = 1 + NAME_BYTES / 8;
/// The most switches that a description lists.
const MOST_LISTED: usize = 1000;

/// An event that was switched while recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// When: a time stamp of the trace's clock.
    pub time: u64,
    /// The event's name.
    pub event: String,
    /// Whether it was recorded from then on.
    pub on: bool,
}

/// What a description says of switched events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// The events that were off when recording began.
    pub off_at_first: Vec<String>,
    /// What was switched then, in order: the first thousand.
    pub list: Vec<Switch>,
    /// How many more there were; the trace has their marks.
    pub unlisted: u64,
}

impl Switches {
    pub(crate) fn note(&mut self, switch: Switch) {
        if self.list.len() < MOST_LISTED { self.list.push(switch) } else { self.unlisted += 1 }
    }
}

impl Description {
    /// With the marks of switched events, for a recording whose events may be switched.
    pub fn with_switches(mut self) -> Description {
        self.events.extend(marks());
        self
    }
}

impl<B: Buffers> Recorder<B> {
    /// Marks on every processor that events are switched, by their numbers: before they are switched off, and when they
    /// are on. Not where [events are gathered](Buffers::is_gathered).
    pub fn mark_switched(&mut self, events: &[u16], on: bool) {
        for event in events {
            let Some(layout) = self.layout(|layout| layout.id == *event).cloned() else { continue };
            self.mark(&layout, on, |buffer| !self.buffers().is_gathered(buffer));
            let time = self.clock().now();
            self.switches().note(Switch { time, event: layout.name, on });
        }
    }

    /// Marks the events that are off at first, if they may be switched on.
    pub(crate) fn mark_off_at_first(&mut self) {
        if self.layout(|layout| layout.id == SWITCHED_OFF).is_none() {
            return;
        }
        for name in self.switches().off_at_first.clone() {
            if let Some(layout) = self.layout(|layout| layout.name == name) {
                self.mark(layout, false, |_| true);
            }
        }
    }

    fn mark(&self, event: &EventLayout, on: bool, is_meant: impl Fn(usize) -> bool) {
        let (id, words) = mark(event.id, &event.name, on);
        for processor in (0..self.buffers().processors()).filter(|buffer| is_meant(*buffer)) {
            put(self.buffers().buffer(processor), id, &words, || self.clock().now());
        }
    }
}

/// A mark that finds no room is a loss like any other, and the description has the switch.
pub(crate) fn put(buffer: Buffer<'_>, id: u16, words: &[u64], clock: impl Fn() -> u64) {
    let producer = Producer::new(buffer);
    wait_for_room(buffer, producer);
    let (Outcome::Written | Outcome::WrittenAtMark | Outcome::Lost) = producer.record(id, words, clock);
}

/// A full buffer is emptied in a moment, unless the disk is stuck.
fn wait_for_room(buffer: Buffer<'_>, producer: Producer<'_>) {
    const PATIENCE: Duration = Duration::from_millis(100);
    let needed = (HEADER_BYTES + WORDS * 8) as u32 * 2;
    let begun = Instant::now();
    while buffer.capacity() - buffer.used().min(buffer.capacity()) < needed && begun.elapsed() < PATIENCE {
        producer.call_flush();
        thread::pause();
    }
}

/// The layouts of both marks.
pub(crate) fn marks() -> [EventLayout; 2] {
    let mark = |id, name: &str, doc: &str| EventLayout {
        id,
        name: name.to_owned(),
        doc: doc.to_owned(),
        fields: vec![
            field("event", FieldKind::Text, 8, NAME_BYTES, "The event's name."),
            field("number", FieldKind::Unsigned, 0, 2, "The event's number."),
        ],
    };
    [
        mark(SWITCHED_ON, "SWITCHED_ON", "From here on the event is recorded."),
        mark(SWITCHED_OFF, "SWITCHED_OFF", "From here on the event may be missing: it is not recorded."),
    ]
}

fn field(name: &str, kind: FieldKind, at: usize, bytes: usize, doc: &str) -> FieldLayout {
    let offset = (HEADER_BYTES + at) as u16;
    FieldLayout { name: name.to_owned(), kind, offset, bytes: bytes as u16, doc: doc.to_owned() }
}

/// The mark that an event of this number and name is switched: its own number, and its fields.
pub fn mark(event: u16, name: &str, on: bool) -> (u16, [u64; WORDS]) {
    (if on { SWITCHED_ON } else { SWITCHED_OFF }, words(event, name))
}

/// The fields of a mark.
fn words(event: u16, name: &str) -> [u64; WORDS] {
    let mut bytes = [0; NAME_BYTES];
    let name = &name.as_bytes()[..name.len().min(NAME_BYTES)];
    bytes[..name.len()].copy_from_slice(name);
    let mut words = [u64::from(event); WORDS];
    for (word, eight) in words[1..].iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*eight);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_4_a_mark_has_the_number_and_the_beginning_of_the_name() {
        let (id, words) = mark(20, "SCHEDIN", true);
        assert_eq!(id, SWITCHED_ON);
        assert_eq!((words[0], words[1], words[2]), (20, u64::from_le_bytes(*b"SCHEDIN\0"), 0));
        let long = super::words(20, &"x".repeat(100));
        assert_eq!(long[WORDS - 1], u64::from_le_bytes([b'x'; 8]));
        assert!(marks().iter().all(|mark| mark.least_bytes() == HEADER_BYTES + WORDS * 8));
    }

    #[test]
    fn klog_4_a_description_does_not_grow_with_the_switches() {
        let mut switches = Switches::default();
        for time in 0..1500 {
            switches.note(Switch { time, event: "A".into(), on: time % 2 == 0 });
        }
        assert_eq!((switches.list.len(), switches.unlisted, switches.list[999].time), (1000, 500, 999));
    }
}
