//! What the analysis makes of rows that handlers write (LOG-16), on plain regions.
#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::sync::{Arc, Mutex};

use mete_log::handler::{Clock, log};
use mete_log::{DomainId, EventId, FileId, NO_DOMAIN, Outcome, Record, Region, Shape};
use mete_policy::{Permille, ProcessorId, Role};
use mete_sched::Layout;
use mete_sched::analysis::{Analysis, Completeness, FileCount, MissedActivity};
use mete_sched::domains::{Change, FIRST, IDLE, OTHER};
use mete_sched::sources::{EventUse, Meaning, RegionSource, Source};
use proptest::prelude::*;

const DRIVER: DomainId = FIRST;
const CLIENT: DomainId = DomainId::new(3);
const DOMAINS: usize = 4;
const BOTH: [Layout; 2] = [Layout::PerEvent, Layout::PerDomain];

const SERVICE: EventId = EventId::new(0);
const SENT: EventId = EventId::new(1);
const RECEIVED: EventId = EventId::new(2);
const MEMORY: EventId = EventId::new(3);
const RUN_QUEUE: EventId = EventId::new(4);
const REQUEST: EventId = EventId::new(5);

struct At(u64);

impl Clock for At {
    fn hardware(&self) -> u64 {
        self.0
    }

    fn tick(&self) -> u64 {
        self.0
    }
}

/// A component of two processors that logs everything, and the analysis that reads it.
struct Bench {
    region: Arc<Region>,
    analysis: Analysis,
}

fn events() -> Vec<EventUse> {
    vec![
        EventUse::new(SERVICE, "service time", Meaning::ServiceTime),
        EventUse::new(SENT, "ipc sent", Meaning::Sent),
        EventUse::new(RECEIVED, "ipc received", Meaning::Received),
        EventUse::new(MEMORY, "memory", Meaning::Memory),
        EventUse::new(RUN_QUEUE, "run queue", Meaning::RunQueue),
        EventUse::new(REQUEST, "request", Meaning::Access),
    ]
}

impl Bench {
    fn new(layout: Layout) -> Bench {
        Bench::with(layout, events())
    }

    fn with(layout: Layout, events: Vec<EventUse>) -> Bench {
        let region = Arc::new(Region::create(Shape::KERNEL, 2).unwrap());
        let mut analysis = Analysis::new(2, vec![None; DOMAINS], layout, 0);
        analysis.add(Box::new(RegionSource::new("bench", region.clone(), events))).unwrap();
        Bench { region, analysis }
    }

    fn log(
        &self,
        processor: usize,
        now: u64,
        event: EventId,
        domain: DomainId,
        correspondent: DomainId,
        counter: u64,
    ) {
        let record = Record { event, domain, correspondent, counter };
        assert_eq!(log(self.region.area(processor), &At(now), record), Outcome::Logged);
    }
}

#[test]
fn log_16_rows_become_load_affinity_demand_and_transactions() {
    for layout in BOTH {
        let mut bench = Bench::new(layout);
        // Processor 0 has the driver for 40 of 100 ms, and is then idle. Processor 1 has the client all the
        // time.
        bench.log(0, 40_000_000, SERVICE, DRIVER, IDLE, 40_000_000);
        bench.log(1, 1_000_000, SERVICE, IDLE, CLIENT, 1_000_000);
        for _ in 0..30 {
            bench.log(0, 0, REQUEST, DRIVER, CLIENT, 1);
            bench.log(1, 0, SENT, CLIENT, DRIVER, 1);
            bench.log(1, 0, RECEIVED, DRIVER, CLIENT, 1);
        }
        [1, 3].into_iter().for_each(|tasks| bench.log(1, 0, RUN_QUEUE, OTHER, NO_DOMAIN, tasks));
        bench.analysis.poll(100_000_000);
        let period = bench.analysis.end_period(100_000_000);
        assert_eq!(period.roles[DRIVER.index()], Role::Driver, "it reports transactions");
        assert_eq!(period.roles[CLIENT.index()], Role::Client);
        assert_eq!(period.roles[..2], [Role::Bystander; 2]);
        assert_eq!(period.processors[DRIVER.index()], Some(ProcessorId::new(0)));
        assert_eq!(period.processors[CLIENT.index()], Some(ProcessorId::new(1)));
        assert_eq!(period.demand[DRIVER.index()].get(), 400);
        assert_eq!(period.demand[CLIENT.index()].get(), 990, "the phase that goes on counts");
        assert_eq!(period.queue, [400, 2000].map(Permille::new), "without samples, what is in use");
        assert_eq!(period.transactions[CLIENT.index() * DOMAINS + DRIVER.index()], 30);
        assert_eq!(period.transactions.iter().sum::<u64>(), 30);
        assert_eq!(
            [0, 1].map(|processor| bench.analysis.utilisation(processor)),
            [400, 990].map(|used| Some(Permille::new(used)))
        );
        let findings = bench.analysis.findings();
        assert_eq!(findings.working_sets.groups(), [[DRIVER, CLIENT]]);
        assert_eq!(findings.traffic.sent().total().get(CLIENT.index(), DRIVER.index()), 30);
    }
}

#[test]
fn log_16_a_domain_that_only_computes_is_no_client() {
    const HOG: DomainId = CLIENT;
    let mut bench = Bench::new(Layout::PerEvent);
    bench.log(0, 0, REQUEST, DRIVER, OTHER, 1);
    bench.log(0, 90, SERVICE, HOG, IDLE, 90);
    bench.analysis.poll(100);
    let roles = bench.analysis.end_period(100).roles.to_vec();
    assert_eq!((roles[DRIVER.index()], roles[HOG.index()]), (Role::Driver, Role::Bystander));
    bench.log(0, 0, REQUEST, DRIVER, HOG, 1);
    bench.analysis.poll(200);
    assert_eq!(bench.analysis.end_period(200).roles[HOG.index()], Role::Client, "from now on");
    assert_eq!(
        bench.analysis.end_period(300).roles[HOG.index()],
        Role::Bystander,
        "and for as long as it does"
    );
}

#[test]
fn log_16_the_newest_of_all_processors_is_a_domain_s_memory() {
    for layout in BOTH {
        let mut bench = Bench::new(layout);
        bench.log(1, 20, MEMORY, CLIENT, NO_DOMAIN, 2000);
        bench.log(0, 10, MEMORY, CLIENT, NO_DOMAIN, 1000);
        bench.analysis.poll(30);
        let memory = bench.analysis.findings().tallies.iter().find(|tally| tally.name == "memory").unwrap();
        assert_eq!(memory.of(CLIENT).last, 2000);
    }
}

#[test]
fn log_8_a_row_that_stands_for_several_occurrences_counts_that_number() {
    for layout in BOTH {
        let events = vec![EventUse { threshold: 3, ..EventUse::new(SENT, "ipc sent", Meaning::Sent) }];
        let mut bench = Bench::with(layout, events);
        for _ in 0..30 {
            log(
                bench.region.area(0),
                &At(0),
                Record { event: SENT, domain: CLIENT, correspondent: DRIVER, counter: 1 },
            );
        }
        bench.analysis.poll(1);
        let traffic = &bench.analysis.findings().traffic;
        assert_eq!(traffic.sent().total().get(CLIENT.index(), DRIVER.index()), 30);
        assert_eq!(bench.analysis.completeness().files[0].rows, 10);
    }
}

#[test]
fn log_10_what_a_slow_scheduler_lost_is_stated_for_the_file_and_processor() {
    let mut bench = Bench::new(Layout::PerEvent);
    let written = 100_000;
    for _ in 0..written {
        bench.log(1, 0, SENT, CLIENT, DRIVER, 1);
    }
    bench.log(0, 0, SENT, CLIENT, DRIVER, 1);
    bench.analysis.poll(7);
    let statement = bench.analysis.completeness();
    let of = |processor: usize| -> &FileCount {
        statement.files.iter().find(|f| f.processor == processor).unwrap()
    };
    assert_eq!(of(1).rows + of(1).overwritten, written);
    assert!(of(1).overwritten > 0 && of(0).is_complete());
    assert_eq!((statement.from_ns, statement.to_ns), (0, 7));
    let text = statement.to_string();
    assert!(text.contains("bench, ipc sent, processor 1") && !text.contains("processor 0"), "{text}");
    let counted = bench.analysis.findings().traffic.sent().total().get(CLIENT.index(), DRIVER.index());
    assert_eq!(counted, of(1).rows + 1);
}

#[test]
fn log_10_no_sum_loses_anything_however_late_the_reader_is() {
    const COUNTER: EventId = EventId::new(8);
    let mut all = events();
    all.push(EventUse::new(COUNTER, "page-faults", Meaning::Counter));
    let mut bench = Bench::with(Layout::PerEvent, all);
    let rows = 200_000;
    for nth in 1..=rows {
        let processor = (nth % 2) as usize;
        bench.log(processor, nth, SERVICE, CLIENT, IDLE, 3);
        bench.log(processor, nth, SERVICE, DRIVER, IDLE, 2);
        bench.log(processor, nth, MEMORY, CLIENT, NO_DOMAIN, nth);
        bench.log(processor, nth, COUNTER, DRIVER, CLIENT, 5);
    }
    bench.analysis.poll(rows);
    let statement = bench.analysis.completeness();
    assert!(statement.to_string().starts_with("complete: all 800000 rows"), "{statement}");
    let findings = bench.analysis.findings();
    assert_eq!(findings.service.total_ns(CLIENT), 3 * rows);
    assert_eq!(findings.service.total_ns(DRIVER), 2 * rows);
    let tally = |name| findings.tallies.iter().find(|tally| tally.name == name).unwrap();
    assert_eq!(tally("memory").of(CLIENT).last, rows);
    let faults = tally("page-faults").of(DRIVER);
    assert_eq!((faults.rows, faults.sum), (rows, 5 * rows));
    assert_eq!(tally("page-faults").of(CLIENT).rows, 0);
    // A second look adds what came in between, and nothing else.
    bench.log(1, rows + 1, COUNTER, DRIVER, CLIENT, 7);
    bench.analysis.poll(rows + 1);
    let findings = bench.analysis.findings();
    let tally = findings.tallies.iter().find(|tally| tally.name == "page-faults").unwrap();
    assert_eq!((tally.of(DRIVER).rows, tally.of(DRIVER).sum), (rows + 1, 5 * rows + 7));
}

#[test]
fn log_16_one_row_speaks_for_both_sides_of_a_wake_up() {
    for layout in BOTH {
        let mut bench = Bench::with(layout, vec![EventUse::new(SENT, "ipc", Meaning::Woke)]);
        (0..7).for_each(|_| bench.log(0, 0, SENT, CLIENT, DRIVER, 1));
        bench.analysis.poll(1);
        let (client, driver) = (CLIENT.index(), DRIVER.index());
        let traffic = &bench.analysis.findings().traffic;
        assert_eq!(traffic.sent().total().get(client, driver), 7);
        assert_eq!(traffic.received().total().get(driver, client), 7);
        assert_eq!(traffic.received().total().get(client, driver), 0);
    }
}

#[test]
fn log_10_the_statement_of_an_interval_leaves_out_what_came_before() {
    let mut bench = Bench::new(Layout::PerEvent);
    bench.log(0, 0, SENT, CLIENT, DRIVER, 1);
    bench.analysis.poll(5);
    let first = bench.analysis.completeness();
    assert_eq!(first.files[0].rows, 1);
    bench.analysis.poll(6);
    let second = bench.analysis.completeness();
    let quiet = second.since(&first);
    assert_eq!((quiet.from_ns, quiet.to_ns, quiet.files[0].rows), (5, 6, 0));
    assert_eq!(quiet.to_string(), "nothing was read: no row was logged");
    bench.log(0, 0, SENT, CLIENT, DRIVER, 1);
    bench.analysis.poll(9);
    assert_eq!(bench.analysis.completeness().since(&second).files[0].rows, 1);
}

/// What a component reports as missed.
struct Answers {
    is_alive: bool,
    missed: Option<MissedActivity>,
}

/// A component that can end, and that reports what it has missed.
struct Mortal {
    inner: RegionSource,
    answers: Arc<Mutex<Answers>>,
}

impl Mortal {
    fn new(inner: RegionSource) -> (Box<Mortal>, Arc<Mutex<Answers>>) {
        let answers =
            Arc::new(Mutex::new(Answers { is_alive: true, missed: Some(MissedActivity::default()) }));
        (Box::new(Mortal { inner, answers: answers.clone() }), answers)
    }
}

impl Source for Mortal {
    fn label(&self) -> &str {
        self.inner.label()
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn processors(&self) -> usize {
        self.inner.processors()
    }

    fn area(&self, processor: usize) -> mete_log::Area<'_> {
        self.inner.area(processor)
    }

    fn events(&self) -> &[EventUse] {
        self.inner.events()
    }

    fn bind(&mut self, change: Change) -> Result<(), mete_sched::sources::SourceError> {
        self.inner.bind(change)
    }

    fn missed(&self) -> Option<MissedActivity> {
        self.answers.lock().unwrap().missed
    }

    fn is_alive(&self) -> bool {
        self.answers.lock().unwrap().is_alive
    }
}

#[test]
fn log_10_what_never_became_a_row_is_in_the_statement() {
    let mut bench = Bench::new(Layout::PerEvent);
    let (source, answers) = Mortal::new(RegionSource::new("kernel", bench.region.clone(), events()));
    bench.analysis.add(source).unwrap();
    let now = |runs, spaces, switches| {
        answers.lock().unwrap().missed =
            Some(MissedActivity { runs, spaces, switches, ..MissedActivity::default() });
    };
    let nothing = bench.analysis.completeness();
    assert_eq!(nothing.to_string(), "nothing was read: no row was logged");

    now(0, 0, 5);
    let before = bench.analysis.completeness();
    let statement = before.since(&nothing);
    let text = statement.to_string();
    assert!(statement.is_complete() && text.contains("\n  5 context switches went unreported"), "{text}");

    now(7, 3, 6);
    let whole = bench.analysis.completeness();
    let statement = whole.since(&before);
    assert_eq!(
        statement.missed,
        Some(MissedActivity { runs: 7, spaces: 3, switches: 1, ..MissedActivity::default() })
    );
    let text = statement.to_string();
    assert!(
        !statement.is_complete() && text.starts_with("incomplete: 0 rows were read, 0 were lost"),
        "{text}"
    );
    assert!(text.contains("7 runs of log handlers") && text.contains("3 address spaces"), "{text}");
    let rest = bench.analysis.completeness().since(&whole);
    assert_eq!(rest.to_string(), "nothing was read: no row was logged");
    assert_eq!(
        whole.missed,
        Some(MissedActivity { runs: 7, spaces: 3, switches: 6, ..MissedActivity::default() })
    );

    answers.lock().unwrap().missed = None;
    let statement = bench.analysis.completeness();
    assert!(!statement.is_complete() && statement.to_string().contains("cannot be found out"), "{statement}");
}

#[test]
fn log_16_a_component_that_ends_is_read_to_its_last_row_and_another_with_its_name_continues_its_counts() {
    let mut analysis = Analysis::new(2, vec![None; DOMAINS], Layout::PerEvent, 0);
    let mut before = analysis.completeness();
    for so_far in 0..2 {
        let region = Arc::new(Region::create(Shape::COMPONENT, 2).unwrap());
        let uses = vec![EventUse::new(EventId::new(0), "request", Meaning::Access)];
        let (source, answers) = Mortal::new(RegionSource::new("server", region.clone(), uses));
        analysis.add(source).unwrap();
        analysis.drop_ended(1);
        assert_eq!(analysis.sources().count(), 1);
        let record = Record { event: EventId::new(0), domain: DRIVER, correspondent: CLIENT, counter: 2 };
        assert_eq!(log(region.area(1), &At(0), record), Outcome::Logged);
        answers.lock().unwrap().is_alive = false;
        analysis.drop_ended(2);
        assert_eq!(analysis.sources().count(), 0);
        let rows =
            |statement: &Completeness| statement.files.iter().map(|file| file.rows).collect::<Vec<_>>();
        let now = analysis.completeness();
        assert_eq!(rows(&now.since(&before)), [1], "in the interval in which it ended");
        assert_eq!(rows(&now), [so_far + 1], "one entry for both");
        before = now;
    }
    assert_eq!(analysis.completeness().since(&before).to_string(), "nothing was read: no row was logged");
    assert_eq!(analysis.findings().tallies.len(), 1);
    assert_eq!(analysis.findings().tallies[0].of(DRIVER).sum, 4);
    assert_eq!(analysis.findings().traffic.total_transactions(CLIENT, DRIVER), 4);
}

#[test]
fn log_6_bindings_reach_the_component_s_table_and_leave_it_again() {
    let region = Arc::new(Region::create(Shape::COMPONENT, 1).unwrap());
    let mut source = RegionSource::new("server", region.clone(), Vec::new());
    let mut change = Change { pid: 77, from: OTHER, to: CLIENT, is_alive: true, is_by_cgroup: false };
    source.bind(change).unwrap();
    assert_eq!(region.bindings().domain_of(77), Some(CLIENT));
    change.is_alive = false;
    source.bind(change).unwrap();
    assert_eq!(region.bindings().domain_of(77), None);
}

fn interesting() -> impl Strategy<Value = u64> {
    prop_oneof![0..8u64, any::<u64>(), Just(u64::MAX), Just(u64::MAX - 1)]
}

proptest! {
    #[test]
    fn log_11_nothing_that_a_component_writes_and_no_clock_makes_the_analysis_fail(
        words in prop::collection::vec((0..400_000usize, interesting()), 0..200),
        rows in prop::collection::vec(
            (0..2usize, 0..40u16, interesting(), interesting(), interesting(), interesting()), 0..60),
        clocks in prop::collection::vec(interesting(), 1..8),
        layout in prop_oneof![Just(Layout::PerEvent), Just(Layout::PerDomain)],
    ) {
        let mut bench = Bench::new(layout);
        for (round, &clock) in clocks.iter().enumerate() {
            for &(processor, event, domain, correspondent, counter, now) in &rows {
                let [domain, correspondent] = [domain, correspondent].map(|number| DomainId::new(number as u16));
                let record = Record { event: EventId::new(event), domain, correspondent, counter };
                log(bench.region.area(processor), &At(now), record);
            }
            for &(at, word) in words.iter().skip(round * 20).take(20) {
                let area = bench.region.area(at);
                let words = area.shape().area_bytes() / 8;
                // SAFETY: the address is inside the area and aligned, and the area is accessed only by
                // atomics.
                let word_at = unsafe { area.base().cast::<std::sync::atomic::AtomicU64>().add(at % words).as_ref() };
                word_at.store(word, std::sync::atomic::Ordering::Relaxed);
                area.register(FileId::new(at as u16)).index.store(word, std::sync::atomic::Ordering::Relaxed);
            }
            bench.analysis.poll(clock);
            let period = bench.analysis.end_period(clock);
            prop_assert_eq!(period.roles.len(), DOMAINS);
            prop_assert!(bench.analysis.completeness().to_string().contains("read"));
        }
    }
}
