//! Same calls in, same bytes out: compares the C producer of `include/mete_trace.h`, which eBPF programs use,
//! with the Rust producer, and the header's constants with the code's (KLOG-5, KLOG-6).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(not(loom))]

mod common;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use common::{NUMBERED, area, buffer};
use mete_trace::layout::{self, RELEASED_OFFSET, RESERVE_OFFSET};
use mete_trace::protocol::{Reserve, TRIES};
use mete_trace::record;
use mete_trace::{Outcome, Producer, Ticks};
use proptest::prelude::*;

const HEADER: &str = include_str!("../include/mete_trace.h");

/// Builds the C side once. `None` if there is no C compiler.
fn c_producer() -> Option<PathBuf> {
    static BUILT: std::sync::OnceLock<Option<PathBuf>> = std::sync::OnceLock::new();
    BUILT.get_or_init(build).clone()
}

fn build() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("trace-vectors");
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-strict-aliasing", "-I"]);
    compiler.arg(root.join("include")).arg(root.join("tests/vectors.c")).arg("-o").arg(&program);
    match compiler.status() {
        Err(error) => {
            println!("SKIPPED: vectors: no C compiler ({error})");
            None
        }
        Ok(status) => {
            assert!(status.success(), "the C producer does not compile");
            Some(program)
        }
    }
}

fn run_c(program: &PathBuf, before: &[u8], calls: &[(u64, u64)]) -> Vec<u8> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(before).unwrap();
    let words = calls.iter().flat_map(|(fields, clock)| [*fields, *clock]);
    stdin.write_all(&words.flat_map(u64::to_le_bytes).collect::<Vec<_>>()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn klog_5_6_both_producers_write_the_same_bytes(
        start in any::<u32>(),
        serial in any::<u32>(),
        in_use in 0..70_000_u32,
        low_water in 0..100_u8,
        calls in prop::collection::vec((prop_oneof![0..6_u64, 0..511_u64], 0..1_u64 << 60), 1..300),
    ) {
        let Some(program) = c_producer() else { return Ok(()) };
        let area = area();
        let buffer = buffer(&area);
        buffer.set_low_water(low_water);
        area[RESERVE_OFFSET / 8].store(Reserve { words: start, serial }.to_word(), Ordering::Relaxed);
        let released = u64::from(start.wrapping_sub(in_use / 8)) * 8;
        area[RELEASED_OFFSET / 8].store(released, Ordering::Relaxed);
        let bytes = || area.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect::<Vec<u8>>();
        let before = bytes();
        let producer = Producer::new(buffer);
        let mut crossings = 0;
        for (fields, clock) in &calls {
            let fields: Vec<_> = (0..*fields).map(|at| clock + at).collect();
            crossings += u32::from(producer.record(NUMBERED, &fields, || Ticks::new(*clock)) == Outcome::WrittenAtMark);
        }
        area[layout::CALLS_OFFSET / 8].store(crossings.into(), Ordering::Relaxed);
        let (rust, c) = (bytes(), run_c(&program, &before, &calls));
        prop_assert_eq!(rust.len(), c.len());
        let differing = (0..rust.len()).find(|at| rust[*at] != c[*at]);
        prop_assert_eq!(differing, None, "the first byte at which the two areas differ");
    }
}

#[test]
fn klog_5_the_headers_constants_are_the_codes() {
    let constant = |name: &str| {
        let line =
            HEADER.lines().find(|line| line.starts_with(&format!("#define METE_TRACE_{name} "))).unwrap();
        let text = line.split_whitespace().nth(2).unwrap().trim_end_matches("ull");
        text.strip_prefix("0x")
            .map_or_else(|| text.parse().unwrap(), |hex| u64::from_str_radix(hex, 16).unwrap())
    };
    let expected = [
        ("MAGIC", layout::MAGIC),
        ("HEADER_BYTES", layout::HEADER_BYTES as u64),
        ("SLACK_BYTES", layout::SLACK_BYTES as u64),
        ("RECORD_HEADER_BYTES", record::HEADER_BYTES as u64),
        ("RECORD_MAX_BYTES", record::MAX_BYTES as u64),
        ("PADDING", record::PADDING.into()),
        ("DUMP_BEGIN", record::DUMP_BEGIN.into()),
        ("DUMP_FINISH", record::DUMP_FINISH.into()),
        ("SWITCHED_ON", record::SWITCHED_ON.into()),
        ("SWITCHED_OFF", record::SWITCHED_OFF.into()),
        ("MISSED_RUNS", record::MISSED_RUNS.into()),
        ("FIRST_RESERVED", record::FIRST_RESERVED.into()),
        ("TRIES", TRIES as u64),
    ];
    for (name, value) in expected {
        assert_eq!(constant(name), value, "{name}");
    }
}
