//! Programs: attached to their hooks, to timers and to perf events, or run once.

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use libbpf_rs::{Iter, Link, Object, ProgramInput, ProgramMut, libbpf_sys};
use mete_base::processors;

use crate::{KernelError, perf};

/// A loaded program, with its name for messages: see `program!`.
#[derive(Clone, Copy)]
pub(crate) struct NamedProgram<'a> {
    pub(crate) name: &'static str,
    pub(crate) program: &'a ProgramMut<'a>,
}

impl NamedProgram<'_> {
    /// Whether this kernel has what the program is attached to. If not, the program is not loaded.
    pub(crate) fn has_hook(&self) -> bool {
        self.program.autoload()
    }

    /// Attaches the program to what its section names.
    pub(crate) fn attach(
        &self,
        characteristic: &'static str,
        hook: &'static str,
    ) -> Result<Link, KernelError> {
        if !self.has_hook() {
            return Err(KernelError::NoHook { characteristic, hook });
        }
        self.program.attach().map_err(|source| self.failed(source))
    }

    /// Attaches the program to a timer of each processor that is online.
    pub(crate) fn attach_ticks(&self, hertz: u32, processors: usize) -> Result<Vec<Link>, KernelError> {
        processors::online(processors).into_iter().map(|at| self.attach_tick(hertz, at)).collect()
    }

    fn attach_tick(&self, hertz: u32, processor: usize) -> Result<Link, KernelError> {
        let event = perf::open_tick(hertz, processor).map_err(|source| KernelError::PerfEvent {
            event: "cpu-clock",
            processor,
            source,
        })?;
        attach_to_event(self.program, event).map_err(|source| self.failed(source))
    }

    /// Runs the program here and now, as the calling thread. The kernel keeps this thread on its processor
    /// meanwhile.
    pub(crate) fn run_once(&self) -> Result<(), KernelError> {
        let run = self.program.test_run(ProgramInput::default());
        run.map(drop).map_err(|source| self.failed(source))
    }

    /// Runs an iterator over tasks for every task. `link` is what [`NamedProgram::attach`] returned for it.
    pub(crate) fn run_for_all(&self, link: &Link) -> Result<(), KernelError> {
        let mut all = Iter::new(link).map_err(|source| self.failed(source))?;
        // The program writes no text. To read to the end runs it for every task.
        all.read_to_end(&mut Vec::new()).map_err(|error| self.failed(error.into()))?;
        Ok(())
    }

    fn failed(&self, source: libbpf_rs::Error) -> KernelError {
        KernelError::Attach { program: self.name, source }
    }
}

/// The program of this name in an object that was made from a schema.
pub(crate) fn find<'a>(object: &'a Object, name: &str) -> Option<ProgramMut<'a>> {
    object.progs_mut().find(|program| program.name() == name)
}

/// Attaches a program to a perf event, which the link then owns.
pub(crate) fn attach_to_event(program: &ProgramMut<'_>, event: OwnedFd) -> libbpf_rs::Result<Link> {
    let link = program.attach_perf_event(event.as_raw_fd())?;
    // The link closes the descriptor when it is dropped, so it must not be closed here, too.
    let _ = event.into_raw_fd();
    Ok(link)
}

/// The number of runs that the kernel left out of all loaded programs of an object.
pub(crate) fn missed_runs(object: &Object) -> Result<u64, KernelError> {
    let loaded = object.progs().filter(|program| program.autoload());
    let missed = loaded.map(|program| missed_runs_of(program.as_fd()));
    missed.sum::<io::Result<u64>>().map_err(KernelError::Programs)
}

fn missed_runs_of(program: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut bytes = size_of_val(&info) as u32;
    // SAFETY: the kernel writes at most `bytes` bytes into `info`. All pointers in it are zero, so the kernel
    // writes nothing to where they point.
    let failed =
        unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_raw_fd(), &raw mut info, &raw mut bytes) };
    if failed == 0 { Ok(info.recursion_misses) } else { Err(io::Error::last_os_error()) }
}
