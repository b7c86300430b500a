//! Parquet: the table in a file that DuckDB, polars, pandas and Spark read.

use std::io;

use arrow_array::RecordBatch;
use mete_trace::{Account, Gap, ReadError, Trace};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::rows::Rows;
use super::statement::Statement;
use super::{COMPLETENESS, DESCRIPTION};
use crate::{Event, Format};

/// Rows of a row group: what a reader skips or reads at once, and what is in memory here, compressed.
const GROUP_ROWS: usize = 1 << 20;
/// Columns whose neighbours are near each other: their differences are kept, in a few bits each.
const NEAR: [&str; 3] = ["serial", "time_ns", "time"];

/// Writes Parquet.
pub struct Parquet<W: io::Write + Send> {
    rows: Rows,
    writer: ArrowWriter<W>,
    statement: Statement,
}

impl<W: io::Write + Send> Parquet<W> {
    /// The table of this trace, into this output.
    ///
    /// # Errors
    ///
    /// Whatever the output answers.
    pub fn new(to: W, trace: &Trace) -> io::Result<Parquet<W>> {
        let rows = Rows::of(trace);
        let writer = ArrowWriter::try_new(to, rows.schema(), Some(properties(&rows))).map_err(failed)?;
        let statement = Statement::new(trace.description().circumstances.missed_runs);
        Ok(Parquet { rows, writer, statement })
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let batch: Option<RecordBatch> = self.rows.take().map_err(io::Error::other)?;
        batch.map_or(Ok(()), |batch| self.writer.write(&batch).map_err(failed))
    }

    fn hand_on_if_full(&mut self) -> io::Result<()> {
        if self.rows.is_full() { self.hand_on() } else { Ok(()) }
    }
}

fn properties(rows: &Rows) -> WriterProperties {
    let description = rows.schema().metadata().get(DESCRIPTION).cloned();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by(format!("mete {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new(DESCRIPTION.to_owned(), description)]));
    for name in NEAR {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

impl<W: io::Write + Send> Format for Parquet<W> {
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
        let statement = KeyValue::new(COMPLETENESS.to_owned(), self.statement.text(accounts));
        self.writer.append_key_value_metadata(statement);
        self.writer.finish().map(drop).map_err(failed)
    }
}

/// The output's own answer, where there is one.
fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
