//! The documented format is the one that is written: compares the tables of `docs/trace-format.md` with the
//! code's constants (NEW-2).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(not(loom))]

mod common;

use mete_trace::block::{self, Builder, offset};
use mete_trace::{Ticks, record};

const PAGE: &str = include_str!("../../../docs/trace-format.md");

/// The rows of all tables whose lines have this number of cells.
fn rows(cells: usize) -> Vec<Vec<&'static str>> {
    let cut = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    PAGE.lines().filter(|line| line.starts_with('|')).map(cut).filter(|row| row.len() == cells).collect()
}

#[test]
fn new_2_the_page_names_every_field_of_a_block_with_its_place_and_size() {
    let fields = [
        ("MAGIC", offset::MAGIC, offset::VERSION),
        ("VERSION", offset::VERSION, offset::HEADER_BYTES),
        ("HEADER_BYTES", offset::HEADER_BYTES, offset::BLOCK_BYTES),
        ("BLOCK_BYTES", offset::BLOCK_BYTES, offset::PROCESSOR),
        ("PROCESSOR", offset::PROCESSOR, offset::FLAGS),
        ("FLAGS", offset::FLAGS, offset::NUMBER),
        ("NUMBER", offset::NUMBER, offset::FIRST_SERIAL),
        ("FIRST_SERIAL", offset::FIRST_SERIAL, offset::END_SERIAL),
        ("END_SERIAL", offset::END_SERIAL, offset::LOST_BEFORE),
        ("LOST_BEFORE", offset::LOST_BEFORE, offset::LOST_INSIDE),
        ("LOST_INSIDE", offset::LOST_INSIDE, offset::FIRST_TIME),
        ("FIRST_TIME", offset::FIRST_TIME, offset::LAST_TIME),
        ("LAST_TIME", offset::LAST_TIME, offset::RECORDS),
        ("RECORDS", offset::RECORDS, offset::USED),
        ("USED", offset::USED, offset::RECORDING),
        ("RECORDING", offset::RECORDING, offset::RESERVED),
        ("RESERVED", offset::RESERVED, offset::CHECKSUM),
        ("CHECKSUM", offset::CHECKSUM, block::HEADER_BYTES),
    ];
    let said: Vec<_> = rows(4).into_iter().filter(|row| row[0].parse::<usize>().is_ok()).collect();
    assert_eq!(said.len(), fields.len());
    for ((name, at, end), row) in fields.into_iter().zip(said) {
        let bytes = match row[1] {
            "u16" => 2,
            "u32" => 4,
            "u64" => 8,
            other => other.strip_suffix(" bytes").unwrap().parse().unwrap(),
        };
        assert_eq!((row[2], row[0].parse(), bytes), (name, Ok(at), end - at));
    }
}

#[test]
fn new_2_the_page_gives_the_numbers_of_the_recorders_own_events_and_flags() {
    let number = |name: &str| {
        let row = rows(2).into_iter().find(|row| row[1].starts_with(name)).unwrap();
        u16::from_str_radix(row[0].trim_matches('`').strip_prefix("0x").unwrap(), 16).unwrap()
    };
    assert_eq!(number("DUMP_BEGIN"), record::DUMP_BEGIN);
    assert_eq!(number("DUMP_FINISH"), record::DUMP_FINISH);
    assert_eq!(number("SWITCHED_ON"), record::SWITCHED_ON);
    assert_eq!(number("SWITCHED_OFF"), record::SWITCHED_OFF);
    assert_eq!(number("MISSED_RUNS"), record::MISSED_RUNS);
    assert_eq!(number("padding"), record::PADDING);
    assert!(PAGE.contains(&format!("`{:#06x}` on are the recorder's own", record::FIRST_RESERVED)));
    let flag =
        |name: &str| rows(3).into_iter().find(|row| row[1] == name).unwrap()[0].parse::<u32>().unwrap();
    assert_eq!((flag("LAST"), flag("DISORDER")), (block::FLAG_LAST, block::FLAG_DISORDER));
    for limit in
        [block::MIN_BYTES, block::MAX_BLOCK_BYTES, block::DEFAULT_BLOCK_BYTES, record::MAX_BYTES as u32]
    {
        assert!(PAGE.contains(&limit.to_string()), "{limit}");
    }
    assert_eq!(block::MAGIC, *b"METEBLK\0");
}

#[test]
fn new_2_a_block_has_the_bytes_that_the_page_describes() {
    let mut builder = Builder::new(common::RECORDING, 3, 8192);
    assert!(builder.push(2, &common::record(7, 2, 0x1122, &[0xabcd])));
    let bytes = builder.seal_last(5).bytes;
    let mut expected = Vec::new();
    expected.extend_from_slice(b"METEBLK\0\x01\0\x80\0\0\x20\0\0\x03\0\0\0\x01\0\0\0");
    for word in [0_u64, 2, 5, 2, 2, 0x1122, 0x1122, 24 << 32 | 1] {
        expected.extend_from_slice(&word.to_le_bytes());
    }
    expected.extend_from_slice(b"0123456789abcdef");
    expected.extend_from_slice(&[0; 24]);
    expected.extend_from_slice(b"\x07\0\x18\0\x02\0\0\0\x22\x11\0\0\0\0\0\0\xcd\xab\0\0\0\0\0\0");
    let sum = crc32fast::hash(&expected);
    expected[124..128].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(bytes, expected);
}

#[test]
fn new_2_the_page_names_every_field_of_a_description() {
    let json = serde_json::to_value(common::trace_description(1)).unwrap();
    for name in json.as_object().unwrap().keys() {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
    let mut circumstances = json["circumstances"].clone();
    let missed = mete_trace::MissedRuns { since: Ticks::new(1), until: Ticks::new(2), runs: 3 };
    circumstances["missed"] = serde_json::to_value([missed]).unwrap();
    let within = circumstances["missed"][0].as_object().unwrap().keys().cloned();
    let names: Vec<_> = circumstances.as_object().unwrap().keys().cloned().chain(within).collect();
    for name in names {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
    let account = serde_json::to_value(mete_trace::Account::default()).unwrap();
    for name in account.as_object().unwrap().keys().filter(|name| *name != "processor") {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
}
