//! The time of a message between two tasks.

use std::io;

use mete_bench::traffic::Echo;
use mete_bench::user::loops::{CORRESPONDENT, ROW};
use mete_bench::user::timed;
use mete_measure::reason::Reason;
use mete_measure::statistics::median;
use mete_probe::probe;

use super::setting::{Setting, Source};

/// Round trips of one piece; then the pieces of one repetition, whose median counts.
const TRIPS: u64 = 100;
const PIECES: usize = 9;

/// The median of some short pieces, most of which are undisturbed. A round trip consists of two messages, with one
/// row each.
pub(super) fn ns_a_message(echo: &mut Echo, source: Source, setting: Setting) -> Result<f64, Reason> {
    let is_probed = source == Source::Probes && setting != Setting::Native;
    // Without a probe in the loop, the native path has not even the disabled instructions.
    let run = if is_probed { probed_trips } else { trips_without_probe };
    let pieces: Result<Vec<f64>, _> = (0..PIECES).map(|_| piece(echo, run)).collect();
    median(&pieces?).ok_or_else(|| Reason::new("no piece was measured"))
}

fn piece(echo: &mut Echo, run: fn(&mut Echo, u64) -> io::Result<()>) -> io::Result<f64> {
    let mut done = Ok(());
    let cost = timed(2 * TRIPS, |_| done = run(echo, TRIPS));
    done.map(|()| cost)
}

#[inline(never)]
fn trips_without_probe(echo: &mut Echo, trips: u64) -> io::Result<()> {
    (0..trips).try_for_each(|_| echo.round_trip())
}

#[inline(never)]
fn probed_trips(echo: &mut Echo, trips: u64) -> io::Result<()> {
    for _ in 0..trips {
        probe!(ROW, CORRESPONDENT);
        echo.send()?;
        echo.receive()?;
        probe!(ROW, CORRESPONDENT);
    }
    Ok(())
}
