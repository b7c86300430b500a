//! Lines for people: when, where, which number, what.
//!
//! ```text
//!   1283.004512345  [1]  #119  SCHEDIN  pid=1073 L2_cache_misses=35678014
//!   -- processor 1: 12 events lost, from #120 on
//! ```

use std::collections::BTreeMap;
use std::io;

use mete_trace::{Account, Gap, ReadError, Trace, Value};

use crate::write::Out;
use crate::{Event, Format};

/// Writes lines for people.
#[derive(Debug)]
pub struct Text<W> {
    out: Out<W>,
    symbols: BTreeMap<u64, String>,
}

impl<W: io::Write> Text<W> {
    /// Into this output.
    pub fn new(to: W) -> Text<W> {
        Text { out: Out::new(to), symbols: BTreeMap::new() }
    }

    fn value(&mut self, value: Option<&Value<'_>>) {
        match value {
            Some(Value::Unsigned(number)) => {
                self.out.number(*number);
            }
            Some(Value::Bool(truth)) => {
                self.out.text(if *truth { "yes" } else { "no" });
            }
            Some(Value::Address(address)) => {
                match self.symbols.get(address) {
                    Some(name) => self.out.text(name),
                    None => self.out.address(*address),
                };
            }
            Some(Value::Signed(number)) => {
                self.out.number(*number);
            }
            Some(Value::Float(number)) => {
                self.out.float(*number);
            }
            // Escaped: a trace's text must not steer anybody's terminal.
            Some(Value::Text(text)) => {
                self.out.text(&format!("{text:?}"));
            }
            Some(Value::Bytes(bytes)) => {
                self.out.hexadecimal(bytes);
            }
            None => {
                self.out.text("?");
            }
        }
    }
}

impl<W: io::Write> Format for Text<W> {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        let symbols = trace.description().machine.symbols.iter();
        // A trace's text must not steer anybody's terminal.
        let printable = symbols.filter(|symbol| symbol.name.bytes().all(|byte| byte.is_ascii_graphic()));
        self.symbols = printable.map(|symbol| (symbol.address, symbol.name.clone())).collect();
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let record = &event.record;
        match event.time_ns {
            Some(ns) => self.out.seconds(ns),
            None => self.out.number(record.time),
        };
        self.out.text("  [").number(record.processor).text("]  #").number(record.serial);
        self.out.text("  ").text(event.name()).text(" ");
        for (name, value) in event.layout.into_iter().flat_map(|layout| layout.values(record.bytes)) {
            self.out.text(" ").text(name).text("=");
            self.value(value.as_ref());
        }
        self.out.end("\n")
    }

    fn lost(&mut self, gap: &Gap, _: Option<u64>) -> io::Result<()> {
        let why = if gap.unreadable { "cannot be read" } else { "lost" };
        self.out.text("-- processor ").number(gap.processor).text(": ").number(gap.events);
        self.out.text(" events ").text(why).text(", from #").number(gap.first_serial).end(" on\n")
    }

    fn unreadable(&mut self, error: &ReadError) -> io::Result<()> {
        self.out.text("-- ").text(&error.to_string()).end("\n")
    }

    fn finish(&mut self, accounts: &[Account]) -> io::Result<()> {
        for account in accounts {
            self.out.text("-- ").text(&account.to_string()).text("\n");
        }
        self.out.flush()
    }
}
