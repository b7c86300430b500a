//! The record of an event: where each field lies. `docs/schema.md` describes the record byte by byte, with
//! the reasons.
//!
//! ```text
//!   word 0   bits 0–15 event, 16–31 bytes of the record, 32–63 serial number
//!   word 1   time stamp
//!   then     the fields, those with the largest alignment first, otherwise in their order
//!   end      zeros to a whole word
//! ```

use crate::types::FieldType;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of a word. A record begins and ends on a word's boundary, so that it is written by whole stores.
pub const WORD_BYTES: usize = 8;
/// The version of the layout. A change of the header, or of how fields are placed, raises it. It is part of
/// the fingerprint of each schema.
pub const VERSION: u8 = 1;
/// The number of a schema's first event. Smaller numbers are reserved.
pub const FIRST_EVENT: u16 = 16;

/// The recorder's own events. They mark a flush (paper §5.2), the switching of an event (§4.3), and what the
/// kernel left out. The trace format defines their numbers. When a trace is converted, LOST stands for a gap,
/// and UNKNOWN for an event whose number has no name.
pub const OWN_EVENTS: [&str; 7] =
    ["DUMP_BEGIN", "DUMP_FINISH", "SWITCHED_ON", "SWITCHED_OFF", "MISSED_RUNS", "LOST", "UNKNOWN"];

/// Where the fields of an event lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The offset of each field in the record, in bytes, in the schema's order of the fields.
    pub offsets: Vec<usize>,
    /// The number of unused bytes at the end. There are none between fields.
    pub padding: usize,
    /// Bytes of the record, a multiple of eight.
    pub size: usize,
}

/// Gives each field its place, those with the largest alignment first. This order leaves no gap between
/// fields, and no other order gives a smaller record.
pub fn place(fields: &[FieldType]) -> Layout {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    // The sort is stable: fields with the same alignment keep the schema's order, as the format promises.
    order.sort_by_key(|nth| std::cmp::Reverse(fields[*nth].alignment()));
    let mut offsets = vec![0; fields.len()];
    let mut end = HEADER_BYTES;
    for nth in order {
        // Aligned: the header and all fields before this one have sizes that are multiples of its alignment.
        offsets[nth] = end;
        end += fields[nth].size();
    }
    let size = end.next_multiple_of(WORD_BYTES);
    Layout { offsets, padding: size - end, size }
}
