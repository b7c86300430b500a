//! A plan: which log files exist, what they hold, and which (event, domain) pair goes to which file (LOG-4,
//! LOG-7, LOG-8). The scheduler makes it once and applies it to any number of areas, even while producers run
//! (LOG-5).
//!
//! ```
//! use mete_log::{DomainId, Entries, EventId, FileSpec, Plan, Shape, Stamp};
//!
//! let mut plan = Plan::new(Shape::COMPONENT);
//! // A global log of event 0 for every domain, with all five entries …
//! let all = FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows: 1024 };
//! let global = plan.file(all)?;
//! plan.route_event(EventId::new(0), global)?;
//! // … and a running total of event 1 of domain 7.
//! let total = FileSpec { entries: Entries::COUNTER, stamp: Stamp::None, add: true, rows: 2 };
//! let total = plan.file(total)?;
//! plan.route(EventId::new(1), DomainId::new(7), total)?;
//! # Ok::<(), mete_log::PlanError>(())
//! ```

use core::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use crate::area::{Area, Register};
use crate::control::{Control, Entries, OFFSET_UNIT, Stamp};
use crate::layout::{PAIR_KEEP_INTERNAL, Shape};
use crate::{DomainId, EventId, FileId};

/// How long a producer may take to write a row without having taken the file: in a restartable sequence, or
/// in a program of the kernel. Both take some ten nanoseconds, unless an interrupt comes in between.
const LONGEST_ROW: Duration = Duration::from_millis(1);
/// For how many times [`LONGEST_ROW`] a plan waits for a producer that has taken a file. After that it counts
/// as dead.
const PATIENCE: usize = 100;

/// What a log file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSpec {
    /// The entries other than the time stamp.
    pub entries: Entries,
    /// The time stamp's source.
    pub stamp: Stamp,
    /// Whether rows have running totals instead of single counters.
    pub add: bool,
    /// The number of rows, a power of two from 2 to 2³¹. One row less can be read.
    pub rows: u32,
}

/// Why a file or a route cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The number of rows of a ring must be a power of two.
    #[error("a log file of {rows} rows: the number must be a power of two, 2 at least")]
    Rows {
        /// The number asked for.
        rows: u32,
    },
    /// The area's data are full.
    #[error("a log file of {wanted} bytes does not fit: {free} of {total} bytes are left in the log area")]
    Full {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes left.
        free: u64,
        /// Bytes in all.
        total: u64,
    },
    /// All control registers are taken.
    #[error("no control register is left: the log area has {files}, the null file included")]
    Files {
        /// Registers in all.
        files: usize,
    },
    /// The area has no such event.
    #[error("event {event} is out of range: the log area has room for {events}")]
    Event {
        /// The event asked for.
        event: EventId,
        /// Events in all.
        events: usize,
    },
    /// The area has no such domain.
    #[error("domain {domain} is out of range: the log area has room for {domains}")]
    Domain {
        /// The domain asked for.
        domain: DomainId,
        /// Domains in all.
        domains: usize,
    },
    /// A selector names no file of this plan.
    #[error("log file {file} is not in the plan, which has {files}, the null file included")]
    File {
        /// The file asked for.
        file: FileId,
        /// Files in the plan.
        files: usize,
    },
    /// An adding file sums counters, but was asked to hold none.
    #[error("a log file that adds needs the counter entry")]
    AddWithoutCounter,
}

#[derive(Clone, Copy, Debug, Default)]
struct PairRoute {
    selector: FileId,
    flags: u16,
    threshold: u32,
}

/// The configuration of a log area. See the [module](self).
#[derive(Clone, Debug)]
pub struct Plan {
    shape: Shape,
    files: Vec<Control>,
    used: u64,
    routes: Vec<PairRoute>,
}

impl Plan {
    /// A plan without files: every pair is routed to the null file.
    pub fn new(shape: Shape) -> Plan {
        let routes = vec![PairRoute::default(); shape.domains() * shape.events()];
        Plan { shape, files: vec![Control::OFF], used: 0, routes }
    }

    /// Adds a log file.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the specification is no file or the area has no room for it.
    pub fn file(&mut self, spec: FileSpec) -> Result<FileId, PlanError> {
        if !spec.rows.is_power_of_two() || spec.rows < 2 {
            return Err(PlanError::Rows { rows: spec.rows });
        }
        if spec.add && !spec.entries.has(Entries::COUNTER) {
            return Err(PlanError::AddWithoutCounter);
        }
        if self.files.len() >= self.shape.files() {
            return Err(PlanError::Files { files: self.shape.files() });
        }
        let rows_log2 = spec.rows.trailing_zeros() as u8;
        // The size of a row does not depend on the offset, which is not known yet.
        let probe = Control::new(spec.entries, spec.stamp, spec.add, rows_log2, 0);
        let offset = self.reserve(file_bytes(probe, spec.rows))?;
        self.files.push(Control::new(spec.entries, spec.stamp, spec.add, rows_log2, offset));
        Ok(FileId::from_index(self.files.len() - 1))
    }

    fn reserve(&mut self, bytes: u64) -> Result<u32, PlanError> {
        let total = self.shape.data_bytes() as u64;
        let wanted = bytes.next_multiple_of(OFFSET_UNIT);
        if wanted > total - self.used {
            return Err(PlanError::Full { wanted, free: total - self.used, total });
        }
        let offset = self.used as u32;
        self.used += wanted;
        Ok(offset)
    }

    /// The control word of a file; [`Control::OFF`] if the plan has no such file.
    pub fn control(&self, file: FileId) -> Control {
        self.files.get(file.index()).copied().unwrap_or(Control::OFF)
    }

    /// The files of the plan, the null file first.
    pub fn files(&self) -> impl Iterator<Item = (FileId, Control)> + '_ {
        self.files.iter().enumerate().map(|(number, &control)| (FileId::from_index(number), control))
    }

    /// Routes one pair to a file.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the pair or the file is out of range.
    pub fn route(&mut self, event: EventId, domain: DomainId, file: FileId) -> Result<(), PlanError> {
        self.check_file(file)?;
        self.pair(event, domain)?.selector = file;
        Ok(())
    }

    /// Routes an event of every domain to one file.
    ///
    /// # Errors
    ///
    /// As [`Plan::route`].
    pub fn route_event(&mut self, event: EventId, file: FileId) -> Result<(), PlanError> {
        DomainId::all_below(self.shape.domains()).try_for_each(|domain| self.route(event, domain, file))
    }

    /// Has a pair write one row for each `occurrences` occurrences. The default, 1, logs each.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the pair is out of range.
    pub fn threshold(&mut self, event: EventId, domain: DomainId, occurrences: u32) -> Result<(), PlanError> {
        self.pair(event, domain)?.threshold = occurrences;
        Ok(())
    }

    /// Sets whether a pair also logs occurrences that stay inside the domain.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if the pair is out of range.
    pub fn keep_internal(&mut self, event: EventId, domain: DomainId, keep: bool) -> Result<(), PlanError> {
        self.pair(event, domain)?.flags = if keep { PAIR_KEEP_INTERNAL } else { 0 };
        Ok(())
    }

    /// Programs an area. Producers can run meanwhile: files that the area had before are switched off first,
    /// and files are cleared and set up before pairs are routed to them. A file that was left busy, by a
    /// producer that died in it or by garbage, is free again.
    ///
    /// If a file was on, this waits a millisecond for rows that producers have begun, and a tenth of a second
    /// at most for a file that is busy. A row that takes even longer, on a virtual processor that stands
    /// still, can spoil a running total.
    ///
    /// # Panics
    ///
    /// If the area has another shape than the plan.
    pub fn apply(&self, area: Area<'_>) {
        assert_eq!(area.shape(), self.shape, "the plan was made for another shape of area");
        self.switch_off(area);
        self.clear_rows(area);
        for (file, control) in self.files() {
            area.register(file).set_control(control);
        }
        self.apply_routes(area);
    }

    /// Switches all files off, and waits for the rows of producers that have read a control word before. Such
    /// a row would change a running total after it was cleared.
    fn switch_off(&self, area: Area<'_>) {
        let registers = || FileId::all_below(self.shape.files()).map(|file| area.register(file));
        let was_on = registers().any(|register| register.control().is_enabled());
        registers().for_each(|register| register.set_control(Control::OFF));
        // A producer takes the file and then reads the control word. This stores the word and then looks
        // whether the file is taken. All four are SeqCst: either the producer finds the file off, or it is
        // waited for.
        let is_taken = |register: &Register| register.busy.load(Ordering::SeqCst) != 0;
        for _ in 0..if was_on { PATIENCE } else { 0 } {
            sleep(LONGEST_ROW);
            if !registers().any(is_taken) {
                break;
            }
        }
        // Relaxed: the file is off, and the control word that switches it on is stored with release.
        registers().for_each(|register| register.busy.store(0, Ordering::Relaxed));
    }

    fn apply_routes(&self, area: Area<'_>) {
        let events = self.shape.events();
        for (number, route) in self.routes.iter().enumerate() {
            let pair = area.pair(DomainId::from_index(number / events), EventId::from_index(number % events));
            // Relaxed: the selector releases both.
            pair.threshold.store(route.threshold, Ordering::Relaxed);
            pair.flags.store(route.flags, Ordering::Relaxed);
            // Release: the pair and its file are set up before occurrences go there.
            pair.selector.store(route.selector.get(), Ordering::Release);
        }
    }

    /// Zeroes the rows of the adding files, whose sums start from the row before.
    fn clear_rows(&self, area: Area<'_>) {
        for (_, control) in self.files().filter(|(_, control)| control.is_adding()) {
            let words = (control.ring_bytes() / 8) as usize;
            for word in area.row_words(control.offset(), words) {
                // Relaxed: the file's control word, which is stored later, releases it.
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    fn check_file(&self, file: FileId) -> Result<(), PlanError> {
        let files = self.files.len();
        if file.index() < files { Ok(()) } else { Err(PlanError::File { file, files }) }
    }

    fn pair(&mut self, event: EventId, domain: DomainId) -> Result<&mut PairRoute, PlanError> {
        let (events, domains) = (self.shape.events(), self.shape.domains());
        if event.index() >= events {
            return Err(PlanError::Event { event, events });
        }
        if domain.index() >= domains {
            return Err(PlanError::Domain { domain, domains });
        }
        Ok(&mut self.routes[domain.index() * events + event.index()])
    }
}

/// Freezes a file: rows are refused and counted until it is thawed (thesis §4.5.2). A producer that is in the
/// middle of a row finishes it, so the index can still grow by one row per processor.
pub fn freeze(area: Area<'_>, file: FileId) {
    let register = area.register(file);
    register.set_control(register.control().with_frozen(true));
}

/// Thaws a frozen file: rows are written again.
pub fn thaw(area: Area<'_>, file: FileId) {
    let register = area.register(file);
    register.set_control(register.control().with_frozen(false));
}

/// The bytes that a file's rows take. A file without entries takes none. This is not computed from the
/// control word, which cannot describe files that are larger than any area.
fn file_bytes(control: Control, rows: u32) -> u64 {
    if control.entry_words() == 0 { 0 } else { u64::from(rows) * control.row_bytes() }
}
