//! Which process had a processor from when to when. Each such run is an effective quantum of the paper
//! (§9.1).

use std::collections::HashMap;

use mete_trace::{NamedEvent, NamedItem};

/// A process on a processor, from SCHEDIN to SCHEDOUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The process id; 0 if the processor was idle.
    pub pid: i32,
    /// Which processor.
    pub processor: u32,
    /// When the process got the processor.
    pub from_ns: u64,
    /// When the process left the processor.
    pub to_ns: u64,
    /// How long the recorder's own threads had the processor in between.
    pub own_ns: u64,
    /// Whether the process was preempted: it could have gone on.
    pub is_preempted: bool,
}

impl Run {
    /// How long the process ran.
    pub fn ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns).saturating_sub(self.own_ns)
    }
}

/// Pairs the events of each processor. A run that began before the trace, ended after it or has a gap in it
/// is left out, because its length is not known. A run that only the recorder interrupts goes on afterwards,
/// as if there were no recorder.
#[derive(Debug, Default)]
pub struct Runs {
    /// The id of the recorder's process, if it is known.
    own: Option<i32>,
    processors: HashMap<u32, Processor>,
}

/// The state of a processor, as far as it is known.
#[derive(Debug, Default)]
struct Processor {
    running: Option<Run>,
    /// A run that ended by preemption. It is over, unless only the recorder takes its place for a while.
    left: Option<Run>,
    is_own: bool,
}

impl Runs {
    /// Pairs the events of a recording that this process makes.
    pub fn of_own_recording() -> Runs {
        Runs { own: i32::try_from(std::process::id()).ok(), processors: HashMap::new() }
    }

    /// Takes the next item of the trace. Returns the run that is over now, if there is one.
    pub fn next(&mut self, next: &NamedItem<'_>) -> Option<Run> {
        match next {
            NamedItem::Lost { processor } => self.processors.remove(processor).and(None),
            NamedItem::Event(seen) => match seen.name() {
                "SCHEDIN" => self.begin(seen),
                "SCHEDOUT" => self.end(seen),
                _ => None,
            },
        }
    }

    fn begin(&mut self, seen: &NamedEvent<'_>) -> Option<Run> {
        let (pid, processor) = (seen.pid("pid"), seen.processor);
        let of = self.processors.entry(processor).or_default();
        of.is_own = self.own.is_some_and(|own| own == seen.pid("tgid"));
        if of.is_own {
            return None;
        }
        if let Some(run) = of.left.take_if(|run| run.pid == pid) {
            // Only the recorder was in between, so the run goes on.
            let own_ns = run.own_ns + seen.time_ns.saturating_sub(run.to_ns);
            of.running = Some(Run { own_ns, ..run });
            return None;
        }
        let from_ns = seen.time_ns;
        let is_preempted = false;
        of.running = Some(Run { pid, processor, from_ns, to_ns: from_ns, own_ns: 0, is_preempted });
        // Another process has come: the run that was left is over.
        of.left.take()
    }

    fn end(&mut self, seen: &NamedEvent<'_>) -> Option<Run> {
        let of = self.processors.entry(seen.processor).or_default();
        if of.is_own {
            return None;
        }
        // If another process leaves than the one that came, events are missing in between.
        let run = of.running.take().filter(|run| run.pid == seen.pid("pid"))?;
        let run = Run { to_ns: seen.time_ns, is_preempted: seen.number("state") == 0, ..run };
        // It may go on after a turn of the recorder, so it is not over yet.
        if run.is_preempted {
            of.left = Some(run);
            return None;
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::written::Written;

    fn runs(written: Written, mut runs: Runs) -> Vec<Run> {
        let mut all = Vec::new();
        written.read().each(|next| all.extend(runs.next(&next)));
        all
    }

    fn run(pid: i32, processor: u32, from_ns: u64, to_ns: u64) -> Run {
        Run { pid, processor, from_ns, to_ns, own_ns: 0, is_preempted: false }
    }

    #[test]
    fn klog_9_a_run_lies_between_its_two_events_on_one_processor() {
        let mut written = Written::new("scheduler", 2);
        written.event(0, 100, "SCHEDIN", &[("pid", 7)]);
        written.event(1, 150, "SCHEDIN", &[("pid", 8)]);
        written.event(0, 300, "SCHEDOUT", &[("pid", 7)]);
        written.event(0, 300, "SCHEDIN", &[("pid", 9)]);
        written.event(1, 400, "SCHEDOUT", &[("pid", 8), ("state", 1)]);
        let expected = [Run { is_preempted: true, ..run(7, 0, 100, 300) }, run(8, 1, 150, 400)];
        assert_eq!(runs(written, Runs::default()), expected);
    }

    #[test]
    fn klog_9_what_has_no_beginning_or_a_gap_in_it_is_no_run() {
        let mut written = Written::new("scheduler", 1);
        written.event(0, 100, "SCHEDOUT", &[("pid", 7), ("state", 1)]);
        written.event(0, 200, "SCHEDIN", &[("pid", 7)]);
        written.lose(0, 3);
        written.event(0, 300, "SCHEDOUT", &[("pid", 7), ("state", 1)]);
        written.event(0, 300, "SCHEDIN", &[("pid", 8)]);
        assert_eq!(runs(written, Runs::default()), []);
    }

    #[test]
    fn klog_9_a_run_that_only_the_recorder_interrupts_goes_on() {
        let mut written = Written::new("scheduler", 1);
        written.event(0, 100, "SCHEDIN", &[("pid", 7), ("tgid", 7)]);
        for (time, [leaves, comes]) in [(200, [7, 50]), (210, [50, 7]), (400, [7, 50]), (410, [50, 8])] {
            let state = i64::from(leaves == 50);
            written.event(0, time, "SCHEDOUT", &[("pid", leaves), ("state", state)]);
            written.event(0, time, "SCHEDIN", &[("pid", comes), ("tgid", comes)]);
        }
        let recorder_50 = Runs { own: Some(50), ..Runs::default() };
        let expected = Run { own_ns: 10, is_preempted: true, ..run(7, 0, 100, 400) };
        assert_eq!(runs(written, recorder_50), [expected]);
        assert_eq!(expected.ns(), 290);
    }
}
