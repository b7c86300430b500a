//! An event as a table, for Arrow, Parquet and CSV: one row a record. Plain data, so that whoever writes no table
//! needs no library for it.

use crate::schema::Event;
use crate::types::{FieldType, Int};

/// A column, never null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name. Those of the header begin with `header.`, which no field can be called.
    pub name: String,
    /// A number as `UInt8` to `Int64`, `bool` as `Boolean`, a text as `Utf8`, an address as `UInt64`.
    pub kind: FieldType,
    /// What it holds.
    pub docs: String,
}

/// The columns of an event: the header's, with the processor that a record's file tells, and one for each field.
pub fn columns(event: &Event) -> Vec<Column> {
    let header = [
        ("header.time", Int::unsigned(64), "time stamp"),
        ("header.cpu", Int::unsigned(32), "processor"),
        ("header.serial", Int::unsigned(64), "number of the record on its processor, lost ones counted"),
    ];
    let column = |name: &str, kind, docs: &str| Column { name: name.to_owned(), kind, docs: docs.to_owned() };
    let header = header.into_iter().map(|(name, int, docs)| column(name, FieldType::Int(int), docs));
    let fields = event.fields.iter().map(|field| column(&field.name, field.kind, &field.docs));
    header.chain(fields).collect()
}
