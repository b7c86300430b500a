//! Any bytes in a processor's file are good records or an error that names the place; the account
//! agrees with what was handed out (NEW-2).
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mete_trace::block::{HEADER_BYTES, checksum, offset};
use mete_trace::file::BlockFile;
use mete_trace::reader::Step;
use mete_trace::{Filter, Item, Merge, ProcessorReader};

const BLOCK_BYTES: usize = 8192;

/// With right checksums, so that what lies behind them is reached, too.
fn with_checksums(file: &mut [u8]) {
    for block in file.chunks_mut(BLOCK_BYTES) {
        if block.len() < HEADER_BYTES {
            return;
        }
        let used = u32::from_le_bytes([84, 85, 86, 87].map(|at| block[at])) as usize;
        if let Some(written) = block.get(..HEADER_BYTES.saturating_add(used)) {
            let sum = checksum(written);
            block[offset::CHECKSUM..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

fn read(path: &Path) {
    let open = || BlockFile::open(path, 0, BLOCK_BYTES as u32, [0; 16]).expect("the file is there");
    let mut reader = ProcessorReader::new(open());
    let (mut records, mut lost) = (0, 0);
    while let Some(step) = reader.step() {
        match step {
            Step::Record => records += u64::from(reader.record().bytes.len() >= 16),
            Step::Lost(gap) => lost += gap.events,
            Step::Unreadable(error) => assert!(error.to_string().contains("block")),
        }
    }
    let account = reader.account();
    assert_eq!((account.records, account.lost), (records, lost));
    let filter = Filter::default().from(5).until(1 << 40);
    let reader = ProcessorReader::between(open(), filter.from, filter.until);
    let mut merged = Merge::new(vec![reader], Vec::new(), filter);
    while let Some(item) = merged.next() {
        if let Ok(Item::Record(record)) = item {
            assert!((5..=1 << 40).contains(&record.time));
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, input)) = input.split_first() else { return };
    let mut file = input.to_vec();
    if kind & 1 == 0 {
        with_checksums(&mut file);
    }
    let path = std::env::temp_dir().join(format!("mete-fuzz-trace-{}", std::process::id()));
    std::fs::write(&path, &file).expect("a temporary file");
    read(&path);
    let _ = std::fs::remove_file(&path);
});
