//! Every characteristic of the kernel component, read by the analysis in both layouts (LOG-13, LOG-16).
#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use common::{Running, eventually, kernel};
use mete_kernel::Characteristic;
use mete_log::DomainId;
use mete_log::clock::monotonic_ns;
use mete_sched::Layout;
use mete_sched::analysis::{Analysis, Findings};
use mete_sched::domains::{Change, FIRST, OTHER};
use mete_sched::sources::{KernelSource, Meaning, Source};

const DOMAINS: usize = 4;
const ONE: DomainId = FIRST;
const OTHER_ONE: DomainId = DomainId::new(3);

fn bind(pid: u32, to: DomainId) -> Change {
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

/// Whether every characteristic of the domain was found.
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
        let mut analysis = analysis_that_has_seen_all(source, layout, &mut both);
        let has_ended = bind(4_000_000, ONE);
        assert!(
            analysis.sources_mut().next().unwrap().bind(has_ended).is_ok(),
            "an ended process is no error"
        );
    }
}

/// An analysis of this source that has found something of every characteristic, from what these processes
/// did.
fn analysis_that_has_seen_all(source: KernelSource, layout: Layout, both: &mut [Running]) -> Analysis {
    let processors = source.processors();
    let mut analysis = Analysis::new(processors, vec![None; DOMAINS], layout, monotonic_ns());
    analysis.add(Box::new(source)).unwrap();
    eventually("every characteristic is seen", || {
        for process in &mut *both {
            process.tell("more");
            process.hear();
        }
        analysis.poll(monotonic_ns());
        analysis.end_period(monotonic_ns());
        has_all(analysis.findings(), processors)
    });
    analysis
}

#[test]
fn log_13_what_the_machine_cannot_count_is_reported_and_the_rest_is_logged() {
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

#[test]
fn log_2_a_kernel_that_pauses_has_nothing_attached_that_logs_and_goes_on_with_all_of_it() {
    let Some(kernel) = kernel() else { return };
    let mut both = [Running::waiting(), Running::waiting()];
    let (mut source, missing) = KernelSource::start(kernel, &characteristics()).unwrap();
    assert!(missing.is_empty(), "{missing:?}");
    for (process, domain) in both.iter().zip([ONE, OTHER_ONE]) {
        source.bind(bind(process.pid(), domain)).unwrap();
    }
    let attached = source.kernel().attached();
    for _ in 0..3 {
        source.pause().unwrap();
        assert_eq!(source.kernel().attached(), ["inherit"], "domains are followed, and nothing is logged");
        source.resume().unwrap();
        assert_eq!(source.kernel().attached(), attached);
    }
    let mut analysis = analysis_that_has_seen_all(source, Layout::PerEvent, &mut both);
    analysis.sources_mut().for_each(|source| source.pause().unwrap());
    analysis.pause(monotonic_ns());
    let totals =
        |analysis: &Analysis| [ONE, OTHER_ONE].map(|domain| analysis.findings().service.total_ns(domain));
    let before = (totals(&analysis), rows(&analysis));
    for process in &mut both {
        process.tell("more");
        process.hear();
    }
    analysis.poll(monotonic_ns());
    assert_eq!((totals(&analysis), rows(&analysis)), before, "nothing is logged, and nothing charged");
    analysis.sources_mut().for_each(|source| source.resume().unwrap());
    eventually("it goes on", || {
        both[0].tell("more");
        both[0].hear();
        analysis.poll(monotonic_ns());
        totals(&analysis)[0] > before.0[0] && rows(&analysis) > before.1
    });
}

fn rows(analysis: &Analysis) -> u64 {
    analysis.completeness().files.iter().map(|file| file.rows).sum()
}

/// A group may be removed between the moment in which it is found and the moment in which it is bound.
#[test]
fn log_6_a_control_group_that_was_removed_is_no_failure() {
    let Some(kernel) = kernel() else { return };
    let (mut source, _) = KernelSource::start(kernel, &[]).unwrap();
    source.bind_cgroup("/sys/fs/cgroup/mete-was-removed".as_ref(), ONE).unwrap();
}
