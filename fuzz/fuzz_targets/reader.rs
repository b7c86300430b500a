//! A reader of an area that a hostile producer fills: each poll ends and accounts for every row.
#![no_main]

use std::sync::atomic::Ordering;

use libfuzzer_sys::fuzz_target;
use mete_log::{Control, Cursor, Entries, FileId, Region, Shape, Stamp};

const FILE: FileId = FileId::new(1);

fuzz_target!(|bytes: &[u8]| {
    let [flags, rows, rest @ ..] = bytes else { return };
    let shape = Shape::new(2, 2, 2, 12).unwrap();
    let region = Region::create(shape, 1).unwrap();
    let area = region.area(0);
    let control =
        Control::new(Entries::from_bits(*flags), Stamp::from_bits(flags >> 4), flags & 0x80 != 0, rows % 8, 64);
    let mut cursor = Cursor::new(area, FILE, control);
    let mut before = 0;
    for chunk in rest.chunks_exact(8) {
        let index = u64::from_le_bytes(chunk.try_into().unwrap());
        area.register(FILE).index.store(index, Ordering::Relaxed);
        area.register(FILE).lost.store(index.rotate_left(7), Ordering::Relaxed);
        let mut handed_out = 0;
        let result = cursor.poll_rows(area, |rows| handed_out += rows.iter().len() as u64);
        if let Ok(poll) = result {
            assert_eq!(poll.rows + poll.overwritten, index - before);
            assert!(handed_out <= control.rows());
        } else {
            assert!(index < before);
            assert_eq!(handed_out, 0);
        }
        let _ = cursor.newest(area);
        before = index;
    }
});
