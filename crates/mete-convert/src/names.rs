//! The names that stand after the numbers of threads in text. They are found without hashing, because nearly
//! every event has a thread.

use mete_trace::names::without_controls;
use mete_trace::{Record, Trace};

use crate::meaning::Meanings;
use crate::threads::Threads;
use crate::write::TextPiece;

/// No kernel has larger thread numbers (`PID_MAX_LIMIT`).
const MOST_THREADS: usize = 1 << 22;
/// The thread has no name.
const NONE: u32 = u32::MAX;

/// The names of threads, as they are at the current event.
#[derive(Debug)]
pub struct ThreadNames {
    threads: Threads,
    /// For each thread, by its number, the position of its name in `names`.
    places: Vec<u32>,
    names: Vec<TextPiece>,
}

impl ThreadNames {
    /// The names of the threads that lived during the recording.
    pub fn of(trace: &Trace, meanings: &Meanings) -> ThreadNames {
        let description = trace.description();
        let mut threads = Threads::new(meanings, &description.description.events);
        threads.begin(&description.machine);
        let mut names = ThreadNames { threads, places: Vec::new(), names: Vec::new() };
        let known: Vec<_> = names.threads.known().map(|(thread, of)| (thread, of.name.clone())).collect();
        known.iter().for_each(|(thread, name)| names.call(*thread, name));
        names
    }

    /// Takes from an event what it says about names.
    pub fn learn(&mut self, record: &Record<'_>) {
        // Collected first: `self.threads` is borrowed while it learns.
        let mut news = Vec::new();
        self.threads.learn(record, |thread, of| news.push((thread, of.name.clone())));
        news.iter().for_each(|(thread, name)| self.call(*thread, name));
    }

    /// A thread's name in brackets; `None` if it has none.
    #[inline]
    pub fn thread(&self, thread: i32) -> Option<&TextPiece> {
        let place = self.places.get(usize::try_from(thread).ok()?)?;
        self.names.get(*place as usize)
    }

    fn call(&mut self, thread: i32, name: &str) {
        // A larger number is no thread's, and would make the table large.
        let Some(thread) = usize::try_from(thread).ok().filter(|thread| *thread < MOST_THREADS) else {
            return;
        };
        if name.is_empty() {
            return;
        }
        self.places.resize(self.places.len().max(thread + 1), NONE);
        let name = TextPiece::new(&format!("({})", without_controls(name)));
        match self.names.get_mut(self.places[thread] as usize) {
            // The position stays: only the text changes.
            Some(known) => *known = name,
            None => {
                self.places[thread] = self.names.len() as u32;
                self.names.push(name);
            }
        }
    }
}
