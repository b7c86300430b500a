//! Lines for people: when, where, which number, what.
//!
//! ```text
//!   1283.004512345  [1]  #119  SCHEDIN  pid=1073 L2_cache_misses=35678014
//!   -- processor 1: 12 events lost, from #120 on
//! ```

use std::collections::BTreeMap;
use std::io;

use mete_trace::{Account, Gap, ReadError, Trace, Value};

use crate::write::{Out, Piece};
use crate::{Event, Format};

/// Writes lines for people.
#[derive(Debug)]
pub struct Text<W> {
    out: Out<W>,
    /// Of each event by its number what stands before its fields, and before each of them.
    pieces: Vec<(Piece, Vec<Piece>)>,
    symbols: BTreeMap<u64, String>,
}

impl<W: io::Write> Text<W> {
    /// Into this output.
    pub fn new(to: W) -> Text<W> {
        Text { out: Out::new(to), pieces: Vec::new(), symbols: BTreeMap::new() }
    }
}

impl<W: io::Write> Format for Text<W> {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        let symbols = trace.description().machine.symbols.iter();
        // A trace's text must not steer anybody's terminal.
        let printable = symbols.filter(|symbol| symbol.name.bytes().all(|byte| byte.is_ascii_graphic()));
        self.symbols = printable.map(|symbol| (symbol.address, symbol.name.clone())).collect();
        for event in &trace.description().description.events {
            let id = usize::from(event.id);
            self.pieces.resize(self.pieces.len().max(id + 1), (Piece::new(""), Vec::new()));
            let fields =
                event.fields.iter().map(|field| Piece::new(&format!(" {}=", without_controls(&field.name))));
            self.pieces[id] =
                (Piece::new(&format!("  {} ", without_controls(&event.name))), fields.collect());
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let record = &event.record;
        match event.time_ns {
            Some(ns) => self.out.seconds(ns),
            None => self.out.number(record.time),
        };
        self.out.text("  [").number(record.processor).text("]  #").number(record.serial);
        match (event.layout, self.pieces.get(usize::from(record.event))) {
            (Some(layout), Some((name, fields))) => {
                self.out.piece(name);
                for (piece, field) in fields.iter().zip(&layout.fields) {
                    self.out.piece(piece);
                    value(&mut self.out, field.value(record.bytes).as_ref(), &self.symbols);
                }
            }
            _ => _ = self.out.text("  ").text(event.name()).text(" "),
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

/// A name in a description may be anything, and must not steer a terminal either.
fn without_controls(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[inline]
fn value<W: io::Write>(out: &mut Out<W>, value: Option<&Value<'_>>, symbols: &BTreeMap<u64, String>) {
    match value {
        Some(Value::Unsigned(number)) => out.number(*number),
        Some(Value::Bool(truth)) => out.text(if *truth { "yes" } else { "no" }),
        Some(Value::Address(address)) => match symbols.get(address) {
            Some(name) => out.text(name),
            None => out.address(*address),
        },
        Some(Value::Signed(number)) => out.signed(*number),
        Some(Value::Float(number)) => out.float(*number),
        // Escaped: a trace's text must not steer anybody's terminal.
        Some(Value::Text(text)) => out.text(&format!("{text:?}")),
        Some(Value::Bytes(bytes)) => out.hexadecimal(bytes),
        None => out.text("?"),
    };
}
