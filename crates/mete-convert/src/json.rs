//! JSON lines: one object a line, each with a `kind`: `event`, `lost`, or `unreadable`. At the end there is
//! one `completeness` for each processor, and `missed_runs` if the kernel left out programs.

use std::io;

use mete_trace::description::Circumstances;
use mete_trace::{Account, Gap, MissedRuns, ReadError, Record, Trace, Value};

use crate::companions::Companions;
use crate::table::columns::first_names;
use crate::write::TextWriter;
use crate::{Event, Format};

/// Writes JSON lines.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: TextWriter<W>,
    companions: Option<Companions>,
    missed_runs: u64,
    missed: Vec<MissedRuns>,
}

impl<W: io::Write> JsonLines<W> {
    /// Writes to this output.
    pub fn new(to: W) -> JsonLines<W> {
        JsonLines { out: TextWriter::new(to), companions: None, missed_runs: 0, missed: Vec::new() }
    }

    fn string(&mut self, text: &str) {
        // Mostly nothing needs to be escaped, and the text is copied as it is.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
            self.out.text("\"").text(text).text("\"");
        } else {
            self.out.text(&serde_json::Value::from(text).to_string());
        }
    }

    /// Writes a value. Floating-point numbers that JSON does not have become null.
    fn value(&mut self, value: Option<&Value<'_>>) {
        match value {
            Some(Value::Unsigned(number)) => _ = self.out.number(*number),
            Some(Value::Bool(truth)) => _ = self.out.text(if *truth { "true" } else { "false" }),
            Some(Value::Address(address)) => _ = self.out.text("\"").address(*address).text("\""),
            Some(Value::Signed(number)) => _ = self.out.signed(*number),
            Some(Value::Float(number)) if number.is_finite() => _ = self.out.float(*number),
            Some(Value::Text(text)) => self.string(text),
            Some(Value::Bytes(bytes)) => _ = self.out.text("\"").hexadecimal(bytes).text("\""),
            // Infinity and NaN, and fields beyond the end of a short record.
            Some(Value::Float(_)) | None => _ = self.out.text("null"),
        }
    }

    fn number_or_null(&mut self, number: Option<u64>) {
        match number {
            Some(number) => _ = self.out.number(number),
            None => _ = self.out.text("null"),
        }
    }

    fn line(&mut self, value: &serde_json::Value) -> io::Result<()> {
        self.out.text(&value.to_string()).end("\n")
    }
}

impl<W: io::Write> Format for JsonLines<W> {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        let Circumstances { missed_runs, missed, .. } = &trace.description().circumstances;
        (self.missed_runs, self.missed) = (*missed_runs, missed.clone());
        self.companions = Some(Companions::of(trace, &first_names()));
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
        // Taken out while the fields are written: `self` writes, and the companions' values are borrowed.
        let companions = self.companions.take().map(|mut companions| {
            companions.learn(record);
            companions
        });
        let values = event.layout.into_iter().flat_map(|layout| layout.values(record.bytes));
        for (at, (name, value)) in values.enumerate() {
            self.out.text(if at > 0 { "," } else { "" });
            self.string(name);
            self.out.text(":");
            self.value(value.as_ref());
            let all = companions.as_ref().map_or(&[][..], |companions| companions.of_field(record.event, at));
            for companion in all {
                self.out.text(",");
                self.string(&companion.name);
                self.out.text(":");
                self.value(
                    companions.as_ref().and_then(|companions| companions.value(companion, record)).as_ref(),
                );
            }
        }
        self.companions = companions;
        self.out.end("}}\n")
    }

    fn overhear(&mut self, record: &Record<'_>) {
        self.companions.iter_mut().for_each(|companions| companions.learn(record));
    }

    fn lost(&mut self, gap: &Gap, after_ns: Option<u64>) -> io::Result<()> {
        self.line(&serde_json::json!({
            "kind": "lost", "processor": gap.processor, "file": gap.file, "first_serial": gap.first_serial,
            "events": gap.events, "after": gap.after, "after_ns": after_ns, "unreadable": gap.unreadable,
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
        // Without accounts the conversion was stopped, and nothing is said about the whole trace.
        if self.missed_runs > 0 && !accounts.is_empty() {
            let (runs, missed) = (self.missed_runs, &self.missed);
            self.line(&serde_json::json!({ "kind": "missed_runs", "runs": runs, "missed": missed }))?;
        }
        self.out.flush()
    }
}
