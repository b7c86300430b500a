//! The cost of single switches, from a recording and from programs that watch the clock meanwhile.

use std::collections::HashMap;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_bench::crew::Crew;
use mete_bench::recording::{Recorded, ScratchRecording};
use mete_bench::watch::{self, Gap};
use mete_measure::{Reason, processor};
use mete_trace::NamedItem;
use serde::Serialize;

use crate::klogger::cdf::Distribution;
use crate::klogger::pause;
use crate::trace::{Runs, Usage};

/// The events that are recorded.
pub(super) const EVENTS: [&str; 2] = ["SCHEDIN", "SCHEDOUT"];
/// The number of gaps that each process keeps.
const GAPS: usize = 8_192;

/// The costs with one number of processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct SwitchCosts {
    pub processes: usize,
    /// Nanoseconds from the last instant of the process that leaves to its SCHEDOUT: entering the kernel and
    /// choosing the next process.
    pub choosing: Distribution,
    /// Nanoseconds from a SCHEDIN to the first instant of the process that comes: switching to it and leaving
    /// the kernel.
    pub switching: Distribution,
    /// The milliseconds that both took together in a second: those of the gaps that were kept, so a lower
    /// bound.
    pub ms_a_second: f64,
    /// Percent of all processors' time that other processes used.
    pub others_percent: f64,
    /// Events that the trace has lost.
    pub lost: u64,
}

impl SwitchCosts {
    /// Lets this number of processes compete for one processor.
    pub(super) fn measure(
        processes: usize,
        time: Duration,
        progress: &dyn Progress,
    ) -> Result<SwitchCosts, Reason> {
        let processor = processor::quietest();
        let crew = Crew::start(&vec![Some(processor); processes], watch::words(GAPS), watch::watch)?;
        // The processes wait until they may go, so that the recording has all of their switches.
        let session = ScratchRecording::begin("scheduler", &EVENTS)?;
        crew.go();
        let passed = pause(time, progress);
        crew.stop();
        let recorded = session.end()?;
        let pids = crew.pids();
        let usage = Usage::of(&recorded, Runs::of_own_recording());
        let others_percent = usage.others_percent(|pid| pids.contains(&pid));
        let gaps = (0..processes).map(|nth| watch::gaps(crew.words(nth)));
        let watched: Vec<_> = pids.into_iter().zip(gaps).collect();
        let (choosing, switching) = parts(&recorded, &watched);
        let total: f64 = choosing.iter().chain(&switching).sum();
        Ok(SwitchCosts {
            processes,
            choosing: Distribution::of(choosing),
            switching: Distribution::of(switching),
            ms_a_second: total / 1e6 / passed.as_secs_f64(),
            others_percent,
            lost: recorded.lost(),
        })
    }

    /// The part of [`SwitchCosts::ms_a_second`] that choosing took.
    pub(super) fn choosing_ms_a_second(&self) -> f64 {
        let [choosing, switching] =
            [&self.choosing, &self.switching].map(|of| of.values().iter().sum::<f64>());
        let both = choosing + switching;
        if both > 0.0 { self.ms_a_second * choosing / both } else { 0.0 }
    }
}

/// The costs before each SCHEDOUT and after each SCHEDIN of the processes that watch the clock.
fn parts(recorded: &Recorded, watched: &[(i32, Vec<Gap>)]) -> (Vec<f64>, Vec<f64>) {
    let events_of = events_by_process(recorded);
    let switches = watched.iter().flat_map(|(pid, gaps)| {
        let events = events_of.get(pid).map(Vec::as_slice).unwrap_or_default();
        gaps.iter().filter_map(move |gap| switch_in(gap, events))
    });
    switches.unzip()
}

/// Whether an event is a SCHEDOUT, and its time.
type SwitchEvent = (bool, u64);

fn events_by_process(recorded: &Recorded) -> HashMap<i32, Vec<SwitchEvent>> {
    let mut events_of: HashMap<i32, Vec<SwitchEvent>> = HashMap::new();
    recorded.each(|next| {
        if let NamedItem::Event(seen) = next {
            let is_out = seen.name() == "SCHEDOUT";
            events_of.entry(seen.pid("pid")).or_default().push((is_out, seen.time_ns));
        }
    });
    events_of
}

/// The times of choosing and of switching in a gap. A gap in which a process left and came several times does
/// not show the cost of any single switch.
fn switch_in(gap: &Gap, events: &[SwitchEvent]) -> Option<(f64, f64)> {
    // The events of a process come in order of time.
    let first = events.partition_point(|(_, time_ns)| *time_ns < gap.from_ns);
    let last = events.partition_point(|(_, time_ns)| *time_ns <= gap.to_ns);
    // Exactly one SCHEDOUT and then one SCHEDIN in the gap.
    let [(true, out_ns), (false, in_ns)] = events[first..last.max(first)] else { return None };
    Some(((out_ns - gap.from_ns) as f64, (gap.to_ns - in_ns) as f64))
}

/// For each processor, the nanoseconds from each SCHEDOUT to the SCHEDIN that follows.
pub(super) fn between(recorded: &Recorded) -> Vec<Vec<f64>> {
    let mut between = vec![Vec::new(); recorded.processors()];
    let mut left = vec![None; recorded.processors()];
    recorded.each(|next| match next {
        NamedItem::Lost { processor } => left[processor as usize] = None,
        NamedItem::Event(seen) => {
            let of = seen.processor as usize;
            match seen.name() {
                "SCHEDOUT" => left[of] = Some(seen.time_ns),
                "SCHEDIN" => between[of].extend(left[of].take().map(|left| (seen.time_ns - left) as f64)),
                _ => {}
            }
        }
    });
    between
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    #[test]
    fn klog_9_a_switch_costs_what_lies_around_its_events_and_the_programs() {
        let mut written = Written::new("scheduler", 1);
        written.event(0, 1_300, "SCHEDOUT", &[("pid", 7)]);
        written.event(0, 1_320, "SCHEDIN", &[("pid", 8)]);
        written.event(0, 1_900, "SCHEDOUT", &[("pid", 8)]);
        written.event(0, 1_910, "SCHEDIN", &[("pid", 99)]);
        written.event(0, 6_000, "SCHEDOUT", &[("pid", 99)]);
        written.event(0, 6_010, "SCHEDIN", &[("pid", 7)]);
        written.event(0, 6_500, "SCHEDOUT", &[("pid", 7)]);
        let gap = |from_ns, to_ns| Gap { from_ns, to_ns };
        // Process 8 came and left without reading the clock in between.
        let watched = [(7, vec![gap(1_000, 6_400)]), (8, vec![gap(500, 9_000)])];
        let found = parts(&written.read(), &watched);
        assert_eq!(found, (vec![300.0], vec![390.0]));
    }
}
