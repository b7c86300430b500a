//! Parquet: the table in a file that DuckDB, polars, pandas and Spark read.

use std::io;

use arrow_array::RecordBatch;
use mete_trace::Trace;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;

use super::rows::Rows;
use super::writer::{TableFile, TableWriter};
use super::{COMPLETENESS, DESCRIPTION};

/// Rows of a row group. A reader skips or reads a group as a whole, and the writer keeps it in memory,
/// compressed.
const GROUP_ROWS: usize = 1 << 20;
/// Columns in which neighbouring values are close. Their differences are stored, in a few bits each.
const NEAR: [&str; 3] = ["serial", "time_ns", "time"];

/// Writes Parquet.
pub type Parquet<W> = TableWriter<ArrowWriter<W>>;

impl<W: io::Write + Send> Parquet<W> {
    /// Writes the table of this trace to this output.
    ///
    /// # Errors
    ///
    /// The output's error.
    pub fn new(to: W, trace: &Trace) -> io::Result<Parquet<W>> {
        TableWriter::begin(trace, |rows| {
            ArrowWriter::try_new(to, rows.schema(), Some(properties(rows))).map_err(failed)
        })
    }
}

impl<W: io::Write + Send> TableFile for ArrowWriter<W> {
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()> {
        self.write(rows).map_err(failed)
    }

    fn finish(&mut self, completeness: String) -> io::Result<()> {
        self.append_key_value_metadata(KeyValue::new(COMPLETENESS.to_owned(), completeness));
        self.finish().map(drop).map_err(failed)
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
        // A dictionary would take precedence over the differences, and hardly any value comes twice.
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

/// The output's own error, if there is one.
fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
