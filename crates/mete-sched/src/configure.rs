//! Configuring the logs: which log files a source gets, and which event of which domain goes to
//! which (LOG-5, LOG-7; thesis §4.5.1).

use mete_log::{Control, DomainId, Entries, FileId, FileSpec, Plan, PlanError, Shape, Stamp};

use crate::sources::{EventUse, Meaning, Source, SourceError};

/// How events are spread over log files (LOG-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One file for each event, all domains in it. The poll then looks at a handful of indices.
    #[default]
    PerEvent,
    /// One file for each domain, all events in it: the papers' domain-local buffers. A domain that
    /// floods its file costs no other domain a row.
    PerDomain,
}

/// The largest file; 16,384 rows in 20 ms is 800,000 a second on one processor.
const MAX_ROWS: u32 = 16_384;
/// The smallest file that is worth reading.
const MIN_ROWS: u32 = 16;
/// Rows of the run-queue file: 20 ms at 10,000 Hz.
const RUN_QUEUE_ROWS: u32 = 256;
/// Who did what to whom; the three share a word.
const WHO: Entries = Entries::EVENT.and(Entries::DOMAIN).and(Entries::CORRESPONDENT);

/// One log file as the reader knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Its number.
    pub file: FileId,
    /// Its control word.
    pub control: Control,
    /// What people call it: the event's name or `domain N`.
    pub name: String,
}

/// A source's logs as configured.
#[derive(Clone, Debug)]
pub struct Configuration {
    plan: Plan,
    /// The files, without the null file.
    pub files: Vec<LogFile>,
}

impl Configuration {
    /// Lays out the logs of these events for domains 0 to `domains`, exclusive.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the shape has no room.
    pub fn new(
        shape: Shape,
        events: &[EventUse],
        domains: usize,
        layout: Layout,
    ) -> Result<Configuration, PlanError> {
        let mut configuration = Configuration { plan: Plan::new(shape), files: Vec::new() };
        match layout {
            Layout::PerEvent => configuration.add_event_files(shape, events)?,
            Layout::PerDomain => configuration.add_domain_files(shape, events, domains)?,
        }
        for event in events {
            for domain in 0..shape.domains() {
                configuration.plan.threshold(event.event, domain as DomainId, event.threshold)?;
            }
        }
        Ok(configuration)
    }

    /// The same for a source, whose areas are then programmed. Its producers may run meanwhile.
    ///
    /// # Errors
    ///
    /// [`SourceError::Plan`] if its areas have no room.
    pub fn apply_to(
        source: &dyn Source,
        domains: usize,
        layout: Layout,
    ) -> Result<Configuration, SourceError> {
        let failed = |error| SourceError::Plan { label: source.label().to_owned(), source: error };
        let configuration =
            Configuration::new(source.shape(), source.events(), domains, layout).map_err(failed)?;
        for processor in 0..source.processors() {
            configuration.plan.apply(source.area(processor));
        }
        Ok(configuration)
    }

    fn add_event_files(&mut self, shape: Shape, events: &[EventUse]) -> Result<(), PlanError> {
        let specs =
            fit(events.iter().map(|event| spec_of(event.meaning)).collect(), shape.data_bytes() as u64);
        for (event, spec) in events.iter().zip(specs) {
            let file = self.add(spec, event.name.clone())?;
            self.plan.route_event(event.event, file)?;
        }
        Ok(())
    }

    fn add_domain_files(
        &mut self,
        shape: Shape,
        events: &[EventUse],
        domains: usize,
    ) -> Result<(), PlanError> {
        let domains = domains.min(shape.domains()).min(shape.files() - 1);
        let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows: MAX_ROWS };
        let specs = fit(vec![spec; domains], shape.data_bytes() as u64);
        for (domain, spec) in specs.into_iter().enumerate() {
            let file = self.add(spec, format!("domain {domain}"))?;
            for event in events {
                self.plan.route(event.event, domain as DomainId, file)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, spec: FileSpec, name: String) -> Result<FileId, PlanError> {
        let file = self.plan.file(spec)?;
        self.files.push(LogFile { file, control: self.plan.control(file), name });
        Ok(file)
    }
}

/// What a file of one event holds. A wake-up needs no counter, a value needs to be the newest.
fn spec_of(meaning: Meaning) -> FileSpec {
    let with_counter = WHO.and(Entries::COUNTER);
    let (entries, stamp, rows) = match meaning {
        // The stamps say when the present phase began, whose end is not logged yet.
        Meaning::ServiceTime => (with_counter, Stamp::Hardware, MAX_ROWS / 2),
        // A program that grows faults several hundred thousand times a second.
        Meaning::Memory => (with_counter, Stamp::Hardware, MAX_ROWS / 2),
        Meaning::Sample => (with_counter, Stamp::Hardware, MAX_ROWS / 8),
        Meaning::Sent | Meaning::Received => (WHO, Stamp::None, MAX_ROWS),
        Meaning::RunQueue => (with_counter, Stamp::None, RUN_QUEUE_ROWS),
        Meaning::Counter => (with_counter, Stamp::None, MAX_ROWS / 8),
        Meaning::Access | Meaning::Phase => (with_counter, Stamp::None, MAX_ROWS / 2),
    };
    FileSpec { entries, stamp, add: false, rows }
}

/// Halves all files until they fit.
fn fit(mut specs: Vec<FileSpec>, room: u64) -> Vec<FileSpec> {
    while specs.iter().map(bytes).sum::<u64>() > room && specs.iter().any(|spec| spec.rows > MIN_ROWS) {
        specs.iter_mut().for_each(|spec| spec.rows = (spec.rows / 2).max(MIN_ROWS));
    }
    specs
}

fn bytes(spec: &FileSpec) -> u64 {
    let rows_log2 = spec.rows.trailing_zeros() as u8;
    Control::new(spec.entries, spec.stamp, spec.add, rows_log2, 0).ring_bytes().next_multiple_of(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANINGS: [Meaning; 5] =
        [Meaning::ServiceTime, Meaning::Sent, Meaning::Received, Meaning::Memory, Meaning::RunQueue];

    fn kernel_events(counters: u16) -> Vec<EventUse> {
        let counters = (8..8 + counters).map(|event| EventUse::new(event, "counter", Meaning::Counter));
        let others = MEANINGS.iter().zip(0..).map(|(&meaning, event)| EventUse::new(event, "x", meaning));
        others.chain(counters).collect()
    }

    #[test]
    fn log_7_everything_the_kernel_can_log_fits_in_either_layout() {
        for counters in [0, 1, 16] {
            for (layout, domains) in
                [(Layout::PerEvent, 18), (Layout::PerDomain, 2), (Layout::PerDomain, 255)]
            {
                let made = Configuration::new(Shape::KERNEL, &kernel_events(counters), domains, layout);
                let files = made.unwrap().files;
                let wanted = if layout == Layout::PerEvent { 5 + usize::from(counters) } else { domains };
                assert_eq!(files.len(), wanted);
                assert!(files.iter().all(|file| file.control.rows() >= u64::from(MIN_ROWS)));
            }
        }
    }

    #[test]
    fn log_7_a_component_of_64_events_fits() {
        let events: Vec<_> = (0..64).map(|event| EventUse::new(event, "x", Meaning::Access)).collect();
        let made = Configuration::new(Shape::COMPONENT, &events, 18, Layout::PerEvent).unwrap();
        assert_eq!(made.files.len(), 64);
        assert!(made.files.iter().all(|file| file.control.rows() >= 512));
    }
}
