//! Threads, their processes and names, as far as the description and the events tell.

use std::collections::HashMap;

use mete_trace::record::FIRST_RESERVED;
use mete_trace::{EventLayout, FieldLayout, Record, ThreadName, Value};

use crate::meaning::{Meanings, What};

/// A thread as it is known. The table grows with the number of threads, not with that of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The kernel's `tgid`.
    pub process: Option<i32>,
    /// What it is called; nothing if nobody said so.
    pub name: String,
}

/// Where an event says something of a thread.
#[derive(Debug)]
struct Told {
    thread: FieldLayout,
    process: Option<FieldLayout>,
    name: Option<FieldLayout>,
}

/// The threads that were seen.
#[derive(Debug)]
pub struct Threads {
    known: HashMap<i32, Known>,
    /// Of each event by its number what it says of threads, the running one first.
    told: Vec<Vec<Told>>,
}

/// A thread and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's `pid`.
    pub thread: i32,
    /// The kernel's `tgid`.
    pub process: i32,
}

impl Threads {
    /// No thread yet.
    pub fn new(meanings: &Meanings, events: &[EventLayout]) -> Threads {
        let own = events.iter().filter(|event| event.id < FIRST_RESERVED);
        let most = own.map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let told = (0..most).map(|number| told(meanings, number as u16)).collect();
        Threads { known: HashMap::new(), told }
    }

    /// Takes who lived while it was recorded. What events say later is newer.
    pub fn begin(&mut self, living: &[ThreadName]) {
        for of in living {
            let number = |number: u32| i32::try_from(number).ok().filter(|number| *number > 0);
            let (Some(thread), process) = (number(of.thread), number(of.process)) else { continue };
            self.known.insert(thread, Known { process, name: of.name.clone() });
        }
    }

    /// Takes from an event what it says, and hands on what is news.
    pub fn learn(&mut self, record: &Record<'_>, mut news: impl FnMut(i32, &Known)) {
        let all = self.told.get(usize::from(record.event)).map_or(&[][..], Vec::as_slice);
        for told in all.iter().filter(|told| told.process.is_some() || told.name.is_some()) {
            let Some(thread) = number(Some(&told.thread), record.bytes).filter(|thread| *thread > 0) else {
                continue;
            };
            let process = number(told.process.as_ref(), record.bytes);
            let name = told.name.as_ref().and_then(|field| field.value(record.bytes));
            let known = self.known.entry(thread).or_default();
            let mut is_news = process.is_some() && known.process != process;
            known.process = process.or(known.process);
            if let Some(Value::Text(name)) = name
                && known.name != name
            {
                is_news = true;
                known.name = name.into_owned();
            }
            if is_news {
                news(thread, known);
            }
        }
    }

    /// All that are known, in the order of their numbers.
    pub fn known(&self) -> impl Iterator<Item = (i32, &Known)> {
        let mut all: Vec<_> = self.known.iter().map(|(thread, known)| (*thread, known)).collect();
        all.sort_by_key(|(thread, _)| *thread);
        all.into_iter()
    }

    /// The name of a thread, if it is known.
    pub fn name(&self, thread: i32) -> &str {
        self.known.get(&thread).map_or("", |known| &known.name)
    }

    /// The thread that an event is about, if it and its process are known.
    pub fn of(&self, record: &Record<'_>) -> Option<Thread> {
        let told = self.told.get(usize::from(record.event))?.first()?;
        let thread = number(Some(&told.thread), record.bytes)?;
        let process = self.known.get(&thread)?.process?;
        Some(Thread { thread, process })
    }
}

fn told(meanings: &Meanings, event: u16) -> Vec<Told> {
    let Some(meaning) = meanings.event(event) else { return Vec::new() };
    let mut all: Vec<_> = meaning.fields(What::Thread).collect();
    all.sort_by_key(|said| !said.who.is_empty());
    let told = |said: &&crate::meaning::Said| Told {
        thread: said.field.clone(),
        process: meaning.field(&said.who, What::Process).cloned(),
        name: meaning.field(&said.who, What::Name).cloned(),
    };
    all.iter().map(told).collect()
}

/// A field's number where it is one that fits.
pub fn number(field: Option<&FieldLayout>, record: &[u8]) -> Option<i32> {
    match field?.value(record)? {
        Value::Signed(number) => number.try_into().ok(),
        Value::Unsigned(number) => number.try_into().ok(),
        Value::Bool(truth) => Some(truth.into()),
        _ => None,
    }
}
