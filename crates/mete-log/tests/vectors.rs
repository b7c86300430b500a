//! For the same calls, the C handler of `include/mete_handler.h`, of which the eBPF programs are made, writes
//! the same bytes as the portable one (design decision D1; LOG-4, LOG-7, LOG-8).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use common::{SetClock, record};
use mete_log::handler::{enter, exit, log};
use mete_log::{Area, Entries, EventId, FileSpec, Plan, Record, Shape};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Call {
    /// An occurrence, and what the clock shows.
    Log(Record, u64),
    /// A phase, and what the clock shows at its exit.
    EnterExit(Record, u64),
    /// A word of the area changes, as a scheduler or a faulty process would change it.
    Poke { word: u64, value: u64 },
}

impl Call {
    fn words(self) -> [u64; 6] {
        let (kind, Record { event, domain, correspondent, counter }, clock) = match self {
            Call::Log(record, clock) => (0, record, clock),
            Call::EnterExit(record, clock) => (1, record, clock),
            Call::Poke { word, value } => return [2, word, value, 0, 0, 0],
        };
        let [domain, correspondent] = [domain, correspondent].map(|domain| domain.get().into());
        [kind, event.get().into(), domain, correspondent, counter, clock]
    }

    fn perform(self, area: Area<'_>, words: &[AtomicU64]) {
        match self {
            Call::Log(record, clock) => _ = log(area, &SetClock(clock.into()), record),
            Call::EnterExit(record, clock) => {
                if enter(area, record.domain, record.event) {
                    exit(area, &SetClock(clock.into()), record);
                }
            }
            Call::Poke { word, value } => words[word as usize % words.len()].store(value, Ordering::Relaxed),
        }
    }
}

fn shape() -> Shape {
    Shape::new(3, 3, 3, 14).unwrap()
}

/// Ordinary memory for an area, and one more cache line to align it.
fn new_memory() -> Vec<[AtomicU64; 8]> {
    (0..shape().area_bytes() / 64 + 1).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect()
}

fn words_of(memory: &[[AtomicU64; 8]]) -> &[AtomicU64] {
    let words = memory.as_flattened();
    let skip = words.as_ptr().align_offset(64);
    &words[skip..skip + shape().area_bytes() / 8]
}

fn bytes_of(words: &[AtomicU64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect()
}

/// Builds the C side once. `None` if there is no C compiler.
fn c_handler() -> Option<PathBuf> {
    static BUILT: std::sync::OnceLock<Option<PathBuf>> = std::sync::OnceLock::new();
    BUILT.get_or_init(build_c_handler).clone()
}

fn build_c_handler() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("vectors");
    let built = Command::new(std::env::var_os("CC").unwrap_or("cc".into()))
        .args([
            "-std=gnu11",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Wno-unused-parameter",
            "-Werror",
            "-fno-strict-aliasing",
        ])
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join("tests/vectors.c"))
        .arg("-o")
        .arg(&program)
        .status();
    match built {
        Err(error) => {
            println!("SKIPPED: vectors: no C compiler ({error})");
            None
        }
        Ok(status) => {
            assert!(status.success(), "the C handler does not compile");
            Some(program)
        }
    }
}

fn run_c(program: &PathBuf, before: &[u8], calls: &[Call]) -> Vec<u8> {
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(before).unwrap();
    let words = calls.iter().flat_map(|call| call.words());
    stdin.write_all(&words.flat_map(u64::to_le_bytes).collect::<Vec<_>>()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

/// Runs the calls through both handlers on a configured area and compares every byte.
fn compare(plan: &Plan, calls: &[Call]) {
    let Some(program) = c_handler() else { return };
    let memory = new_memory();
    let words = words_of(&memory);
    let base = std::ptr::NonNull::from(&words[0]).cast();
    // SAFETY: `words` has the area's length, is aligned to 64, outlives the area, and consists of atomics.
    let area = unsafe { Area::new(base, shape()) };
    area.initialise(0);
    plan.apply(area);
    let before = bytes_of(words);
    calls.iter().for_each(|call| call.perform(area, words));
    let rust = bytes_of(words);
    let c = run_c(&program, &before, calls);
    assert_eq!(c.len(), rust.len());
    let differing = (0..rust.len()).find(|&at| rust[at] != c[at]);
    assert_eq!(differing, None, "the first byte at which the two areas differ");
}

fn any_call() -> impl Strategy<Value = Call> {
    let parts = (0u16..9, 0u16..9, prop_oneof![0u16..9, Just(u16::MAX)], any::<u64>());
    let records = parts.prop_map(|(event, domain, other, counter)| record(event, domain, other, counter));
    let calls = (records, any::<u64>());
    prop_oneof![
        8 => calls.clone().prop_map(|(record, clock)| Call::Log(record, clock)),
        4 => calls.prop_map(|(record, clock)| Call::EnterExit(record, clock)),
    ]
}

/// Changes thresholds, flags, selectors and counts while events run.
fn any_poke() -> impl Strategy<Value = Call> {
    let table = shape().table_offset() as u64 / 8;
    let pairs = 64u64;
    prop_oneof![
        (0..pairs, 0u64..8, 0u64..2, 0u64..6).prop_map(move |(pair, selector, flags, threshold)| {
            Call::Poke { word: table + 2 * pair, value: selector | flags << 16 | threshold << 32 }
        }),
        (0..pairs, any::<u32>())
            .prop_map(move |(pair, count)| Call::Poke { word: table + 2 * pair + 1, value: count.into() }),
    ]
}

fn any_spec() -> impl Strategy<Value = FileSpec> {
    let stamps = prop::sample::select(common::STAMPS.to_vec());
    (0u8..16, stamps, any::<bool>(), 1u32..6).prop_map(|(bits, stamp, add, rows)| {
        let entries = Entries::from_bits(bits);
        FileSpec { entries, stamp, add: add && entries.has(Entries::COUNTER), rows: 1 << rows }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn log_4_7_8_both_handlers_write_the_same_bytes(
        specs in prop::collection::vec(any_spec(), 1..7),
        calls in prop::collection::vec(prop_oneof![6 => any_call(), 1 => any_poke()], 1..200),
    ) {
        let mut plan = Plan::new(shape());
        let files: Vec<_> = specs.into_iter().map(|spec| plan.file(spec).unwrap()).collect();
        for event in EventId::all_below(shape().events()) {
            plan.route_event(event, files[event.index() % files.len()]).unwrap();
        }
        compare(&plan, &calls);
    }

    #[test]
    fn log_11_both_handlers_write_the_same_bytes_even_when_the_area_is_garbled(
        garbage in prop::collection::vec((any::<u64>(), any::<u64>()), 1..60),
        calls in prop::collection::vec(any_call(), 1..60),
    ) {
        let control_words = shape().data_offset() as u64 / 8;
        let pokes = garbage.into_iter().map(|(word, value)| Call::Poke { word: word % control_words, value });
        let calls: Vec<_> = pokes.chain(calls).collect();
        compare(&Plan::new(shape()), &calls);
    }
}

#[test]
fn log_4_both_handlers_agree_on_every_kind_of_file() {
    for entries in common::all_entries() {
        for stamp in common::STAMPS {
            for add in [false, true] {
                if add && !entries.has(Entries::COUNTER) {
                    continue;
                }
                let mut plan = Plan::new(shape());
                let file = plan.file(FileSpec { entries, stamp, add, rows: 4 }).unwrap();
                plan.route_event(EventId::new(1), file).unwrap();
                let call = |n: u64| Call::Log(record(1, 2, 3, n), 7000 * n);
                compare(&plan, &(0..9).map(call).collect::<Vec<_>>());
            }
        }
    }
}

/// The control word says that a row has one word, so rows of several words overlap, and each word that only
/// one handler writes shows.
#[test]
fn log_11_both_handlers_treat_an_unknown_time_source_as_none() {
    let control_of_the_first_file = 512 + 1;
    for source in 5..8u64 {
        let value = 0x9444_e6c3_58d5_8b20 | source << 12;
        let poke = Call::Poke { word: control_of_the_first_file, value };
        let call = |n: u16| Call::Log(record(n % 8, n % 7, u16::MAX, u64::from(n) << 40 | 1), 77);
        for length in 1..20 {
            let calls: Vec<_> = std::iter::once(poke).chain((0..length).map(call)).collect();
            compare(&Plan::new(shape()), &calls);
        }
    }
}
