//! Helpers that several tests need.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use mete_trace::block::{Builder, RecordingId};
use mete_trace::description::{
    Circumstances, Clock, FORMAT, Machine, TraceFile, VERSION, file_name, recording_text,
};
use mete_trace::layout::area_bytes;
use mete_trace::record::Head;
use mete_trace::sink::{FileSink, Sink};
use mete_trace::{Buffer, ClockSource, Description, EventLayout, FieldKind, FieldLayout, TraceDescription};

pub const RECORDING: RecordingId = *b"0123456789abcdef";
pub const BLOCK_BYTES: u32 = 8192;
/// The event of the tests: its one word tells which record it is.
pub const NUMBERED: u16 = 7;

/// The smallest area, in ordinary memory.
pub fn area() -> Vec<AtomicU64> {
    (0..area_bytes(16) / 8).map(|_| AtomicU64::new(0)).collect()
}

pub fn buffer(area: &[AtomicU64]) -> Buffer<'_> {
    let buffer = Buffer::new(area).unwrap();
    buffer.initialise(0, 10);
    buffer
}

/// A directory of the test's own, which is removed when the value is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("mete-trace-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn description() -> Description {
    let field = |name: &str, kind, offset, bytes| FieldLayout {
        name: name.to_owned(),
        kind,
        offset,
        bytes,
        doc: String::new(),
    };
    let event =
        |id, name: &str, fields| EventLayout { id, name: name.to_owned(), doc: String::new(), fields };
    Description {
        schema: "event SCHEDIN {\n    int pid\n    ulonglong L2_cache_misses\n}\n".to_owned(),
        events: vec![
            event(
                0,
                "SCHEDIN",
                vec![
                    field("pid", FieldKind::Signed, 16, 4),
                    field("L2_cache_misses", FieldKind::Unsigned, 24, 8),
                ],
            ),
            event(
                1,
                "TEXT",
                vec![
                    field("comm", FieldKind::Text, 16, 16),
                    field("ratio", FieldKind::Float, 32, 8),
                    field("raw", FieldKind::Bytes, 40, 4),
                    field("is_set", FieldKind::Bool, 44, 1),
                    field("at", FieldKind::Address, 48, 8),
                ],
            ),
            event(NUMBERED, "NUMBERED", vec![field("number", FieldKind::Unsigned, 16, 8)]),
        ],
    }
}

pub fn trace_description(processors: u32) -> TraceDescription {
    TraceDescription {
        format: FORMAT.to_owned(),
        version: VERSION,
        recording: recording_text(RECORDING),
        finished: false,
        block_bytes: BLOCK_BYTES,
        files: (0..processors)
            .map(|processor| TraceFile { processor, name: file_name(processor), programs_of: None })
            .collect(),
        clock: Clock { source: ClockSource::Monotonic, anchors: Vec::new() },
        machine: Machine::default(),
        circumstances: Circumstances::default(),
        completeness: Vec::new(),
        description: description(),
    }
}

/// A record as words: event, serial number, time, fields.
pub fn record(event: u16, serial: u64, time: u64, fields: &[u64]) -> Vec<u64> {
    let bytes = (16 + 8 * fields.len()) as u16;
    let mut words = vec![Head { event, bytes, serial: serial as u32 }.to_word(), time];
    words.extend_from_slice(fields);
    words
}

/// Writes one processor's file of these records, whose serial numbers must rise. `occurred` events occurred
/// in all. Returns the number of blocks.
pub fn write_file(directory: &Path, processor: u32, records: &[(u64, Vec<u64>)], occurred: u64) -> usize {
    let mut builder = Builder::new(RECORDING, processor, BLOCK_BYTES);
    let mut blocks = Vec::new();
    for (serial, words) in records {
        if !builder.push(*serial, words) {
            blocks.push(builder.seal().into());
            assert!(builder.push(*serial, words));
        }
    }
    blocks.push(builder.seal_last(occurred).into());
    let mut sink = FileSink::create(&directory.join(file_name(processor))).unwrap();
    sink.take(&blocks).unwrap();
    blocks.len()
}
