//! The log of one program: rows in memory that the program can write, too, so that it may hold anything.

use std::sync::{Arc, Mutex};

use mete_log::clock::ticks;
use mete_log::{
    Cursor, DomainId, Entries, EventId, FileId, FileSpec, NO_DOMAIN, Plan, PlanError, Region, Row, Rows,
    Shape, Stamp, Ticks,
};
use mete_probe::attach::Component;
use mete_sched::domains::OTHER;
use mete_sched::sources::{Claims, SourceError};

use super::lock;
use super::points::ProbePoints;
use super::queue::{Happening, Logged, Queue};

/// The rows of the one log file in an area: all that it has room for.
const ROWS: u32 = 32_768;
/// How wrong a time stamp may be before it counts as garbled: the counters of processors need not agree to
/// the tick.
const TOLERATED_TICKS: u64 = 1 << 20;

/// The domains that rows of a program may name; `None` for all.
pub type SharedClaims = Arc<Mutex<Option<Claims>>>;

/// A program's rows, and how far they have been read.
pub struct Log {
    /// The program's number.
    pub number: u64,
    /// The program's name and process.
    pub label: String,
    /// Whether the program has ended.
    pub has_ended: bool,
    process: i32,
    claims: SharedClaims,
    /// Whether rows have named domains that they may not.
    is_forged: bool,
    region: Arc<Region>,
    /// The probe of each of its events, if the schema has it.
    probes: Vec<Option<usize>>,
    files: Vec<File>,
}

/// The log file of a processor.
struct File {
    cursor: Cursor,
    /// The number of the next row.
    next: u64,
    /// The latest time stamp so far.
    ticks: Ticks,
    /// When it was read last.
    read: Ticks,
    /// Whether something was read that no handler writes.
    is_garbled: bool,
}

impl Log {
    /// Lays out the memory of a program that is about to get it: one file for all events of all domains, so
    /// that rows stay in order.
    pub fn new(
        number: u64,
        component: &Component,
        region: Arc<Region>,
        points: &ProbePoints,
        claims: SharedClaims,
    ) -> Result<Log, SourceError> {
        let label = format!("{} ({})", component.name(), component.pid());
        let probes = component.events().iter().map(|event| points.probe(&event.name)).collect();
        Ok(Log { claims, ..Log::lay_out(number, label, component.pid().cast_signed(), region, probes)? })
    }

    fn lay_out(
        number: u64,
        label: String,
        process: i32,
        region: Arc<Region>,
        probes: Vec<Option<usize>>,
    ) -> Result<Log, SourceError> {
        let (plan, file) = plan().map_err(|source| SourceError::Plan { label: label.clone(), source })?;
        let now = ticks();
        let files = region.areas().map(|area| {
            plan.apply(area);
            let cursor = Cursor::new(area, file, plan.control(file));
            File { cursor, next: 0, ticks: now, read: now, is_garbled: false }
        });
        // Collected here, because the region is moved into the log below.
        let files = files.collect();
        let (has_ended, is_forged, claims) = Default::default();
        Ok(Log { number, label, has_ended, process, claims, is_forged, region, probes, files })
    }

    /// Puts the new rows of a processor into its queue.
    pub fn read(&mut self, processor: usize, queue: &mut Queue) {
        let Log { process, region, probes, files, claims, is_forged, .. } = self;
        // Held until the rows are read, so that what they may name does not change meanwhile.
        let claims = lock(claims);
        let program_rows = RowsOf { probes, process: *process, claims: claims.as_ref() };
        let Some(File { cursor, next, ticks, read, is_garbled }) = files.get_mut(processor) else { return };
        let now = self::ticks();
        let mut missed = MissedRows { queue, most: now.checked_since(*read).unwrap_or(0), is_sound: true };
        *read = now;
        let mut overwritten = 0;
        let polled = cursor.poll_rows(region.area(processor), |rows| {
            overwritten += rows.first() - *next;
            missed.add(*ticks, rows.first() - *next);
            *next = rows.first() + rows.iter().len() as u64;
            *is_garbled |= !program_rows.take(rows, ticks, missed.queue, is_forged);
        });
        match polled {
            // Rows behind the last good one, and rows that found the file frozen or in use.
            Ok(polled) => {
                let rest = polled.overwritten.saturating_sub(overwritten);
                missed.add(*ticks, rest.saturating_add(polled.refused));
                *next += rest;
            }
            // How many rows there were is unknown; one is counted, so that there is a gap.
            Err(mete_log::ReadError::IndexWentBack { now, .. }) => {
                missed.add(*ticks, 1);
                (*next, *is_garbled) = (now, true);
            }
        }
        *is_garbled |= !missed.is_sound;
    }

    /// Whether the program has named domains that it may not speak for or about.
    pub fn is_forged(&self) -> bool {
        self.is_forged
    }

    /// Whether the program has written something that no handler writes.
    pub fn is_garbled(&self) -> bool {
        self.files.iter().any(|file| file.is_garbled)
    }
}

/// A plan with one file that takes all events of all domains.
fn plan() -> Result<(Plan, FileId), PlanError> {
    let shape = Shape::COMPONENT;
    let mut plan = Plan::new(shape);
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows: ROWS };
    let file = plan.file(spec)?;
    for event in EventId::all_below(shape.events()) {
        plan.route_event(event, file)?;
        // By default a file leaves out rows within one domain, which rows without any domain are.
        DomainId::all_below(shape.domains())
            .try_for_each(|domain| plan.keep_internal(event, domain, true))?;
    }
    Ok((plan, file))
}

/// Counts rows that are missing in a file.
struct MissedRows<'a> {
    queue: &'a mut Queue,
    /// The most that can be missing, because writing a row takes longer than a tick. A larger number is no
    /// count of rows.
    most: u64,
    is_sound: bool,
}

impl MissedRows<'_> {
    /// Adds a number of rows that are missing after this time.
    fn add(&mut self, ticks: Ticks, rows: u64) {
        self.is_sound &= rows <= self.most;
        let rows = rows.min(self.most);
        self.most -= rows;
        if rows > 0 {
            self.queue.push(ticks, Happening::RowsMissed(rows));
        }
    }
}

/// The program whose rows are read.
struct RowsOf<'a> {
    probes: &'a [Option<usize>],
    process: i32,
    claims: Option<&'a Claims>,
}

impl RowsOf<'_> {
    /// Puts rows into the queue in their order; returns false if some are not rows of a probe. An impossible
    /// time stamp is replaced by the nearest possible one, so that no other program's rows get out of order.
    fn take(&self, rows: &Rows<'_>, last_ticks: &mut Ticks, queue: &mut Queue, is_forged: &mut bool) -> bool {
        let now = ticks();
        let mut is_sound = true;
        for row in rows.iter() {
            let stamp = Ticks::new(row.stamp.unwrap_or_default());
            let allowed = last_ticks.saturating_sub(TOLERATED_TICKS)..=now.saturating_add(TOLERATED_TICKS);
            *last_ticks = stamp.min(now).max(*last_ticks);
            let Some(logged) = self.logged(&row, is_forged) else {
                is_sound = false;
                continue;
            };
            is_sound &= allowed.contains(&stamp);
            queue.push(*last_ticks, Happening::Row(logged));
        }
        is_sound
    }

    /// What a row says, if it is of a probe. A row that names a domain its program may not speak for or about
    /// is charged to none.
    fn logged(&self, row: &Row, is_forged: &mut bool) -> Option<Logged> {
        let probe = (*self.probes.get(row.event?.index())?)?;
        let (mut domain, mut correspondent) =
            (row.domain.unwrap_or_default(), row.correspondent.unwrap_or(NO_DOMAIN));
        if self.claims.is_some_and(|claims| !claims.allow(domain, correspondent)) {
            *is_forged = true;
            (domain, correspondent) = (OTHER, NO_DOMAIN);
        }
        let value = row.counter.unwrap_or_default();
        Some(Logged { probe, value, correspondent, domain, process: self.process })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use mete_log::{Area, Record, clock::UserClock, handler};

    use super::*;

    /// The one file of the plan.
    const FILE: FileId = FileId::new(1);

    fn log() -> Log {
        let region = Arc::new(Region::create(Shape::COMPONENT, 1).unwrap());
        Log::lay_out(0, "a program (1)".into(), 1, region, vec![None, Some(0)]).unwrap()
    }

    fn area(log: &Log) -> Area<'_> {
        log.region.area(0)
    }

    fn write(log: &Log, event: u16, counter: u64) {
        let (event, domain) = (EventId::new(event), DomainId::new(3));
        let record = Record { event, domain, correspondent: domain, counter };
        assert_eq!(handler::log(area(log), &UserClock, record), mete_log::Outcome::Logged);
    }

    /// Values of rows, and the numbers of those that are missing.
    fn read(log: &mut Log) -> (Vec<u64>, u64) {
        let mut queue = Queue::new(0, 1);
        log.read(0, &mut queue);
        let (mut values, mut missed, mut before) = (Vec::new(), 0, Ticks::default());
        for (ticks, what) in queue.into_entries() {
            assert!((before..=mete_log::clock::ticks()).contains(&ticks));
            before = ticks;
            match what {
                Happening::Row(logged) => values.push(logged.value),
                Happening::RowsMissed(rows) => missed += rows,
                Happening::Switched(_) | Happening::Mark { .. } => unreachable!("rows switch nothing"),
            }
        }
        (values, missed)
    }

    #[test]
    fn klog_6_each_row_is_read_once_and_overwritten_ones_are_counted() {
        let mut log = log();
        assert_eq!(read(&mut log), (Vec::new(), 0));
        (0..10).for_each(|number| write(&log, 1, number));
        assert_eq!(read(&mut log), ((0..10).collect(), 0), "also those within one domain");
        (10..40_000).for_each(|number| write(&log, 1, number));
        let (values, missed) = read(&mut log);
        assert!(values.into_iter().eq(10 + missed..40_000));
        assert!(missed >= 40_000 - 10 - u64::from(ROWS) && !log.is_garbled());
    }

    #[test]
    fn klog_6_rows_of_no_probe_are_left_out_and_reported() {
        let mut log = log();
        [0, 1, 2, 63].into_iter().for_each(|event| write(&log, event, event.into()));
        assert_eq!((read(&mut log).0, log.is_garbled()), (vec![1], true));
    }

    #[test]
    fn klog_6_counts_and_time_stamps_that_cannot_be_do_not_reach_the_trace() {
        let mut log = log();
        write(&log, 1, 7);
        let stamp = area(&log).row_word(log.files[0].cursor.control().place(0), 2);
        stamp.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(
            (read(&mut log), log.is_garbled()),
            ((vec![7], 0), true),
            "in the order that `read` asks for"
        );
        for index in [u64::MAX, 5, u64::MAX - 3, 1 << 40, 0] {
            area(&log).register(FILE).index.store(index, Ordering::Relaxed);
            area(&log).register(FILE).lost.store(index, Ordering::Relaxed);
            let last = log.files[0].read;
            let (_, missed) = read(&mut log);
            assert!(ticks().checked_since(last).is_some_and(|most| missed <= most), "{missed}");
        }
    }

    #[test]
    fn klog_6_noise_in_a_log_is_read_without_harm() {
        let mut random = 0x1234_5678_9abc_def1_u64;
        let mut noise = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let mut log = log();
        for _ in 0..200 {
            let register = area(&log).register(FILE);
            register.index.store(noise() >> (noise() % 64), Ordering::Relaxed);
            register.set_control(mete_log::Control::from_bits(noise()));
            for word in area(&log).row_words(noise(), 4096) {
                word.store(noise(), Ordering::Relaxed);
            }
            read(&mut log);
        }
        assert!(log.is_garbled());
    }
}
