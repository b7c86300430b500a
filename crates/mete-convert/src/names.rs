//! What stands behind the numbers of threads in text: found without hashing, since nearly every event has one.

use mete_trace::names::without_controls;
use mete_trace::{Record, Trace};

use crate::meaning::Meanings;
use crate::threads::Threads;
use crate::write::Piece;

/// No kernel has larger numbers (`PID_MAX_LIMIT`).
const MOST_THREADS: usize = 1 << 22;
/// No name.
const NONE: u32 = u32::MAX;

/// The names of threads, as they are now.
#[derive(Debug)]
pub struct Names {
    threads: Threads,
    /// Of each thread by its number the place of its name.
    places: Vec<u32>,
    names: Vec<Piece>,
}

impl Names {
    /// Of those who lived while it was recorded.
    pub fn of(trace: &Trace, meanings: &Meanings) -> Names {
        let description = trace.description();
        let mut threads = Threads::new(meanings, &description.description.events);
        threads.begin(&description.machine);
        let mut names = Names { threads, places: Vec::new(), names: Vec::new() };
        let known: Vec<_> = names.threads.known().map(|(thread, of)| (thread, of.name.clone())).collect();
        known.iter().for_each(|(thread, name)| names.call(*thread, name));
        names
    }

    /// Takes from an event what it says of names.
    pub fn learn(&mut self, record: &Record<'_>) {
        let mut news = Vec::new();
        self.threads.learn(record, |thread, of| news.push((thread, of.name.clone())));
        news.iter().for_each(|(thread, name)| self.call(*thread, name));
    }

    /// A thread's name in brackets; `None` if it has none.
    #[inline]
    pub fn thread(&self, thread: i32) -> Option<&Piece> {
        let place = self.places.get(usize::try_from(thread).ok()?)?;
        self.names.get(*place as usize)
    }

    fn call(&mut self, thread: i32, name: &str) {
        let Some(thread) = usize::try_from(thread).ok().filter(|thread| *thread < MOST_THREADS) else {
            return;
        };
        if name.is_empty() {
            return;
        }
        self.places.resize(self.places.len().max(thread + 1), NONE);
        let name = Piece::new(&format!("({})", without_controls(name)));
        match self.names.get_mut(self.places[thread] as usize) {
            Some(known) => *known = name,
            None => {
                self.places[thread] = self.names.len() as u32;
                self.names.push(name);
            }
        }
    }
}
