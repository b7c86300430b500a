//! Traces for tests: a shipped schema's events, written by hand.

#![allow(clippy::unwrap_used, dead_code, reason = "a test ends where something fails, and uses its own part")]

use std::path::Path;
use std::sync::Arc;

use mete_schema::{Schema, shipped};
use mete_trace::{
    Buffers, ClockSource, Description, EventLayout, Memory, Options, Outcome, Producer, Recorder, Ticks,
};

/// A trace that is being written. Ticks of its clock are nanoseconds.
pub struct Written {
    description: Description,
    memory: Arc<Memory>,
    recorder: Recorder<Memory>,
}

impl Written {
    /// Begins a trace of a shipped schema in a directory that does not exist yet.
    pub fn begin(directory: &Path, schema: &str, processors: usize) -> Written {
        let sources = [shipped::by_name(schema).unwrap().source()];
        let schema = Schema::read(&sources).unwrap_or_else(|_| panic!("it is shipped"));
        let description = Description::of_schema(&schema, &sources);
        let memory = Arc::new(Memory::new(processors, 20, 10).unwrap());
        let options =
            Options { clock: ClockSource::Monotonic, realtime: false, ..Options::directory(directory) };
        let recorder = Recorder::start(Arc::clone(&memory), description.clone(), options).unwrap();
        Written { description, memory, recorder }
    }

    /// Writes an event. Fields that are not given are 0.
    pub fn event(&mut self, processor: usize, time_ns: u64, name: &str, fields: &[(&str, i64)]) {
        let layout = self.description.events.iter().find(|event| event.name == name).unwrap();
        let words = words(layout, fields);
        let producer = Producer::new(self.memory.buffer(processor));
        assert_ne!(producer.record(layout.id, &words, || Ticks::new(time_ns)), Outcome::Lost);
    }

    /// Makes a processor lose this number of events, by records for which there is no room.
    pub fn lose(&mut self, processor: usize, events: usize) {
        let too_large = [0; mete_trace::record::MAX_BYTES / 8];
        for _ in 0..events {
            let lost = Producer::new(self.memory.buffer(processor)).record(16, &too_large, Ticks::default);
            assert_eq!(lost, Outcome::Lost);
        }
    }

    pub fn finish(self) {
        self.recorder.stop().unwrap();
    }
}

/// The words of a record after its header.
fn words(layout: &EventLayout, fields: &[(&str, i64)]) -> Vec<u64> {
    let header = mete_trace::record::HEADER_BYTES;
    let mut bytes = vec![0; layout.least_bytes().next_multiple_of(8) - header];
    for (name, value) in fields {
        let field = layout.fields.iter().find(|field| field.name == *name).unwrap();
        let (at, size) = (usize::from(field.offset) - header, usize::from(field.bytes));
        bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}
