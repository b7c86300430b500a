//! Companions of the fields that are numbers of threads and processes, in tables and JSON lines: names, and
//! the process of each thread. All formats give them the same names.
//!
//! ```text
//!   pid   pid_name  pid_process  pid_process_name     tgid  tgid_name
//!   1073  cc1       1070         make                 1070  make
//! ```

use std::collections::{HashMap, HashSet};
use std::iter;

use mete_trace::{FieldLayout, Record, Trace, Value};

use crate::meaning::{FieldSubject, Meaning, Meanings};
use crate::threads::{Threads, number};

/// What a companion says about its field's thread or process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompanionKind {
    /// The name of the thread or the process. A process has the name of its first thread, whose number it
    /// has.
    Name,
    /// The number of the thread's process.
    Process,
    /// The name of the thread's process.
    ProcessName,
}

impl CompanionKind {
    const ALL: [CompanionKind; 3] = [CompanionKind::Name, CompanionKind::Process, CompanionKind::ProcessName];

    fn of(what: FieldSubject) -> &'static [CompanionKind] {
        match what {
            FieldSubject::Thread => &CompanionKind::ALL,
            FieldSubject::Process => &[CompanionKind::Name],
            _ => &[],
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            CompanionKind::Name => "name",
            CompanionKind::Process => "process",
            CompanionKind::ProcessName => "process_name",
        }
    }

    /// The documentation of the companion of this field.
    pub fn doc(self, field: &str) -> String {
        let what = match self {
            CompanionKind::Name => "name",
            CompanionKind::Process => "number of the process",
            CompanionKind::ProcessName => "name of the process",
        };
        format!("the {what} of {field}; nothing where the trace does not tell it")
    }
}

/// A value that stands beside a field.
#[derive(Clone, Debug)]
pub struct Companion {
    /// Its name, in all formats.
    pub name: String,
    /// What it says.
    pub kind: CompanionKind,
    /// The field with the number of the thread or process.
    pub field: FieldLayout,
}

/// The companions of the fields of a trace.
#[derive(Debug)]
pub struct Companions {
    threads: Threads,
    /// For each event, by its number, and each of its fields, in their order.
    of_events: Vec<Vec<Vec<Companion>>>,
}

impl Companions {
    /// The companions in this trace, with what is known before the first event. A companion's name means one
    /// thing in the whole trace: if a field or another companion has the name, it gets a number. Names in
    /// `taken` are not used, either.
    pub fn of(trace: &Trace, taken: &[&str]) -> Companions {
        let description = &trace.description().description;
        let meanings = Meanings::of(description);
        let mut threads = Threads::new(&meanings, &description.events);
        threads.begin(&trace.description().machine);
        let fields = description.events.iter().flat_map(|event| &event.fields);
        // All fields' names are taken before the first companion gets one: fields keep their names.
        let mut names = CompanionNames::new(taken.iter().copied().chain(fields.map(|field| &*field.name)));
        let most = description.events.iter().map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let mut of_events = vec![Vec::new(); most];
        for event in &description.events {
            let meaning = meanings.event(event.id);
            let all = event.fields.iter().map(|field| companions(field, meaning, &mut names));
            of_events[usize::from(event.id)] = all.collect();
        }
        Companions { threads, of_events }
    }

    /// Takes from an event what it says about threads. This comes before the event is written, because the
    /// event is the first one to which it applies.
    pub fn learn(&mut self, record: &Record<'_>) {
        self.threads.learn(record, |_, _| ());
    }

    /// The companions of an event's field.
    pub fn of_field(&self, event: u16, field: usize) -> &[Companion] {
        let fields = self.of_events.get(usize::from(event)).map_or(&[][..], Vec::as_slice);
        fields.get(field).map_or(&[], Vec::as_slice)
    }

    /// A companion's value in a record, as far as it is known now.
    pub fn value(&self, companion: &Companion, record: &Record<'_>) -> Option<Value<'_>> {
        let thread = number(Some(&companion.field), record.bytes)?;
        match companion.kind {
            CompanionKind::Name => self.name(thread),
            CompanionKind::Process => Some(Value::Signed(self.threads.get(thread)?.process?.into())),
            CompanionKind::ProcessName => self.name(self.threads.get(thread)?.process?),
        }
    }

    fn name(&self, thread: i32) -> Option<Value<'_>> {
        let name = self.threads.name(thread);
        (!name.is_empty()).then(|| Value::Text(name.into()))
    }
}

/// The companions of a field.
fn companions(field: &FieldLayout, meaning: Option<&Meaning>, names: &mut CompanionNames) -> Vec<Companion> {
    // A number that is said to be both is a thread's: that gives all three companions.
    let what = [FieldSubject::Thread, FieldSubject::Process]
        .into_iter()
        .find(|what| is_number_of(field, meaning, *what));
    let kinds = what.map_or(&[][..], CompanionKind::of);
    let named = kinds.iter().map(|kind| (names.of(&field.name, *kind), *kind));
    named.map(|(name, kind)| Companion { name, kind, field: field.clone() }).collect()
}

/// Whether the field has the number of a thread, or of a process.
fn is_number_of(field: &FieldLayout, meaning: Option<&Meaning>, what: FieldSubject) -> bool {
    let mut said = meaning.into_iter().flat_map(|meaning| meaning.fields(what));
    said.any(|said| said.field.name == field.name && said.field.offset == field.offset)
}

/// The names of companions, and those that are taken.
struct CompanionNames {
    given: HashMap<(String, CompanionKind), String>,
    taken: HashSet<String>,
}

impl CompanionNames {
    fn new<'a>(taken: impl Iterator<Item = &'a str>) -> CompanionNames {
        CompanionNames { given: HashMap::new(), taken: taken.map(str::to_owned).collect() }
    }

    fn of(&mut self, field: &str, kind: CompanionKind) -> String {
        let key = (field.to_owned(), kind);
        if let Some(name) = self.given.get(&key) {
            return name.clone();
        }
        let plain = format!("{field}_{}", kind.suffix());
        // Only finitely many names are taken, so the search ends.
        let numbered = (2_u64..).map(|number| format!("{plain}_{number}"));
        let mut all = iter::once(plain.clone()).chain(numbered);
        let name = all.find(|name| !self.taken.contains(name)).unwrap_or(plain);
        self.taken.insert(name.clone());
        self.given.insert(key, name.clone());
        name
    }
}
