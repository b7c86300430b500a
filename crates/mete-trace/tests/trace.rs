//! Trace directories: from events to files and back, damaged or whole (KLOG-5 to KLOG-7, NEW-2).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(not(loom))]

mod common;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::{BLOCK_BYTES, NUMBERED, Scratch, record, trace_description, write_file};
use mete_trace::block::{DEFAULT_BLOCK_BYTES, HEADER_BYTES, checksum, offset};
use mete_trace::description::file_name;
use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH, Head, MISSED_RUNS};
use mete_trace::{
    Account, Buffers, ClockSource, Filter, FormerTrace, Gap, Item, Memory, Options, Outcome, Producer,
    ReadError, RecordError, Recorder, Ticks, Trace, TraceDescription,
};

use proptest::prelude::*;

/// One processor's records: `count` of them with three words, serial number and time rising by `step`.
fn numbered(count: u64, step: u64) -> Vec<(u64, Vec<u64>)> {
    (0..count).map(|at| (at * step, record(NUMBERED, at * step, at * step, &[at * step]))).collect()
}

/// What a merge hands out: good records as (processor, serial), gaps, and the number of errors.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    records: Vec<(u32, u64)>,
    gaps: Vec<Gap>,
    errors: Vec<String>,
}

fn see(trace: &Trace, filter: Filter) -> (Seen, Vec<Account>) {
    let mut merged = trace.merge(filter);
    let mut seen = Seen::default();
    while let Some(item) = merged.next() {
        match item {
            Ok(Item::Record(record)) => {
                assert_eq!(record.bytes.len(), usize::from(Head::from_word(first_word(record.bytes)).bytes));
                seen.records.push((record.processor, record.serial));
            }
            Ok(Item::Lost(gap)) => seen.gaps.push(gap),
            Err(error) => seen.errors.push(error.to_string()),
        }
    }
    (seen, merged.accounts())
}

fn first_word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// A processor's records with their serial numbers.
type Records = [(u64, Vec<u64>)];

fn trace_of(directory: &Path, files: &[(&Records, u64)]) -> Trace {
    trace_description(files.len() as u32).write(directory).unwrap();
    for (processor, (records, occurred)) in files.iter().enumerate() {
        write_file(directory, processor as u32, records, *occurred);
    }
    Trace::open(directory).unwrap()
}

/// Records the events of the tests.
fn start(memory: &Arc<Memory>, options: Options) -> Recorder<Memory> {
    Recorder::start(Arc::clone(memory), common::description(), options).unwrap()
}

#[test]
fn klog_7_processors_are_merged_by_time_stamp_and_ties_go_by_processor() {
    let scratch = Scratch::new("merge");
    let trace = trace_of(scratch.path(), &[(&numbered(3000, 1), 3000), (&numbered(1500, 2), 3000)]);
    let (seen, accounts) = see(&trace, Filter::default());
    let mut expected: Vec<_> =
        (0..3000).map(|at| (at, 0, at)).chain((0..1500).map(|at| (2 * at, 1, 2 * at))).collect();
    expected.sort();
    assert_eq!(
        seen.records,
        expected.iter().map(|(_, processor, serial)| (*processor, *serial)).collect::<Vec<_>>()
    );
    assert_eq!(seen.gaps.iter().filter(|gap| gap.processor == 1).map(|gap| gap.events).sum::<u64>(), 1500);
    assert_eq!((accounts[0].records, accounts[0].lost), (3000, 0));
    assert!(accounts[0].is_complete() && !accounts[1].is_complete());
}

#[test]
fn klog_6_gaps_are_exact_at_the_beginning_inside_between_blocks_and_at_the_end() {
    let scratch = Scratch::new("gaps");
    let mut records = Vec::new();
    for serial in (5..400).chain(403..900).chain(1000..1001) {
        records.push((serial, record(NUMBERED, serial, serial, &[serial; 3])));
    }
    let trace = trace_of(scratch.path(), &[(&records, 1010)]);
    let (seen, accounts) = see(&trace, Filter::default());
    let after = |gap: &Gap| gap.after.map(Ticks::get);
    let gaps: Vec<_> =
        seen.gaps.iter().map(|gap| (gap.first_serial, gap.events, after(gap), gap.unreadable)).collect();
    assert_eq!(
        gaps,
        [
            (0, 5, None, false),
            (400, 3, Some(399), false),
            (900, 100, Some(899), false),
            (1001, 9, Some(1000), false)
        ]
    );
    let account = Account {
        processor: 0,
        programs_of: None,
        first_serial: 0,
        end_serial: 1010,
        records: 893,
        lost: 117,
        unwritten: 0,
        first_time: Ticks::new(5),
        last_time: Ticks::new(1000),
        ended: true,
    };
    assert_eq!(accounts, [account]);
}

#[test]
fn new_2_a_file_cut_at_any_byte_gives_all_whole_blocks_and_says_where_it_ends() {
    let scratch = Scratch::new("cut");
    let records = numbered(900, 1);
    let trace = trace_of(scratch.path(), &[(&records, 900)]);
    let path = scratch.path().join(file_name(0));
    let whole = fs::read(&path).unwrap();
    let in_block = u64::from((BLOCK_BYTES - HEADER_BYTES as u32) / 24);
    let file = fs::File::options().write(true).open(&path).unwrap();
    for cut in (0..whole.len()).rev() {
        file.set_len(cut as u64).unwrap();
        // The last block ends with its records; the others have unused bytes after theirs.
        let complete = (cut as u64 + u64::from(BLOCK_BYTES) - used_end(in_block)) / u64::from(BLOCK_BYTES);
        let (seen, accounts) = see(&trace, Filter::default());
        assert_eq!(seen.records.len() as u64, complete * in_block, "cut at {cut}");
        assert!(seen.gaps.is_empty());
        assert!(!accounts[0].ended, "the end is not known");
        let rest = cut as u64 > complete * u64::from(BLOCK_BYTES);
        assert_eq!(seen.errors.len(), usize::from(rest), "cut at {cut}: {:?}", seen.errors);
        assert!(
            seen.errors
                .iter()
                .all(|error| error.contains("the file ends after") && error.contains("processor-0"))
        );
    }
}

/// Where the records of a full block end.
fn used_end(in_block: u64) -> u64 {
    HEADER_BYTES as u64 + in_block * 24
}

#[test]
fn new_2_no_flipped_bit_goes_unseen_and_the_other_blocks_are_read() {
    let scratch = Scratch::new("flip");
    let records = numbered(800, 1);
    let trace = trace_of(scratch.path(), &[(&records, 800)]);
    let path = scratch.path().join(file_name(0));
    let whole = fs::read(&path).unwrap();
    let (good, _) = see(&trace, Filter::default());
    let in_block = (BLOCK_BYTES as usize - HEADER_BYTES) / 24;
    // Every byte of the headers, and some of the records.
    let is_tried = |at: &usize| at % (BLOCK_BYTES as usize) < HEADER_BYTES + 64 || at.is_multiple_of(37);
    for at in (0..whole.len()).filter(is_tried) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        let (seen, accounts) = see(&trace, Filter::default());
        let used = at % (BLOCK_BYTES as usize) < used_end(in_block as u64) as usize;
        if !used {
            assert_eq!(seen, good, "byte {at} carries nothing");
            continue;
        }
        let block = at / BLOCK_BYTES as usize;
        assert_eq!(seen.errors.len(), 1, "byte {at}");
        assert!(seen.errors[0].contains(&format!("block {block} ")), "{}", seen.errors[0]);
        let others = good.records.iter().filter(|(_, serial)| *serial as usize / in_block != block);
        assert_eq!(seen.records, others.copied().collect::<Vec<_>>(), "byte {at}");
        let missing = good.records.len() - seen.records.len();
        let behind = accounts[0].end_serial == 800;
        assert_eq!(accounts[0].lost as usize, if behind { missing } else { 0 }, "byte {at}");
        assert_eq!(accounts[0].unwritten, accounts[0].lost);
    }
}

#[test]
fn new_2_a_block_of_another_recording_or_processor_is_not_taken() {
    let scratch = Scratch::new("foreign");
    let trace = trace_of(scratch.path(), &[(&numbered(10, 1), 10), (&numbered(10, 1), 10)]);
    fs::copy(scratch.path().join(file_name(1)), scratch.path().join(file_name(0))).unwrap();
    let (seen, _) = see(&trace, Filter::default());
    assert!(seen.records.iter().all(|(processor, _)| *processor == 1));
    assert!(seen.errors[0].contains("processor in the header"), "{:?}", seen.errors);
    let mut other = trace_description(2);
    other.recording = "0".repeat(32);
    other.write(scratch.path()).unwrap();
    let (seen, _) = see(&Trace::open(scratch.path()).unwrap(), Filter::default());
    assert_eq!((seen.records.len(), seen.errors.len()), (0, 2));
    assert!(seen.errors[1].contains("recording in the header"), "{:?}", seen.errors);
}

#[test]
fn klog_7_filters_choose_by_event_time_and_processor_and_find_the_time_by_the_headers() {
    let scratch = Scratch::new("filter");
    let trace = trace_of(scratch.path(), &[(&numbered(5000, 1), 5000), (&numbered(5000, 1), 5000)]);
    let count = |filter| see(&trace, filter).0.records.len();
    assert_eq!(count(Filter::default().from_ticks(Ticks::new(1000)).until_ticks(Ticks::new(1999))), 2000);
    assert_eq!(count(Filter::default().processors([1]).from_ticks(Ticks::new(4990))), 10);
    assert_eq!(count(Filter::default().events([NUMBERED + 1])), 0);
    assert_eq!(count(Filter::default().until_ticks(Ticks::new(0))), 2);
    assert_eq!(count(Filter::default().from_ticks(Ticks::new(1_000_000))), 0);
    let (seen, accounts) =
        see(&trace, Filter::default().from_ticks(Ticks::new(4000)).until_ticks(Ticks::new(4100)));
    assert!(seen.gaps.is_empty() && seen.errors.is_empty());
    assert!(accounts[0].first_serial > 3000 && accounts[0].end_serial < 5000, "{accounts:?}");
    assert_eq!(accounts[0].lost, 0);
}

#[test]
fn klog_7_a_clock_that_goes_back_loses_no_record_to_a_filter() {
    let scratch = Scratch::new("disorder");
    let time = |at: u64| if at < 2000 { 10_000 + at } else { at };
    let records: Vec<_> = (0..4000).map(|at| (at, record(NUMBERED, at, time(at), &[at]))).collect();
    let trace = trace_of(scratch.path(), &[(&records, 4000)]);
    let (seen, _) = see(&trace, Filter::default().from_ticks(Ticks::new(2500)).until_ticks(Ticks::new(2600)));
    assert_eq!(seen.records.len(), 101);
    let (seen, _) = see(&trace, Filter::default());
    assert!(seen.records.iter().map(|(_, serial)| *serial).eq(0..4000));
}

#[test]
fn klog_6_losses_without_a_serial_number_are_in_the_description() {
    let scratch = Scratch::new("missed");
    let directory = scratch.path().join("trace");
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let options = Options::directory(&directory);
    let description = common::description().with_missed_runs();
    let mut recorder = Recorder::start(memory, description, options).unwrap();
    assert_eq!(Trace::open(&directory).unwrap().description().circumstances.missed_runs, 0);
    let looks = [0, 3, 3, 7].map(|runs| recorder.look_for_missed_runs(|| Ok::<_, ()>(runs)).unwrap());
    assert_eq!(looks, [0, 3, 0, 4]);
    assert_eq!(
        recorder.look_for_missed_runs(|| Err("the kernel does not say")),
        Err("the kernel does not say")
    );
    recorder.stop().unwrap();
    let trace = Trace::open(&directory).unwrap();
    let circumstances = &trace.description().circumstances;
    assert_eq!(circumstances.missed_runs, 7);
    // It is in its place in the trace, and in the description: not before the previous look, and not after
    // the mark.
    let (seen, _) = see(&trace, Filter::default().without_marks());
    assert_eq!(seen.records.len(), 2);
    let mut merged = trace.merge(Filter::default().events([MISSED_RUNS]));
    for listed in &circumstances.missed {
        let Some(Ok(Item::Record(mark))) = merged.next() else { panic!("{listed:?}") };
        let word = |at: usize| u64::from_le_bytes(mark.bytes[at..at + 8].try_into().unwrap());
        assert_eq!((word(16), word(24)), (listed.since.get(), listed.runs));
        assert!(listed.since < mark.time && mark.time <= listed.until, "{listed:?} {}", mark.time);
    }
    let [first, second] = circumstances.missed[..] else { panic!("{circumstances:?}") };
    assert!(first.until <= second.since && (first.runs, second.runs) == (3, 4));
    let before = trace.of_time(None, Some(first.until));
    assert_eq!(before.description().circumstances.missed_runs, 3);
}

#[test]
fn klog_5_what_is_recorded_is_in_the_trace_between_the_marks_of_the_flushes() {
    let scratch = Scratch::new("record");
    let directory = scratch.path().join("trace");
    let memory = Arc::new(Memory::new(1, 20, 10).unwrap());
    let recorder = start(&memory, Options::directory(&directory));
    let producer = Producer::new(memory.buffer(0));
    for number in 0..50_000_u64 {
        while producer.record(NUMBERED, &[number], || ClockSource::Counter.now()) == Outcome::Lost {
            producer.call_flush();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    let last = recorder.stop().unwrap();
    let trace = Trace::open(&directory).unwrap();
    assert_eq!(trace.description(), &last);
    assert!(last.finished && last.clock.alignment_error_ns().is_some());
    let read_here = last.clock.anchors.iter().filter(|anchor| anchor.processor == 0).count();
    assert!(read_here >= 2, "the clocks are read on the processor at the beginning and the end");
    let thread = &last.circumstances.flush_threads[0];
    assert!(
        ["SCHED_FIFO", "ordinary: "].iter().any(|said| thread.scheduling.starts_with(said)),
        "{thread:?}"
    );
    assert!(thread.placement.contains("bound to processor 0"), "{thread:?}");
    let mut merged = trace.merge(Filter::default());
    let (mut numbers, mut marks, mut depth) = (Vec::new(), 0, 0);
    while let Some(item) = merged.next() {
        match item.unwrap() {
            Item::Record(record) if record.event == DUMP_BEGIN => (marks, depth) = (marks + 1, depth + 1),
            Item::Record(record) if record.event == DUMP_FINISH => depth -= 1,
            Item::Record(record) => numbers.push(first_word(&record.bytes[16..])),
            Item::Lost(_) => {}
        }
        assert!((0..=1).contains(&depth), "flushes do not overlap");
    }
    assert_eq!((numbers, depth), ((0..50_000).collect::<Vec<_>>(), 0));
    assert!(marks >= 1);
    assert_eq!(merged.accounts(), last.completeness, "description and blocks agree");
    assert_eq!(trace.check().0, last.completeness);
}

#[test]
fn klog_6_an_overflow_is_in_the_trace_as_a_gap_and_in_the_description_as_a_number() {
    let scratch = Scratch::new("overflow");
    let directory = scratch.path().join("trace");
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let producer = Producer::new(memory.buffer(0));
    let lost = (0..10_000_u64)
        .filter(|number| {
            producer.record(NUMBERED, &[*number], || ClockSource::Counter.now()) == Outcome::Lost
        })
        .count() as u64;
    assert_eq!(lost, 10_000 - (1 << 16) / 24);
    let recorder = start(&memory, Options::directory(&directory));
    let last = recorder.stop().unwrap();
    let trace = Trace::open(&directory).unwrap();
    let (seen, accounts) = see(&trace, Filter::default());
    assert!(seen.gaps.iter().map(|gap| gap.events).sum::<u64>() >= lost);
    assert_eq!(accounts, last.completeness);
    assert_eq!(accounts[0].lost, seen.gaps.iter().map(|gap| gap.events).sum::<u64>());
    assert!(accounts[0].ended && !accounts[0].is_complete());
}

#[test]
fn klog_5_a_flight_recorder_keeps_the_newest_and_is_dumped_while_it_runs() {
    let scratch = Scratch::new("flight");
    let memory = Arc::new(Memory::new(1, 20, 10).unwrap());
    let mut recorder = start(&memory, Options { block_bytes: BLOCK_BYTES, ..Options::flight(64 << 10) });
    let producer = Producer::new(memory.buffer(0));
    let record = |range: std::ops::Range<u64>| {
        for number in range {
            let _ = producer.record(NUMBERED, &[number], || ClockSource::Counter.now());
        }
    };
    record(0..20_000);
    let (first, second) = (scratch.path().join("first"), scratch.path().join("second"));
    recorder.dump(&first).unwrap();
    record(20_000..20_100);
    recorder.settle();
    let kept = recorder.kept();
    recorder.stop_and_dump(&second).unwrap();
    assert_eq!(Trace::open(&second).unwrap().check().0, kept, "the account is known before it is written");
    for (directory, newest, ended) in [(first, 19_999, false), (second, 20_099, true)] {
        let bytes = fs::metadata(directory.join(file_name(0))).unwrap().len();
        assert!(bytes <= 64 << 10, "{bytes}");
        let trace = Trace::open(&directory).unwrap();
        let mut merged = trace.merge(Filter::default().events([NUMBERED]));
        let mut last = 0;
        while let Some(item) = merged.next() {
            if let Item::Record(record) = item.unwrap() {
                last = first_word(&record.bytes[16..]);
            }
        }
        assert_eq!(last, newest);
        let account = merged.accounts()[0];
        assert_eq!((account.lost, account.ended), (0, ended), "events that were let go are not lost");
        assert!(account.first_serial > 0);
    }
}

#[test]
fn klog_5_a_directory_with_something_in_it_is_refused() {
    let scratch = Scratch::new("refuse");
    fs::write(scratch.path().join("mine"), "text").unwrap();
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let error =
        Recorder::start(Arc::clone(&memory), common::description(), Options::directory(scratch.path()))
            .unwrap_err();
    assert!(matches!(error, RecordError::NotEmpty(_)), "{error}");
    let options = Options { block_bytes: 5000, ..Options::flight(1) };
    let error = Recorder::start(memory, common::description(), options).unwrap_err();
    assert!(error.to_string().contains("5000"));
}

#[test]
fn klog_5_only_a_trace_gives_way_to_a_new_one_and_only_where_that_is_asked_for() {
    let scratch = Scratch::new("replace");
    let directory = scratch.path().join("trace");
    let memory = Arc::new(Memory::new(2, 16, 10).unwrap());
    let start = |former| {
        let options = Options { former, ..Options::directory(&directory) };
        Recorder::start(Arc::clone(&memory), common::description(), options)
    };
    let number = || Trace::open(&directory).unwrap().description().recording.clone();
    start(FormerTrace::GivesWay).unwrap().stop().unwrap();
    let first = number();
    let refused = start(FormerTrace::Stays).unwrap_err();
    assert!(matches!(refused, RecordError::TraceThere(_)) && number() == first, "{refused}");
    // What a killed recorder has left is a trace, too.
    fs::remove_file(directory.join("description.json")).unwrap();
    start(FormerTrace::GivesWay).unwrap().stop().unwrap();
    assert_ne!(number(), first);
    let second = number();
    // A recording that fails leaves the old trace as it was.
    let before = names(&directory);
    start(FormerTrace::GivesWay).unwrap().discard();
    assert_eq!((number(), names(&directory)), (second.clone(), before.clone()));
    // If a recorder was killed before it recorded anything, the next recorder finds the old trace.
    for name in &before {
        fs::rename(directory.join(name), directory.join(format!("former.{}", name.display()))).unwrap();
    }
    fs::write(directory.join("description.json.new"), "{").unwrap();
    start(FormerTrace::GivesWay).unwrap().discard();
    assert_eq!((number(), names(&directory)), (second.clone(), before));
    // A file that is no part of a trace stays, and so does the trace beside it.
    for make in [
        (|path: &Path| fs::write(path.join("notes.txt"), "mine").unwrap()) as fn(&Path),
        |path| fs::create_dir(path.join("processor-7.trace")).unwrap(),
        |path| std::os::unix::fs::symlink("/etc/hostname", path.join("processor-8.trace")).unwrap(),
        |path| fs::write(path.join("processor-07.trace"), "mine").unwrap(),
    ] {
        let before = names(&directory);
        make(&directory);
        let with = names(&directory);
        let refused = start(FormerTrace::GivesWay).unwrap_err();
        assert!(matches!(refused, RecordError::NotReplaced { .. }) && number() == second, "{refused}");
        assert_eq!(names(&directory), with);
        with.difference(&before).for_each(|name| remove(&directory.join(name)));
    }
    // Files of these names without a description may belong to any program.
    for name in ["description.json", "description.before.json"] {
        fs::write(directory.join(name), "{}").unwrap();
    }
    assert!(matches!(start(FormerTrace::GivesWay).unwrap_err(), RecordError::NotEmpty(_)));
}

fn names(directory: &Path) -> std::collections::BTreeSet<std::ffi::OsString> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).unwrap().is_dir();
    if is_folder { fs::remove_dir(path) } else { fs::remove_file(path) }.unwrap();
}

#[test]
fn new_2_a_trace_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("rights");
    let directory = scratch.path().join("above/trace");
    let memory = Arc::new(Memory::new(2, 16, 10).unwrap());
    let recorder = start(&memory, Options::directory(&directory));
    recorder.stop().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    let files: Vec<_> = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 4, "{files:?}");
    files.iter().for_each(|file| assert_eq!(mode(file), 0o600, "{file:?}"));
}

#[test]
fn new_2_a_trace_whose_description_is_damaged_is_read_by_its_first_description() {
    let scratch = Scratch::new("described");
    let directory = scratch.path().join("trace");
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let recorder = start(&memory, Options::directory(&directory));
    let _ = Producer::new(memory.buffer(0)).record(NUMBERED, &[42], || Ticks::new(5));
    let last = recorder.stop().unwrap();
    let path = directory.join("description.json");
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(500).unwrap();
    let trace = Trace::open(&directory).unwrap();
    assert!(!trace.description().finished && trace.description().clock.converter().is_some());
    let (seen, accounts) = see(&trace, Filter::default());
    let [error] = &seen.errors[..] else { panic!("{:?}", seen.errors) };
    assert!(
        error.contains("description.json does not describe a trace: ") && error.contains("is used instead"),
        "{error}"
    );
    assert_eq!(accounts, last.completeness);
    fs::remove_file(&path).unwrap();
    assert_eq!(see(&Trace::open(&directory).unwrap(), Filter::default()).1, last.completeness);
}

#[test]
fn klog_5_a_recording_that_fails_leaves_the_old_content() {
    let scratch = Scratch::new("discarded");
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let (new, empty) = (scratch.path().join("above/new"), scratch.path().join("empty"));
    fs::create_dir(&empty).unwrap();
    for directory in [&new, &empty] {
        let options = Options::directory(directory);
        start(&memory, options).discard();
    }
    let left: Vec<_> = fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.len() == 1 && left[0] == empty, "{left:?}");
    assert!(fs::read_dir(empty).unwrap().next().is_none());
}

#[test]
fn klog_5_requests_have_little_records_written_at_once() {
    let scratch = Scratch::new("request");
    let directory = scratch.path().join("trace");
    let memory = Arc::new(Memory::new(2, 16, 10).unwrap());
    let recorder = start(&memory, Options::directory(&directory));
    let _ = Producer::new(memory.buffer(1)).record(NUMBERED, &[1], || ClockSource::Counter.now());
    recorder.flush().unwrap();
    let trace = Trace::open(&directory).unwrap();
    assert!(!trace.description().finished);
    let threads = &trace.description().circumstances.flush_threads;
    assert!(threads.len() == 2 && threads.iter().all(|thread| !thread.scheduling.is_empty()), "{threads:?}");
    let (seen, accounts) = see(&trace, Filter::default().events([NUMBERED]));
    assert_eq!(seen.records, [(1, 0)]);
    assert!(!accounts[1].ended);
    assert!(recorder.reports()[1].bytes < u64::from(DEFAULT_BLOCK_BYTES), "a small block takes little room");
}

/// Otherwise the rest would wait just as long for the next flush.
#[test]
fn new_2_a_flush_that_is_due_because_of_the_time_writes_all_that_it_finds() {
    let scratch = Scratch::new("due");
    let directory = scratch.path().join("trace");
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let recorder = start(&memory, Options::directory(&directory));
    let _ = Producer::new(memory.buffer(0)).record(NUMBERED, &[42], || Ticks::new(5));
    while recorder.reports()[0].flushes == 0 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let report = &recorder.reports()[0];
    // The flush's own first mark, too.
    assert_eq!((report.flushes, report.blocks, report.account.records), (1, 1, 2), "{report:?}");
    // The recorder is not stopped in order.
    let (seen, _) = see(&Trace::open(&directory).unwrap(), Filter::default().events([NUMBERED]));
    assert_eq!(seen.records, [(0, 0)]);
    drop(recorder);
}

#[test]
fn new_2_errors_name_the_file_the_block_and_the_place() {
    let scratch = Scratch::new("names");
    let trace = trace_of(scratch.path(), &[(&numbered(800, 1), 800)]);
    let path = scratch.path().join(file_name(0));
    let mut bytes = fs::read(&path).unwrap();
    bytes[BLOCK_BYTES as usize + 8] = 9;
    fs::write(&path, bytes).unwrap();
    let (_, errors) = trace.check();
    let [ReadError::Damaged { block: 1, at, damage, .. }] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!((*at, damage.at), (u64::from(BLOCK_BYTES), 8));
    assert!(
        errors[0].to_string().ends_with("format version 9; this program reads version 1"),
        "{}",
        errors[0]
    );
}

#[test]
fn new_2_a_missing_file_is_reported_and_the_others_are_read() {
    let scratch = Scratch::new("missing");
    let trace = trace_of(scratch.path(), &[(&numbered(10, 1), 10), (&numbered(10, 1), 10)]);
    fs::remove_file(scratch.path().join(file_name(0))).unwrap();
    let (seen, accounts) = see(&trace, Filter::default());
    assert_eq!((seen.records.len(), accounts.len(), seen.errors.len()), (10, 1, 1));
    assert!(seen.errors[0].starts_with("cannot read ") && seen.errors[0].contains("processor-0.trace"));
}

/// A trace whose recorder has finished and described both files.
fn finished_trace_of(directory: &Path, records: &Records) -> Trace {
    let whole = trace_of(directory, &[(records, 905), (records, 905)]);
    let completeness = whole.check().0;
    let described = TraceDescription { finished: true, completeness, ..whole.description().clone() };
    described.write(directory).unwrap();
    Trace::open(directory).unwrap()
}

#[test]
fn new_2_events_that_a_finished_trace_has_lost_since_are_a_gap_and_are_reported_wherever_a_file_was_cut() {
    let scratch = Scratch::new("finished");
    let records = numbered(900, 1);
    let trace = finished_trace_of(scratch.path(), &records);
    let whole = trace.check();
    assert!(whole.1.is_empty() && whole.0.iter().all(|account| account.records == 900), "{whole:?}");
    let path = scratch.path().join(file_name(0));
    let in_block = (u64::from(BLOCK_BYTES) - HEADER_BYTES as u64) / 24;
    for blocks in [2, 1, 0] {
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(blocks * u64::from(BLOCK_BYTES)).unwrap();
        let (seen, accounts) = see(&trace, Filter::default().processors([0]));
        let there = blocks * in_block;
        let [gap] = seen.gaps[..] else { panic!("{:?}", seen.gaps) };
        assert_eq!((gap.first_serial, gap.events, gap.unreadable), (there, 905 - there, true));
        let [error] = &seen.errors[..] else { panic!("{:?}", seen.errors) };
        assert!(error.contains("processor-0.trace: the file was cut") && error.contains("#905"), "{error}");
        let account = accounts[0];
        assert_eq!((account.records, account.lost, account.end_serial), (there, 905 - there, 905));
        assert!(account.ended && account.unwritten == 905 - there, "{account:?}");
    }
    fs::remove_file(&path).unwrap();
    let (seen, accounts) = see(&trace, Filter::default());
    assert_eq!((seen.records.len(), seen.errors.len(), accounts[0].lost), (900, 1, 905));
    assert!(seen.errors[0].starts_with("cannot read "), "{:?}", seen.errors);
}

#[test]
fn new_2_a_part_of_a_finished_trace_misses_only_what_lies_in_it() {
    let scratch = Scratch::new("finished-part");
    let trace = finished_trace_of(scratch.path(), &numbered(900, 1));
    for filter in [
        Filter::default().from_ticks(Ticks::new(890)),
        Filter::default().from_ticks(Ticks::new(5000)),
        Filter::default().until_ticks(Ticks::new(10)),
    ] {
        let (seen, _) = see(&trace, filter.processors([0]));
        assert!(seen.errors.is_empty(), "{:?}", seen.errors);
    }
    let file = fs::File::options().write(true).open(scratch.path().join(file_name(0))).unwrap();
    file.set_len(u64::from(BLOCK_BYTES)).unwrap();
    let (seen, _) = see(&trace, Filter::default().from_ticks(Ticks::new(890)).processors([0]));
    assert!(seen.gaps.len() == 1 && seen.errors.len() == 1, "{:?} {:?}", seen.gaps, seen.errors);
}

/// In this case the description counts events that the files never had, and nothing is damaged.
#[test]
fn klog_6_an_end_that_found_no_room_on_the_disk_is_a_loss_and_no_damage() {
    let scratch = Scratch::new("unwritten");
    let whole = trace_of(scratch.path(), &[(&numbered(900, 1), 900)]);
    let path = scratch.path().join(file_name(0));
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(u64::from(BLOCK_BYTES)).unwrap();
    let records = whole.check().0[0].records;
    let (end_serial, unwritten, lost) = (900, 500, 900 - records);
    let account = Account { end_serial, unwritten, lost, ended: false, ..whole.check().0[0] };
    let completeness = vec![account];
    let described = TraceDescription { finished: true, completeness, ..whole.description().clone() };
    described.write(scratch.path()).unwrap();
    let (seen, accounts) = see(&Trace::open(scratch.path()).unwrap(), Filter::default());
    assert!(seen.errors.is_empty() && !seen.gaps[0].unreadable, "{:?} {:?}", seen.errors, seen.gaps);
    assert_eq!(accounts, [Account { ended: true, ..account }]);
}

#[test]
fn klog_6_records_that_a_producer_garbles_are_a_gap_and_are_reported() {
    let scratch = Scratch::new("garbled");
    let directory = scratch.path().join("trace");
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let record = |range: std::ops::Range<u64>| {
        let producer = Producer::new(memory.buffer(0));
        for number in range {
            let _ = producer.record(NUMBERED, &[number], || Ticks::new(number));
        }
    };
    record(0..10);
    // Over the first record, as a program could do that shares the memory.
    let map = map(&memory);
    map[4096..4104].copy_from_slice(&[0xee; 8]);
    let recorder =
        start(&memory, Options { clock: ClockSource::Monotonic, ..Options::directory(&directory) });
    recorder.flush().unwrap();
    assert!(recorder.reports()[0].garbled.as_ref().unwrap().contains("0xeeee"), "{:?}", recorder.reports());
    record(20..25);
    let last = recorder.stop().unwrap();
    let (seen, accounts) = see(&Trace::open(&directory).unwrap(), Filter::default().events([NUMBERED]));
    assert_eq!(seen.records.len(), 5);
    assert!(seen.gaps[0].first_serial == 0 && seen.gaps[0].events >= 10, "{:?}", seen.gaps);
    assert_eq!(accounts, last.completeness);
}

/// A second mapping of the buffers' memory, as in another process.
fn map(memory: &Memory) -> &'static mut [u8] {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let bytes = mete_trace::layout::area_bytes(16);
    let both = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping that stays for the rest of the process.
    unsafe {
        let base = mmap(std::ptr::null_mut(), bytes, both, MapFlags::SHARED, memory.fd(), 0).unwrap();
        std::slice::from_raw_parts_mut(base.cast(), bytes)
    }
}

proptest! {
    #[test]
    fn new_2_any_bytes_with_a_right_checksum_are_good_records_or_an_error(
        changes in prop::collection::vec((0..2 * BLOCK_BYTES as usize, any::<u8>()), 1..12),
        near in prop::collection::vec((0..HEADER_BYTES, any::<u8>()), 0..4),
    ) {
        let scratch = Scratch::new("any");
        let trace = trace_of(scratch.path(), &[(&numbered(500, 2), 1000)]);
        let path = scratch.path().join(file_name(0));
        let mut bytes = fs::read(&path).unwrap();
        for (at, value) in changes.into_iter().chain(near) {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        with_checksums(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let (seen, accounts) = see(&trace, Filter::default());
        prop_assert_eq!(accounts[0].records, seen.records.len() as u64);
        prop_assert_eq!(accounts[0].lost, seen.gaps.iter().map(|gap| gap.events).sum::<u64>());
        prop_assert!(seen.records.windows(2).all(|pair| pair[0].1 < pair[1].1), "serial numbers rise");
        prop_assert!(seen.errors.iter().all(|error| error.contains("processor-0.trace, block ")));
    }
}

/// Makes each block's checksum right, so that the checks after it are reached.
fn with_checksums(bytes: &mut [u8]) {
    for block in bytes.chunks_mut(BLOCK_BYTES as usize).filter(|block| block.len() >= HEADER_BYTES) {
        let used = u32::from_le_bytes(block[offset::USED..offset::USED + 4].try_into().unwrap()) as usize;
        if let Some(written) = block.get(..HEADER_BYTES.saturating_add(used)) {
            let sum = checksum(written);
            block[offset::CHECKSUM..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

#[test]
fn klog_4_recording_goes_on_in_other_buffers_and_nothing_is_lost_between() {
    let scratch = Scratch::new("exchange");
    let directory = scratch.path().join("trace");
    let memory = |size_log2| Arc::new(Memory::new(2, size_log2, 10).unwrap());
    let mut buffers = memory(16);
    let mut recorder =
        Recorder::start(Arc::clone(&buffers), common::description(), Options::directory(&directory)).unwrap();
    for (nth, size_log2) in [20, 16, 18].into_iter().enumerate() {
        let first = nth as u64 * 100;
        for number in first..first + 100 {
            for processor in 0..2 {
                let producer = Producer::new(buffers.buffer(processor));
                let _ = producer.record(NUMBERED, &[number], || ClockSource::Counter.now());
            }
        }
        buffers = memory(size_log2);
        recorder.exchange(Arc::clone(&buffers)).unwrap();
        recorder.exchange(Arc::clone(&buffers)).unwrap();
    }
    recorder.stop().unwrap();
    let mut merged = Trace::open(&directory).unwrap().merge(Filter::default().events([NUMBERED]));
    let mut numbers = [Vec::new(), Vec::new()];
    while let Some(item) = merged.next() {
        let Item::Record(record) = item.unwrap() else { panic!("an event is lost") };
        numbers[record.processor as usize].push(first_word(&record.bytes[16..]));
    }
    assert!(numbers.iter().all(|numbers| numbers.iter().copied().eq(0..300)), "{numbers:?}");
    assert!(merged.accounts().iter().all(|account| account.is_complete()), "{:?}", merged.accounts());
}

/// KLogger §4.3: the trace tells where an event may be missing.
#[test]
fn klog_4_switched_events_are_marked_on_every_processor_and_listed_in_the_description() {
    let scratch = Scratch::new("switches");
    let directory = scratch.path().join("trace");
    let memory = Arc::new(Memory::new(2, 16, 10).unwrap());
    let description = common::description().with_switches();
    let off_at_first = vec!["TEXT".to_owned()];
    let options = Options { off_at_first: off_at_first.clone(), ..Options::directory(&directory) };
    let mut recorder = Recorder::start(memory, description, options).unwrap();
    recorder.mark_switched(&[1], true);
    recorder.mark_switched(&[0, 1], false);
    recorder.save_description().unwrap();
    let kept = Trace::open(&directory).unwrap().description().circumstances.switches.clone();
    assert_eq!(
        recorder.stop().unwrap().circumstances.switches,
        kept,
        "a killed recorder leaves the list, too"
    );
    let listed: Vec<_> = kept.list.iter().map(|switch| (switch.event.as_str(), switch.on)).collect();
    assert_eq!(listed, [("TEXT", true), ("SCHEDIN", false), ("TEXT", false)]);
    assert_eq!((kept.off_at_first, kept.unlisted), (off_at_first, 0));
    let mut marks = [Vec::new(), Vec::new()];
    let mut merged = Trace::open(&directory).unwrap().merge(Filter::default().without_marks());
    while let Some(item) = merged.next() {
        let Item::Record(record) = item.unwrap() else { panic!("an event is lost") };
        marks[record.processor as usize].extend(record.switches());
    }
    assert_eq!(marks[0], [(1, false), (1, true), (0, false), (1, false)]);
    assert_eq!(marks[0], marks[1]);
}

#[test]
fn klog_6_a_watched_event_is_counted_when_it_is_moved() {
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let recorder = start(&memory, Options { watched: vec![NUMBERED], ..Options::flight(1 << 20) });
    let producer = Producer::new(memory.buffer(0));
    for (event, seen) in [(NUMBERED + 1, 0), (NUMBERED, 1), (NUMBERED + 1, 1), (NUMBERED, 2)] {
        let _ = producer.record(event, &[1], || ClockSource::Counter.now());
        recorder.flush().unwrap();
        assert_eq!(recorder.seen(), seen);
    }
}

/// A pipe without a writer.
fn pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let _ = fs::remove_file(path);
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn new_2_a_file_that_is_not_regular_is_refused_without_waiting() {
    let scratch = Scratch::new("pipes");
    let trace = trace_of(scratch.path(), &[(&numbered(10, 1), 10), (&numbered(10, 1), 10)]);
    pipe(&scratch.path().join(file_name(0)));
    let (seen, accounts) = see(&trace, Filter::default());
    assert_eq!((seen.records.len(), accounts.len(), seen.errors.len()), (10, 1, 1));
    assert!(seen.errors[0].ends_with("processor-0.trace at byte 0: it is no regular file"), "{seen:?}");
    pipe(&scratch.path().join(mete_trace::description::FILE_NAME));
    let error = Trace::open(scratch.path()).unwrap_err().to_string();
    assert!(error.ends_with("description.json: it is no regular file"), "{error}");
}
