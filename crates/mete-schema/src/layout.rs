//! The record of an event: where each field lies. `docs/schema.md` says it to the byte, and why.
//!
//! ```text
//!   word 0   bits 0–15 event, 16–31 bytes of the record, 32–63 serial number
//!   word 1   time stamp
//!   then     the fields, those with the largest alignment first, else in their order
//!   end      zeros to a whole word
//! ```

use crate::types::FieldType;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of a word: a record begins and ends on one, so that it is written by whole stores.
pub const WORD_BYTES: usize = 8;
/// A change of the header, or of how fields are placed, raises it; it is in the fingerprint of each schema.
pub const VERSION: u8 = 1;
/// The number of a schema's first event; those below are kept.
pub const FIRST_EVENT: u16 = 16;

/// The recorder's own events: they mark a flush (paper §5.2), that an event is switched (§4.3), and what the kernel left out. Their numbers are
/// the trace format's. What a trace becomes has LOST where it has a gap, and UNKNOWN for a number without a name.
pub const OWN_EVENTS: [&str; 7] =
    ["DUMP_BEGIN", "DUMP_FINISH", "SWITCHED_ON", "SWITCHED_OFF", "MISSED_RUNS", "LOST", "UNKNOWN"];

/// Where the fields of an event lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// For each field in its order, the byte in the record that it begins at.
    pub offsets: Vec<usize>,
    /// Bytes at the end that hold nothing. Between fields there are none.
    pub padding: usize,
    /// Bytes of the record, a multiple of eight.
    pub size: usize,
}

/// Places fields. Largest alignment first leaves no gap between them, and no other order a smaller record.
pub fn place(fields: &[FieldType]) -> Layout {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_by_key(|nth| std::cmp::Reverse(fields[*nth].alignment()));
    let mut offsets = vec![0; fields.len()];
    let mut end = HEADER_BYTES;
    for nth in order {
        offsets[nth] = end;
        end += fields[nth].size();
    }
    let size = end.next_multiple_of(WORD_BYTES);
    Layout { offsets, padding: size - end, size }
}
