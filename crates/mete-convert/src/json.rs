//! JSON lines: one object a line, each with a `kind`: `event`, `lost`, `unreadable`, and at the
//! end one `completeness` for each processor.

use std::io;

use mete_trace::{Account, Gap, ReadError, Trace, Value};

use crate::write::Out;
use crate::{Event, Format};

/// Writes JSON lines.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: Out<W>,
}

impl<W: io::Write> JsonLines<W> {
    /// Into this output.
    pub fn new(to: W) -> JsonLines<W> {
        JsonLines { out: Out::new(to) }
    }

    fn string(&mut self, text: &str) {
        let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        if text.as_bytes().iter().all(plain) {
            self.out.text("\"").text(text).text("\"");
        } else {
            self.out.text(&serde_json::Value::from(text).to_string());
        }
    }

    /// Numbers that are none in JSON become null.
    fn value(&mut self, value: Option<&Value<'_>>) {
        match value {
            Some(Value::Unsigned(number)) => {
                self.out.number(*number);
            }
            Some(Value::Bool(truth)) => {
                self.out.text(if *truth { "true" } else { "false" });
            }
            Some(Value::Address(address)) => {
                self.out.text("\"").address(*address).text("\"");
            }
            Some(Value::Signed(number)) => {
                self.out.signed(*number);
            }
            Some(Value::Float(number)) if number.is_finite() => {
                self.out.float(*number);
            }
            Some(Value::Text(text)) => self.string(text),
            Some(Value::Bytes(bytes)) => {
                self.out.text("\"").hexadecimal(bytes).text("\"");
            }
            Some(Value::Float(_)) | None => {
                self.out.text("null");
            }
        }
    }

    fn number_or_null(&mut self, number: Option<u64>) {
        match number {
            Some(number) => {
                self.out.number(number);
            }
            None => {
                self.out.text("null");
            }
        }
    }

    fn line(&mut self, value: &serde_json::Value) -> io::Result<()> {
        self.out.text(&value.to_string()).end("\n")
    }
}

impl<W: io::Write> Format for JsonLines<W> {
    fn begin(&mut self, _: &Trace) -> io::Result<()> {
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let record = &event.record;
        self.out.text("{\"kind\":\"event\",\"event\":");
        self.string(event.name());
        self.out.text(",\"processor\":").number(record.processor).text(",\"file\":").number(record.file);
        self.out.text(",\"serial\":").number(record.serial);
        self.out.text(",\"time\":").number(record.time).text(",\"time_ns\":");
        self.number_or_null(event.time_ns);
        self.out.text(",\"fields\":{");
        for (at, (name, value)) in
            event.layout.into_iter().flat_map(|layout| layout.values(record.bytes)).enumerate()
        {
            self.out.text(if at > 0 { "," } else { "" });
            self.string(name);
            self.out.text(":");
            self.value(value.as_ref());
        }
        self.out.end("}}\n")
    }

    fn lost(&mut self, gap: &Gap, _: Option<u64>) -> io::Result<()> {
        self.line(&serde_json::json!({
            "kind": "lost", "processor": gap.processor, "file": gap.file, "first_serial": gap.first_serial,
            "events": gap.events, "after": gap.after, "unreadable": gap.unreadable,
        }))
    }

    fn unreadable(&mut self, error: &ReadError) -> io::Result<()> {
        self.line(&serde_json::json!({ "kind": "unreadable", "error": error.to_string() }))
    }

    fn finish(&mut self, accounts: &[Account]) -> io::Result<()> {
        for account in accounts {
            let mut value = serde_json::to_value(account).map_err(io::Error::other)?;
            value["kind"] = "completeness".into();
            self.line(&value)?;
        }
        self.out.flush()
    }
}
