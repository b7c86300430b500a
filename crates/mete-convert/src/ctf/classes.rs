//! The form of events in the streams.

use std::collections::HashSet;

use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH};
use mete_trace::{EventLayout, FieldKind, FieldLayout};

/// The number of a record that has no layout, or is shorter than its layout: the stream has its bytes as they
/// are.
pub const RAW: u16 = 0xffff;

/// An event.
#[derive(Clone, Debug)]
pub struct EventClass {
    /// Its number in the stream.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// What it means.
    pub doc: String,
    /// Its fields, in the order in which they stand.
    pub fields: Vec<ClassField>,
}

/// A field.
#[derive(Clone, Debug)]
pub struct ClassField {
    /// A name that is a C identifier.
    pub name: String,
    /// The kind of content.
    pub kind: CtfKind,
    /// What it means.
    pub doc: String,
}

/// The content of a field. Numbers are little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtfKind {
    /// An integer of this number of bits, never negative.
    Unsigned(u16),
    /// A signed integer of this number of bits.
    Signed(u16),
    /// 64 bits, to be shown as hexadecimal digits.
    Address,
    /// A floating-point number of this number of bits.
    Float(u16),
    /// One byte, 0 or 1.
    Bool,
    /// UTF-8 and a zero byte.
    Text,
    /// This number of bytes.
    Bytes(u16),
    /// As many bytes as the field before it says.
    Rest,
}

/// The events of a trace, and those that any trace may have.
#[derive(Clone, Debug)]
pub struct EventClasses(pub Vec<EventClass>);

impl EventClasses {
    /// The classes for a description's events.
    pub fn of(events: &[EventLayout]) -> EventClasses {
        let mut all: Vec<_> = events.iter().map(class).collect();
        let bytes =
            [("number", CtfKind::Unsigned(16)), ("length", CtfKind::Unsigned(16)), ("bytes", CtfKind::Rest)];
        let doc = "A record that the description does not fit, as it is, its header included.";
        all.extend([
            own(DUMP_BEGIN, "DUMP_BEGIN", "The recorder begins to write out the buffer.", &[]),
            own(DUMP_FINISH, "DUMP_FINISH", "The recorder has written out the buffer.", &[]),
            own(RAW, "UNKNOWN", doc, &bytes),
        ]);
        EventClasses(all)
    }
}

/// An event that any trace may have.
fn own(id: u16, name: &str, doc: &str, fields: &[(&str, CtfKind)]) -> EventClass {
    let fields = fields.iter().map(|(name, kind)| ClassField {
        name: (*name).to_owned(),
        kind: *kind,
        doc: String::new(),
    });
    EventClass { id, name: name.to_owned(), doc: doc.to_owned(), fields: fields.collect() }
}

fn class(event: &EventLayout) -> EventClass {
    let mut taken = HashSet::new();
    let fields = event.fields.iter().map(|field| ClassField {
        name: free_name(&field.name, &mut taken),
        kind: kind(field),
        doc: field.doc.clone(),
    });
    EventClass { id: event.id, name: event.name.clone(), doc: event.doc.clone(), fields: fields.collect() }
}

/// The name as a C identifier that no other field has.
fn free_name(name: &str, taken: &mut HashSet<String>) -> String {
    let letters = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' });
    let name: String = letters.take(240).collect();
    let numbered = (2..).map(|nth: u32| format!("{name}_{nth}"));
    // `insert` is false for a name that another field has.
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| taken.insert(name.clone())).unwrap_or(name)
}

fn kind(field: &FieldLayout) -> CtfKind {
    let bits = field.bytes.saturating_mul(8);
    match field.kind {
        FieldKind::Unsigned => CtfKind::Unsigned(bits),
        FieldKind::Signed => CtfKind::Signed(bits),
        FieldKind::Float => CtfKind::Float(bits),
        FieldKind::Bool => CtfKind::Bool,
        FieldKind::Address => CtfKind::Address,
        FieldKind::Text => CtfKind::Text,
        FieldKind::Bytes => CtfKind::Bytes(field.bytes),
    }
}
