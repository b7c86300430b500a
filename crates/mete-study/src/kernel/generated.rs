//! An event that is generated from a schema, at the tracepoints of the benchmark.

use mete_schema::Source;

use crate::reason::Reason;
use crate::trace::{Session, Totals};

/// The default of `mete record`.
const BUFFER_BYTES: u64 = 4 << 20;

/// Two numbers, in a record of 32 bytes as the plain row of the log facility has them.
const SYSTEM_CALL: &str = "event CALL { u64 number  u64 what }\nat tp_btf:sys_enter log CALL(u64(id), 1)\n";
const SWITCH: &str = "event SWITCH { u64 leaves  u64 comes }\nat tp_btf:sched_switch log SWITCH(u64(prev.pid), u64(next.pid))\n";

/// A recording whose programs are attached while they are measured.
pub struct Generated(Session);

impl Generated {
    /// At each system call.
    ///
    /// # Errors
    ///
    /// What is missing; clang, for one: the schema is no shipped one.
    pub fn at_system_calls() -> Result<Generated, Reason> {
        Generated::of(SYSTEM_CALL)
    }

    /// At each context switch.
    ///
    /// # Errors
    ///
    /// As [`Generated::at_system_calls`].
    pub fn at_switches() -> Result<Generated, Reason> {
        Generated::of(SWITCH)
    }

    fn of(schema: &str) -> Result<Generated, Reason> {
        let mut session = Session::of_source(Source::new("bench.mete", schema), &[], BUFFER_BYTES)?;
        session.pause()?;
        Ok(Generated(session))
    }

    /// Does this while the event is recorded; fails unless so many of a processor's were.
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
        // A switch or two less where somebody else ran in between.
        if records + expected / 50 < expected {
            return Err(Reason::new(format!(
                "{records} events were recorded where {expected} were expected"
            )));
        }
        answer
    }

    /// Does this while the event is recorded.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, or what the work says.
    pub fn attached(&mut self, work: impl FnOnce() -> Result<f64, Reason>) -> Result<f64, Reason> {
        self.0.resume()?;
        let answer = work();
        self.0.pause()?;
        answer
    }

    /// What was recorded so far on all processors.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn totals(&self) -> Result<Totals, Reason> {
        self.0.totals()
    }
}
