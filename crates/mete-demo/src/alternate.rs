//! Switches logging on and off in turn, in short pieces, while clients and drivers go on. In each pair of
//! pieces, a coin decides which one comes first. So other work on the machine, and the processors that the
//! kernel has chosen for the processes, affect both kinds of pieces equally.
//!
//! One scheduler lasts for all pieces and pauses in every other one, so a piece can be short: it need not
//! start a scheduler. In a piece without logging, the loggers are detached and the probes are patched out,
//! because a BPF program that is only switched off still costs its dispatch. The programs that follow
//! processes which start or run another program stay attached: in the demo, no process does.

use std::time::{Duration, Instant};

use anyhow::Result;
use mete_command::interrupt;
use mete_measure::pairs::{Coin, PIECES};

use crate::cast::{CastProcess, DemoStage, Tally};
use crate::observe::{Loggers, Observed, Observer, POLL};
use crate::summary::StretchKind;

/// Polls (or the time of that number of polls) between switching and counting. Then the kernel has freed what
/// was detached, and caches are warm again.
const SETTLE: u32 = 1;
/// Polls of a piece, or the time of that number of polls. [`PIECES`] pieces take a second, in which a
/// scheduler looks at the processes once.
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

/// Runs with and without logging, `stretch` long each; `None` if the end was asked for before. Calls
/// `show_progress` with the kind of the present piece and the matrix.
pub fn alternate(
    stage: &DemoStage,
    clients: &[CastProcess],
    kernel: bool,
    stretch: Duration,
    mut show_progress: impl FnMut(StretchKind, &[Vec<u64>]),
) -> Result<Option<Alternated>> {
    let mut observer = Observer::start(StretchKind::Log, stage, clients, kernel)?;
    observer.pause()?;
    // At least one turn, even if the stretch is shorter than a piece.
    let turns = (stretch.as_nanos() / (POLL * PIECE).as_nanos()).max(1) as usize;
    let (mut coin, mut both) = (Coin::new(), Alternated::default());
    let (mut off, mut on) = (PieceTally::default(), PieceTally::default());
    for turn in 1..=turns {
        let is_on_first = coin.throw();
        for is_on in [is_on_first, !is_on_first] {
            let count = || Count::of(stage, clients);
            if is_on {
                on.add(logged(&mut observer, Loggers::All, count, |matrix| {
                    show_progress(StretchKind::Log, matrix)
                })?);
            } else {
                show_progress(StretchKind::Off, &[]);
                off.add(unlogged(count)?);
            }
            if interrupt::asked() {
                return Ok(None);
            }
        }
        // A quotient needs enough requests: it is taken of [`PIECES`] turns, one *pair* in the results. The
        // last one may be of fewer.
        if turn.is_multiple_of(PIECES) || turn == turns {
            both.quotients.extend((off.tally.requests > 0).then(|| on.rate() / off.rate()));
            both.off.add(std::mem::take(&mut off));
            both.on.add(std::mem::take(&mut on));
        }
    }
    both.observed = observer.finish();
    Ok(Some(both))
}

/// One piece with logging; at its end, logging pauses.
pub(crate) fn logged(
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
pub(crate) fn unlogged(count: impl Fn() -> Result<Count>) -> Result<PieceTally> {
    std::thread::sleep(POLL * SETTLE);
    let before = count()?;
    std::thread::sleep(POLL * PIECE);
    Ok(count()?.since(before))
}

/// The requests and the processor time until a moment.
pub(crate) struct Count {
    tally: Tally,
    used: Duration,
    at: Instant,
}

impl Count {
    pub(crate) fn of(stage: &DemoStage, clients: &[CastProcess]) -> Result<Count> {
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
