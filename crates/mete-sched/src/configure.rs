//! Configuring the logs: which log files a source gets, and to which file each event of each domain goes
//! (LOG-5, LOG-7; thesis §4.5.1).

use mete_log::{Control, DomainId, Entries, FileId, FileSpec, Plan, PlanError, Shape, Stamp};

use crate::sources::{EventUse, Meaning, Source, SourceError};

/// How events are spread over log files (LOG-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One file for each event, with all domains in it. For an event that is wanted as a sum, one file of
    /// totals for each domain instead. No row of it can be lost, because the newest row contains everything.
    #[default]
    PerEvent,
    /// One file for each domain, with all events in it: the papers' domain-local buffers. A domain that
    /// floods its file costs no other domain a row.
    PerDomain,
}

/// Rows of the largest file. 65,536 rows in 20 ms are 3 million a second on one processor, or 300,000 a
/// second for a reader that is 0.2 s late.
const MAX_ROWS: u32 = 65_536;
/// Rows of a file of totals. One of them can be read while the other one is written.
const TOTAL_ROWS: u32 = 2;
/// Rows of the smallest file that is worth reading.
const MIN_ROWS: u32 = 16;
/// Rows of the run-queue file: 20 ms at 10,000 Hz.
const RUN_QUEUE_ROWS: u32 = 256;
/// Which domain did what to which domain; the three entries share a word.
const WHO: Entries = Entries::EVENT.and(Entries::DOMAIN).and(Entries::CORRESPONDENT);

/// A log file from the reader's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// The file's number.
    pub file: FileId,
    /// The file's control word.
    pub control: Control,
    /// What people call it: the event's name or `domain N`. The domains' files with the totals of one event
    /// have the same name.
    pub name: String,
    /// Whether the newest row contains everything, so that the others need not be read.
    pub is_total: bool,
    /// Whether its rows are wake-ups of one word each. Then only the number of equal rows is needed.
    pub is_counted: bool,
}

/// The configured logs of a source.
#[derive(Clone, Debug)]
pub struct Configuration {
    plan: Plan,
    /// The stamp of totals of service time.
    service_stamp: Stamp,
    /// The files, without the null file.
    pub files: Vec<LogFile>,
}

impl Configuration {
    /// Lays out the logs of these events for the domains from 0 up to and without `domains`. Totals of
    /// service time get `service_stamp`, which must be of a clock that this component has.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the shape has no room.
    pub fn new(
        shape: Shape,
        events: &[EventUse],
        domains: usize,
        layout: Layout,
        service_stamp: Stamp,
    ) -> Result<Configuration, PlanError> {
        let mut configuration = Configuration { plan: Plan::new(shape), files: Vec::new(), service_stamp };
        match layout {
            Layout::PerEvent => configuration.add_event_files(shape, events, domains)?,
            Layout::PerDomain => configuration.add_domain_files(shape, events, domains)?,
        }
        for event in events {
            for domain in DomainId::all_below(shape.domains()) {
                configuration.plan.threshold(event.event, domain, event.threshold)?;
            }
        }
        Ok(configuration)
    }

    /// Lays out the logs of a source and programs its areas. Its producers may run at the same time.
    ///
    /// # Errors
    ///
    /// [`SourceError::Plan`] if its areas have no room.
    pub fn apply_to(
        source: &dyn Source,
        domains: usize,
        layout: Layout,
    ) -> Result<Configuration, SourceError> {
        // A run queue's clock is cheaper where there is one.
        let stamp = source.run_queue_offset_ns().map_or(Stamp::Hardware, |_| Stamp::RunQueue);
        let configuration = Configuration::new(source.shape(), source.events(), domains, layout, stamp)
            .map_err(|error| SourceError::Plan { label: source.label().to_owned(), source: error })?;
        for processor in 0..source.processors() {
            configuration.plan.apply(source.area(processor));
        }
        Ok(configuration)
    }

    /// Events get totals as long as there are registers for one file of each domain. After that, they get
    /// rows.
    fn add_event_files(
        &mut self,
        shape: Shape,
        events: &[EventUse],
        domains: usize,
    ) -> Result<(), PlanError> {
        let domains = domains.min(shape.domains());
        // One register is the null file's, and each event needs at least one. More events than registers are
        // an error of the plan, below.
        let (mut registers, mut room) =
            (shape.files().saturating_sub(1 + events.len()), shape.data_bytes() as u64);
        let (mut totals, mut others) = (Vec::new(), Vec::new());
        for event in events {
            let total = total_of(event.meaning, self.service_stamp).filter(|_| domains <= registers);
            match total {
                Some(spec) => {
                    registers -= domains;
                    room = room.saturating_sub(domains as u64 * bytes(&spec));
                    totals.push((event, spec));
                }
                None => others.push(event),
            }
        }
        for (event, spec) in totals {
            self.add_totals(event, spec, domains)?;
        }
        let specs = fit(others.iter().map(|event| spec_of(event.meaning)).collect(), room);
        for (event, spec) in others.into_iter().zip(specs) {
            let file = self.add(spec, event.name.clone(), false)?;
            self.plan.route_event(event.event, file)?;
        }
        Ok(())
    }

    fn add_totals(&mut self, event: &EventUse, spec: FileSpec, domains: usize) -> Result<(), PlanError> {
        for domain in DomainId::all_below(domains) {
            let file = self.add(spec, event.name.clone(), true)?;
            self.plan.route(event.event, domain, file)?;
        }
        Ok(())
    }

    fn add_domain_files(
        &mut self,
        shape: Shape,
        events: &[EventUse],
        domains: usize,
    ) -> Result<(), PlanError> {
        // As many files as there are registers; domains beyond them have the null file, which takes no row.
        let domains = domains.min(shape.domains()).min(shape.files() - 1);
        let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows: MAX_ROWS };
        let specs = fit(vec![spec; domains], shape.data_bytes() as u64);
        for (domain, spec) in DomainId::all_below(domains).zip(specs) {
            let file = self.add(spec, format!("domain {domain}"), false)?;
            for event in events {
                self.plan.route(event.event, domain, file)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, spec: FileSpec, name: String, is_total: bool) -> Result<FileId, PlanError> {
        let file = self.plan.file(spec)?;
        let is_counted = !is_total && spec.entries == WHO && spec.stamp == Stamp::None;
        self.files.push(LogFile { file, control: self.plan.control(file), name, is_total, is_counted });
        Ok(file)
    }
}

/// What a file of totals contains: the sum, for an event that is wanted as a sum; the newest value, for an
/// event whose present value is wanted. `None` for an event of which each row counts.
fn total_of(meaning: Meaning, service_stamp: Stamp) -> Option<FileSpec> {
    let with_counter = WHO.and(Entries::COUNTER);
    let (stamp, add) = match meaning {
        // The stamp says when the present phase began. The end of that phase is not logged yet.
        Meaning::ServiceTime => (service_stamp, true),
        // The stamp says which of several processors' rows is the newest.
        Meaning::Memory => (Stamp::Hardware, false),
        Meaning::Counter => (Stamp::None, true),
        _ => return None,
    };
    Some(FileSpec { entries: with_counter, stamp, add, rows: TOTAL_ROWS })
}

/// What a file of one event contains. A wake-up needs no counter. A value needs a stamp, which says which one
/// is the newest.
fn spec_of(meaning: Meaning) -> FileSpec {
    let with_counter = WHO.and(Entries::COUNTER);
    let (entries, stamp, rows) = match meaning {
        Meaning::ServiceTime | Meaning::Memory => (with_counter, Stamp::Hardware, MAX_ROWS / 8),
        Meaning::Sample => (with_counter, Stamp::Hardware, MAX_ROWS / 32),
        Meaning::Sent | Meaning::Received | Meaning::Woke => (WHO, Stamp::None, MAX_ROWS),
        Meaning::RunQueue => (with_counter, Stamp::None, RUN_QUEUE_ROWS),
        Meaning::Counter => (with_counter, Stamp::None, MAX_ROWS / 32),
        Meaning::Access | Meaning::Phase => (with_counter, Stamp::None, MAX_ROWS / 8),
    };
    FileSpec { entries, stamp, add: false, rows }
}

/// Halves the rows of all files until the files fit, or until none can be smaller.
fn fit(mut specs: Vec<FileSpec>, room: u64) -> Vec<FileSpec> {
    while specs.iter().map(bytes).sum::<u64>() > room && specs.iter().any(|spec| spec.rows > MIN_ROWS) {
        specs.iter_mut().for_each(|spec| spec.rows = (spec.rows / 2).max(MIN_ROWS));
    }
    specs
}

/// The bytes of a file's buffer. Buffers begin at cache lines of 64 bytes.
fn bytes(spec: &FileSpec) -> u64 {
    let rows_log2 = spec.rows.trailing_zeros() as u8;
    Control::new(spec.entries, spec.stamp, spec.add, rows_log2, 0).ring_bytes().next_multiple_of(64)
}

#[cfg(test)]
mod tests {
    use mete_log::EventId;

    use super::*;

    const MEANINGS: [Meaning; 5] =
        [Meaning::ServiceTime, Meaning::Sent, Meaning::Received, Meaning::Memory, Meaning::RunQueue];

    fn kernel_events(counters: u16) -> Vec<EventUse> {
        let counters = (8..8 + counters).map(EventId::new);
        let counters = counters.map(|event| EventUse::new(event, "counter", Meaning::Counter));
        let others = MEANINGS.iter().zip((0..).map(EventId::new));
        let others = others.map(|(&meaning, event)| EventUse::new(event, "x", meaning));
        others.chain(counters).collect()
    }

    fn kernel_files(counters: u16, domains: usize, layout: Layout) -> Vec<LogFile> {
        let events = kernel_events(counters);
        Configuration::new(Shape::KERNEL, &events, domains, layout, Stamp::RunQueue).unwrap().files
    }

    #[test]
    fn log_7_everything_the_kernel_can_log_fits_in_either_layout() {
        for counters in [0, 1, 16] {
            for domains in [2, 18, 255] {
                let by_event = kernel_files(counters, domains, Layout::PerEvent);
                let by_domain = kernel_files(counters, domains, Layout::PerDomain);
                assert_eq!(by_domain.len(), domains);
                let has_room = |file: &LogFile| file.is_total || file.control.rows() >= u64::from(MIN_ROWS);
                assert!(by_event.iter().chain(&by_domain).all(has_room));
            }
        }
    }

    #[test]
    fn log_10_of_what_is_wanted_as_a_sum_every_domain_has_a_total() {
        let totals = |files: &[LogFile]| files.iter().filter(|file| file.is_total).count();
        for domains in [2, 22, 255] {
            let files = kernel_files(1, domains, Layout::PerEvent);
            assert_eq!(totals(&files), 3 * domains, "service time, memory and a counter");
            assert_eq!(files.len(), 3 * domains + 3, "and one file for each other event");
            assert!(files.iter().all(|file| file.is_total || file.name == "x"));
        }
        let many = kernel_files(16, 255, Layout::PerEvent);
        let totals = totals(&many);
        assert_eq!((totals % 255, many.len() - totals), (0, 21 - totals / 255));
        assert!(totals >= 2 * 255, "where there are too many counters, those have rows");
    }

    #[test]
    fn log_7_a_component_of_64_events_fits() {
        let events: Vec<_> =
            EventId::all_below(64).map(|event| EventUse::new(event, "x", Meaning::Access)).collect();
        let made =
            Configuration::new(Shape::COMPONENT, &events, 18, Layout::PerEvent, Stamp::Hardware).unwrap();
        assert_eq!(made.files.len(), 64);
        assert!(made.files.iter().all(|file| file.control.rows() >= 512));
    }
}
