//! A trace of any size, with events of the shipped scheduler schema. It serves to measure readers of traces.
//! The same arguments give the same bytes, except for the description of the machine.

use std::path::Path;
use std::sync::Arc;

use mete_measure::reason::Reason;
use mete_schema::Schema;
use mete_trace::block::{Builder, DEFAULT_BLOCK_BYTES};
use mete_trace::description::{
    Circumstances, Clock, ClockAnchor, FORMAT, Machine, TraceFile, VERSION, file_name, recording_text,
};
use mete_trace::record::Head;
use mete_trace::sink::{FileSink, Sink};
use mete_trace::{ClockSource, Description, Ticks, TraceDescription};

const RECORDING: [u8; 16] = *b"made for a test!";
/// Nanoseconds between two switches of a processor, on average.
const SWITCH_NS: u64 = 4_000;
/// Threads that take turns on a processor.
const THREADS: u64 = 40;
const BEGIN_NS: u64 = 1_000_000_000_000;

/// A reproducible sequence of numbers (Knuth's MMIX constants).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// One processor's part of the trace.
struct ProcessorPart {
    builder: Builder,
    sink: FileSink,
    serial: u64,
    time: u64,
}

impl ProcessorPart {
    fn create(directory: &Path, processor: u32) -> std::io::Result<ProcessorPart> {
        let sink = FileSink::create(&directory.join(file_name(processor)))?;
        Ok(ProcessorPart {
            builder: Builder::new(RECORDING, processor, DEFAULT_BLOCK_BYTES),
            sink,
            serial: 0,
            time: BEGIN_NS,
        })
    }

    fn log(&mut self, event: u16, later_ns: u64, fields: &[u64]) -> std::io::Result<()> {
        self.time += later_ns;
        let bytes = (16 + 8 * fields.len()) as u16;
        let mut words = vec![Head { event, bytes, serial: self.serial as u32 }.to_word(), self.time];
        words.extend_from_slice(fields);
        // The block is full. A record always fits into an empty one.
        if !self.builder.push(self.serial, &words) {
            self.sink.take(&[Arc::new(self.builder.seal())])?;
            self.builder.push(self.serial, &words);
        }
        self.serial += 1;
        Ok(())
    }

    fn finish(mut self) -> std::io::Result<()> {
        let last = self.builder.seal_last(self.serial);
        self.sink.take(&[Arc::new(last)])
    }
}

fn pair(low: u64, high: u64) -> u64 {
    low | high << 32
}

/// A switch and a wake-up, at most five events, in the layouts of the shipped schema, which order fields by
/// alignment.
fn switch(
    part: &mut ProcessorPart,
    random: &mut Random,
    processor: u64,
    runs: &mut u64,
    used: &mut u64,
) -> std::io::Result<()> {
    let pause = random.below(2 * SWITCH_NS);
    let woken = 1000 + processor * THREADS + random.below(THREADS);
    let next = 1000 + processor * THREADS + random.below(THREADS);
    let blocks = random.below(3) > 0;
    *used += pause;
    part.log(16, pause, &[pair(woken, *runs), pair(processor, 120)])?;
    part.log(17, 300, &[pair(woken, processor), 120])?;
    if blocks {
        part.log(18, 400, &[pair(*runs, 1)])?;
    }
    part.log(19, 60, &[*used, pair(*runs, blocks.into()), u64::from(!blocks)])?;
    part.log(20, 60, &[pair(next, 120), pair(next / 4 * 4, 0)])?;
    *runs = next;
    Ok(())
}

fn file(processor: u32) -> TraceFile {
    TraceFile { processor, name: file_name(processor), programs_of: None }
}

fn describe(directory: &Path, processors: u32, end_ns: u64) -> Result<(), Reason> {
    let shipped = mete_schema::shipped::by_name("scheduler");
    let source = shipped.ok_or_else(|| Reason::new("no schema of the scheduler is shipped"))?.source();
    let schema = Schema::read(std::slice::from_ref(&source));
    let schema = schema.map_err(|_| Reason::new("the shipped schema of the scheduler cannot be read"))?;
    let anchor = |ns| ClockAnchor {
        processor: 0,
        ticks: Ticks::new(ns),
        monotonic_ns: ns,
        realtime_ns: ns + (1 << 60),
    };
    let description = TraceDescription {
        format: FORMAT.to_owned(),
        version: VERSION,
        recording: recording_text(RECORDING),
        finished: true,
        block_bytes: DEFAULT_BLOCK_BYTES,
        files: (0..processors).map(file).collect(),
        clock: Clock { source: ClockSource::Counter, anchors: vec![anchor(BEGIN_NS), anchor(end_ns)] },
        machine: Machine::here(),
        circumstances: Circumstances::default(),
        completeness: Vec::new(),
        description: Description::of_schema(&schema, &[source]),
    };
    description.write(directory).map_err(Reason::from_error)
}

/// Writes a trace of about `events` events on `processors` processors into a directory that does not exist
/// yet.
///
/// # Errors
///
/// The error of the file system.
pub fn write_trace(directory: &Path, events: u64, processors: u32) -> Result<(), Reason> {
    std::fs::create_dir(directory)?;
    let mut latest = BEGIN_NS + 1;
    for processor in 0..processors {
        let mut part = ProcessorPart::create(directory, processor)?;
        let mut random = Random(processor.into());
        // Process ids from 1000 on, apart for each processor, so that no process migrates.
        let (mut runs, mut used) = (1000 + u64::from(processor) * THREADS, 0);
        while part.serial < events / u64::from(processors) {
            switch(&mut part, &mut random, processor.into(), &mut runs, &mut used)?;
        }
        latest = latest.max(part.time);
        part.finish()?;
    }
    describe(directory, processors, latest)
}
