//! The one system call that opens counters, clocks and tracepoints: perf_event_open(2).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::KernelError;
use crate::counter::Counter;

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const CPU_CLOCK: u64 = 0;
const BPF_OUTPUT: u64 = 10;
const SAMPLE_RAW: u64 = 1 << 10;
const FLAG_CLOEXEC: libc::c_ulong = 1 << 3;

/// `struct perf_event_attr` as of its first version, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
}

/// Opens an event that covers all tasks of a processor.
/// An event that is sampled each time.
fn of(kind: u32, config: u64) -> Attributes {
    Attributes { kind, config, sample_period: 1, ..Attributes::default() }
}

fn open(attributes: Attributes, processor: usize) -> io::Result<OwnedFd> {
    // By its size, the kernel knows which version of the structure this is.
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..attributes };
    let (any_task, no_group) = (-1, -1);
    // SAFETY: the attributes live across the call and say their own size.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            any_task,
            processor as libc::c_int,
            no_group,
            FLAG_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nothing else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Opens a performance counter of one processor, which counts from now on.
pub(crate) fn open_counter(counter: &Counter, processor: usize) -> Result<OwnedFd, KernelError> {
    let attributes = Attributes { kind: counter.kind(), config: counter.config(), ..Attributes::default() };
    open(attributes, processor).map_err(|error| KernelError::CounterAbsent {
        counter: counter.name().into(),
        reason: why(counter, &error),
    })
}

fn why(counter: &Counter, error: &io::Error) -> String {
    // The errors that perf_event_open(2) returns for an event that the processor lacks.
    let is_unknown = matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL | libc::ENXIO)
    );
    if is_unknown && !counter.is_software() {
        "its processor shows no such hardware counter (virtual machines often hide the performance monitoring unit)"
            .into()
    } else {
        error.to_string()
    }
}

/// Opens a timer of one processor, which fires `hertz` times a second, also while the processor is idle.
pub(crate) fn open_tick(hertz: u32, processor: usize) -> io::Result<OwnedFd> {
    let period_ns = 1_000_000_000 / u64::from(hertz);
    open(Attributes { sample_period: period_ns, ..of(TYPE_SOFTWARE, CPU_CLOCK) }, processor)
}

/// Opens a tracepoint by its number. A program that is attached to it runs on every processor.
pub(crate) fn open_tracepoint(id: u64) -> io::Result<OwnedFd> {
    open(of(TYPE_TRACEPOINT, id), 0)
}

/// Opens a tracepoint that perf itself records on one processor, with these fields of a sample and these
/// flags (`sample_type` and the bit field of `perf_event_attr`). The caller maps its ring.
///
/// # Errors
///
/// The kernel's answer.
pub fn open_recorded(id: u64, processor: usize, sample_type: u64, flags: u64) -> io::Result<OwnedFd> {
    open(Attributes { sample_type, flags, ..of(TYPE_TRACEPOINT, id) }, processor)
}

/// Opens an event for bpf_perf_event_output to write into.
pub(crate) fn open_output(processor: usize) -> io::Result<OwnedFd> {
    open(Attributes { sample_type: SAMPLE_RAW, ..of(TYPE_SOFTWARE, BPF_OUTPUT) }, processor)
}
