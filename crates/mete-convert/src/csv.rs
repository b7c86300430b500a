//! CSV (RFC 4180): one row an event, a column for each field of each event, named EVENT.field.
//!
//! A gap is a row of the event LOST, with the number of missing events in the column `lost`.
//! The completeness statement does not fit into a table of events: whoever converts gets it from
//! [`convert`](crate::convert).

use std::io;

use mete_trace::{Account, Gap, ReadError, Trace, Value};

use crate::write::Out;
use crate::{Event, Format, LOST};

/// Writes CSV.
#[derive(Debug)]
pub struct Csv<W> {
    out: Out<W>,
    /// For each event its number, and how many columns stand before its fields.
    columns: Vec<(u16, usize)>,
    all: usize,
}

impl<W: io::Write> Csv<W> {
    /// Into this output.
    pub fn new(to: W) -> Csv<W> {
        Csv { out: Out::new(to), columns: Vec::new(), all: 0 }
    }

    fn cell(&mut self, text: &str) {
        if text.contains(['"', ',', '\n', '\r']) {
            self.out.text("\"").text(&text.replace('"', "\"\"")).text("\"");
        } else {
            self.out.text(text);
        }
    }

    fn value(&mut self, value: Option<&Value<'_>>) {
        match value {
            Some(Value::Unsigned(number)) => {
                self.out.number(*number);
            }
            Some(Value::Bool(truth)) => {
                self.out.text(if *truth { "1" } else { "0" });
            }
            Some(Value::Address(address)) => {
                self.out.address(*address);
            }
            Some(Value::Signed(number)) => {
                self.out.signed(*number);
            }
            Some(Value::Float(number)) => {
                self.out.float(*number);
            }
            Some(Value::Text(text)) => self.cell(text),
            Some(Value::Bytes(bytes)) => {
                self.out.hexadecimal(bytes);
            }
            None => {}
        }
    }

    fn commas(&mut self, number: usize) {
        for _ in 0..number {
            self.out.text(",");
        }
    }
}

impl<W: io::Write> Format for Csv<W> {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        self.out.text("processor,file,serial,time,time_ns,event,lost");
        for event in &trace.description().description.events {
            self.columns.push((event.id, self.all));
            self.all += event.fields.len();
            for field in &event.fields {
                self.out.text(",").text(&event.name).text(".").text(&field.name);
            }
        }
        self.out.end("\r\n")
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let record = &event.record;
        self.out.number(record.processor).text(",").number(record.file).text(",").number(record.serial);
        self.out.text(",").number(record.time).text(",").maybe(event.time_ns).text(",");
        self.out.text(event.name()).text(",");
        let before = self.columns.iter().find(|(id, _)| *id == record.event).map_or(0, |(_, before)| *before);
        self.commas(before);
        let mut written = before;
        for (_, value) in event.layout.into_iter().flat_map(|layout| layout.values(record.bytes)) {
            self.out.text(",");
            self.value(value.as_ref());
            written += 1;
        }
        self.commas(self.all - written);
        self.out.end("\r\n")
    }

    fn lost(&mut self, gap: &Gap, _: Option<u64>) -> io::Result<()> {
        self.out.number(gap.processor).text(",").number(gap.file).text(",").number(gap.first_serial);
        self.out.text(",").maybe(gap.after);
        self.out.text(",,").text(LOST).text(",").number(gap.events);
        self.commas(self.all);
        self.out.end("\r\n")
    }

    fn unreadable(&mut self, _: &ReadError) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _: &[Account]) -> io::Result<()> {
        self.out.flush()
    }
}
