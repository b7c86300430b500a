//! What a flight recorder has kept, as a trace.

use std::path::Path;

use super::{RecordError, Recorder};
use crate::completeness::Account;
use crate::description::{TraceDescription, file_name};
use crate::directory::{self, Directory};
use crate::memory::Buffers;
use crate::sink::{FileSink, Flight, Sink};

impl<B: Buffers> Recorder<B> {
    /// What a flight recorder's memory holds, by file: the accounts that a dump of it would have. Other
    /// recorders keep nothing in memory, and the list is empty.
    pub fn kept(&self) -> Vec<Account> {
        let flights = self.flights.iter().enumerate();
        flights.map(|(file, flight)| flight.account(file as u32, self.buffers.programs_of(file))).collect()
    }

    /// Writes what a flight recorder has kept into a directory, as a trace, and goes on recording.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if this is not a flight recorder or the directory cannot be written.
    pub fn dump(&mut self, directory: &Path) -> Result<(), RecordError> {
        self.flush()?;
        self.anchor();
        self.look_at_threads();
        self.look_at_addresses();
        self.update(false);
        self.write_flight(directory)
    }

    /// As [`Recorder::stop`], for a flight recorder: what it has kept becomes a trace.
    ///
    /// # Errors
    ///
    /// As [`Recorder::dump`].
    pub fn stop_and_dump(mut self, directory: &Path) -> Result<TraceDescription, RecordError> {
        self.end_threads();
        self.anchor();
        self.look_at_addresses();
        self.update(true);
        self.write_flight(directory)?;
        Ok(self.trace.clone())
    }

    fn write_flight(&self, directory: &Path) -> Result<(), RecordError> {
        if self.flights.is_empty() {
            return Err(RecordError::NotFlight);
        }
        let mut directory = directory::make(directory, self.options.former)?;
        self.write_flight_into(&directory).inspect_err(|_| self.remove(&directory))?;
        directory.remove_former();
        Ok(())
    }

    fn write_flight_into(&self, directory: &Directory) -> Result<(), RecordError> {
        for (processor, flight) in self.flights.iter().enumerate() {
            let name = file_name(processor as u32);
            let file = FileSink::create_in(&directory.folder, &name);
            let written = file.and_then(|mut file| file.take(&flight.blocks()));
            let path = directory.path.join(name);
            written.map_err(|source| RecordError::Create { what: "write", path, source })?;
        }
        // Released only when all files are written: after a failed dump, a second one still finds the held
        // blocks.
        self.flights.iter().for_each(Flight::release);
        Ok(self.trace.write_into(&directory.folder, &directory.path)?)
    }
}
