//! The watchers: two processes that outlive the scheduler only as long as it takes to undo what it changed.
//!
//! A watcher is this program again, started with [`ARGUMENT`]: the program's `main` calls
//! [`take_over_if_asked`] first. [`mete_keeper`] documents how watchers are started, replaced, and informed
//! of the scheduler's end. What they undo is in the journal, to which the scheduler writes before each
//! change. There is one way to defeat the watchers: to kill the scheduler and both watchers within the moment
//! that undoing takes. What is left then is undone by [`recover`](super::recover).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use mete_keeper::Duty;

use super::class::Class;
use super::classes::take_precedence;
use super::journal::Journal;
use super::launch::ROLE;
pub use super::launch::{ARGUMENT, this_program};
use super::ledger::Ledger;
use super::mask::Mask;
use super::pauses::PauseLedger;
use super::threads::ThreadLedger;
use super::weights::WeightLedger;
use crate::domains::process;

/// Becomes a watcher, and does not return, if this program was started as one. `main` of a program that uses
/// [`Affinity`](super::Affinity), [`Classes`](super::Classes), [`Pauses`](super::Pauses) or [`Weights`](super::Weights) must call this
/// first.
pub fn take_over_if_asked() {
    if let Some(duty) = mete_keeper::asked(&ROLE) {
        watch(duty);
        std::process::exit(0);
    }
}

/// What a watcher does from its start to its end.
fn watch(mut duty: Duty) {
    // A watcher logs nothing, so no scheduler should find probes in it. The scheduler that started it is the
    // most important one: it would take the watcher for a component to read.
    mete_probe::withdraw();
    let Some(file) = duty.files.pop() else { return };
    let path = duty.words.first().map_or(OsString::new(), OsString::clone);
    let scheduler = duty.words.get(1).and_then(|word| word.to_str()?.parse().ok());
    if let Ok(Some(journal)) = Journal::<ThreadLedger<Class>>::inherited(&file, &path) {
        take_precedence();
        let mut guard = Guard::new(scheduler, journal);
        let is_idle = |scheduler| process::is_stopped(scheduler) || process::is_ending(scheduler);
        duty.wait_and_look(LOOK, || guard.look(is_idle));
    } else if let Ok(Some(journal)) = Journal::<PauseLedger>::inherited(&file, &path) {
        // One that has been killed ends at once: no thread is in front of it.
        let mut guard = Guard::new(scheduler, journal);
        duty.wait_and_look(LOOK, || guard.look(process::is_stopped));
    } else {
        duty.wait();
    }
    undo::<ThreadLedger<Mask>>(&file, &path);
    undo::<ThreadLedger<Class>>(&file, &path);
    undo::<PauseLedger>(&file, &path);
    undo::<WeightLedger>(&file, &path);
}

/// Undoes what a journal says, if it is of this kind. An error is of no consequence: the other watcher tries,
/// too.
fn undo<L: Ledger>(file: &OwnedFd, path: &OsStr) {
    if let Ok(Some(journal)) = Journal::<L>::inherited(file, path) {
        let _ = journal.undo();
    }
}

/// How often a watcher looks whether the scheduler is stopped or has been killed.
const LOOK: Duration = Duration::from_millis(50);

/// Puts classes back as long as the scheduler is stopped: the threads that are in front would keep all
/// processors. Has paused processes go on, which would wait until it goes on itself. A scheduler that goes on changes
/// all again. Also as soon as it has been killed: it ends only when all of its threads have run once more, the ordinary
/// ones among them, which threads in front would keep from that.
struct Guard<L> {
    scheduler: Option<u32>,
    journal: Journal<L>,
    /// How often the scheduler had run when classes were put back: it may go on and be stopped again between
    /// two looks.
    seen: Option<String>,
}

impl<L: Ledger> Guard<L> {
    fn new(scheduler: Option<u32>, journal: Journal<L>) -> Guard<L> {
        Guard { scheduler, journal, seen: None }
    }

    fn look(&mut self, is_idle: impl Fn(u32) -> bool) {
        let Some(scheduler) = self.scheduler.filter(|scheduler| is_idle(*scheduler)) else {
            self.seen = None;
            return;
        };
        let present = Some(fs::read_to_string(format!("/proc/{scheduler}/schedstat")).unwrap_or_default());
        if present != self.seen {
            // An error is of no consequence: the other watcher tries, too.
            let _ = self.journal.undo_for_now();
            self.seen = present;
        }
    }
}
