//! Recording by schema: programs that are generated from a schema write its events into recording buffers, one
//! for each processor, which the recorder of `mete-trace` maps and empties.
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
mod refusal;
mod shipped;
mod switch;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use libbpf_rs::{Link, Object, ProgramMut, UprobeOpts};
use mete_schema::generate::programs;
use mete_schema::program::Programs;
use mete_schema::schema::Target;
use mete_schema::{Checked, Schema, generate};
use mete_trace::layout;

use crate::attach::{attach_to_event, program};
use crate::load::{Quiet, load_object, processors};
use crate::{DomainTable, KernelError, capability, map, missed, perf, tracefs};

pub use absent::absent_points;
pub use areas::Areas;
pub use benchmark::Benchmark;
pub use cache::Cache;
pub use compile::source;
use constants::Constants;
pub use counters::absent_counters;
use switch::Switches;

/// The largest buffer of a processor, 2^28 bytes: programs cannot reach further into a map.
pub const MAX_SIZE_LOG2: u32 = 28;

/// How something is recorded.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The events that may be recorded, for which there is code: their places in the schema.
    pub events: Vec<usize>,
    /// Bytes of each processor's buffer: a power of two.
    pub buffer_bytes: u64,
    /// The low-water mark, for the flush threads.
    pub low_water_percent: u8,
    /// Who is in which domain: the kernel component's table, which it keeps up to date as long as it is loaded.
    /// Without one, everybody is in domain 0.
    pub domains: Option<Arc<DomainTable>>,
}

/// Loaded programs of a schema. Dropping it detaches and unloads everything.
pub struct Recording {
    // Fields are dropped in this order: nothing runs any more before what it reads is gone.
    /// Those of `points`, one each where it is attached.
    links: Vec<Option<Link>>,
    _counters: Vec<OwnedFd>,
    points: Vec<Point>,
    /// What [`Recording::attach`] switches on.
    events: Vec<usize>,
    object: Object,
    switches: Switches,
    areas: Arc<Areas>,
}

/// A program and its place.
struct Point {
    program: String,
    target: Target,
    events: Vec<usize>,
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
        let points = wanted(schema, &settings.events)?;
        capability::check_privilege()?;
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
            constants.configure(open, |program| points.iter().any(|point| program == point.program.as_str()))
        })
        .map_err(|error| refusal::explain(error, &points))?;
        let open = counters::open(&object, &counters, processors)?;
        let areas = Arc::new(Areas::new(&object, processors, size_log2, settings.low_water_percent)?);
        let switches = Switches::of(&object)?;
        let links = points.iter().map(|_| None).collect();
        let events = settings.events.clone();
        Ok(Recording { links, _counters: open, points, events, object, switches, areas })
    }

    /// The buffers. They may be kept for longer than the programs.
    pub fn buffers(&self) -> Arc<Areas> {
        Arc::clone(&self.areas)
    }

    /// From now on all of [`Settings::events`] are recorded, all kinds of them from one moment on.
    ///
    /// # Errors
    ///
    /// [`KernelError::Point`] for the first place that refuses; then nothing is attached.
    pub fn attach(&mut self) -> Result<(), KernelError> {
        self.switch(&self.events.clone())
    }

    /// From now on nothing is, of all kinds of events at once. The programs stay attached as long as a process that was
    /// forked meanwhile, and has not called exec, holds their links, too.
    pub fn detach(&mut self) {
        self.switches.tell(&[]);
        self.links.fill_with(|| None);
    }

    /// Runs of the programs that the kernel left out because an interrupt came to the same place in the middle of
    /// one: what they would have recorded has no serial number. Kernels before 5.12 do not count them.
    ///
    /// # Errors
    ///
    /// [`KernelError::Programs`] if the kernel does not say.
    pub fn runs_missed(&self) -> Result<u64, KernelError> {
        missed::runs_of(&self.object)
    }
}

/// How many processors this machine may ever have, each of which has a buffer.
///
/// # Errors
///
/// [`KernelError::Refused`] if the kernel does not say.
pub fn possible_processors() -> Result<usize, KernelError> {
    processors()
}

/// The binary logarithm of a buffer's size.
///
/// # Errors
///
/// [`KernelError::BufferSize`] if a buffer cannot have so many bytes.
pub fn size_log2(bytes: u64) -> Result<u32, KernelError> {
    let log2 = bytes.checked_ilog2().filter(|log2| 1 << log2 == bytes);
    log2.filter(|log2| (layout::MIN_SIZE_LOG2..=MAX_SIZE_LOG2).contains(log2))
        .ok_or(KernelError::BufferSize(bytes))
}

/// The places where any of the events is logged.
fn wanted(schema: &Schema, events: &[usize]) -> Result<Vec<Point>, KernelError> {
    let logs_any =
        |program: &generate::Program<'_>| program.events.iter().any(|event| events.contains(event));
    let point = |program: generate::Program<'_>| Point {
        program: program.name,
        target: program.target.clone(),
        events: program.events,
    };
    let points: Vec<_> = programs(schema).into_iter().filter(logs_any).map(point).collect();
    if schema.events.is_empty() {
        return Err(KernelError::NoEvents);
    }
    if points.is_empty() {
        let names: Vec<_> = events.iter().map(|event| schema.events[*event].name.as_str()).collect();
        return Err(KernelError::NoPoints(names.join(", ")));
    }
    Ok(points)
}

fn attach(object: &Object, point: &Point, programs: &Programs) -> Result<Link, KernelError> {
    let failed = |source| refusal::not_attached(&point.target, source);
    let _quiet = Quiet::begin();
    let absent = || failed(libbpf_rs::Error::from(io::Error::from(io::ErrorKind::NotFound)));
    let program = program(object, &point.program).ok_or_else(absent)?;
    let link = match &point.target {
        Target::Tracepoint { group, name } => attach_to_event(program, open_tracepoint(group, name)?),
        Target::Uprobe { path, symbol } => attach_to_function(&program, programs, path, symbol, false)?,
        Target::Uretprobe { path, symbol } => attach_to_function(&program, programs, path, symbol, true)?,
        Target::Usdt { path, provider, name } => program.attach_usdt(EVERY_PROCESS, path, provider, name),
        _ => program.attach(),
    };
    link.map_err(failed)
}

/// Processes that run a program later are among them.
const EVERY_PROCESS: i32 = -1;

/// By its place in the file: the loader library would look only for symbols, and has no words for what it misses.
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

/// By its number: the loader library would want the tracing file system to be mounted.
fn open_tracepoint(group: &str, name: &str) -> Result<OwnedFd, KernelError> {
    let id = tracefs::tracepoint_id(&format!("{group}/{name}"))?;
    let failed = |source| KernelError::PerfEvent { event: "of a tracepoint", processor: 0, source };
    perf::open_tracepoint(id).map_err(failed)
}

/// Tells the programs where a counter is.
fn tell_counter(object: &Object, at: usize, event: &OwnedFd) -> Result<(), KernelError> {
    let fd = event.as_fd().as_raw_fd() as u32;
    map::write(object, "counters", &(at as u32).to_ne_bytes(), &fd.to_ne_bytes())
}
