//! An event as a table for Arrow, Parquet and CSV, with one row for each record. The columns are plain data, so that a
//! user who writes no table needs no library for it.

use crate::schema::Event;
use crate::types::{FieldType, Int};

/// A column, never null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's name. Names of the header's columns begin with `header.`, as no field's name can.
    pub name: String,
    /// The type: a number is `UInt8` to `Int64`, `bool` is `Boolean`, a text is `Utf8`, an address is `UInt64`.
    pub kind: FieldType,
    /// The description of its values.
    pub docs: String,
}

/// The columns of an event: those of the header, including the processor, which a record's file gives, and one for each
/// field.
pub fn columns(event: &Event) -> Vec<Column> {
    let header = [
        ("header.time", Int::unsigned(64), "time stamp"),
        ("header.cpu", Int::unsigned(32), "processor"),
        ("header.serial", Int::unsigned(64), "number of the record on its processor, lost ones counted"),
    ];
    let header = header.into_iter().map(|(name, int, docs)| column(name, FieldType::Int(int), docs));
    let fields = event.fields.iter().map(|field| column(&field.name, field.kind, &field.docs));
    header.chain(fields).collect()
}

fn column(name: &str, kind: FieldType, docs: &str) -> Column {
    Column { name: name.to_owned(), kind, docs: docs.to_owned() }
}
