//! Why a recording cannot begin, go on or end well.

use std::io;

use mete_base::size;
use mete_kernel::KernelError;
use mete_parameters::MountError;
use mete_sched::domains::DomainError;
use mete_sched::sources::SourceError;
use mete_schema::Problems;
use mete_schema::kernel::BtfError;
use mete_trace::RecordError;
use mete_trace::description::DescriptionFileError;
use mete_trace::memory::MemoryError;

/// Why a recording cannot begin, go on or end well.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The schema is wrong, or does not fit this kernel. The caller has its sources, to show the places.
    #[error("the schema has problems")]
    Schema(Problems),
    /// The schema has no event of this name.
    #[error("the schema has no event {name:?}; {help}")]
    NoEvent {
        /// The name.
        name: String,
        /// What may have been meant.
        help: String,
    },
    /// The running kernel does not describe its types.
    #[error(transparent)]
    Types(#[from] BtfError),
    /// A domain.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The kernel's programs.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A program with probes, or the kernel as the source of bindings.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Buffers for programs' events.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Writing the trace.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Reading the trace that was just written.
    #[error(transparent)]
    Trace(#[from] DescriptionFileError),
    /// The command cannot be given the files that it records its events into.
    #[error("cannot let the command record its events")]
    HandOut(#[source] io::Error),
    /// Programs with probes are not looked for.
    #[error("programs with probes are not looked for")]
    NoDiscovery(#[source] io::Error),
    /// A thread cannot be started.
    #[error("cannot start a thread that reads programs")]
    NoThread(#[source] io::Error),
    /// A flight recorder would take more memory than there is.
    #[error(
        "--keep takes up to {} of memory, and {} are available; keep less",
        size::binary(*most),
        size::binary(*available)
    )]
    NotEnoughMemory {
        /// What it would take at most, in bytes.
        most: u64,
        /// What is available now, in bytes.
        available: u64,
    },
    /// Buffers of another size were asked for, and there are none of the kernel.
    #[error("only the kernel's buffers can change their size, and nothing of the kernel is recorded")]
    NoKernelBuffers,
    /// An event's file would have the name of another parameter.
    #[error(
        "the file of event {0} would have the name of the parameter {0}; give the event another name, or leave out --parameters"
    )]
    EventIsParameter(String),
    /// The parameters cannot be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// A flight recorder ended without having written anything.
    #[error("nothing was written")]
    NothingWritten,
    /// Events that were recorded could not be written.
    #[error(
        "{events} events could not be written to {trace}; is the disk full, or the file as large as it may be (ulimit -f)? The rest can be read"
    )]
    NotWritten {
        /// How many.
        events: u64,
        /// The trace.
        trace: String,
    },
}
