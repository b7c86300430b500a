//! Programs for measurements. Those on two tracepoints do one thing each, to compare a row with other means
//! of output under the same conditions. Empty ones can be attached at every place where the scheduler's log
//! is written. This module attaches and detaches them; the caller makes the traffic and measures its time.
//!
//! The areas are the bench's own. The caller writes into them which entries and which clock a
//! [`BenchProgram::Row`] has. Rows have event [`EVENT`], domain [`DOMAIN`] and correspondent 2.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use libbpf_rs::Link;
use mete_base::processors;
use mete_log::layout::PAGE;
use mete_log::{Area, DomainId, EventId};
use rustix::mm::ProtFlags;

use crate::areas::LogAreas;
use crate::load::{load_skeleton, processors};
use crate::map::{Mapping, NamedMap};
use crate::program::NamedProgram;
use crate::skeleton::bench::{BenchSkel, BenchSkelBuilder};
use crate::skeleton::numbers::bench_row_entry;
use crate::skeleton::{map, program, table};
use crate::{KernelError, perf, privilege};

/// The event of the bench's rows.
pub const EVENT: EventId = EventId::new(bench_row_entry::BENCH_EVENT.0 as u16);
/// The domain of the bench's rows.
pub const DOMAIN: DomainId = DomainId::new(bench_row_entry::BENCH_DOMAIN.0 as u16);

/// What errors call the user of these programs.
const USER: &str = "the bench";
/// Pages of data in each processor's perf buffer, a power of two.
const PERF_PAGES: usize = 64;
/// The time between two times at which the ring buffer is emptied. Even ten million rows a second do not fill
/// it in less.
const DRAIN_INTERVAL: Duration = Duration::from_millis(2);

/// The tracepoint that a program is attached to.
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
    /// Does nothing: the cost of a call.
    Empty,
    /// Reads the monotonic clock.
    Clock,
    /// The whole handler, into [`Bench::area`]. The run-queue clock reads 0 at a system call.
    Row,
    /// Writes 32 bytes with the monotonic clock into a BPF ring buffer, without a wake-up.
    RingBuffer,
    /// Writes 32 bytes with the monotonic clock by bpf_perf_event_output, over the oldest ones.
    PerfOutput,
}

/// The loaded bench programs.
pub struct Bench {
    areas: LogAreas,
    skeleton: BenchSkel<'static>,
}

/// A program that is attached until this is dropped.
#[must_use = "the program is detached when this is dropped"]
pub struct Running {
    // Fields are dropped in this order: first the program, then what it writes into.
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
        privilege::check_capabilities()?;
        let processors = processors()?;
        let skeleton = load_skeleton::<BenchSkelBuilder>(|open| {
            open.maps.areas.set_max_entries(processors as u32)?;
            open.maps.output.set_max_entries(processors as u32)
        })?;
        let areas = LogAreas::new(map!(skeleton, areas), processors)?;
        Ok(Bench { areas, skeleton })
    }

    /// How many processors there may be.
    pub fn processors(&self) -> usize {
        self.areas.processors()
    }

    /// The bench's own log area of one processor. The number is taken modulo [`Bench::processors`].
    pub fn area(&self, processor: usize) -> Area<'_> {
        self.areas.area(processor)
    }

    /// Attaches one program.
    pub fn attach(&self, point: BenchPoint, program: BenchProgram) -> Result<Running, KernelError> {
        let sink = match program {
            BenchProgram::RingBuffer => Some(Sink::Ring(Drain::begin(map!(self.skeleton, ring))?)),
            BenchProgram::PerfOutput => Some(Sink::Perf(self.open_outputs()?)),
            _ => None,
        };
        let link = self.program(point, program).attach(USER, "such typed tracepoint")?;
        Ok(Running { _links: vec![link], _sink: sink })
    }

    /// Attaches an empty program to each place where [`Characteristic::ServiceTime`], [`Characteristic::Ipc`]
    /// and [`Characteristic::RunQueue`] are logged, except those that follow packets: the cost of a call
    /// there.
    ///
    /// # Errors
    ///
    /// [`KernelError`]; then nothing is attached.
    ///
    /// [`Characteristic::ServiceTime`]: crate::Characteristic::ServiceTime
    /// [`Characteristic::Ipc`]: crate::Characteristic::Ipc
    /// [`Characteristic::RunQueue`]: crate::Characteristic::RunQueue
    pub fn attach_empty(&self, tick_hertz: u32) -> Result<Running, KernelError> {
        let mut links = vec![
            program!(self.skeleton, sched_switch_empty).attach(USER, "sched_switch tracepoint")?,
            program!(self.skeleton, sched_waking_empty).attach(USER, "sched_waking tracepoint")?,
        ];
        links.extend(program!(self.skeleton, tick_empty).attach_ticks(tick_hertz, self.processors())?);
        Ok(Running { _links: links, _sink: None })
    }

    fn open_outputs(&self) -> Result<Vec<(Mapping, OwnedFd)>, KernelError> {
        let processors = processors::online(self.processors()).into_iter();
        processors.map(|processor| self.open_output(processor)).collect()
    }

    /// The perf buffer of one processor, and the event that writes into it.
    fn open_output(&self, processor: usize) -> Result<(Mapping, OwnedFd), KernelError> {
        let output = perf::open_output(processor).and_then(|event| {
            // Mapped only for reading: so the kernel overwrites the oldest rows and never waits for this
            // process.
            let buffer = Mapping::new(event.as_fd(), 0, (1 + PERF_PAGES) * PAGE, ProtFlags::READ)?;
            Ok((buffer, event))
        });
        let (buffer, event) =
            output.map_err(|source| KernelError::PerfEvent { event: "bpf-output", processor, source })?;
        let fd = event.as_raw_fd() as u32;
        table!(bench, self.skeleton, output).write(processor as u32, &fd)?;
        Ok((buffer, event))
    }

    fn program(&self, point: BenchPoint, program: BenchProgram) -> NamedProgram<'_> {
        use BenchPoint::{Switch, SystemCall};
        let loaded = &self.skeleton;
        match (point, program) {
            (SystemCall, BenchProgram::Empty) => program!(loaded, sys_enter_empty),
            (SystemCall, BenchProgram::Clock) => program!(loaded, sys_enter_clock),
            (SystemCall, BenchProgram::Row) => program!(loaded, sys_enter_row),
            (SystemCall, BenchProgram::RingBuffer) => program!(loaded, sys_enter_ring),
            (SystemCall, BenchProgram::PerfOutput) => program!(loaded, sys_enter_perf),
            (Switch, BenchProgram::Empty) => program!(loaded, sched_switch_empty),
            (Switch, BenchProgram::Clock) => program!(loaded, sched_switch_clock),
            (Switch, BenchProgram::Row) => program!(loaded, sched_switch_row),
            (Switch, BenchProgram::RingBuffer) => program!(loaded, sched_switch_ring),
            (Switch, BenchProgram::PerfOutput) => program!(loaded, sched_switch_perf),
        }
    }
}

/// Empties the ring buffer without looking at its rows, so that the programs always find room and the other
/// processors are left to the traffic.
struct Drain {
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drain {
    fn begin(ring: NamedMap<'_>) -> Result<Drain, KernelError> {
        Drain::start(ring.map.as_fd()).map_err(|source| KernelError::Map { map: ring.name, source })
    }

    fn start(ring: BorrowedFd<'_>) -> io::Result<Drain> {
        // The first page of a ring buffer has the consumer's position, the second one the producer's.
        let consumed = Mapping::new(ring, 0, PAGE, ProtFlags::READ | ProtFlags::WRITE)?;
        let produced = Mapping::new(ring, PAGE as u64, PAGE, ProtFlags::READ)?;
        let is_done = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_done);
        let thread = thread::Builder::new().name("ring drain".into());
        let thread = thread.spawn(move || drain(&stop, &produced, &consumed))?;
        Ok(Drain { is_done, thread: Some(thread) })
    }
}

fn drain(stop: &AtomicBool, produced: &Mapping, consumed: &Mapping) {
    while !stop.load(Ordering::Relaxed) {
        let position = first_word(produced).load(Ordering::Acquire);
        first_word(consumed).store(position, Ordering::Release);
        thread::sleep(DRAIN_INTERVAL);
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // An error means that it has panicked; then there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

fn first_word(page: &Mapping) -> &AtomicU64 {
    // SAFETY: a mapping begins on a page and has a page at least, and this word is accessed by atomics only.
    unsafe { page.base().cast().as_ref() }
}
