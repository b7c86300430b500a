//! The demo's processes for `mete bench`, which counts their requests while something is attached and while
//! it is not.

use std::time::Duration;

use anyhow::{Result, bail};
use mete_kernel::bench::Bench;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::alternate::{Count, logged, unlogged};
use crate::cast::{CastProcess, DRIVERS, DemoStage, own_processors, usual_hogs};
use crate::observe::{Loggers, Observer};
use crate::summary::StretchKind;

/// What is attached while requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Nothing.
    Nothing,
    /// An empty program wherever the kernel would be logged.
    Empty,
    /// The kernel and the probes log as in `mete demo`, and the logs are read.
    Logged,
    /// The same, but the logs are read only afterwards.
    Unread,
    /// As [`Setting::Logged`], but only the kernel logs.
    Kernel,
    /// As [`Setting::Logged`], but only the probes log.
    Probes,
}

/// What was measured in one piece of about a tenth of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of requests that were answered.
    pub requests: u64,
    /// The length of the piece.
    pub took: Duration,
    /// The processor time of clients and drivers.
    pub used: Duration,
}

impl Piece {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Whether the kernel may move the demo's processes while `mete bench` counts their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Clients and hogs stay on one processor each, half of the clients on the processors of their drivers.
    /// The kernel's balancing would add noise that has nothing to do with the cost of logging.
    Fixed,
    /// The kernel may move clients and hogs, as in the demo itself.
    Free,
}

impl Placement {
    /// Which of the processes stay on their processors, for a note beside the result.
    pub fn in_words(self) -> &'static str {
        match self {
            Placement::Fixed => "clients and hogs stay on their processors",
            Placement::Free => "the kernel moves clients and hogs between processors",
        }
    }
}

/// The demo's processes for `mete bench`.
pub struct Requests {
    // Fields are dropped in this order: the observer ends before the processes that it looks at.
    observer: Observer,
    empty: Bench,
    clients: Vec<CastProcess>,
    stage: DemoStage,
}

/// How long the processes run before the first piece.
const WARM_UP: Duration = Duration::from_millis(500);
/// The number of clients that the demo has by default.
const CLIENTS: usize = 4;
/// How often a scheduler samples the run queues.
const TICK_HERTZ: u32 = 100;

impl Requests {
    /// Starts the processes, and lets them run for a moment.
    ///
    /// # Errors
    ///
    /// If they cannot be started, or there is one processor only.
    pub fn start(placement: Placement) -> Result<Requests> {
        let processors = own_processors()?;
        let stage = DemoStage::open(&processors, usual_hogs(&processors))?;
        let clients = stage.start_clients(CLIENTS)?;
        if placement == Placement::Fixed {
            fix(&stage, &clients, &processors)?;
        }
        let mut observer = Observer::start(StretchKind::Log, &stage, &clients, true)?;
        observer.pause()?;
        // Loaded once: only attaching and detaching it is part of a piece.
        let empty = Bench::load()?;
        std::thread::sleep(WARM_UP);
        Ok(Requests { observer, empty, clients, stage })
    }

    /// Lets the processes work for a while, and returns what they did.
    ///
    /// # Errors
    ///
    /// If they do not work, or the kernel cannot be logged.
    pub fn piece(&mut self, setting: Setting) -> Result<Piece> {
        let piece = self.counted(setting);
        match self.observer.no_kernel() {
            Some(why) => bail!("{why}"),
            None => piece,
        }
    }

    fn counted(&mut self, setting: Setting) -> Result<Piece> {
        let (stage, clients) = (&self.stage, &self.clients);
        let count = || Count::of(stage, clients);
        let done = match setting {
            Setting::Nothing => unlogged(count)?,
            Setting::Empty => {
                let _attached = self.empty.attach_empty(TICK_HERTZ)?;
                unlogged(count)?
            }
            Setting::Logged => logged(&mut self.observer, Loggers::All, count, |_| ())?,
            Setting::Kernel => logged(&mut self.observer, Loggers::Kernel, count, |_| ())?,
            Setting::Probes => logged(&mut self.observer, Loggers::Probes, count, |_| ())?,
            Setting::Unread => {
                self.observer.resume(Loggers::All)?;
                let done = unlogged(count)?;
                self.observer.pause()?;
                done
            }
        };
        Ok(Piece { requests: done.tally.requests, took: done.took, used: done.used })
    }
}

/// Puts each client and each hog on one processor.
fn fix(stage: &DemoStage, clients: &[CastProcess], processors: &[usize]) -> Result<()> {
    // Client n favours driver n modulo 2. Two neighbours share a processor, so one of them is beside its
    // driver.
    for (nth, client) in clients.iter().enumerate() {
        pin(client, processors[nth / 2 % DRIVERS])?;
    }
    for (nth, hog) in stage.hogs().iter().enumerate() {
        pin(hog, processors[processors.len() - 1 - nth % processors.len()])?;
    }
    Ok(())
}

pub(crate) fn pin(part: &CastProcess, processor: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(processor);
    Ok(sched_setaffinity(Pid::from_raw(part.pid() as i32), &set)?)
}
