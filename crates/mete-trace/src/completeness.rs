//! What is in a trace and what is not (NEW-2), for each processor and interval. The numbers follow from
//! serial numbers and never from a guess.

use mete_log::Ticks;
use serde::{Deserialize, Serialize};

use crate::block::Header;

/// What one processor's file has of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The processor, or the number of the file.
    pub processor: u32,
    /// The processor on which the programs ran whose own events these are, if they have a file beside the
    /// kernel's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs_of: Option<u32>,
    /// Serial number at which the interval begins.
    pub first_serial: u64,
    /// One more than the serial number of the interval's last event.
    pub end_serial: u64,
    /// Records in the trace.
    pub records: u64,
    /// Events that occurred and are not in the trace: `end_serial - first_serial - records`, if times rise
    /// throughout the file. If they do not, events of other times have serial numbers between those of the
    /// interval.
    pub lost: u64,
    /// How many of these were recorded but could not be written, or can no longer be read.
    pub unwritten: u64,
    /// Earliest time stamp, in ticks; 0 without records.
    pub first_time: Ticks,
    /// Latest time stamp, in ticks; 0 without records.
    pub last_time: Ticks,
    /// Whether it is known what came at the end of the interval: a later event, or the end of the recording.
    /// If not, the recorder ended before it could say how many events occurred, and there may have been more.
    pub ended: bool,
}

impl Account {
    /// Adds the records of a block, which comes after those that were added before.
    pub(crate) fn note(&mut self, header: &Header) {
        // A block without records has no times of its own.
        if header.records > 0 {
            let first = Ticks::new(header.first_time.get());
            self.first_time = if self.records == 0 { first } else { self.first_time.min(first) };
            self.last_time = Ticks::new(header.last_time.get());
        }
        self.records += u64::from(header.records);
        self.ended = header.is_last();
    }

    /// Whether every event that occurred in the interval is in the trace, and the end of the recording is
    /// known.
    pub fn is_complete(&self) -> bool {
        self.lost == 0 && self.ended
    }
}

impl core::fmt::Display for Account {
    /// One line for people.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Account { processor, records, lost, unwritten, first_serial, end_serial, .. } = self;
        match self.programs_of {
            Some(place) => write!(f, "programs on processor {place} (file {processor}): ")?,
            None => write!(f, "processor {processor}: ")?,
        }
        write!(f, "{records} records, {lost} events lost")?;
        // The last serial number, not the one behind it.
        if let Some(last) = end_serial.checked_sub(1).filter(|last| last >= first_serial) {
            write!(f, ", of #{first_serial} to #{last}")?;
        }
        if *unwritten > 0 {
            write!(f, " ({unwritten} of the lost ones were recorded but not written, or cannot be read)")?;
        }
        match self.ended {
            true => Ok(()),
            false => f.write_str("; the end of the recording is not in it, so there may have been more"),
        }
    }
}
