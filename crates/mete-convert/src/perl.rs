//! KLogger's own format (§4.1, KLOG-7): a Perl array of events, each a hash with a `header`.
//!
//! `do "trace.pl"` defines `@trace` and returns it. In addition to `type`, `serial` and `timestamp`, the
//! header has `processor` and `file`, because the events of all files are in one array. A gap is an event of
//! type LOST with the field `events`. What is in the trace and what is not stands in comments at the end.

use std::io;

use mete_trace::{Account, Gap, ReadError, Ticks, Trace, Value};

use crate::write::TextWriter;
use crate::{Event, Format, LOST};

/// Writes Perl.
#[derive(Debug)]
pub struct Perl<W> {
    out: TextWriter<W>,
}

impl<W: io::Write> Perl<W> {
    /// Writes to this output.
    pub fn new(to: W) -> Perl<W> {
        Perl { out: TextWriter::new(to) }
    }

    fn header(&mut self, name: &str, [processor, file]: [u32; 2], serial: u64, time: Ticks) {
        self.out.text("{\n    header => {\n        \"type\"      => ");
        self.string(name);
        self.out.text(",\n        \"serial\"    => \"").number(serial);
        self.out.text("\",\n        \"timestamp\" => \"").number(time);
        self.out.text("\",\n        \"processor\" => \"").number(processor);
        self.out.text("\",\n        \"file\"      => \"").number(file);
        self.out.text("\",\n    },\n");
    }

    /// Writes a string in which nothing is a variable or an escape.
    fn string(&mut self, text: &str) {
        self.out.text("\"");
        for character in text.chars() {
            match character {
                // `$` and `@` would begin a variable in Perl.
                ' '..='~' if !matches!(character, '"' | '\\' | '$' | '@') => {
                    self.out.text(character.encode_utf8(&mut [0; 4]));
                }
                other => _ = self.out.text(&format!("\\x{{{:x}}}", u32::from(other))),
            }
        }
        self.out.text("\"");
    }

    fn value(&mut self, value: &Value<'_>) {
        match value {
            Value::Unsigned(number) => _ = self.out.text("\"").number(*number).text("\""),
            Value::Bool(truth) => _ = self.out.text("\"").text(if *truth { "1" } else { "0" }).text("\""),
            Value::Address(address) => _ = self.out.text("\"").address(*address).text("\""),
            Value::Signed(number) => _ = self.out.text("\"").signed(*number).text("\""),
            Value::Float(number) => _ = self.out.text("\"").float(*number).text("\""),
            Value::Bytes(bytes) => _ = self.out.text("\"").hexadecimal(bytes).text("\""),
            Value::Text(text) => self.string(text),
        }
    }

    fn field(&mut self, name: &str, value: Option<&Value<'_>>) {
        self.out.text("    ");
        self.string(name);
        self.out.text(" => ");
        match value {
            Some(value) => self.value(value),
            None => _ = self.out.text("undef"),
        }
        self.out.text(",\n");
    }
}

impl<W: io::Write> Format for Perl<W> {
    fn begin(&mut self, _: &Trace) -> io::Result<()> {
        self.out.end("@trace = (\n")
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let record = &event.record;
        self.header(event.name(), [record.processor, record.file], record.serial, record.time);
        for (name, value) in event.layout.into_iter().flat_map(|layout| layout.values(record.bytes)) {
            self.field(name, value.as_ref());
        }
        self.out.end("},\n")
    }

    fn lost(&mut self, gap: &Gap, _: Option<u64>) -> io::Result<()> {
        self.header(LOST, [gap.processor, gap.file], gap.first_serial, gap.after.unwrap_or_default());
        self.field("events", Some(&Value::Unsigned(gap.events)));
        self.out.end("},\n")
    }

    fn unreadable(&mut self, error: &ReadError) -> io::Result<()> {
        // A line break would end the comment, and what follows would be code.
        let error = error.to_string().replace(['\n', '\r'], " ");
        self.out.text("# not readable: ").text(&error).end("\n")
    }

    fn finish(&mut self, accounts: &[Account]) -> io::Result<()> {
        self.out.text(");\n");
        for account in accounts {
            self.out.text("# ").text(&account.to_string()).text("\n");
        }
        self.out.flush()
    }
}
