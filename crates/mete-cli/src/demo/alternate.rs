//! Switches logging on and off in turn, in short pieces, while clients and drivers go on. In each pair of pieces, a
//! coin decides which one comes first. So other work on the machine, and the processors that the kernel has chosen for
//! the processes, affect both kinds of pieces equally.
//!
//! One scheduler lasts for all pieces and pauses in every other one, so a piece can be short: it need not start a
//! scheduler. In a piece without logging, the loggers are detached and the probes are patched out, because a BPF
//! program that is only switched off still costs its dispatch. The programs that follow processes which start or run
//! another program stay attached: in the demo, no process does.

use std::time::{Duration, Instant};

use anyhow::Result;
use mete_bench::{Piece, Setting};
use mete_command::interrupt;
use mete_kernel::bench::Bench;
use mete_measure::Reason;
use mete_measure::pairs::{Coin, PIECES};

use super::cast::{CastProcess, Stage, Tally};
use super::observe::{Loggers, Observed, Observer, POLL};
use super::summary::StretchKind;

/// Polls (or the time of that number of polls) between switching and counting. Then the kernel has freed what was
/// detached, and caches are warm again.
const SETTLE: u32 = 1;
/// Polls of a piece, or the time of that number of polls. [`PIECES`] pieces take a second, in which a scheduler looks
/// at the processes once.
const PIECE: u32 = 5;

/// The requests that were answered in the pieces of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct PieceTally {
    /// In all pieces.
    pub tally: Tally,
    /// The processor time of drivers and clients.
    pub used: Duration,
    /// The pieces' lengths.
    pub took: Duration,
}

impl PieceTally {
    fn add(&mut self, piece: PieceTally) {
        self.tally = self.tally + piece.tally;
        self.used += piece.used;
        self.took += piece.took;
    }

    /// Requests in a second.
    fn rate(&self) -> f64 {
        self.tally.requests as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// A stretch without logging and one with it, in pieces that alternate.
#[derive(Debug, Default)]
pub struct Alternated {
    /// Without logging.
    pub off: PieceTally,
    /// With logging.
    pub on: PieceTally,
    /// Requests with logging divided by requests without, of [`PIECES`] pieces each.
    pub quotients: Vec<f64>,
    /// What the logs said.
    pub observed: Observed,
}

/// Runs with and without logging, `stretch` long each; `None` if the end was asked for before. Calls `each` with the
/// kind of the present piece and the matrix.
pub fn alternate(
    stage: &Stage,
    clients: &[CastProcess],
    kernel: bool,
    stretch: Duration,
    mut each: impl FnMut(StretchKind, &[Vec<u64>]),
) -> Result<Option<Alternated>> {
    let mut observer = Observer::start(StretchKind::Log, stage, clients, kernel)?;
    observer.pause()?;
    // At least one pair, even if the stretch is shorter than a piece.
    let pairs = (stretch.as_nanos() / (POLL * PIECE).as_nanos()).max(1) as usize;
    let (mut coin, mut both) = (Coin::new(), Alternated::default());
    let (mut off, mut on) = (PieceTally::default(), PieceTally::default());
    for pair in 1..=pairs {
        let is_on_first = coin.throw();
        for is_on in [is_on_first, !is_on_first] {
            let count = || Count::of(stage, clients);
            if is_on {
                on.add(logged(&mut observer, Loggers::All, count, |matrix| each(StretchKind::Log, matrix))?);
            } else {
                each(StretchKind::Off, &[]);
                off.add(unlogged(count)?);
            }
            if interrupt::asked() {
                return Ok(None);
            }
        }
        // A quotient needs enough requests: it is taken of several pairs. The last one may be of fewer.
        if pair.is_multiple_of(PIECES) || pair == pairs {
            both.quotients.extend((off.tally.requests > 0).then(|| on.rate() / off.rate()));
            both.off.add(std::mem::take(&mut off));
            both.on.add(std::mem::take(&mut on));
        }
    }
    both.observed = observer.finish();
    Ok(Some(both))
}

/// One piece with logging; at its end, logging pauses.
fn logged(
    observer: &mut Observer,
    loggers: Loggers,
    count: impl Fn() -> Result<Count>,
    mut each: impl FnMut(&[Vec<u64>]),
) -> Result<PieceTally> {
    observer.resume(loggers)?;
    observer.run_polls(SETTLE, &mut each);
    let before = count()?;
    observer.run_polls(PIECE, &mut each);
    let done = count()?.since(before);
    observer.pause()?;
    Ok(done)
}

/// One piece without logging.
fn unlogged(count: impl Fn() -> Result<Count>) -> Result<PieceTally> {
    std::thread::sleep(POLL * SETTLE);
    let before = count()?;
    std::thread::sleep(POLL * PIECE);
    Ok(count()?.since(before))
}

/// The requests and the processor time until a moment.
struct Count {
    tally: Tally,
    used: Duration,
    at: Instant,
}

impl Count {
    fn of(stage: &Stage, clients: &[CastProcess]) -> Result<Count> {
        Ok(Count { tally: stage.tally(clients.len()), used: stage.used(clients)?, at: Instant::now() })
    }

    fn since(&self, before: Count) -> PieceTally {
        PieceTally {
            tally: self.tally - before.tally,
            used: self.used - before.used,
            took: self.at - before.at,
        }
    }
}

/// Whether the kernel may move the demo's processes while `mete bench` counts their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Clients and hogs stay on one processor each, half of the clients on the processors of their drivers. The
    /// kernel's balancing would add noise that has nothing to do with the cost of logging.
    Fixed,
    /// The kernel may move clients and hogs, as in the demo itself.
    Free,
}

/// The demo's processes for `mete bench`.
pub struct Requests {
    // Fields are dropped in this order: the observer ends before the processes that it looks at.
    observer: Observer,
    empty: Bench,
    clients: Vec<CastProcess>,
    stage: Stage,
    placement: Placement,
}

/// The number of clients that the demo has by default.
const CLIENTS: usize = 4;
/// How often a scheduler samples the run queues.
const TICK_HERTZ: u32 = 100;

impl Requests {
    /// Starts the processes, and lets them run for a moment.
    pub fn start(placement: Placement) -> Result<Requests> {
        let processors = super::own_processors()?;
        super::check_processors(&processors)?;
        let stage = Stage::open(&processors, (processors.len() - 1).min(super::MOST_HOGS))?;
        let clients = stage.start_clients(CLIENTS)?;
        if placement == Placement::Fixed {
            fix(&stage, &clients, &processors)?;
        }
        let mut observer = Observer::start(StretchKind::Log, &stage, &clients, true)?;
        observer.pause()?;
        // Loaded once: only attaching and detaching it is part of a piece.
        let empty = Bench::load()?;
        std::thread::sleep(super::WARM_UP);
        Ok(Requests { observer, empty, clients, stage, placement })
    }

    fn piece(&mut self, setting: Setting) -> Result<Piece> {
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
fn fix(stage: &Stage, clients: &[CastProcess], processors: &[usize]) -> Result<()> {
    // Client n favours driver n modulo 2. Two neighbours share a processor, so one of them is beside its driver.
    for (nth, client) in clients.iter().enumerate() {
        pin(client, processors[nth / 2 % super::DRIVERS])?;
    }
    for (nth, hog) in stage.hogs().iter().enumerate() {
        pin(hog, processors[processors.len() - 1 - nth % processors.len()])?;
    }
    Ok(())
}

fn pin(part: &CastProcess, processor: usize) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    Ok(rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(part.pid() as i32), &set)?)
}

impl mete_bench::Requests for Requests {
    fn piece(&mut self, setting: Setting) -> Result<Piece, Reason> {
        let piece = Requests::piece(self, setting);
        match self.observer.no_kernel() {
            Some(why) => Err(Reason::new(why)),
            None => piece.map_err(|error| Reason::new(mete_command::failure::sentence(&error))),
        }
    }

    fn placement(&self) -> &'static str {
        match self.placement {
            Placement::Fixed => "clients and hogs stay on their processors",
            Placement::Free => "the kernel moves clients and hogs between processors",
        }
    }
}
