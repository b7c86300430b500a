//! Code that records what a schema describes: specialised for each event, straight-line (paper §5.3).
//!
//! No text of a schema is pasted into code as it is: names have been checked to be C identifiers and get a
//! prefix of their own, documentation goes into comments that it cannot end, numbers are printed as numbers.

mod bpf;
mod c;
mod columns;
mod rust;

pub use bpf::{Program, benchmark, bpf, programs};
pub use c::c;
pub use columns::{Column, columns};
pub use rust::rust;

use crate::schema::{Event, Field};

/// The fields as they lie in the record, with the first byte of each.
fn in_place(event: &Event) -> Vec<(usize, &Field)> {
    let mut fields: Vec<_> = event.layout.offsets.iter().copied().zip(&event.fields).collect();
    fields.sort_by_key(|(offset, _)| *offset);
    fields
}
