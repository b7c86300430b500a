//! Logging on and off in turn, while clients and drivers go on: in short pieces, which of two comes first is thrown. So
//! what the machine does besides, and where the kernel has put the processes, meets both alike.
//!
//! One scheduler lasts for all pieces and pauses in every other one, so that a piece need not be long beside what it takes
//! to begin it. Off is off: what logs is detached and probes are patched out, because a program that is only switched off
//! costs its dispatch. What follows processes that begin or become another program stays attached: here, none does.

use std::time::{Duration, Instant};

use anyhow::Result;
use mete_kernel::bench::Bench;
use mete_study::pairs::{Coin, PIECES};
use mete_study::{Piece, Reason, Setting};

use super::cast::{Part, Stage, Tally};
use super::observe::{Loggers, Observed, Observer, POLL};
use super::summary::Kind;
use crate::interrupt;

/// Polls between switching and counting, or the time of these: for the kernel to have let go of what was detached, and for caches
/// to be warm again.
const SETTLE: u32 = 1;
/// Polls of a piece, or the time of these. [`PIECES`] of them are a second, in which a scheduler looks at the processes once.
const PIECE: u32 = 5;

/// What was done in the pieces of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// In all pieces.
    pub tally: Tally,
    /// The processor time of drivers and clients.
    pub used: Duration,
    /// The pieces' lengths.
    pub took: Duration,
}

impl Done {
    fn add(&mut self, piece: Done) {
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
    /// Without.
    pub off: Done,
    /// With.
    pub on: Done,
    /// Requests with by requests without, of [`PIECES`] pieces each.
    pub quotients: Vec<f64>,
    /// What the logs said.
    pub observed: Observed,
}

/// Both for this long, each; `None` if an end was asked for before. `each` hears what is done.
pub fn alternate(
    stage: &Stage,
    clients: &[Part],
    kernel: bool,
    stretch: Duration,
    mut each: impl FnMut(Kind, &[Vec<u64>]),
) -> Result<Option<Alternated>> {
    let mut observer = Observer::start(Kind::Log, stage, clients, kernel)?;
    observer.pause()?;
    let pairs = (stretch.as_nanos() / (POLL * PIECE).as_nanos()).max(1) as usize;
    let (mut coin, mut both) = (Coin::new(), Alternated::default());
    let (mut off, mut on) = (Done::default(), Done::default());
    for pair in 1..=pairs {
        let is_on_first = coin.throw();
        for is_on in [is_on_first, !is_on_first] {
            let count = || Count::of(stage, clients);
            if is_on {
                on.add(logged(&mut observer, Loggers::All, count, |matrix| each(Kind::Log, matrix))?);
            } else {
                each(Kind::Off, &[]);
                off.add(unlogged(count)?);
            }
            if interrupt::asked() {
                return Ok(None);
            }
        }
        if pair.is_multiple_of(PIECES) || pair == pairs {
            both.quotients.extend((off.tally.requests > 0).then(|| on.rate() / off.rate()));
            both.off.add(std::mem::take(&mut off));
            both.on.add(std::mem::take(&mut on));
        }
    }
    both.observed = observer.finish();
    Ok(Some(both))
}

/// One piece with logging, at whose end it pauses.
fn logged(
    observer: &mut Observer,
    loggers: Loggers,
    count: impl Fn() -> Result<Count>,
    mut each: impl FnMut(&[Vec<u64>]),
) -> Result<Done> {
    observer.resume(loggers)?;
    observer.run_polls(SETTLE, &mut each);
    let before = count()?;
    observer.run_polls(PIECE, &mut each);
    let done = count()?.since(before);
    observer.pause()?;
    Ok(done)
}

/// One without.
fn unlogged(count: impl Fn() -> Result<Count>) -> Result<Done> {
    std::thread::sleep(POLL * SETTLE);
    let before = count()?;
    std::thread::sleep(POLL * PIECE);
    Ok(count()?.since(before))
}

/// How far they are at a moment.
struct Count {
    tally: Tally,
    used: Duration,
    at: Instant,
}

impl Count {
    fn of(stage: &Stage, clients: &[Part]) -> Result<Count> {
        Ok(Count { tally: stage.tally(clients.len()), used: stage.used(clients)?, at: Instant::now() })
    }

    fn since(&self, before: Count) -> Done {
        Done { tally: self.tally - before.tally, used: self.used - before.used, took: self.at - before.at }
    }
}

/// Whether the kernel may move the demo's processes while `mete bench` counts their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Clients and hogs stay on one processor each, half of the clients beside their drivers: the kernel's balancing would
    /// be noise of another kind than what logging costs.
    Fixed,
    /// The kernel places them, as it does in the demo itself.
    Free,
}

/// The demo's processes for `mete bench`.
pub struct Requests {
    // Fields are dropped in this order: first nothing looks at the processes any more.
    observer: Observer,
    empty: Bench,
    clients: Vec<Part>,
    stage: Stage,
    placement: Placement,
}

/// As many as the demo has.
const CLIENTS: usize = 4;
/// How often a scheduler has the run queues looked at.
const TICK_HERTZ: u32 = 100;

impl Requests {
    /// Sets them to work.
    pub fn start(placement: Placement) -> Result<Requests> {
        let processors = super::own_processors()?;
        super::check_processors(&processors)?;
        let stage = Stage::open(&processors, (processors.len() - 1).min(super::MOST_HOGS))?;
        let clients = stage.start_clients(CLIENTS)?;
        if placement == Placement::Fixed {
            fix(&stage, &clients, &processors)?;
        }
        let mut observer = Observer::start(Kind::Log, &stage, &clients, true)?;
        observer.pause()?;
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
fn fix(stage: &Stage, clients: &[Part], processors: &[usize]) -> Result<()> {
    // Client n favours driver n modulo 2: of two neighbours, one is beside its driver.
    for (nth, client) in clients.iter().enumerate() {
        pin(client, processors[nth / 2 % super::DRIVERS])?;
    }
    for (nth, hog) in stage.hogs().iter().enumerate() {
        pin(hog, processors[processors.len() - 1 - nth % processors.len()])?;
    }
    Ok(())
}

fn pin(part: &Part, processor: usize) -> Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    Ok(rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(part.pid() as i32), &set)?)
}

impl mete_study::Requests for Requests {
    fn piece(&mut self, setting: Setting) -> Result<Piece, Reason> {
        let piece = Requests::piece(self, setting);
        match self.observer.no_kernel() {
            Some(why) => Err(Reason::new(why)),
            None => piece.map_err(|error| Reason::new(crate::failure::sentence(&error))),
        }
    }

    fn placement(&self) -> &'static str {
        match self.placement {
            Placement::Fixed => "clients and hogs stay on their processors",
            Placement::Free => "the kernel moves clients and hogs between processors",
        }
    }
}
