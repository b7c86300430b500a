//! The events of a trace: which fields their records have, and where these lie.

use serde::{Deserialize, Serialize};

use crate::record::HEADER_BYTES;

/// The events of a trace: what the schema language makes of a schema's text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The text of the schema, as the user wrote it.
    pub schema: String,
    /// The layout of each event's records.
    pub events: Vec<EventLayout>,
}

/// The layout of one event's records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLayout {
    /// The event's number in the records' headers. Numbers from `0xfff0` on belong to the recorder's marks;
    /// only marks that have fields are listed.
    pub id: u16,
    /// The event's name.
    pub name: String,
    /// What the event means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
    /// The fields, in the order in which they were declared.
    pub fields: Vec<FieldLayout>,
}

/// Where one field lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldLayout {
    /// The field's name.
    pub name: String,
    /// What the bytes mean.
    pub kind: FieldKind,
    /// Bytes from the beginning of the record; fields begin at 16.
    pub offset: u16,
    /// Size of the field in bytes.
    pub bytes: u16,
    /// What the field means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub doc: String,
}

/// What a field's bytes mean. Numbers are little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// An integer of 1, 2, 4 or 8 bytes, never negative.
    Unsigned,
    /// An integer of 1, 2, 4 or 8 bytes in two's complement.
    Signed,
    /// A number of 4 or 8 bytes in the IEEE 754 format.
    Float,
    /// One byte: false if it is 0, else true.
    Bool,
    /// An address in memory, of 8 bytes.
    Address,
    /// Text in UTF-8, ended by a zero byte or by the end of the field.
    Text,
    /// Bytes without further meaning.
    Bytes,
}

impl FieldKind {
    /// Whether a field of this kind may have this size.
    pub(super) fn may_have(self, bytes: u16) -> bool {
        match self {
            FieldKind::Unsigned | FieldKind::Signed => matches!(bytes, 1 | 2 | 4 | 8),
            FieldKind::Float => matches!(bytes, 4 | 8),
            FieldKind::Bool => bytes == 1,
            FieldKind::Address => bytes == 8,
            FieldKind::Text | FieldKind::Bytes => bytes > 0,
        }
    }
}

impl FieldLayout {
    /// Bytes from the beginning of the record to the end of the field. No overflow: both numbers have 16
    /// bits.
    pub(super) fn end(&self) -> usize {
        usize::from(self.offset) + usize::from(self.bytes)
    }
}

impl EventLayout {
    /// The smallest size of a record, in bytes, in which all fields lie.
    pub fn least_bytes(&self) -> usize {
        self.fields.iter().map(FieldLayout::end).max().unwrap_or(HEADER_BYTES)
    }
}
