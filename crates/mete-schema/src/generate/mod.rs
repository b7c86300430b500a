//! Generates the code that records what a schema describes. It is specialised for each event, and
//! straight-line (paper §5.3).
//!
//! No text of a schema goes into code unchanged. Names have been checked to be C identifiers, and get a
//! prefix of their own. Documentation goes into comments that it cannot end. Numbers are printed as numbers.

mod bpf;
mod c;
mod rust;

pub use bpf::{Program, benchmark, bpf, programs};
pub use c::c;
pub use rust::rust;

use crate::schema::{Event, Field};

/// The fields in the order of their places in the record, each with its offset.
fn in_place(event: &Event) -> Vec<(usize, &Field)> {
    let mut fields: Vec<_> = event.layout.offsets.iter().copied().zip(&event.fields).collect();
    fields.sort_by_key(|(offset, _)| *offset);
    fields
}
