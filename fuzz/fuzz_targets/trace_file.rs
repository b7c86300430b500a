//! Any bytes in a processor's file are good records or an error that names the place; the account
//! agrees with what was handed out (NEW-2).
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mete_trace::file::BlockFile;
use mete_trace::reader::Step;
use mete_trace::{Filter, Item, Merge, ProcessorReader, Ticks};
use trace::{BLOCK_BYTES, Bytes};

mod trace;

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
    let [from, until] = [5, 1 << 40].map(Ticks::new);
    let filter = Filter::default().from_ticks(from).until_ticks(until);
    let reader = ProcessorReader::between(open(), filter.from_ticks, filter.until_ticks);
    let mut merged = Merge::new(vec![reader], Vec::new(), filter);
    while let Some(item) = merged.next() {
        if let Ok(Item::Record(record)) = item {
            assert!((from..=until).contains(&record.time));
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let path = trace::directory().join("processor-0.trace");
    std::fs::write(&path, trace::file(Bytes(input))).expect("a temporary file");
    read(&path);
});
