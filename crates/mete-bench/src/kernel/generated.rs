//! An event that is generated from a schema and attached to the tracepoints of the benchmark.

use mete_measure::reason::Reason;
use mete_schema::Source;

use crate::recording::{ScratchRecording, Totals};

/// Two numbers, in a record of 32 bytes, which is also the size of the log facility's plain row.
const SYSTEM_CALL: &str = "event CALL { u64 number  u64 what }\nat tp_btf:sys_enter log CALL(u64(id), 1)\n";
const SWITCH: &str = "event SWITCH { u64 leaves  u64 comes }\nat tp_btf:sched_switch log SWITCH(u64(prev.pid), u64(next.pid))\n";

/// A recording whose programs are attached only while they are measured.
pub struct Generated(ScratchRecording);

impl Generated {
    /// Records each system call.
    ///
    /// # Errors
    ///
    /// The reason names what is missing. That can be clang, because the schema is not a shipped one.
    pub fn at_system_calls() -> Result<Generated, Reason> {
        Generated::of(SYSTEM_CALL)
    }

    /// Records each context switch.
    ///
    /// # Errors
    ///
    /// As [`Generated::at_system_calls`].
    pub fn at_switches() -> Result<Generated, Reason> {
        Generated::of(SWITCH)
    }

    fn of(schema: &str) -> Result<Generated, Reason> {
        let mut session = ScratchRecording::of_source(Source::new("bench.mete", schema), &[])?;
        // Attached programs would slow down the other variants.
        session.pause()?;
        Ok(Generated(session))
    }

    /// Does `work` while the event is recorded. Fails unless `expected` events of a processor were recorded.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, or events are missing.
    pub fn record(
        &mut self,
        processor: usize,
        expected: u64,
        work: impl FnOnce() -> Result<f64, Reason>,
    ) -> Result<f64, Reason> {
        let before = self.0.records(processor)?;
        let answer = self.attached(work);
        let records = self.0.records(processor)? - before;
        // A few switches may be missing where another task ran in between.
        if records + expected / 50 < expected {
            return Err(Reason::new(format!(
                "{records} events were recorded where {expected} were expected"
            )));
        }
        answer
    }

    /// Does `work` while the event is recorded.
    ///
    /// # Errors
    ///
    /// If the kernel refuses; or the error of `work`.
    pub fn attached(&mut self, work: impl FnOnce() -> Result<f64, Reason>) -> Result<f64, Reason> {
        self.0.resume()?;
        let answer = work();
        self.0.pause()?;
        answer
    }

    /// The counts of what has been recorded so far on all processors.
    ///
    /// # Errors
    ///
    /// If the records cannot be written.
    pub fn totals(&self) -> Result<Totals, Reason> {
        self.0.totals()
    }
}
