//! What is to be recorded, and how: all that a caller decides before a recording begins.

use std::fs;
use std::path::PathBuf;

use mete_sched::DomainSpec;
use mete_trace::FormerTrace;
use mete_trace::block::DEFAULT_BLOCK_BYTES;

use crate::error::RecordingError;
use crate::notice::Notice;
use crate::probes::ProbePoints;
use crate::schema::RecordedSchema;

/// A recording that is to begin.
pub struct Plan {
    /// The schema.
    pub schema: RecordedSchema,
    /// The events that are on at first, by their places in the schema.
    pub events: Vec<usize>,
    /// Whether recording is on at first.
    pub is_on: bool,
    /// Whether events may be switched while the recording runs. Then programs of all events are loaded.
    pub may_switch: bool,
    /// The trace's directory. A flight recorder makes it at its first dump.
    pub directory: PathBuf,
    /// What becomes of a trace that is there already.
    pub former: FormerTrace,
    /// The accounting domains, for what the schema calls `domain`.
    pub domains: Vec<DomainSpec>,
    /// Memory of each processor for what is not written yet: a power of two, in bytes.
    pub buffer_bytes: u64,
    /// A buffer is flushed when less than this part of it is free.
    pub low_water_percent: u8,
    /// How a flight recorder works; `None` to write events as they come.
    pub flight: Option<FlightPlan>,
    /// Whether a command runs meanwhile, which may record events of its own.
    pub has_command: bool,
}

/// A flight recorder keeps the newest events in memory and writes them when it is asked to.
#[derive(Clone, Debug)]
pub struct FlightPlan {
    /// How much it keeps, in bytes.
    pub keep_bytes: u64,
    /// Events at whose occurrence it writes, by their places in the schema.
    pub dump_on: Vec<usize>,
    /// At which of these occurrences the recording ends.
    pub ends_at_occurrence: u32,
}

impl FlightPlan {
    /// Refuses what the memory of the machine cannot hold now. It would be taken piece by piece, until the
    /// kernel ends a process to free some.
    pub(crate) fn check_memory(&self) -> Result<(), RecordingError> {
        // Where an event is awaited, the same amount is kept of what comes after it.
        let most = if self.dump_on.is_empty() { self.keep_bytes } else { self.keep_bytes.saturating_mul(2) };
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        match available_bytes(&meminfo) {
            Some(available) if most > available => Err(RecordingError::NotEnoughMemory { most, available }),
            _ => Ok(()),
        }
    }

    /// How much is kept with this number of buffers: what was asked for, and at least a block of each buffer.
    pub(crate) fn kept_bytes(&self, buffers: usize, tell: &mut dyn FnMut(Notice)) -> u64 {
        let least = u64::from(DEFAULT_BLOCK_BYTES) * buffers as u64;
        if self.keep_bytes < least {
            tell(Notice::KeepsMore { asked: self.keep_bytes, kept: least });
        }
        self.keep_bytes.max(least)
    }
}

/// Memory that can be had without taking it from a process, by the text of `/proc/meminfo`.
fn available_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

impl Plan {
    /// The events that are on at some time.
    pub(crate) fn may_be_on(&self) -> impl Iterator<Item = usize> {
        (0..self.schema.events().len()).filter(|event| self.may_switch || self.events.contains(event))
    }

    /// Whether some event that may be on is recorded by programs themselves: it has no point.
    pub(crate) fn has_events_of_programs(&self) -> bool {
        self.may_be_on().any(|event| !self.schema.has_point(event))
    }

    /// Whether some event that may be on is recorded by the kernel's programs.
    pub(crate) fn has_events_of_kernel(&self) -> bool {
        self.may_be_on().any(|event| self.schema.is_of_kernel(event))
    }

    /// The probe points, if some event that may be on is recorded at one.
    pub(crate) fn probe_points(&self) -> Option<ProbePoints> {
        let points = self.schema.probe_points();
        let may_be_on: Vec<_> = self.may_be_on().collect();
        let is_any = points.names(&may_be_on).next().is_some();
        is_any.then_some(points)
    }

    /// The events at whose occurrence a flight recorder writes.
    pub(crate) fn awaited(&self) -> &[usize] {
        self.flight.as_ref().map_or(&[], |flight| &flight.dump_on)
    }

    /// Checks that a trace can be written into the directory; for a flight recorder, too, although it writes
    /// only later.
    pub(crate) fn check_directory(&self) -> Result<(), RecordingError> {
        Ok(mete_trace::check_directory(&self.directory, self.former)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_6_memory_that_is_available_is_read_as_the_kernel_writes_it() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available_bytes(meminfo), Some(2 << 20));
        assert_eq!(available_bytes("MemTotal: 1 kB"), None);
    }
}
