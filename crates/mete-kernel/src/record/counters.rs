//! The virtual counters of a schema: performance counters of each processor (paper §4.1).

use std::fs;
use std::os::fd::OwnedFd;

use libbpf_rs::Object;
use mete_schema::counter::Perf;
use mete_schema::known::Known;
use mete_schema::{Checked, Schema};

use super::tell_counter;
use crate::counter::Counter;
use crate::{KernelError, perf};

/// `counter0` to `counter15`.
pub(super) const MOST: usize = 16;

/// The names that this machine goes by, the best one first.
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
    let asked = (0..MOST as u8).filter(|number| checked.uses(Known::Counter(*number)));
    let find = |number| {
        let binding = bindings.iter().find(|binding| binding.number == number);
        let name = binding.and_then(|binding| perf_name(binding.counter.perf, &machine));
        let unbound = || KernelError::Unbound { number, machine: machine.join(", ") };
        Ok((number, name.ok_or_else(unbound)?.parse()?))
    };
    asked.map(find).collect()
}

/// What the schema's points ask for and this machine cannot count, a sentence each.
pub fn absent_counters(schema: &Schema, checked: &Checked) -> Vec<String> {
    let counters = match wanted(schema, checked) {
        Ok(counters) => counters,
        Err(error) => return vec![error.to_string()],
    };
    let open = |(_, counter): &(u8, Counter)| perf::open_counter(counter, 0).err();
    counters.iter().filter_map(open).map(|error| error.to_string()).collect()
}

fn perf_name(perf: Perf, machine: &[&str]) -> Option<&'static str> {
    match perf {
        Perf::Everywhere(name) => Some(name),
        Perf::ByMaker { amd, .. } if machine.contains(&"AMD") => Some(amd),
        Perf::ByMaker { intel, .. } if machine.contains(&"Intel") => Some(intel),
        Perf::ByMaker { .. } => None,
    }
}

/// Opens them on every processor that runs; they count as long as what is returned lives.
pub(super) fn open(
    object: &Object,
    counters: &[(u8, Counter)],
    processors: usize,
) -> Result<Vec<OwnedFd>, KernelError> {
    let mut open = Vec::new();
    for (number, counter) in counters {
        for processor in perf::online_processors(processors) {
            let event = perf::open_counter(counter, processor)?;
            tell_counter(object, usize::from(*number) * processors + processor, &event)?;
            open.push(event);
        }
    }
    Ok(open)
}
