//! One-purpose programs on two tracepoints, to time a row beside its peers under the same
//! conditions, and empty ones wherever the scheduler's log is written. This attaches and detaches; the caller makes the traffic and times it.
//!
//! The areas are the bench's own: which entries and which clock a [`BenchProgram::Row`] has, the
//! caller writes into them. Rows have event [`EVENT`], domain [`DOMAIN`] and correspondent 2.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use libbpf_rs::{Link, Object, OpenObject};
use mete_log::layout::PAGE;
use mete_log::{Area, DomainId, EventId};
use rustix::mm::ProtFlags;

use crate::load::{area_in, load_object, map_areas, object, processors};
use crate::map::{self, Mapping};
use crate::{KernelError, attach, capability, perf};

/// The event of the bench's rows.
pub const EVENT: EventId = 0;
/// The domain of the bench's rows.
pub const DOMAIN: DomainId = 1;

/// Pages of data in each processor's perf buffer, a power of two.
const PERF_PAGES: usize = 64;
/// How often the ring buffer is emptied: before it can fill at ten million rows a second.
const DRAIN_INTERVAL: Duration = Duration::from_millis(2);

/// Where a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchPoint {
    /// `raw_syscalls:sys_enter`.
    SystemCall,
    /// `sched:sched_switch`.
    Switch,
}

/// What a program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchProgram {
    /// Nothing: the cost of being called.
    Empty,
    /// Reads the monotonic clock.
    Clock,
    /// The whole handler, into [`Bench::area`]. The run-queue clock reads 0 at a system call.
    Row,
    /// 32 bytes with the monotonic clock into a BPF ring buffer, without a wake-up.
    RingBuffer,
    /// 32 bytes with the monotonic clock through bpf_perf_event_output, overwriting the oldest.
    PerfOutput,
}

/// The loaded bench programs.
pub struct Bench {
    areas: Mapping,
    object: Object,
    processors: usize,
}

/// A program that is attached until this is dropped.
#[must_use = "the program is detached when this is dropped"]
pub struct Running {
    // Fields are dropped in this order: the program first, then what it writes into.
    _links: Vec<Link>,
    _sink: Option<Sink>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

enum Sink {
    #[expect(dead_code, reason = "held for its drop")]
    Ring(Drain),
    #[expect(dead_code, reason = "held for its drop")]
    Perf(Vec<(Mapping, OwnedFd)>),
}

impl Bench {
    /// Loads the programs; attaches nothing.
    pub fn load() -> Result<Bench, KernelError> {
        capability::check_privilege()?;
        let processors = processors()?;
        let object = load_object(object!("bench"), |open| configure(open, processors))?;
        let areas = map_areas(&object, processors)?;
        Ok(Bench { areas, object, processors })
    }

    /// How many processors there may be.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// The bench's own log area on one processor, the number taken modulo [`Bench::processors`].
    pub fn area(&self, processor: usize) -> Area<'_> {
        area_in(&self.areas, processor % self.processors)
    }

    /// Attaches one program.
    pub fn attach(&self, point: BenchPoint, program: BenchProgram) -> Result<Running, KernelError> {
        let sink = match program {
            BenchProgram::RingBuffer => Some(Sink::Ring(Drain::begin(&self.object)?)),
            BenchProgram::PerfOutput => Some(Sink::Perf(self.open_outputs()?)),
            _ => None,
        };
        let link = attach::attach(&self.object, name(point, program), "the bench", "such typed tracepoint")?;
        Ok(Running { _links: vec![link], _sink: sink })
    }

    /// Attaches an empty program to each place at which [`Characteristic::ServiceTime`], [`Characteristic::Ipc`] and
    /// [`Characteristic::RunQueue`] are logged, but for packets: the cost of being called there.
    ///
    /// # Errors
    ///
    /// [`KernelError`]; nothing is attached then.
    ///
    /// [`Characteristic::ServiceTime`]: crate::Characteristic::ServiceTime
    /// [`Characteristic::Ipc`]: crate::Characteristic::Ipc
    /// [`Characteristic::RunQueue`]: crate::Characteristic::RunQueue
    pub fn attach_empty(&self, tick_hertz: u32) -> Result<Running, KernelError> {
        let at = |name, hook| attach::attach(&self.object, name, "the bench", hook);
        let mut links = vec![
            at("sched_switch_empty", "sched_switch tracepoint")?,
            at("sched_waking_empty", "sched_waking tracepoint")?,
        ];
        links.extend(attach::attach_ticks(&self.object, "tick_empty", tick_hertz, self.processors)?);
        Ok(Running { _links: links, _sink: None })
    }

    fn open_outputs(&self) -> Result<Vec<(Mapping, OwnedFd)>, KernelError> {
        let failed =
            |processor| move |source| KernelError::PerfEvent { event: "bpf-output", processor, source };
        let open = |processor: usize| {
            let event = perf::open_output(processor).map_err(failed(processor))?;
            // Mapped for reading only, so the kernel overwrites the oldest and never waits for us.
            let buffer = Mapping::new(event.as_fd(), 0, (1 + PERF_PAGES) * PAGE, ProtFlags::READ)
                .map_err(failed(processor))?;
            let fd = event.as_raw_fd() as u32;
            map::write(&self.object, "output", &(processor as u32).to_ne_bytes(), &fd.to_ne_bytes())?;
            Ok((buffer, event))
        };
        perf::online_processors(self.processors).into_iter().map(open).collect()
    }
}

fn configure(open: &mut OpenObject, processors: usize) -> libbpf_rs::Result<()> {
    open.maps_mut()
        .filter(|map| map.name() == "areas" || map.name() == "output")
        .try_for_each(|mut map| map.set_max_entries(processors as u32))
}

fn name(point: BenchPoint, program: BenchProgram) -> &'static str {
    use BenchPoint::{Switch, SystemCall};
    match (point, program) {
        (SystemCall, BenchProgram::Empty) => "sys_enter_empty",
        (SystemCall, BenchProgram::Clock) => "sys_enter_clock",
        (SystemCall, BenchProgram::Row) => "sys_enter_row",
        (SystemCall, BenchProgram::RingBuffer) => "sys_enter_ring",
        (SystemCall, BenchProgram::PerfOutput) => "sys_enter_perf",
        (Switch, BenchProgram::Empty) => "sched_switch_empty",
        (Switch, BenchProgram::Clock) => "sched_switch_clock",
        (Switch, BenchProgram::Row) => "sched_switch_row",
        (Switch, BenchProgram::RingBuffer) => "sched_switch_ring",
        (Switch, BenchProgram::PerfOutput) => "sched_switch_perf",
    }
}

/// Empties the ring buffer without looking at it, so that the producer always finds room and the
/// other processors are left to the traffic.
struct Drain {
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drain {
    fn begin(object: &Object) -> Result<Drain, KernelError> {
        let failed = |source: io::Error| KernelError::Map { map: "ring", source };
        let ring = map::find(object, "ring")?;
        let consumed =
            Mapping::new(ring.as_fd(), 0, PAGE, ProtFlags::READ | ProtFlags::WRITE).map_err(failed)?;
        let produced = Mapping::new(ring.as_fd(), PAGE as u64, PAGE, ProtFlags::READ).map_err(failed)?;
        let is_done = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_done);
        let drain = move || {
            while !stop.load(Ordering::Relaxed) {
                let position = first_word(&produced).load(Ordering::Acquire);
                first_word(&consumed).store(position, Ordering::Release);
                thread::sleep(DRAIN_INTERVAL);
            }
        };
        let thread = thread::Builder::new().name("ring drain".into()).spawn(drain).map_err(failed)?;
        Ok(Drain { is_done, thread: Some(thread) })
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Err: it panicked, and there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

fn first_word(page: &Mapping) -> &AtomicU64 {
    // SAFETY: a mapping is at least a page, page-aligned, and this word is accessed by atomics only.
    unsafe { page.base().cast().as_ref() }
}
