//! What can go wrong, in words for people.

use std::io;
use std::path::PathBuf;

use mete_log::DomainId;

/// Why the kernel component could not do what was asked of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The process may not open as many files as eBPF programs take.
    #[error(
        "loading eBPF programs takes up to {needed} open files, and of the {most} that this process may have {open} \
         are open: raise the limit, as by ulimit -n"
    )]
    Descriptors {
        /// How many the process may open.
        most: u64,
        /// How many are open.
        open: u64,
        /// How many loading may take.
        needed: u64,
    },
    /// The process may not load programs.
    #[error("loading eBPF programs needs {missing}, which this process lacks; run it as root")]
    Privilege {
        /// The capabilities that are missing.
        missing: String,
    },
    /// The kernel does not describe its types.
    #[error(
        "this kernel has no type information at /sys/kernel/btf/vmlinux; it needs CONFIG_DEBUG_INFO_BTF=y"
    )]
    NoTypeInformation,
    /// The kernel refuses the programs.
    #[error("the kernel refused the eBPF programs ({source:#}){detail}")]
    Refused {
        /// What the loader library said, on lines of its own, or nothing.
        detail: String,
        /// The error.
        source: libbpf_rs::Error,
    },
    /// The running kernel lacks a hook.
    #[error("{characteristic} cannot be logged: this kernel has no {hook}")]
    NoHook {
        /// What was to be logged.
        characteristic: &'static str,
        /// What is missing.
        hook: &'static str,
    },
    /// The kernel does not attach or run a program.
    #[error("cannot attach the eBPF program {program}: {source:#}")]
    Attach {
        /// The program.
        program: &'static str,
        /// The error.
        source: libbpf_rs::Error,
    },
    /// The kernel does not attach a program of a schema.
    #[error("cannot record at {point}: {why}")]
    Point {
        /// The point that it was for.
        point: String,
        /// What the kernel says, or what that means.
        why: String,
    },
    /// The kernel refuses a program of a schema.
    #[error("the kernel does not take the program for {point}: {why}{detail}")]
    RefusedPoint {
        /// The point that it was for.
        point: String,
        /// Why it is refused.
        why: String,
        /// What the loader library said, on lines of its own, or nothing.
        detail: String,
    },
    /// A program or library lacks what a point names.
    #[error("{0}{help}", help = .0.help().map(|help| format!("; {help}")).unwrap_or_default())]
    Program(#[from] mete_schema::program::ProgramError),
    /// The kernel does not run a program for a measurement.
    #[error("cannot measure what logging {event} costs: the kernel does not run its program: {source:#}")]
    Benchmark {
        /// The event that was to be measured.
        event: String,
        /// The error.
        source: libbpf_rs::Error,
    },
    /// The schema has no events.
    #[error("the schema has no events: there is nothing to record")]
    NoEvents,
    /// No point of the schema logs any of the wanted events.
    #[error(
        "the kernel logs none of these events: {0}; a program logs them by its encoders, if it is started by the recorder: name it behind --; or give them points"
    )]
    NoPoints(String),
    /// The schema does not bind a counter on this machine.
    #[error(
        "the schema does not say what counter{number} counts on this machine ({machine}); add a block `arch any`"
    )]
    Unbound {
        /// The counter's number.
        number: u8,
        /// The names by which a schema can mean this machine.
        machine: String,
    },
    /// Recording buffers cannot have this number of bytes.
    #[error("recording buffers of {0} bytes: the size must be a power of two from 64 KiB to 256 MiB")]
    BufferSize(u64),
    /// A program must be compiled, and the compiler is missing.
    #[error(
        "this schema's programs must be compiled, and {compiler} cannot be run ({source}); install clang 16 or newer (Debian: apt install clang), or name it by CLANG"
    )]
    NoCompiler {
        /// The compiler that was tried.
        compiler: String,
        /// The error.
        source: io::Error,
    },
    /// The compiler refuses the programs of a schema.
    #[error("{compiler} does not compile the schema's programs; {why}\n{said}")]
    Compiler {
        /// The compiler.
        compiler: String,
        /// The reason, as far as it is known.
        why: &'static str,
        /// What the compiler says.
        said: String,
    },
    /// A program would be larger than the kernel allows.
    #[error(
        "what the schema logs at one place is too much for one program; log fewer events or simpler values there, or some of them at another point"
    )]
    TooLarge,
    /// The directory for compiled programs cannot be used.
    #[error("cannot keep compiled programs in {}: {source}", path.display())]
    Cache {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The kernel does not say how often it left out runs of the programs.
    #[error("cannot ask the kernel about its eBPF programs: {0}")]
    Programs(#[source] io::Error),
    /// The programs have no room for all these rules.
    #[error("these selectors are too many, or too long: there is room for 1,024, with 32,768 letters in all")]
    TooManyRules,
    /// A map could not be read, written or mapped.
    #[error("cannot use the eBPF map {map}: {source}")]
    Map {
        /// The map.
        map: &'static str,
        /// The error.
        source: io::Error,
    },
    /// No counter has this name.
    #[error("no performance counter is called {0:?}; `perf list hw sw cache` shows the names")]
    UnknownCounter(String),
    /// This machine lacks the counter.
    #[error("this machine cannot count {counter}: {reason}")]
    CounterAbsent {
        /// The counter's name.
        counter: String,
        /// What is missing.
        reason: String,
    },
    /// As many counters as possible are open already.
    #[error("cannot count {counter}: {max} performance counters are open already; disable one first")]
    TooManyCounters {
        /// The counter's name.
        counter: String,
        /// The limit.
        max: usize,
    },
    /// The tick rate is out of range.
    #[error("a tick rate of {0} Hz is not possible; choose 1 to 10000")]
    TickRate(u32),
    /// A perf event could not be opened.
    #[error("cannot open the perf event {event} on processor {processor}: {source}")]
    PerfEvent {
        /// The name of the event.
        event: &'static str,
        /// The processor that it was for.
        processor: usize,
        /// The error.
        source: io::Error,
    },
    /// The tracing file system cannot be reached.
    #[error("cannot find the tracepoint {tracepoint}: {source}")]
    Tracefs {
        /// The tracepoint that was looked for.
        tracepoint: String,
        /// The error.
        source: io::Error,
    },
    /// There is no domain of this number.
    #[error("domain {domain} is out of range; the kernel component has domains 0 to {max}")]
    NoSuchDomain {
        /// The number that was given.
        domain: DomainId,
        /// The largest one.
        max: DomainId,
    },
    /// There is no such task, or this user may not bind it.
    #[error("cannot bind task {pid} to a domain: {source}")]
    Task {
        /// The number of the task.
        pid: i32,
        /// The error.
        source: io::Error,
    },
    /// This is not the first pid namespace, so tasks have other numbers here than in the kernel's programs.
    #[error(
        "the kernel's programs know processes by other numbers than this pid namespace; run mete outside the container, or in one that shares the host's pid namespace (docker run --pid=host)"
    )]
    PidNamespace,
    /// The path is not that of a cgroup, or cannot be read.
    #[error("cannot bind the cgroup {}: {source}", path.display())]
    Cgroup {
        /// The path that was given.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}
