//! What stands beside the numbers of threads and processes in tables and JSON lines: names, and the process of each
//! thread. All forms call it the same.
//!
//! ```text
//!   pid   pid_name  pid_process  pid_process_name     tgid  tgid_name
//!   1073  cc1       1070         make                 1070  make
//! ```

use std::collections::{HashMap, HashSet};

use mete_trace::{FieldLayout, Record, Trace, Value};

use crate::meaning::{Meaning, Meanings, What};
use crate::threads::{Threads, number};

/// What is told beside a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Told {
    /// What the thread or the process is called. A process is called as its first thread, whose number it has.
    Name,
    /// The number of the thread's process.
    Process,
    /// What the thread's process is called.
    ProcessName,
}

impl Told {
    const ALL: [Told; 3] = [Told::Name, Told::Process, Told::ProcessName];

    fn of(what: What) -> &'static [Told] {
        match what {
            What::Thread => &Told::ALL,
            What::Process => &[Told::Name],
            _ => &[],
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Told::Name => "name",
            Told::Process => "process",
            Told::ProcessName => "process_name",
        }
    }

    /// What it holds, for the column of this number.
    pub fn doc(self, of: &str) -> String {
        match self {
            Told::Name => format!("the name of {of}; nothing where the trace does not tell it"),
            Told::Process => {
                format!("the number of the process of {of}; nothing where the trace does not tell it")
            }
            Told::ProcessName => {
                format!("the name of the process of {of}; nothing where the trace does not tell it")
            }
        }
    }
}

/// Something that is told beside a field.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What it is called, in all forms.
    pub name: String,
    /// What it is.
    pub told: Told,
    /// The number's field.
    pub field: FieldLayout,
}

/// What is told beside the fields of a trace.
#[derive(Debug)]
pub struct Company {
    threads: Threads,
    /// Of each event by its number, of each of its fields in their order.
    of_events: Vec<Vec<Vec<Beside>>>,
}

impl Company {
    /// Of this trace, as it is before the first event. A name that a field or another of these has gets a number, so
    /// that it means one thing in the whole trace; names in `taken` are not used either.
    pub fn of(trace: &Trace, taken: &[&str]) -> Company {
        let description = &trace.description().description;
        let meanings = Meanings::of(description);
        let mut threads = Threads::new(&meanings, &description.events);
        threads.begin(&trace.description().machine);
        let mut names = Names::new(taken);
        names.taken.extend(
            description.events.iter().flat_map(|event| &event.fields).map(|field| field.name.clone()),
        );
        let most = description.events.iter().map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let mut of_events = vec![Vec::new(); most];
        for event in &description.events {
            let meaning = meanings.event(event.id);
            let all = event.fields.iter().map(|field| beside(field, meaning, &mut names));
            of_events[usize::from(event.id)] = all.collect();
        }
        Company { threads, of_events }
    }

    /// Takes from an event what it says of threads: before it is written, since it is the first of the new time.
    pub fn learn(&mut self, record: &Record<'_>) {
        self.threads.learn(record, |_, _| ());
    }

    /// What is told beside an event's field.
    pub fn beside(&self, event: u16, field: usize) -> &[Beside] {
        let fields = self.of_events.get(usize::from(event)).map_or(&[][..], Vec::as_slice);
        fields.get(field).map_or(&[], Vec::as_slice)
    }

    /// What is known of it now.
    pub fn value(&self, beside: &Beside, record: &Record<'_>) -> Option<Value<'_>> {
        let thread = number(Some(&beside.field), record.bytes)?;
        match beside.told {
            Told::Name => self.name(thread),
            Told::Process => Some(Value::Signed(self.threads.get(thread)?.process?.into())),
            Told::ProcessName => self.name(self.threads.get(thread)?.process?),
        }
    }

    fn name(&self, thread: i32) -> Option<Value<'_>> {
        let name = self.threads.name(thread);
        (!name.is_empty()).then(|| Value::Text(name.into()))
    }
}

fn beside(field: &FieldLayout, meaning: Option<&Meaning>, names: &mut Names) -> Vec<Beside> {
    let is_of = |what: &&What| {
        let mut said = meaning.into_iter().flat_map(|meaning| meaning.fields(**what));
        said.any(|said| said.field.name == field.name && said.field.offset == field.offset)
    };
    let what = [What::Thread, What::Process];
    let told = what.iter().find(is_of).map_or(&[][..], |what| Told::of(*what));
    let beside =
        |told: &Told| Beside { name: names.of(&field.name, *told), told: *told, field: field.clone() };
    told.iter().map(beside).collect()
}

/// The names that were given, and those that others have.
struct Names {
    given: HashMap<(String, Told), String>,
    taken: HashSet<String>,
}

impl Names {
    fn new(taken: &[&str]) -> Names {
        Names { given: HashMap::new(), taken: taken.iter().map(|name| (*name).to_owned()).collect() }
    }

    fn of(&mut self, field: &str, told: Told) -> String {
        let key = (field.to_owned(), told);
        if let Some(name) = self.given.get(&key) {
            return name.clone();
        }
        let plain = format!("{field}_{}", told.suffix());
        let numbered = (2_u64..).map(|number| format!("{plain}_{number}"));
        let mut all = std::iter::once(plain.clone()).chain(numbered);
        let name = all.find(|name| !self.taken.contains(name)).unwrap_or(plain);
        self.taken.insert(name.clone());
        self.given.insert(key, name.clone());
        name
    }
}
