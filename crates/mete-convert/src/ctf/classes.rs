//! What events look like in the streams.

use std::collections::HashSet;

use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH};
use mete_trace::{EventLayout, FieldKind, FieldLayout};

/// The number of what has no layout, or is shorter than it: its bytes as they are.
pub const RAW: u16 = 0xffff;

/// An event.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its number in the stream.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// What it means.
    pub doc: String,
    /// Its fields, one behind the other.
    pub fields: Vec<ClassField>,
}

/// A field.
#[derive(Clone, Debug)]
pub struct ClassField {
    /// A name as C has them.
    pub name: String,
    /// What stands there.
    pub kind: Kind,
    /// What it means.
    pub doc: String,
}

/// What stands in a field; numbers are little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// So many bits.
    Unsigned(u16),
    /// So many bits.
    Signed(u16),
    /// 64 bits, to be shown as hexadecimal digits.
    Address,
    /// So many bits.
    Float(u16),
    /// One byte, 0 or 1.
    Bool,
    /// UTF-8 and a zero byte.
    Text,
    /// So many bytes.
    Bytes(u16),
    /// As many bytes as the field before says.
    Rest,
}

/// The events of a trace and those that any trace may have.
#[derive(Clone, Debug)]
pub struct Classes(pub Vec<Class>);

impl Classes {
    /// Of a description's events.
    pub fn of(events: &[EventLayout]) -> Classes {
        let own = |id, name: &str, doc: &str, fields| Class {
            id,
            name: name.to_owned(),
            doc: doc.to_owned(),
            fields,
        };
        let field = |name: &str, kind| ClassField { name: name.to_owned(), kind, doc: String::new() };
        let mut all: Vec<_> = events.iter().map(class).collect();
        all.push(own(DUMP_BEGIN, "DUMP_BEGIN", "The recorder begins to write out the buffer.", Vec::new()));
        all.push(own(DUMP_FINISH, "DUMP_FINISH", "The recorder has written out the buffer.", Vec::new()));
        let parts = [
            field("number", Kind::Unsigned(16)),
            field("length", Kind::Unsigned(16)),
            field("bytes", Kind::Rest),
        ];
        let doc = "A record that the description does not fit, as it is, its header included.";
        all.push(own(RAW, "UNKNOWN", doc, parts.to_vec()));
        Classes(all)
    }
}

fn class(event: &EventLayout) -> Class {
    let mut taken = HashSet::new();
    let field = |field: &FieldLayout| ClassField {
        name: free_name(&field.name, &mut taken),
        kind: kind(field),
        doc: field.doc.clone(),
    };
    let fields = event.fields.iter().map(field).collect();
    Class { id: event.id, name: event.name.clone(), doc: event.doc.clone(), fields }
}

/// The name with nothing in it that is no letter of a C identifier, and no other field's.
fn free_name(name: &str, taken: &mut HashSet<String>) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = name.chars().map(plain).take(240).collect();
    let numbered = (2..).map(|nth: u32| format!("{name}_{nth}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| taken.insert(name.clone())).unwrap_or(name)
}

fn kind(field: &FieldLayout) -> Kind {
    let bits = field.bytes.saturating_mul(8);
    match field.kind {
        FieldKind::Unsigned => Kind::Unsigned(bits),
        FieldKind::Signed => Kind::Signed(bits),
        FieldKind::Float => Kind::Float(bits),
        FieldKind::Bool => Kind::Bool,
        FieldKind::Address => Kind::Address,
        FieldKind::Text => Kind::Text,
        FieldKind::Bytes => Kind::Bytes(field.bytes),
    }
}
