//! The part that all files with the table share: rows are collected and handed on, and the statement comes
//! last.

use std::io;

use arrow_array::RecordBatch;
use mete_trace::{Account, Gap, ReadError, Record, Trace};

use super::rows::Rows;
use super::statement::CompletenessStatement;
use crate::{Event, Format};

/// A kind of file that holds a table.
pub trait TableFile {
    /// Writes these rows.
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()>;
    /// Writes the statement of what is in the trace and what is not, and ends the file.
    fn finish(&mut self, completeness: String) -> io::Result<()>;
}

/// Writes the table into a file.
pub struct TableWriter<S> {
    rows: Rows,
    sheet: S,
    statement: CompletenessStatement,
}

impl<S: TableFile> TableWriter<S> {
    /// Begins the table of this trace. `sheet` begins the file for its rows.
    pub(super) fn begin(
        trace: &Trace,
        sheet: impl FnOnce(&Rows) -> io::Result<S>,
    ) -> io::Result<TableWriter<S>> {
        let rows = Rows::of(trace);
        let statement = CompletenessStatement::new(&trace.description().circumstances);
        Ok(TableWriter { sheet: sheet(&rows)?, rows, statement })
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let rows = self.rows.take().map_err(io::Error::other)?;
        rows.map_or(Ok(()), |rows| self.sheet.write(&rows))
    }

    fn hand_on_if_full(&mut self) -> io::Result<()> {
        if self.rows.is_full() { self.hand_on() } else { Ok(()) }
    }
}

impl<S: TableFile> Format for TableWriter<S> {
    fn begin(&mut self, _: &Trace) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.rows.event(event);
        self.hand_on_if_full()
    }

    fn overhear(&mut self, record: &Record<'_>) {
        self.rows.learn(record);
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
        self.sheet.finish(self.statement.text(accounts))
    }
}
