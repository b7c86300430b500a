//! This process as its own scheduler. It attaches to itself as a component in the ordinary way, through the
//! socket. It provides the memory, and switches the benchmark's probe on and off by patching.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mete_log::{
    Area, Control, DomainId, Entries, EventId, FileId, FileSpec, Plan, Region, Shape, Stamp, ring,
};
use mete_measure::reason::Reason;
use mete_probe::attach::{AttachError, Component, configured_processors};
use mete_probe::directory;

/// The domain that the benchmark's rows are charged to.
pub const DOMAIN: DomainId = DomainId::new(1);
/// The longest time to wait for an answer of the component.
const LIMIT: Duration = Duration::from_secs(2);
/// Rows of a log file: 32 KiB with five entries.
pub const ROWS: u32 = 1024;

/// What the probe does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logging {
    /// The probe is a no-op.
    Disabled,
    /// The probe counts, and writes no entry (the thesis' "0-entry").
    NoEntry,
    /// A row with the event alone.
    One,
    /// A row with event, domain, correspondent and counter.
    Four,
    /// A row with the same four entries and a hardware time stamp.
    Five,
}

impl Logging {
    const FILES: [Logging; 4] = [Logging::NoEntry, Logging::One, Logging::Four, Logging::Five];

    /// The description of a log file for this way of logging.
    pub fn file(self, rows: u32) -> FileSpec {
        let (entries, stamp) = match self {
            Logging::Disabled | Logging::NoEntry => (Entries::NONE, Stamp::None),
            Logging::One => (Entries::EVENT, Stamp::None),
            Logging::Four => (Entries::ALL, Stamp::None),
            Logging::Five => (Entries::ALL, Stamp::Hardware),
        };
        FileSpec { entries, stamp, add: false, rows }
    }
}

/// Held by the one [`Scheduler`] of this process, because a component has one scheduler at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// This process, attached as a component. When this is dropped, the probe is off.
pub struct Scheduler {
    // Fields are dropped in this order: the component is released before another scheduler may take it.
    component: Component,
    region: Arc<Region>,
    files: [(Logging, FileId); 4],
    event: EventId,
    is_on: bool,
    _alone: MutexGuard<'static, ()>,
}

impl Scheduler {
    /// Attaches to this process, without switching anything on.
    ///
    /// # Errors
    ///
    /// If the process is not published, or another scheduler has it.
    pub fn begin() -> Result<Scheduler, Reason> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut component = connect()?;
        let processors = configured_processors();
        let region = Arc::new(Region::create(Shape::COMPONENT, processors)?);
        let name = super::loops::ROW.name().to_string_lossy().into_owned();
        let found = component.event(&name).map(|event| event.id);
        let event = found.ok_or_else(|| Reason::new("the benchmark's own event is not published"))?;
        let files = lay_out(&region, event)?;
        component.provide(region.clone())?;
        component.bind(DOMAIN)?;
        Ok(Scheduler { component, region, files, event, is_on: false, _alone: alone })
    }

    /// Switches the probe.
    ///
    /// # Errors
    ///
    /// If the component refuses.
    pub fn set(&mut self, logging: Logging) -> Result<(), Reason> {
        let file = self.files.iter().find(|(known, _)| *known == logging);
        if let Some((_, file)) = file {
            self.route_to(*file);
        }
        self.switch(file.is_some())
    }

    /// Switches the probe on, and routes its rows to a log file that the caller has set up in the areas.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::set`].
    pub fn set_file(&mut self, file: FileId) -> Result<(), Reason> {
        self.route_to(file);
        self.switch(true)
    }

    fn route_to(&self, file: FileId) {
        for area in self.region.areas() {
            // Release: a probe that sees the new file must see its register, too.
            area.pair(DOMAIN, self.event).selector.store(file.get(), std::sync::atomic::Ordering::Release);
        }
    }

    fn switch(&mut self, on: bool) -> Result<(), Reason> {
        // Switching is a round trip to the component, so it is done only where it changes something.
        if on != self.is_on {
            if on {
                self.component.enable(self.event)?
            } else {
                self.component.disable(self.event)?
            }
            self.is_on = on;
        }
        Ok(())
    }

    /// Sets up a log file of the caller's on all processors. It replaces the benchmark's own log files.
    ///
    /// # Errors
    ///
    /// If the area has no room for it.
    pub fn replace_files(&mut self, spec: FileSpec) -> Result<(FileId, Control), Reason> {
        let mut plan = Plan::new(Shape::COMPONENT);
        let file = plan.file(spec)?;
        self.region.areas().for_each(|area| plan.apply(area));
        Ok((file, plan.control(file)))
    }

    /// A processor's log area.
    pub fn area(&self, processor: usize) -> Area<'_> {
        self.region.area(processor)
    }

    /// The number of rows that were ever written to the log file of a way of logging, on all processors.
    pub fn written(&self, logging: Logging) -> u64 {
        let files = self.files.iter().filter(|(known, _)| *known == logging);
        files.map(|(_, file)| self.region.areas().map(|area| written(area, *file)).sum::<u64>()).sum()
    }

    /// Runs `run` with the probe switched to `logging`, and checks that every occurrence became a row.
    ///
    /// # Errors
    ///
    /// If the component refuses or rows are missing.
    pub fn measured(
        &mut self,
        logging: Logging,
        occurrences: u64,
        run: impl FnOnce() -> f64,
    ) -> Result<f64, Reason> {
        self.set(logging)?;
        let before = self.written(logging);
        let answer = run();
        let rows = self.written(logging) - before;
        let expected = if logging == Logging::Disabled { 0 } else { occurrences };
        if rows == expected {
            return Ok(answer);
        }
        Err(Reason::new(format!("{rows} rows were written where {expected} were expected")))
    }
}

fn written(area: Area<'_>, file: FileId) -> u64 {
    ring::written(&area.register(file).index)
}

/// Sets up one log file for each way of logging, in all areas.
fn lay_out(region: &Region, event: EventId) -> Result<[(Logging, FileId); 4], Reason> {
    let mut plan = Plan::new(Shape::COMPONENT);
    let mut files = [(Logging::NoEntry, FileId::default()); 4];
    for (slot, logging) in files.iter_mut().zip(Logging::FILES) {
        *slot = (logging, plan.file(logging.file(ROWS))?);
    }
    plan.route_event(event, files[0].1)?;
    region.areas().for_each(|area| plan.apply(area));
    Ok(files)
}

/// Connects to this process. For a moment, the scheduler before may still hold the component, so this tries
/// again.
fn connect() -> Result<Component, Reason> {
    let path = directory::own().join(format!("{}.sock", std::process::id()));
    let end = Instant::now() + LIMIT;
    loop {
        match Component::connect(&path, LIMIT) {
            Ok(component) => return Ok(component),
            Err(AttachError::Busy { .. }) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(Reason::while_trying("take this process as a component")(error)),
        }
    }
}
