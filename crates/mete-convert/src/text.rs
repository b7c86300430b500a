//! Lines for people: when, where, which number, what.
//!
//! ```text
//!   1283.004512345  [1]  #119  SCHEDIN  pid=1073(make) L2_cache_misses=35678014
//!   -- processor 1: 12 events lost, from #120 on
//!   1283.004512346  [1/3]  #7  STOPWATCH  pid=1073(make)
//! ```
//!
//! Serial numbers count within a file of the trace. The file's number stands after the processor's if the two
//! differ, as they do for programs' own events beside the kernel's.

use std::collections::BTreeMap;
use std::io;

use mete_trace::names::without_controls;
use mete_trace::{Account, EventLayout, FieldLayout, Gap, ReadError, Record, Trace, TraceDescription, Value};

use crate::meaning::{FieldSubject, Meaning, Meanings};
use crate::names::ThreadNames;
use crate::threads::number;
use crate::write::{TextPiece, TextWriter};
use crate::{Event, Format};

/// Writes lines for people.
#[derive(Debug)]
pub struct Text<W> {
    out: TextWriter<W>,
    /// For each event, by its number, how it is written.
    forms: Vec<Option<LineForm>>,
    symbols: BTreeMap<u64, String>,
    names: Option<ThreadNames>,
    /// Runs that the kernel left out, if the times can be converted: between which two moments, in
    /// nanoseconds, and how many runs.
    missed: Vec<([u64; 2], u64)>,
    /// The number of further such runs, of which the time is not known.
    missed_somewhere: u64,
}

/// How an event is written.
#[derive(Clone, Debug)]
struct LineForm {
    /// The text before its fields.
    name: TextPiece,
    fields: Vec<LineField>,
    /// Whether it tells the name of a thread.
    tells_names: bool,
}

#[derive(Clone, Debug)]
struct LineField {
    /// The text before its value.
    name: TextPiece,
    /// Whether it is a thread's number, so that the thread's name stands after it.
    is_thread: bool,
}

impl<W: io::Write> Text<W> {
    /// Writes to this output.
    pub fn new(to: W) -> Text<W> {
        Text {
            out: TextWriter::new(to),
            forms: Vec::new(),
            symbols: BTreeMap::new(),
            names: None,
            missed: Vec::new(),
            missed_somewhere: 0,
        }
    }
}

fn form(event: &EventLayout, meanings: &Meanings) -> LineForm {
    let meaning = meanings.event(event.id);
    LineForm {
        name: TextPiece::new(&format!("  {} ", event.name)),
        fields: event.fields.iter().map(|field| line_field(field, meaning)).collect(),
        tells_names: meaning.is_some_and(|of| of.fields(FieldSubject::Name).next().is_some()),
    }
}

fn line_field(field: &FieldLayout, meaning: Option<&Meaning>) -> LineField {
    let name = TextPiece::new(&format!(" {}=", field.name));
    let mut threads = meaning.into_iter().flat_map(|of| of.fields(FieldSubject::Thread));
    LineField { name, is_thread: threads.any(|said| said.field.offset == field.offset) }
}

impl<W: io::Write> Format for Text<W> {
    fn begin(&mut self, trace: &Trace) -> io::Result<()> {
        let symbols = trace.description().machine.symbols.iter();
        // Symbols come from a trace, which must not steer a terminal.
        // A symbol with any other letter is not shown, only its address.
        let printable = symbols.filter(|symbol| symbol.name.bytes().all(|byte| byte.is_ascii_graphic()));
        self.symbols = printable.map(|symbol| (symbol.address, symbol.name.clone())).collect();
        let description = &trace.description().description;
        let meanings = Meanings::of(description);
        self.names = Some(ThreadNames::of(trace, &meanings));
        for event in &description.events {
            let id = usize::from(event.id);
            self.forms.resize(self.forms.len().max(id + 1), None);
            self.forms[id] = Some(form(event, &meanings));
        }
        self.note_missed(trace);
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let record = &event.record;
        match event.time_ns {
            Some(ns) => self.out.seconds(ns),
            None => self.out.number(record.time),
        };
        self.out.text("  [");
        place(&mut self.out, record.processor, record.file, "/");
        self.out.text("]  #").number(record.serial);
        match (event.layout, self.forms.get(usize::from(record.event)).and_then(Option::as_ref)) {
            (Some(layout), Some(form)) => {
                // Learnt before the line is written: a new name already holds for this event.
                if let Some(names) = self.names.as_mut().filter(|_| form.tells_names) {
                    names.learn(record);
                }
                self.out.piece(&form.name);
                for (form, field) in form.fields.iter().zip(&layout.fields) {
                    self.out.piece(&form.name);
                    value(&mut self.out, field.value(record.bytes).as_ref(), &self.symbols);
                    if form.is_thread {
                        let names = self.names.as_ref().zip(number(Some(field), record.bytes));
                        if let Some(name) = names.and_then(|(names, thread)| names.thread(thread)) {
                            self.out.piece(name);
                        }
                    }
                }
            }
            _ => _ = self.out.text("  ").text(event.name()).text(" "),
        }
        self.out.end("\n")
    }

    fn overhear(&mut self, record: &Record<'_>) {
        self.names.iter_mut().for_each(|names| names.learn(record));
    }

    fn lost(&mut self, gap: &Gap, _: Option<u64>) -> io::Result<()> {
        let why = if gap.unreadable { "cannot be read" } else { "lost" };
        self.out.text("-- processor ");
        place(&mut self.out, gap.processor, gap.file, ", file ");
        self.out.text(": ").number(gap.events);
        self.out.text(" events ").text(why).text(", from #").number(gap.first_serial).end(" on\n")
    }

    fn unreadable(&mut self, error: &ReadError) -> io::Result<()> {
        // The error may quote the directory's name, which may hold anything.
        self.out.text("-- ").text(&without_controls(&error.to_string())).end("\n")
    }

    fn finish(&mut self, accounts: &[Account]) -> io::Result<()> {
        for account in accounts {
            self.out.text("-- ").text(&account.to_string()).text("\n");
        }
        if !accounts.is_empty() {
            self.write_missed();
        }
        self.out.flush()
    }
}

impl<W: io::Write> Text<W> {
    fn note_missed(&mut self, trace: &Trace) {
        let TraceDescription { circumstances, clock, .. } = trace.description();
        // Without a clock that can be converted, the lines cannot say when it was.
        let Some(clock) = clock.converter() else {
            self.missed_somewhere = circumstances.missed_runs;
            return;
        };
        let missed = circumstances.missed.iter();
        self.missed = missed
            .map(|missed| ([missed.since, missed.until].map(|time| clock.ns(time)), missed.runs))
            .collect();
        let known = self.missed.iter().map(|(_, runs)| runs).sum();
        // Both numbers come from the description and need not agree.
        self.missed_somewhere = circumstances.missed_runs.saturating_sub(known);
    }

    fn write_missed(&mut self) {
        const WHAT: &str = " runs of programs were left out by the kernel, without a gap";
        for &([since_ns, until_ns], runs) in &self.missed {
            self.out.text("-- ").number(runs).text(WHAT).text(", between ");
            self.out.seconds(since_ns).text(" and ").seconds(until_ns).text("\n");
        }
        if self.missed_somewhere > 0 {
            self.out.text("-- ").number(self.missed_somewhere).text(WHAT).text("\n");
        }
    }
}

/// Writes a processor's number, and the file's number if it differs.
#[inline]
fn place<W: io::Write>(out: &mut TextWriter<W>, processor: u32, file: u32, between: &str) {
    out.number(processor);
    if file != processor {
        out.text(between).number(file);
    }
}

#[inline]
fn value<W: io::Write>(out: &mut TextWriter<W>, value: Option<&Value<'_>>, symbols: &BTreeMap<u64, String>) {
    match value {
        Some(Value::Unsigned(number)) => out.number(*number),
        Some(Value::Bool(truth)) => out.text(if *truth { "yes" } else { "no" }),
        Some(Value::Address(address)) => match symbols.get(address) {
            Some(name) => out.text(name),
            None => out.address(*address),
        },
        Some(Value::Signed(number)) => out.signed(*number),
        Some(Value::Float(number)) => out.float(*number),
        // Escaped: a trace's text must not steer a terminal.
        Some(Value::Text(text)) => out.text(&format!("{text:?}")),
        Some(Value::Bytes(bytes)) => out.hexadecimal(bytes),
        None => out.text("?"),
    };
}
