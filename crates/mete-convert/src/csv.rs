//! CSV (RFC 4180): one row for each event, with the columns of the [tables](crate::table::columns).
//!
//! A gap is a row of the event LOST, with the number of missing events in the column `lost`. The completeness
//! statement does not fit into a table of events. The caller of [`convert`](crate::convert()) gets it as the
//! result.

use std::io;

use mete_base::csv;
use mete_trace::{Account, Gap, ReadError, Record, Trace, Value};

use crate::table::columns::Columns;
use crate::write::TextWriter;
use crate::{Event, Format, LOST};

/// Writes CSV.
#[derive(Debug)]
pub struct Csv<W> {
    out: TextWriter<W>,
    columns: Option<Columns>,
    /// The number of columns after the first ones.
    fields: usize,
}

impl<W: io::Write> Csv<W> {
    /// Writes to this output.
    pub fn new(to: W) -> Csv<W> {
        Csv { out: TextWriter::new(to), columns: None, fields: 0 }
    }

    fn value(&mut self, value: Option<&Value<'_>>) {
        match value {
            Some(Value::Unsigned(number)) => _ = self.out.number(*number),
            Some(Value::Bool(truth)) => _ = self.out.text(if *truth { "1" } else { "0" }),
            Some(Value::Address(address)) => _ = self.out.address(*address),
            Some(Value::Signed(number)) => _ = self.out.signed(*number),
            Some(Value::Float(number)) => _ = self.out.float(*number),
            Some(Value::Text(text)) => _ = self.out.text(&csv::field(text)),
            Some(Value::Bytes(bytes)) => _ = self.out.hexadecimal(bytes),
            None => {}
        }
    }

    fn commas(&mut self, number: usize) {
        for _ in 0..number {
            self.out.text(",");
        }
    }

    /// Writes the cells of an event's fields.
    fn fields(&mut self, columns: &Columns, record: &Record<'_>) {
        let places = columns.places.get(usize::from(record.event)).map_or(&[][..], Vec::as_slice);
        let mut written = 0;
        for place in places {
            let value = place.content.value(record, &columns.companions);
            // One comma before each cell, and one for each empty cell on the way.
            self.commas(place.column + 1 - written);
            self.value(value.as_ref());
            written = place.column + 1;
        }
        self.commas(self.fields - written);
    }
}

impl<W: io::Write> Format for Csv<W> {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        let mut columns = Columns::of(trace);
        // A row is written from left to right.
        columns.places.iter_mut().for_each(|places| places.sort_by_key(|place| place.column));
        for (nth, field) in columns.schema.fields().iter().enumerate() {
            self.out.text(if nth > 0 { "," } else { "" }).text(field.name());
        }
        self.fields = columns.fields();
        self.columns = Some(columns);
        self.out.end("\r\n")
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let record = &event.record;
        self.out.number(record.processor).text(",").number(record.file).text(",").number(record.serial);
        self.out.text(",").maybe(event.time_ns).text(",").number(record.time).text(",");
        self.out.text(event.name()).text(",");
        // Taken out while the row is written, which borrows `self`.
        match self.columns.take() {
            Some(mut columns) => {
                columns.companions.learn(record);
                self.fields(&columns, record);
                self.columns = Some(columns);
            }
            None => self.commas(self.fields),
        }
        self.out.end("\r\n")
    }

    fn overhear(&mut self, record: &Record<'_>) {
        self.columns.iter_mut().for_each(|columns| columns.companions.learn(record));
    }

    fn lost(&mut self, gap: &Gap, after_ns: Option<u64>) -> io::Result<()> {
        self.out.number(gap.processor).text(",").number(gap.file).text(",").number(gap.first_serial);
        self.out.text(",").maybe(after_ns).text(",").maybe(gap.after);
        self.out.text(",").text(LOST).text(",").number(gap.events);
        self.commas(self.fields);
        self.out.end("\r\n")
    }

    fn unreadable(&mut self, _: &ReadError) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &[Account]) -> io::Result<()> {
        self.out.flush()
    }
}
