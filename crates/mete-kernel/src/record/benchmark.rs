//! What logging an event costs here: the generated code runs in place, many times in a row (paper §4.4).

use std::io;
use std::time::Duration;

use libbpf_rs::{Object, ProgramInput};
use mete_schema::Schema;
use mete_schema::generate::benchmark;
use mete_trace::Buffers;

use super::constants::{Constants, mask};
use super::{Areas, Cache, compile};
use crate::attach::program;
use crate::load::{load_object, processors};
use crate::{KernelError, capability, map};

/// Buffers in which KLogger's thousand records of any size have room.
const SIZE_LOG2: u32 = 20;
/// The shortest packet that the kernel runs a program on.
const PACKET: [u8; 14] = [0; 14];

/// An event's logging code, loaded by itself with buffers that nobody else has.
pub struct Benchmark {
    object: Object,
    areas: Areas,
    event: String,
    program: String,
    /// Records that a buffer holds.
    room: u32,
}

impl Benchmark {
    /// Loads the code of one event, as [`Recording::load`](super::Recording::load) loads it for several.
    /// `text` is what [`bpf`](mete_schema::generate::bpf) made of the schema, `event` a place in [`Schema::events`].
    ///
    /// # Errors
    ///
    /// [`KernelError`]: privilege, type information or a compiler is missing, or the kernel refuses.
    pub fn load(schema: &Schema, text: &str, event: usize, cache: &Cache) -> Result<Benchmark, KernelError> {
        capability::check_privilege()?;
        let (processors, program) = (processors()?, benchmark(event));
        let object = compile::object(text, cache)?;
        let constants =
            Constants { buffer_bytes: 1 << SIZE_LOG2, processors, events: &[event], domains: None };
        let object = load_object(&object, |open| constants.configure(open, |name| name == program.as_str()))?;
        map::write_global(&object, ".bss.switches", &mask(&[event]))?;
        let areas = Areas::new(&object, processors, SIZE_LOG2, 0)?;
        let event = &schema.events[event];
        let room = (1 << SIZE_LOG2) / event.layout.size as u32 - 1;
        Ok(Benchmark { object, areas, event: event.name.clone(), program, room })
    }

    /// Logs the event so many times with dummy data, and answers with the mean of what one time took, in whole
    /// nanoseconds.
    ///
    /// The call of the program is in it, which is a few nanoseconds. What is not: how the kernel comes from what happens
    /// to a program, and how the program finds out what is to be logged.
    ///
    /// # Errors
    ///
    /// [`KernelError::Benchmark`] if the kernel does not run the program.
    pub fn run(&self, iterations: u32) -> Result<u64, KernelError> {
        let failed = |source| KernelError::Benchmark { event: self.event.clone(), source };
        let absent = || failed(libbpf_rs::Error::from(io::Error::from(io::ErrorKind::NotFound)));
        let program = program(&self.object, &self.program).ok_or_else(absent)?;
        let (mut left, mut passed) = (iterations, Duration::ZERO);
        while left > 0 {
            let repeat = left.min(self.room);
            self.empty();
            let input = ProgramInput { data_in: Some(&PACKET), repeat, ..ProgramInput::default() };
            passed += program.test_run(input).map_err(failed)?.duration * repeat;
            left -= repeat;
        }
        Ok((passed / iterations.max(1)).as_nanos() as u64)
    }

    /// It may have run on any processor.
    fn empty(&self) {
        (0..self.areas.processors()).for_each(|processor| self.areas.buffer(processor).restart(0));
    }
}
