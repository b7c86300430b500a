//! What can go wrong, said to people.

use std::io;
use std::path::PathBuf;

/// Why the kernel component could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
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
        /// What the loader said, on lines of its own, or nothing.
        detail: String,
        /// The error.
        source: libbpf_rs::Error,
    },
    /// The running kernel lacks a hook.
    #[error("{characteristic} cannot be logged: this kernel has no {hook}")]
    NoHook {
        /// What was to be enabled.
        characteristic: &'static str,
        /// What is missing.
        hook: &'static str,
    },
    /// A program did not attach.
    #[error("cannot attach the eBPF program {program}: {source:#}")]
    Attach {
        /// The program.
        program: &'static str,
        /// The error.
        source: libbpf_rs::Error,
    },
    /// A schema's program did not attach.
    #[error("cannot record at {point}: {why}")]
    Point {
        /// Where.
        point: String,
        /// What the kernel says, or what that means.
        why: String,
    },
    /// The kernel refuses a schema's program.
    #[error("the kernel does not take the program for {point}: {why}{detail}")]
    RefusedPoint {
        /// Where it was to run.
        point: String,
        /// Why.
        why: String,
        /// What the loader said, on lines of its own, or nothing.
        detail: String,
    },
    /// A program or library has not what a point names.
    #[error("{0}{help}", help = .0.help().map(|help| format!("; {help}")).unwrap_or_default())]
    Program(#[from] mete_schema::program::ProgramError),
    /// The kernel does not run a program that nothing happens to.
    #[error("cannot measure what logging {event} costs: the kernel does not run its program: {source}")]
    Benchmark {
        /// The event.
        event: String,
        /// The error.
        source: libbpf_rs::Error,
    },
    /// The schema describes nothing.
    #[error("the schema has no events: there is nothing to record")]
    NoEvents,
    /// Nothing of what is wanted is logged in the kernel.
    #[error(
        "the kernel logs none of these events: {0}; a program logs them by its encoders, if it is started by the recorder: name it behind --; or give them points"
    )]
    NoPoints(String),
    /// A counter of a schema counts nothing here.
    #[error(
        "the schema does not say what counter{number} counts on this machine ({machine}); add a block `arch any`"
    )]
    Unbound {
        /// The counter's number.
        number: u8,
        /// The names that the machine goes by.
        machine: String,
    },
    /// Buffers of such a size cannot be.
    #[error("recording buffers of {0} bytes: the size must be a power of two from 64 KiB to 256 MiB")]
    BufferSize(u64),
    /// A program must be compiled, and nothing is there to do it.
    #[error(
        "this schema's programs must be compiled, and {compiler} cannot be run ({source}); install clang 16 or newer (Debian: apt install clang), or name it by CLANG"
    )]
    NoCompiler {
        /// What was tried.
        compiler: String,
        /// The error.
        source: io::Error,
    },
    /// The compiler refuses what was made from a schema.
    #[error("{compiler} does not compile the schema's programs; {why}\n{said}")]
    Compiler {
        /// The compiler.
        compiler: String,
        /// What that means.
        why: &'static str,
        /// What it says.
        said: String,
    },
    /// A program would be larger than programs can be.
    #[error(
        "what the schema logs at one place is too much for one program; log fewer events or simpler values there, or some of them at another point"
    )]
    TooLarge,
    /// Where compiled programs are kept is not to be used.
    #[error("cannot keep compiled programs in {}: {source}", path.display())]
    Cache {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The programs' own counts cannot be read.
    #[error("cannot ask the kernel about its eBPF programs: {source}")]
    Programs {
        /// The error.
        source: io::Error,
    },
    /// More rules than the programs have room for.
    #[error("these selectors are too many, or too long: there is room for 1,024, with 32,768 letters in all")]
    TooManyRules,
    /// A map could not be written or mapped.
    #[error("cannot use the eBPF map {map}: {source}")]
    Map {
        /// The map.
        map: &'static str,
        /// The error.
        source: io::Error,
    },
    /// Nobody knows this counter.
    #[error("no performance counter is called {0:?}; `perf list hw sw cache` shows the names")]
    UnknownCounter(String),
    /// The machine cannot count this.
    #[error("this machine cannot count {counter}: {reason}")]
    CounterAbsent {
        /// The counter's name.
        counter: String,
        /// What is missing.
        reason: String,
    },
    /// All places are taken.
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
        /// What for.
        event: &'static str,
        /// Where.
        processor: usize,
        /// The error.
        source: io::Error,
    },
    /// The tracing file system cannot be reached.
    #[error("cannot find the tracepoint {tracepoint}: {source}")]
    Tracefs {
        /// Which one.
        tracepoint: String,
        /// The error.
        source: io::Error,
    },
    /// The domain does not exist.
    #[error("domain {domain} is out of range; the kernel component has domains 0 to {max}")]
    NoSuchDomain {
        /// The number.
        domain: u16,
        /// The largest one.
        max: u16,
    },
    /// There is no such task, or it belongs to somebody else.
    #[error("cannot bind task {pid} to a domain: {source}")]
    Task {
        /// The task.
        pid: i32,
        /// Why.
        source: io::Error,
    },
    /// Pids mean something else here than to the kernel.
    #[error(
        "the kernel's programs know processes by other numbers than this pid namespace; run mete outside the container, or in one that shares the host's pid namespace (docker run --pid=host)"
    )]
    PidNamespace,
    /// The path is no cgroup, or cannot be read.
    #[error("cannot bind the cgroup {}: {source}", path.display())]
    Cgroup {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
