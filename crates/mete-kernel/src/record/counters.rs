//! The virtual counters of a schema: performance counters of each processor (paper §4.1).

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use libbpf_rs::Object;
use mete_base::processors;
use mete_schema::counter::Perf;
use mete_schema::known::KnownValue;
use mete_schema::{Checked, Schema};

use super::maps;
use crate::counter::Counter;
use crate::skeleton::numbers::mete_recording_limit;
use crate::{KernelError, perf};

/// The number of virtual counters: `counter0` to `counter15`.
pub(super) const MOST: usize = mete_recording_limit::METE_VIRTUAL_COUNTERS.0 as usize;

/// The names by which a schema can mean this machine, the most specific one first.
fn machine() -> Vec<&'static str> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let makers = [("AuthenticAMD", "AMD"), ("GenuineIntel", "Intel")];
    let maker = makers.into_iter().find(|(id, _)| processors.contains(id)).map(|(_, name)| name);
    maker.into_iter().chain([std::env::consts::ARCH]).collect()
}

/// The counters that the schema's points ask for, with their numbers.
pub(super) fn wanted(schema: &Schema, checked: &Checked) -> Result<Vec<(u8, Counter)>, KernelError> {
    let machine = machine();
    let bindings = schema.bindings_for(&machine);
    let mut wanted = Vec::new();
    for number in (0..MOST as u8).filter(|number| checked.uses(KnownValue::Counter(*number))) {
        let binding = bindings.iter().find(|binding| binding.number == number);
        let name = binding.and_then(|binding| perf_name(binding.counter.perf, &machine));
        let name = name.ok_or_else(|| KernelError::Unbound { number, machine: machine.join(", ") })?;
        wanted.push((number, name.parse()?));
    }
    Ok(wanted)
}

/// The counters that the schema's points ask for and this machine lacks: a sentence for each.
pub fn absent_counters(schema: &Schema, checked: &Checked) -> Vec<String> {
    let counters = match wanted(schema, checked) {
        Ok(counters) => counters,
        Err(error) => return vec![error.to_string()],
    };
    // Processor 0 may be offline, and would have no counter at all.
    let processor = processors::first_online();
    let absent = counters.iter().filter_map(|(_, counter)| perf::open_counter(counter, processor).err());
    absent.map(|error| error.to_string()).collect()
}

/// The name of a counter for the perf tool; `None` for a maker of processors that the schema language does
/// not know.
fn perf_name(perf: Perf, machine: &[&str]) -> Option<&'static str> {
    match perf {
        Perf::Everywhere(name) => Some(name),
        Perf::ByMaker { amd, .. } if machine.contains(&"AMD") => Some(amd),
        Perf::ByMaker { intel, .. } if machine.contains(&"Intel") => Some(intel),
        Perf::ByMaker { .. } => None,
    }
}

/// Opens the counters on every processor that is online. They count as long as the returned descriptors live.
pub(super) fn open(
    object: &Object,
    counters: &[(u8, Counter)],
    processors: usize,
) -> Result<Vec<OwnedFd>, KernelError> {
    let mut open = Vec::new();
    for (number, counter) in counters {
        for processor in processors::online(processors) {
            let event = perf::open_counter(counter, processor)?;
            // Where `mete_counter` of bpf/record.bpf.h looks for it.
            let at = usize::from(*number) * processors + processor;
            maps::write(object, maps::COUNTERS, at as u32, &(event.as_raw_fd() as u32))?;
            open.push(event);
        }
    }
    Ok(open)
}
