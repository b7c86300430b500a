//! The value of `--event`: what to log of the kernel.

use std::ops::RangeInclusive;
use std::str::FromStr;

use mete_kernel::{Characteristic, Counter};

/// Everything that costs almost nothing.
pub const DEFAULT: &str = "service,ipc,memory,run-queue,counters=page-faults,cpu-migrations";
/// Often enough for a mean over the time between two polls, and rare enough to cost almost nothing.
const TICK_HERTZ: u32 = 250;
/// The rates that the kernel component takes.
const TICK_RATES: RangeInclusive<u32> = 1..=10_000;

/// The characteristics of [`DEFAULT`].
pub fn usual() -> Vec<Characteristic> {
    // A test makes sure that the text can be read.
    DEFAULT.parse().map_or_else(|_| Vec::new(), |wanted: WantedCharacteristics| wanted.0)
}

/// A list of characteristics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedCharacteristics(pub Vec<Characteristic>);

impl FromStr for WantedCharacteristics {
    type Err = String;

    fn from_str(text: &str) -> Result<WantedCharacteristics, String> {
        let mut wanted = Vec::new();
        for word in text.split(',') {
            let characteristic = characteristic(word)?;
            if !wanted.contains(&characteristic) {
                wanted.push(characteristic);
            }
        }
        Ok(WantedCharacteristics(wanted))
    }
}

/// One word of the list. A counter's name may stand alone, so that several can follow `counters=`.
fn characteristic(word: &str) -> Result<Characteristic, String> {
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    match (name, value) {
        ("service", None) => Ok(Characteristic::ServiceTime),
        ("ipc", None) => Ok(Characteristic::Ipc),
        ("memory", None) => Ok(Characteristic::Memory),
        ("run-queue", None) => Ok(Characteristic::RunQueue { hertz: TICK_HERTZ }),
        ("run-queue", Some(hertz)) => {
            let rate = hertz.parse().ok().filter(|rate| TICK_RATES.contains(rate));
            let rate = rate.ok_or_else(|| {
                format!(
                    "{hertz:?} is no tick rate: write a number of ticks a second from 1 to 10000, such as run-queue=250"
                )
            });
            Ok(Characteristic::RunQueue { hertz: rate? })
        }
        ("counters", Some(counter)) | (counter, None) => counter.parse::<Counter>().map_or_else(
            |_| {
                Err(format!(
                    "{counter:?} is neither service, ipc, memory nor run-queue, nor a counter in perf list"
                ))
            },
            |counter| Ok(Characteristic::Counter(counter)),
        ),
        _ => Err(format!("{word:?} takes no value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_13_characteristics_and_counters_are_read_from_one_list() {
        let wanted: WantedCharacteristics =
            "service,run-queue=100,counters=page-faults,cs,ipc,ipc".parse().unwrap();
        let counter = |name: &str| Characteristic::Counter(name.parse().unwrap());
        let expected = [
            Characteristic::ServiceTime,
            Characteristic::RunQueue { hertz: 100 },
            counter("page-faults"),
            counter("cs"),
            Characteristic::Ipc,
        ];
        assert_eq!(wanted.0, expected);
        assert!(DEFAULT.parse::<WantedCharacteristics>().is_ok());
    }

    #[test]
    fn log_13_what_nobody_knows_is_refused_by_its_name() {
        for text in [
            "",
            "servise",
            "service=1",
            "run-queue=often",
            "run-queue=0",
            "run-queue=10001",
            "run-queue=-1",
            "counters=",
            "nothing=1",
        ] {
            assert!(text.parse::<WantedCharacteristics>().is_err(), "{text}");
        }
    }
}
