//! Arrow: the table in the IPC file format (Feather, version 2), which programs map into memory as it is.

use std::io;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::ArrowError;
use mete_trace::Trace;

use super::COMPLETENESS;
use super::writer::{TableFile, TableWriter};

/// Writes an Arrow file.
pub type ArrowFile<W> = TableWriter<FileWriter<W>>;

impl<W: io::Write> ArrowFile<W> {
    /// Writes the table of this trace to this output.
    ///
    /// # Errors
    ///
    /// The output's error.
    pub fn new(to: W, trace: &Trace) -> io::Result<ArrowFile<W>> {
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD));
        TableWriter::begin(trace, |rows| {
            let writer =
                options.and_then(|options| FileWriter::try_new_with_options(to, &rows.schema(), options));
            writer.map_err(failed)
        })
    }
}

impl<W: io::Write> TableFile for FileWriter<W> {
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()> {
        self.write(rows).map_err(failed)
    }

    fn finish(&mut self, completeness: String) -> io::Result<()> {
        self.write_metadata(COMPLETENESS, completeness);
        self.finish().map_err(failed)?;
        self.get_mut().flush()
    }
}

/// The output's own error, if there is one.
fn failed(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}
