//! The value of `--event`: what to log of the kernel.

use std::ops::RangeInclusive;

use mete_kernel::{Characteristic, Counter};

/// Everything that costs almost nothing.
pub const DEFAULT: &str = "service,ipc,memory,run-queue,counters=page-faults,cpu-migrations";
/// Often enough for a mean over the time between two polls, and rare enough to cost almost nothing.
const TICK_HERTZ: u32 = 250;
/// The rates that the kernel component takes.
const TICK_RATES: RangeInclusive<u32> = 1..=10_000;

/// The characteristics of [`DEFAULT`].
pub fn usual() -> Vec<Characteristic> {
    // A test makes sure that each word can be read.
    DEFAULT.split(',').filter_map(|word| characteristic(word).ok()).collect()
}

/// One word of the list. A counter's name may stand alone, so that several can follow `counters=`.
pub fn characteristic(word: &str) -> Result<Characteristic, String> {
    match word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value))) {
        ("service", None) => Ok(Characteristic::ServiceTime),
        ("ipc", None) => Ok(Characteristic::Ipc),
        ("memory", None) => Ok(Characteristic::Memory),
        ("run-queue", None) => Ok(Characteristic::RunQueue { hertz: TICK_HERTZ }),
        ("run-queue", Some(rate)) => match rate.parse() {
            Ok(hertz) if TICK_RATES.contains(&hertz) => Ok(Characteristic::RunQueue { hertz }),
            _ => Err(format!(
                "{rate:?} is no tick rate: write a number of ticks a second from 1 to 10000, such as run-queue=250"
            )),
        },
        // perf's own list is open-ended, so that every other word may be a counter.
        ("counters", Some(counter)) | (counter, None) => {
            counter.parse::<Counter>().map(Characteristic::Counter).map_err(|_| {
                format!(
                    "{counter:?} is neither service, ipc, memory nor run-queue, nor a counter in perf list"
                )
            })
        }
        _ => Err(format!("{word:?} takes no value")),
    }
}
