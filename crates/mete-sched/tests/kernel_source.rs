//! Every characteristic of the kernel component, read by the analysis in both layouts (LOG-13, LOG-16).
#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use common::{Running, eventually, kernel};
use mete_kernel::Characteristic;
use mete_log::clock::monotonic_ns;
use mete_sched::Layout;
use mete_sched::analysis::{Analysis, Findings};
use mete_sched::domains::{Change, FIRST, OTHER};
use mete_sched::sources::{KernelSource, Meaning, Source};

const DOMAINS: usize = 4;
const ONE: u16 = FIRST;
const OTHER_ONE: u16 = FIRST + 1;

fn bind(pid: u32, to: u16) -> Change {
    Change { pid, from: OTHER, to, is_alive: true, is_by_cgroup: false }
}

fn characteristics() -> Vec<Characteristic> {
    vec![
        Characteristic::ServiceTime,
        Characteristic::Ipc,
        Characteristic::Memory,
        Characteristic::RunQueue { hertz: 200 },
        Characteristic::Counter("page-faults".parse().unwrap()),
    ]
}

/// Whether everything was seen of the domain.
fn has_all(findings: &Findings, processors: usize) -> bool {
    let tallied =
        |meaning| findings.tallies.iter().any(|tally| tally.meaning == meaning && tally.of(ONE).rows > 0);
    let has_run = findings.service.total_ns(ONE) > 0 && findings.service.total_ns(OTHER_ONE) > 0;
    let queues = (0..processors).any(|processor| findings.queues.history(processor).next().is_some());
    has_run && queues && tallied(Meaning::Memory) && tallied(Meaning::Counter)
}

#[test]
fn log_13_every_characteristic_reaches_the_analysis_in_either_layout() {
    for layout in [Layout::PerEvent, Layout::PerDomain] {
        let Some(kernel) = kernel() else { return };
        let mut both = [Running::waiting(), Running::waiting()];
        let (mut source, missing) = KernelSource::start(kernel, &characteristics()).unwrap();
        assert!(missing.is_empty(), "{missing:?}");
        for (process, domain) in both.iter().zip([ONE, OTHER_ONE]) {
            source.bind(bind(process.pid(), domain)).unwrap();
        }
        let processors = source.processors();
        let mut analysis = Analysis::new(processors, vec![None; DOMAINS], layout, monotonic_ns());
        analysis.add(Box::new(source)).unwrap();
        eventually("every characteristic is seen", || {
            for process in &mut both {
                process.tell("more");
                process.hear();
            }
            analysis.poll(monotonic_ns());
            analysis.end_period(monotonic_ns());
            has_all(analysis.findings(), processors)
        });
        let has_ended = bind(4_000_000, ONE);
        assert!(analysis.sources_mut().next().unwrap().bind(has_ended).is_ok(), "who has ended is no error");
    }
}

#[test]
fn log_13_what_the_machine_cannot_count_is_said_and_the_rest_goes_on() {
    let Some(kernel) = kernel() else { return };
    let wanted = [
        Characteristic::ServiceTime,
        Characteristic::Counter("r0".parse().unwrap()),
        Characteristic::RunQueue { hertz: 0 },
    ];
    let (source, missing) = KernelSource::start(kernel, &wanted).unwrap();
    let last = missing.last().unwrap().to_string();
    assert!(last.starts_with("run queue is not logged: a tick rate of 0 Hz"), "{last}");
    assert!(source.events().iter().any(|event| event.meaning == Meaning::ServiceTime));
}
