//! What logging an event costs on this machine: the generated code runs in place, many times in a row (paper
//! §4.4).

use std::io;
use std::time::Duration;

use libbpf_rs::{Object, ProgramInput};
use mete_schema::Schema;
use mete_schema::generate::benchmark;
use mete_trace::Buffers;

use super::constants::{Constants, switched_on};
use super::{Areas, Cache, compile, maps};
use crate::load::{load_object, processors};
use crate::{KernelError, privilege, program};

/// The size of a buffer that has room for KLogger's thousand records, whatever their size.
const SIZE_LOG2: u32 = 20;
/// The shortest packet that the kernel accepts for a test run.
const PACKET: [u8; 14] = [0; 14];

/// The logging code of one event, loaded by itself, with buffers of its own.
pub struct Benchmark {
    object: Object,
    areas: Areas,
    event: String,
    program: String,
    /// The number of records that a buffer holds.
    room: u32,
}

impl Benchmark {
    /// Loads the code of one event, as [`Recording::load`](super::Recording::load) loads that of several.
    /// `text` is what [`bpf`](mete_schema::generate::bpf) made of the schema; `event` is an index of
    /// [`Schema::events`].
    ///
    /// # Errors
    ///
    /// [`KernelError`]: privilege, type information or a compiler is missing, or the kernel refuses.
    pub fn load(schema: &Schema, text: &str, event: usize, cache: &Cache) -> Result<Benchmark, KernelError> {
        privilege::check_capabilities()?;
        let (processors, program) = (processors()?, benchmark(event));
        let object = compile::object(text, cache)?;
        let constants =
            Constants { buffer_bytes: 1 << SIZE_LOG2, processors, events: &[event], domains: None };
        let object = load_object(&object, |open| constants.configure(open, |name| name == program.as_str()))?;
        maps::write(&object, maps::SWITCHES, 0, &switched_on(&[event]))?;
        let areas = Areas::new(&object, processors, SIZE_LOG2, 0)?;
        let event = &schema.events[event];
        let room = (1 << SIZE_LOG2) / event.layout.size as u32 - 1;
        Ok(Benchmark { object, areas, event: event.name.clone(), program, room })
    }

    /// Logs the event this number of times, with dummy data. Returns the mean time of one, in whole
    /// nanoseconds.
    ///
    /// This includes the call of the program, which takes a few nanoseconds. It does not include the kernel's
    /// way from what happens to the program, nor the program's way to the values that are logged.
    ///
    /// # Errors
    ///
    /// [`KernelError::Benchmark`] if the kernel does not run the program.
    pub fn run(&self, iterations: u32) -> Result<u64, KernelError> {
        let time = self.time(iterations);
        let time = time.map_err(|source| KernelError::Benchmark { event: self.event.clone(), source })?;
        Ok((time / iterations.max(1)).as_nanos() as u64)
    }

    /// The time that this number of runs takes.
    fn time(&self, iterations: u32) -> libbpf_rs::Result<Duration> {
        let program = program::find(&self.object, &self.program);
        let program = program.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        let (mut left, mut passed) = (iterations, Duration::ZERO);
        while left > 0 {
            // As many as a buffer has room for: a full one would be measured instead.
            let repeat = left.min(self.room);
            self.empty();
            let input = ProgramInput { data_in: Some(&PACKET), repeat, ..ProgramInput::default() };
            // The kernel reports the mean of a test run.
            passed += program.test_run(input)?.duration * repeat;
            left -= repeat;
        }
        Ok(passed)
    }

    /// Empties all buffers, for the program may have run on any processor.
    fn empty(&self) {
        (0..self.areas.processors()).for_each(|processor| self.areas.buffer(processor).restart(0));
    }
}
