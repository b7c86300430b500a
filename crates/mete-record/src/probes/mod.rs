//! Probe points of programs (`probe:`), recorded as a schema has them.
//!
//! A program writes rows into memory of the log facility, as it does for `mete log`; it has no other way. So
//! the recorder acts as its scheduler: it takes each program that has one of the probes, lays out one log
//! file on each processor for it, reads the rows, and puts the records that the schema makes of them into
//! buffers of its own.
//!
//! ```text
//!   finder ──▶ program ── rows ──▶ log ──▶ queue of the processor ──▶ buffer ──▶ flush thread
//!   (thread)   its probes          (new    in order of time, until     records, with lost
//!               are on              rows)   no earlier row can come     rows as gaps
//!                                               └──── gatherer (thread) ────┘
//! ```

mod clock;
mod gatherer;
mod log;
mod news;
mod points;
mod programs;
mod queue;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use mete_probe::attach::Component;
use mete_probe::directory::Users;
use mete_sched::domains::Change;
use mete_sched::precedence::Precedence;
use mete_sched::sources::{Discovery, SourceError};
use mete_trace::{Buffers, Memory};

use gatherer::Gatherer;
use news::News;
pub use points::ProbePoints;

use crate::error::RecordingError;
use programs::{NotTaken, Programs};

/// How often rows are read. A log file holds 32,768 rows, so a program must write six million a second to
/// overwrite unread ones.
const READ_EVERY: Duration = Duration::from_millis(5);
/// How long the finder waits for a new program before it checks whether one has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a start waits for all programs together that run already. A program that answers at all does so
/// within a moment.
const WAIT_AT_START: Duration = Duration::from_millis(300);
/// How long a switch of events waits for all programs together. A program that is stopped is waited for once.
const WAIT_FOR_SWITCH: Duration = Duration::from_secs(1);
/// The same at the end. Rows that a program writes later are not recorded in any case.
const WAIT_AT_END: Duration = Duration::from_millis(50);

/// The probe points of a schema while they are recorded. Dropped, it switches all probes off.
pub struct Probes {
    shared: Arc<Shared>,
    buffers: Arc<Memory>,
    finder: Option<JoinHandle<()>>,
    gatherer: Option<JoinHandle<()>>,
}

/// What the threads share.
struct Shared {
    points: ProbePoints,
    /// The recorder's side of programs. Locked before `gatherer` where both are.
    programs: Mutex<Programs>,
    gatherer: Mutex<Gatherer>,
    news: Arc<News>,
    finds_no_more: AtomicBool,
    reads_no_more: AtomicBool,
}

/// A thread that panicked while it held the lock has left no state that another thread could misread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Probes {
    /// Takes programs from now on; no probe is on yet. `buffers` has one for each processor, and `present`
    /// are the processes that are in a domain now.
    pub fn start(
        points: ProbePoints,
        buffers: Arc<Memory>,
        present: Vec<Change>,
    ) -> Result<Probes, RecordingError> {
        let processors = buffers.processors();
        let discovery = Discovery::<Component>::start(processors, None, Users::All, &Arc::default())
            .map_err(RecordingError::NoDiscovery)?;
        let news = Arc::<News>::default();
        let shared = Arc::new(Shared {
            programs: Mutex::new(Programs::new(processors, present, Arc::clone(&news))),
            gatherer: Mutex::new(Gatherer::new(Arc::clone(&buffers), points.events())),
            news,
            points,
            finds_no_more: AtomicBool::new(false),
            reads_no_more: AtomicBool::new(false),
        });
        discovery.first(WAIT_AT_START).into_iter().for_each(|found| shared.take(found, &discovery));
        let mut probes = Probes { shared, buffers, finder: None, gatherer: None };
        probes.finder = Some(probes.spawn("mete-finder", move |shared| shared.find(discovery))?);
        probes.gatherer = Some(probes.spawn("mete-gatherer", |shared| shared.gather())?);
        Ok(probes)
    }

    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce(&Shared) + Send + 'static,
    ) -> Result<JoinHandle<()>, RecordingError> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || work(&shared)).map_err(RecordingError::NoThread)
    }

    /// The buffers that get the records.
    pub fn buffers(&self) -> Arc<Memory> {
        Arc::clone(&self.buffers)
    }

    /// From now on these events are recorded, given by their places in the schema. Rows that programs have
    /// written so far are recorded as before.
    pub fn switch(&self, events: &[usize]) {
        self.switch_within(events, WAIT_FOR_SWITCH);
    }

    fn switch_within(&self, events: &[usize], limit: Duration) {
        let Shared { points, programs, gatherer, .. } = &*self.shared;
        let mut programs = lock(programs);
        lock(gatherer).switch(events, points.events());
        programs.switch(points, events);
        programs.settle_within(limit);
    }

    /// Puts the rows that programs have written so far into the buffers, as far as there is room.
    pub fn catch_up(&self) {
        std::thread::sleep(gatherer::HELD);
        lock(&self.shared.gatherer).pass(&self.shared.points, &self.shared.news);
    }

    /// Marks that an event is switched, in its place among the records.
    pub fn mark(&self, event: u16, name: &str, on: bool) {
        lock(&self.shared.gatherer).mark(event, name, on);
    }

    /// Tells programs which process is in which domain now.
    pub fn bind(&self, changes: &[Change]) {
        if !changes.is_empty() {
            lock(&self.shared.programs).bind(changes);
        }
    }

    /// What people should know of programs, each sentence once.
    pub fn news(&self) -> Vec<String> {
        self.shared.news.take()
    }

    /// The names, in quotes, of probes that were wanted and that no program has had so far; `None` if every
    /// one was found.
    pub fn missing(&self) -> Option<String> {
        let programs = lock(&self.shared.programs);
        let names = programs.missing().map(|probe| format!("\"{}\"", self.shared.points.name(probe)));
        let names = names.collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then_some(names)
    }

    /// Switches all probes off and puts the rows that programs have written into the buffers. The flush
    /// threads must still run, or rows find no room.
    pub fn stop(&mut self) {
        self.shared.finds_no_more.store(true, Ordering::Release);
        // A thread that panicked has printed why, and nothing can be done about it here.
        let _ = self.finder.take().map(JoinHandle::join);
        self.switch_within(&[], WAIT_AT_END);
        self.shared.reads_no_more.store(true, Ordering::Release);
        let _ = self.gatherer.take().map(JoinHandle::join);
        lock(&self.shared.programs).let_go();
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// What the finder thread does until it is told to end.
    fn find(&self, discovery: Discovery<Component>) {
        while !self.finds_no_more.load(Ordering::Acquire) {
            if let Some(found) = discovery.next_within(LOOK_EVERY) {
                self.take(found, &discovery);
            }
            let mut programs = lock(&self.programs);
            programs.attend();
            programs.age();
            let (logs, paths) = programs.ended();
            lock(&self.gatherer).end(&logs);
            paths.iter().for_each(|path| discovery.let_go(path));
        }
    }

    /// Takes a program that was found, if it has one of the probes.
    fn take(&self, found: Result<Component, SourceError>, discovery: &Discovery<Component>) {
        let path = found.as_ref().ok().map(|component| component.path().to_owned());
        let mut programs = lock(&self.programs);
        match programs.take(found, &self.points) {
            Ok(log) => lock(&self.gatherer).add(log),
            Err(NotTaken::Refused) => path.iter().for_each(|path| discovery.let_go(path)),
            Err(NotTaken::HasNone) => {}
        }
    }

    /// What the gatherer thread does until it is told to end.
    fn gather(&self) {
        let _precedence = Precedence::take();
        while !self.reads_no_more.load(Ordering::Acquire) {
            lock(&self.gatherer).pass(&self.points, &self.news);
            std::thread::sleep(READ_EVERY);
        }
        lock(&self.gatherer).finish(&self.points, &self.news);
    }
}
