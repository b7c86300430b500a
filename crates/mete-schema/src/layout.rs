//! The record of an event: where each field lies. `docs/schema.md` says it to the byte, and why.
//!
//! ```text
//!   word 0   bits 0–15 event, 16–23 words of the record, 24–31 version, 32–63 serial number
//!   word 1   time stamp
//!   then     the fields, those with the largest alignment first, else in their order
//!   end      zeros to a whole word
//! ```

use crate::types::FieldType;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 16;
/// Bytes of a word: a record begins and ends on one, so that it is written by whole stores.
pub const WORD_BYTES: usize = 8;
/// What stands in the header's version: a change of the header or of how fields are placed raises it.
pub const VERSION: u8 = 1;
/// Numbers below this one are the recorder's own events; 0 is none, so that empty memory is no event.
pub const FIRST_EVENT: u16 = 16;

/// The recorder's own events. `DUMP_BEGIN` and `DUMP_FINISH` mark a flush (paper §5.2).
pub const OWN_EVENTS: [(u16, &str); 2] = [(1, "DUMP_BEGIN"), (2, "DUMP_FINISH")];

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
