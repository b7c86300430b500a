//! Arrow: the table in the IPC file format (Feather, version 2), which programs map into memory as it is.

use std::io;

use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::ArrowError;
use mete_trace::{Account, Gap, ReadError, Trace};

use super::COMPLETENESS;
use super::rows::Rows;
use super::statement::Statement;
use crate::{Event, Format};

/// Writes an Arrow file.
pub struct ArrowFile<W: io::Write> {
    rows: Rows,
    writer: FileWriter<W>,
    statement: Statement,
}

impl<W: io::Write> ArrowFile<W> {
    /// The table of this trace, into this output.
    ///
    /// # Errors
    ///
    /// Whatever the output answers.
    pub fn new(to: W, trace: &Trace) -> io::Result<ArrowFile<W>> {
        let rows = Rows::of(trace);
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD));
        let writer =
            options.and_then(|options| FileWriter::try_new_with_options(to, &rows.schema(), options));
        let statement = Statement::new(trace.description().circumstances.missed_runs);
        Ok(ArrowFile { rows, writer: writer.map_err(failed)?, statement })
    }

    fn hand_on(&mut self) -> io::Result<()> {
        match self.rows.take().map_err(failed)? {
            Some(batch) => self.writer.write(&batch).map_err(failed),
            None => Ok(()),
        }
    }

    fn hand_on_if_full(&mut self) -> io::Result<()> {
        if self.rows.is_full() { self.hand_on() } else { Ok(()) }
    }
}

impl<W: io::Write> Format for ArrowFile<W> {
    fn begin(&mut self, _: &Trace) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.rows.event(event);
        self.hand_on_if_full()
    }

    fn lost(&mut self, gap: &Gap, after_ns: Option<u64>) -> io::Result<()> {
        self.rows.lost(gap, after_ns);
        self.hand_on_if_full()
    }

    fn unreadable(&mut self, error: &ReadError) -> io::Result<()> {
        self.statement.unreadable(error);
        Ok(())
    }

    fn finish(&mut self, accounts: &[Account]) -> io::Result<()> {
        self.hand_on()?;
        self.writer.write_metadata(COMPLETENESS, self.statement.text(accounts));
        self.writer.finish().map_err(failed)?;
        self.writer.get_mut().flush()
    }
}

/// The output's own answer, where there is one.
fn failed(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}
