//! Threads, their processes and names, as far as the description and the events tell them.

use mete_trace::description::Machine;
use mete_trace::names::written;
use mete_trace::record::FIRST_RESERVED;
use mete_trace::{EventLayout, FieldLayout, Record, Value};

use crate::meaning::{FieldSubject, Meanings};

/// No kernel has larger numbers (`PID_MAX_LIMIT`). Larger ones are not trusted, which limits the size of the
/// table.
const MOST_THREADS: usize = 1 << 22;
/// The thread is not in the table.
const NOWHERE: u32 = u32::MAX;

/// What is known about a thread. The table grows with the number of threads, not with that of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownThread {
    /// The kernel's `tgid`.
    pub process: Option<i32>,
    /// Its name, as [`written`]; empty if it is not known.
    pub name: String,
}

/// The fields in which an event says something about a thread.
#[derive(Debug)]
struct ThreadFields {
    thread: FieldLayout,
    process: Option<FieldLayout>,
    name: Option<FieldLayout>,
}

/// The threads that were seen. They are found without hashing, because nearly every event has a thread.
#[derive(Debug)]
pub struct Threads {
    known: Vec<(i32, KnownThread)>,
    /// For each thread, by its number, its position in `known`.
    places: Vec<u32>,
    /// For each event, by its number, what it says about threads, the running thread first.
    told: Vec<Vec<ThreadFields>>,
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
        // The recorder's marks have the largest numbers and would make the table large.
        let own = events.iter().filter(|event| event.id < FIRST_RESERVED);
        let most = own.map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let told = (0..most).map(|number| thread_fields(meanings, number as u16)).collect();
        Threads { known: Vec::new(), places: Vec::new(), told }
    }

    /// Takes the threads that lived during the recording. What events say later is newer.
    ///
    /// If events tell names, a thread begins with its first name. If no event does, it has its last name
    /// throughout.
    pub fn begin(&mut self, machine: &Machine) {
        let says_names = self.told.iter().flatten().any(|told| told.name.is_some());
        // After the last names, so that these first ones replace them.
        let before = machine.threads_before.iter().filter(|_| says_names);
        for of in machine.threads.iter().chain(before) {
            let (Some(thread), process) = (positive(of.thread), positive(of.process)) else { continue };
            if let Some(known) = self.entry(thread) {
                *known = KnownThread { process, name: of.name.clone() };
            }
        }
    }

    /// Takes from an event what it says about threads, and hands changes to `news`.
    pub fn learn(&mut self, record: &Record<'_>, mut news: impl FnMut(i32, &KnownThread)) {
        // Taken out, and put back below: what is learnt goes into the other fields of `self`.
        let told = std::mem::take(&mut self.told);
        let all = told.get(usize::from(record.event)).map_or(&[][..], Vec::as_slice);
        for told in all.iter().filter(|told| told.process.is_some() || told.name.is_some()) {
            let thread = number(Some(&told.thread), record.bytes);
            let Some((thread, known)) = thread.and_then(|thread| Some((thread, self.entry(thread)?))) else {
                continue;
            };
            if known.learn(told, record) {
                news(thread, known);
            }
        }
        self.told = told;
    }

    /// The entry of a thread, a new one if the thread is not known; `None` if no kernel gives out such a
    /// number.
    fn entry(&mut self, thread: i32) -> Option<&mut KnownThread> {
        let number = usize::try_from(thread).ok().filter(|number| (1..=MOST_THREADS).contains(number))?;
        if self.places.len() <= number {
            self.places.resize(number + 1, NOWHERE);
        }
        if self.places[number] == NOWHERE {
            self.places[number] = self.known.len() as u32;
            self.known.push((thread, KnownThread::default()));
        }
        self.known.get_mut(self.places[number] as usize).map(|(_, known)| known)
    }

    /// What is known about a thread.
    #[inline]
    pub fn get(&self, thread: i32) -> Option<&KnownThread> {
        let place = self.places.get(usize::try_from(thread).ok()?)?;
        self.known.get(*place as usize).map(|(_, known)| known)
    }

    /// All known threads, in the order of their numbers.
    pub fn known(&self) -> impl Iterator<Item = (i32, &KnownThread)> {
        let mut all: Vec<_> = self.known.iter().map(|(thread, known)| (*thread, known)).collect();
        all.sort_by_key(|(thread, _)| *thread);
        all.into_iter()
    }

    /// The name of a thread, if it is known.
    pub fn name(&self, thread: i32) -> &str {
        self.get(thread).map_or("", |known| &known.name)
    }

    /// The thread that an event is about, if that thread and its process are known.
    pub fn of(&self, record: &Record<'_>) -> Option<Thread> {
        let told = self.told.get(usize::from(record.event))?.first()?;
        let thread = number(Some(&told.thread), record.bytes)?;
        let process = self.get(thread)?.process?;
        Some(Thread { thread, process })
    }
}

impl KnownThread {
    /// Takes what an event says. Returns whether anything has changed.
    fn learn(&mut self, told: &ThreadFields, record: &Record<'_>) -> bool {
        let process = number(told.process.as_ref(), record.bytes).filter(|process| *process > 0);
        let mut is_news = process.is_some() && self.process != process;
        self.process = process.or(self.process);
        let name = told.name.as_ref().and_then(|field| field.text(record.bytes)).map(written);
        if let Some(name) = name
            && self.name != name
        {
            is_news = true;
            self.name = name.into_owned();
        }
        is_news
    }
}

fn thread_fields(meanings: &Meanings, event: u16) -> Vec<ThreadFields> {
    let Some(meaning) = meanings.event(event) else { return Vec::new() };
    let mut all: Vec<_> = meaning.fields(FieldSubject::Thread).collect();
    // The sort is stable, so after the running thread the others keep the order of the schema.
    all.sort_by_key(|said| !said.who.is_empty());
    all.iter()
        .map(|said| ThreadFields {
            thread: said.field.clone(),
            process: meaning.field(&said.who, FieldSubject::Process).cloned(),
            name: meaning.field(&said.who, FieldSubject::Name).cloned(),
        })
        .collect()
}

/// The number, if it can be a thread's or a process's. 0 is the idle thread of every processor.
fn positive(number: u32) -> Option<i32> {
    i32::try_from(number).ok().filter(|number| *number > 0)
}

/// A field's number, if it is a number that fits.
pub fn number(field: Option<&FieldLayout>, record: &[u8]) -> Option<i32> {
    match field?.value(record)? {
        Value::Signed(number) => number.try_into().ok(),
        Value::Unsigned(number) => number.try_into().ok(),
        Value::Bool(truth) => Some(truth.into()),
        _ => None,
    }
}
