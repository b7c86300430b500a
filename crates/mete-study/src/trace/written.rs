//! Traces for tests, which are removed with the value that reads them.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

#[path = "../../../mete-trace/tests/common/written.rs"]
mod of_traces;

use mete_bench::recording::Recorded;
use mete_bench::scratch::Scratch;

/// A trace that is being written. Ticks of its clock are nanoseconds.
pub struct Written {
    trace: of_traces::Written,
    scratch: Scratch,
}

impl Written {
    pub fn new(schema: &str, processors: usize) -> Written {
        let scratch = Scratch::new().unwrap();
        let trace = of_traces::Written::begin(&scratch.path().join("trace"), schema, processors);
        Written { trace, scratch }
    }

    /// Writes an event. Fields that are not given are 0.
    pub fn event(&mut self, processor: usize, time_ns: u64, name: &str, fields: &[(&str, i64)]) {
        self.trace.event(processor, time_ns, name, fields);
    }

    /// Makes a processor lose this number of events.
    pub fn lose(&mut self, processor: usize, events: usize) {
        self.trace.lose(processor, events);
    }

    pub fn read(self) -> Recorded {
        self.trace.finish();
        Recorded::in_scratch(self.scratch, "trace").unwrap()
    }
}
