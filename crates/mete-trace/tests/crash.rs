//! A recorder that is killed, and a disk that is full, leave a trace that can be read (NEW-2, KLOG-6).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(not(loom))]

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use common::{NUMBERED, Scratch};
use mete_trace::{
    Account, Buffers, ClockSource, Filter, Item, Memory, Options, Outcome, Producer, ReadError, Recorder,
    Ticks, Trace,
};

/// Tells the child process of which test it plays the other half, and in which directory.
const CHILD: &str = "METE_TRACE_CHILD";

fn child_directory() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// This test program again, running only the child's half of a test.
fn child(name: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]).env(CHILD, directory);
    command
}

/// Records numbers until `until` holds. A number that is lost is recorded again later.
fn record_numbers(memory: &Memory, mut goes_on: impl FnMut(u64) -> bool) -> u64 {
    let producer = Producer::new(memory.buffer(0));
    let mut number = 0;
    while goes_on(number) {
        match producer.record(NUMBERED, &[number], || ClockSource::Counter.now()) {
            Outcome::WrittenAtMark => producer.call_flush(),
            Outcome::Lost => std::thread::sleep(Duration::from_millis(1)),
            Outcome::Written => {}
        }
        number += 1;
    }
    number
}

/// Checks that each record's number is its serial number minus the marks before it, and counts the records.
fn read_numbers(trace: &Trace) -> (u64, Account, Vec<ReadError>) {
    let mut merged = trace.merge(Filter::default());
    let (mut records, mut last, mut errors) = (0, None, Vec::new());
    while let Some(item) = merged.next() {
        match item {
            Ok(Item::Record(record)) if !record.is_dump_mark() => {
                let number = u64::from_le_bytes(record.bytes[16..24].try_into().unwrap());
                assert!(last.is_none_or(|last| number > last), "a torn or foreign record");
                assert!(number <= record.serial);
                last = Some(number);
                records += 1;
            }
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    (records, merged.accounts()[0], errors)
}

#[test]
#[ignore = "the child of the test below"]
fn records_until_it_is_killed() {
    let Some(directory) = child_directory() else { return };
    let memory = Arc::new(Memory::new(1, 18, 10).unwrap());
    let recorder =
        Recorder::start(Arc::clone(&memory), common::description(), Options::directory(directory)).unwrap();
    // A limit in case the parent does not kill it.
    let mut told = false;
    record_numbers(&memory, |number| {
        if !told && recorder.reports()[0].blocks > 20 {
            println!("recording");
            told = true;
        }
        number < 100_000_000
    });
}

#[test]
fn new_2_a_trace_is_readable_up_to_the_last_block_after_kill_9_of_its_recorder() {
    let scratch = Scratch::new("kill");
    for round in 0..3 {
        let directory = scratch.path().join(round.to_string());
        let mut command = child("records_until_it_is_killed", &directory);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("recording")), "the child did not begin");
        std::thread::sleep(Duration::from_millis(7 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let trace = Trace::open(&directory).unwrap();
        assert!(!trace.description().finished && trace.description().clock.converter().is_some());
        let (records, account, errors) = read_numbers(&trace);
        assert!(records > 10_000, "{records}");
        assert!(!account.ended && account.unwritten == 0, "{account:?}");
        let only_the_end = errors.iter().all(|error| matches!(error, ReadError::Cut { .. }));
        assert!(only_the_end && errors.len() <= 1, "{errors:?}");
    }
}

#[test]
fn klog_7_there_is_no_file_of_events_without_a_description_that_can_be_read() {
    let scratch = Scratch::new("first");
    for round in 0..5 {
        let directory = scratch.path().join(round.to_string());
        let mut command = child("records_until_it_is_killed", &directory);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !directory.join("processor-0.trace").exists() {
            assert!(child.try_wait().unwrap().is_none(), "the child did not begin");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let described = Trace::open(&directory).unwrap();
        assert_eq!(described.description().description, common::description());
    }
}

#[test]
#[ignore = "the child of the test below, in a mount namespace of its own"]
fn records_onto_a_small_disk() {
    let Some(directory) = child_directory() else { return };
    let memory = Arc::new(Memory::new(1, 18, 10).unwrap());
    let trace = directory.join("trace");
    let mut recorder =
        Recorder::start(Arc::clone(&memory), common::description(), Options::directory(&trace)).unwrap();
    let mut error = None;
    let recorded = record_numbers(&memory, |number| {
        error = error.take().or_else(|| recorder.reports()[0].write_error.clone());
        (error.is_none() || !number.is_multiple_of(1000)) && number < 100_000_000
    });
    assert!(error.unwrap().contains("No space left"));
    // Enough events to overflow the buffer.
    let producer = Producer::new(memory.buffer(0));
    let overflowed = (0..50_000)
        .filter(|_| producer.record(NUMBERED, &[1 << 40], Ticks::default) == Outcome::Lost)
        .count();
    assert!(overflowed > 0);
    let told = recorder.settle()[0];
    drop(recorder);
    let (records, account, errors) = read_numbers(&Trace::open(&trace).unwrap());
    assert!(records > 10_000 && records < recorded, "{records} of {recorded}");
    assert!(!account.ended && account.unwritten == 0 && errors.is_empty(), "{account:?} {errors:?}");
    assert_eq!(
        (told.records, told.first_time, told.last_time),
        (account.records, account.first_time, account.last_time)
    );
    assert!(told.unwritten > 0 && told.lost == told.end_serial - account.records, "{told:?} {account:?}");
    println!("all of the disk was readable");
}

#[test]
fn klog_6_a_full_disk_leaves_all_blocks_that_were_written_counts_them_and_says_that_it_is_full() {
    let scratch = Scratch::new("full");
    let program = child("records_onto_a_small_disk", scratch.path());
    let arguments: Vec<_> = program.get_args().map(|text| text.to_str().unwrap()).collect();
    let script = format!(
        "mount -t tmpfs -o size=3m none '{0}' && touch '{0}/mounted' && exec '{1}' {2}",
        scratch.path().display(),
        program.get_program().to_str().unwrap(),
        arguments.join(" ")
    );
    let mut command = Command::new("unshare");
    let output = command.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    let output = match output.env(CHILD, scratch.path()).output() {
        Ok(output) => output,
        Err(error) => return println!("SKIPPED: full disk: no unshare program ({error})"),
    };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() && !out.contains("running 1 test") {
        return println!("SKIPPED: full disk: no small file system can be mounted here ({})", err.trim());
    }
    assert!(output.status.success() && out.contains("all of the disk was readable"), "{out}{err}");
}

#[test]
fn new_2_no_two_recorders_write_into_one_directory() {
    let scratch = Scratch::new("both");
    let directory = scratch.path().join("trace");
    let start = || {
        let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
        Recorder::start(memory, common::description(), Options::directory(&directory))
    };
    let first = start().unwrap();
    let refused = start().unwrap_err().to_string();
    assert!(refused.starts_with("another recorder is at work in"), "{refused}");
    first.discard();
    assert!(!directory.exists());
    start().unwrap().stop().unwrap();
}

/// This holds for anything that takes the directory's place during the recording.
#[test]
fn new_6_a_trace_is_written_into_the_directory_that_was_found_and_into_no_other() {
    let scratch = Scratch::new("exchanged");
    let [directory, moved, other] = ["trace", "moved", "other"].map(|name| scratch.path().join(name));
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let recorder = Recorder::start(memory, common::description(), Options::directory(&directory)).unwrap();
    std::fs::rename(&directory, &moved).unwrap();
    std::fs::create_dir(&other).unwrap();
    std::os::unix::fs::symlink(&other, &directory).unwrap();
    recorder.stop().unwrap();
    assert!(std::fs::read_dir(&other).unwrap().next().is_none());
    assert!(Trace::open(&moved).unwrap().description().finished);
}
