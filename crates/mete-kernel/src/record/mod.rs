//! Recording by schema: programs that are generated from a schema write its events into recording buffers.
//! Each processor has one; the recorder of `mete-trace` reads and empties them.
//!
//! ```text
//!   Schema, text of its programs ──▶ compile ──▶ load ──▶ buffers ──▶ attach ──▶ detach ──▶ drop
//!                                    shipped      verified, mapped     points of           nothing left
//!                                    or cached    events that are off  the events
//!                                    or clang     are not in it        that are on
//!                                                                        ▲      │
//!                                                                        └ switch
//! ```

mod absent;
mod areas;
mod benchmark;
mod cache;
mod compile;
mod constants;
mod counters;
mod maps;
mod refusal;
mod shipped;
mod switch;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use libbpf_rs::{Link, Object, ProgramMut, UprobeOpts};
use mete_schema::generate::{Program, programs};
use mete_schema::program::Programs;
use mete_schema::schema::Target;
use mete_schema::{Checked, Schema};
use mete_trace::layout;

use crate::load::{Quiet, load_object, processors};
use crate::program::attach_to_event;
use crate::{DomainTable, KernelError, perf, privilege, program, tracefs};

pub use crate::load::processors as possible_processors;
pub use absent::absent_points;
pub use areas::Areas;
pub use benchmark::Benchmark;
pub use cache::Cache;
pub use compile::source;
use constants::Constants;
pub use counters::absent_counters;
use switch::Switches;

/// The binary logarithm of the largest buffer of a processor: programs cannot reach further into a map.
pub const MAX_SIZE_LOG2: u32 = 28;

/// What is recorded, and into which buffers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The events that may be recorded, as indices of [`Schema::events`]. Only they have code.
    pub events: Vec<usize>,
    /// Bytes of each processor's buffer: a power of two.
    pub buffer_bytes: u64,
    /// The low-water mark, for the flush threads.
    pub low_water_percent: u8,
    /// The table of the kernel component from task to domain. It is kept up to date as long as the component
    /// is loaded. Without it, every task is in domain 0.
    pub domains: Option<Arc<DomainTable>>,
}

/// Loaded programs of a schema. Dropping it detaches and unloads everything.
pub struct Recording {
    // Fields are dropped in this order: first nothing runs any more, then what the programs read is gone.
    /// One for each of `points`, if it is attached.
    links: Vec<Option<Link>>,
    _counters: Vec<OwnedFd>,
    points: Vec<Program>,
    /// The events that [`Recording::attach`] switches on.
    events: Vec<usize>,
    object: Object,
    switches: Switches,
    areas: Arc<Areas>,
}

impl Recording {
    /// Loads the programs and maps the buffers; attaches nothing. `text` is what
    /// [`bpf`](mete_schema::generate::bpf) made of the schema.
    ///
    /// # Errors
    ///
    /// [`KernelError`]: privilege, type information, a compiler or a counter is missing, or the kernel refuses.
    pub fn load(
        schema: &Schema,
        checked: &Checked,
        text: &str,
        settings: &Settings,
        cache: &Cache,
    ) -> Result<Recording, KernelError> {
        let size_log2 = size_log2(settings.buffer_bytes)?;
        // Before the privilege is checked: every user learns that a schema has nothing to record.
        let points = wanted(schema, &settings.events)?;
        privilege::check_capabilities()?;
        let processors = processors()?;
        let counters = counters::wanted(schema, checked)?;
        let object = compile::object(text, cache)?;
        let object = load_object(&object, |open| {
            let constants = Constants {
                buffer_bytes: settings.buffer_bytes,
                processors,
                events: &settings.events,
                domains: settings.domains.as_deref(),
            };
            constants.configure(open, |program| points.iter().any(|point| program == point.name.as_str()))
        })
        .map_err(|error| refusal::explain(error, &points))?;
        let open = counters::open(&object, &counters, processors)?;
        let areas = Arc::new(Areas::new(&object, processors, size_log2, settings.low_water_percent)?);
        let switches = Switches::of(&object)?;
        let links = points.iter().map(|_| None).collect();
        let events = settings.events.clone();
        Ok(Recording { links, _counters: open, points, events, object, switches, areas })
    }

    /// The buffers. They may outlive the programs.
    pub fn buffers(&self) -> Arc<Areas> {
        Arc::clone(&self.areas)
    }

    /// From now on, all of [`Settings::events`] are recorded; all kinds of them from the same moment on.
    ///
    /// # Errors
    ///
    /// [`KernelError::Point`] for the first point that is refused; then nothing is attached.
    pub fn attach(&mut self) -> Result<(), KernelError> {
        self.switch(&self.events.clone())
    }

    /// From now on, nothing is recorded; all kinds of events end at the same moment. The programs stay
    /// attached as long as a process holds their links, too: one that was forked meanwhile and has not called
    /// exec.
    pub fn detach(&mut self) {
        // First, because the links are closed one by one.
        self.switches.write(&[]);
        self.links.fill_with(|| None);
    }

    /// The number of runs of the programs that the kernel left out because an interrupt came to the same
    /// point in the middle of a run. What they would have recorded has no serial number. Kernels before 5.12
    /// do not count them.
    ///
    /// # Errors
    ///
    /// [`KernelError::Programs`] if the kernel does not say.
    pub fn missed_runs(&self) -> Result<u64, KernelError> {
        program::missed_runs(&self.object)
    }
}

/// The binary logarithm of a buffer's size.
///
/// # Errors
///
/// [`KernelError::BufferSize`] if a buffer cannot have this number of bytes.
pub fn size_log2(bytes: u64) -> Result<u32, KernelError> {
    let log2 = bytes.checked_ilog2().filter(|log2| 1 << log2 == bytes);
    log2.filter(|log2| (layout::MIN_SIZE_LOG2..=MAX_SIZE_LOG2).contains(log2))
        .ok_or(KernelError::BufferSize(bytes))
}

/// The points where any of the events is logged.
fn wanted(schema: &Schema, events: &[usize]) -> Result<Vec<Program>, KernelError> {
    let mut points = programs(schema);
    points.retain(|point| point.logs_any(events));
    if schema.events.is_empty() {
        return Err(KernelError::NoEvents);
    }
    if points.is_empty() {
        let names: Vec<_> = events.iter().map(|event| schema.events[*event].name.as_str()).collect();
        return Err(KernelError::NoPoints(names.join(", ")));
    }
    Ok(points)
}

fn attach(object: &Object, point: &Program, programs: &Programs) -> Result<Link, KernelError> {
    // The error says what is missing; what the loader library guesses must not reach the terminal.
    let _quiet = Quiet::begin();
    let Some(program) = program::find(object, &point.name) else {
        let absent = io::Error::from(io::ErrorKind::NotFound);
        return Err(refusal::not_attached(&point.target, absent.into()));
    };
    let link = match &point.target {
        Target::Tracepoint { group, name } => attach_to_event(&program, open_tracepoint(group, name)?),
        Target::Uprobe { path, symbol } => attach_to_function(&program, programs, path, symbol, false)?,
        Target::Uretprobe { path, symbol } => attach_to_function(&program, programs, path, symbol, true)?,
        Target::Usdt { path, provider, name } => program.attach_usdt(EVERY_PROCESS, path, provider, name),
        _ => program.attach(),
    };
    link.map_err(|source| refusal::not_attached(&point.target, source))
}

/// The number that stands for all processes, those included that start the program later.
const EVERY_PROCESS: i32 = -1;

/// Attaches to a function by its offset in the file. The loader library would look only for symbols, and its
/// errors would not say what is missing.
fn attach_to_function(
    program: &ProgramMut<'_>,
    programs: &Programs,
    path: &str,
    symbol: &str,
    retprobe: bool,
) -> Result<libbpf_rs::Result<Link>, KernelError> {
    let offset = programs.get(Path::new(path)).and_then(|program| program.offset(symbol))?;
    let options = UprobeOpts { retprobe, ..UprobeOpts::default() };
    Ok(program.attach_uprobe_with_opts(EVERY_PROCESS, path, offset as usize, options))
}

/// Opens a tracepoint by its number. The loader library would need the tracing file system to be mounted.
fn open_tracepoint(group: &str, name: &str) -> Result<OwnedFd, KernelError> {
    let id = tracefs::tracepoint_id(&format!("{group}/{name}"))?;
    perf::open_tracepoint(id).map_err(|source| KernelError::PerfEvent {
        event: "of a tracepoint",
        processor: 0,
        source,
    })
}
