//! From the embedded object to verified programs and mapped log areas.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use libbpf_rs::btf::{Btf, types};
use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel};
use mete_log::layout::PAGE;
use mete_log::{Area, Shape};

use crate::attach::Attached;
use crate::bind::Bindings;
use crate::map::Mapping;
use crate::{KernelError, capability};

/// An object file, aligned as its reader wants it.
#[repr(C, align(8))]
pub(crate) struct Aligned<T: ?Sized>(pub(crate) T);

macro_rules! object {
    ($name:literal) => {{
        use $crate::load::Aligned;
        static OBJECT: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
        &OBJECT.0
    }};
}
pub(crate) use object;

/// The loaded kernel component. Dropping it detaches and unloads everything.
pub struct Kernel {
    // Fields are dropped in this order: first nothing runs any more, then nothing is mapped.
    pub(crate) attached: Attached,
    pub(crate) bindings: Bindings,
    areas: Mapping,
    clocks: Mapping,
    pub(crate) object: Object,
    processors: usize,
}

impl Kernel {
    /// Loads the programs and maps the log areas; attaches nothing.
    ///
    /// Needs Linux 5.17 with type information, root or the capabilities `CAP_BPF` and `CAP_PERFMON`,
    /// and the first pid namespace.
    pub fn load() -> Result<Kernel, KernelError> {
        capability::check_privilege()?;
        capability::check_pid_namespace()?;
        let processors = processors()?;
        let object = load_object(object!("mete"), |open| configure(open, processors))?;
        let areas = map_areas(&object, processors)?;
        let bindings = Bindings::new(&object)?;
        let clocks = Mapping::of_map(&object, ".bss.clocks", PAGE)?;
        Ok(Kernel { attached: Attached::default(), bindings, areas, clocks, object, processors })
    }

    /// How many processors there may be, and so how many areas there are.
    pub fn processors(&self) -> usize {
        self.processors
    }

    /// The log area of one processor, in [`Shape::KERNEL`]. The number is taken modulo
    /// [`Kernel::processors`].
    pub fn area(&self, processor: usize) -> Area<'_> {
        area_in(&self.areas, processor % self.processors)
    }

    /// How far the monotonic clock is ahead of the run queues' clock, in nanoseconds, as of the last
    /// hundredth of a second in which [`Characteristic::ServiceTime`] or a counter was logged: what makes
    /// a moment of a stamp by [`Stamp::RunQueue`].
    ///
    /// [`Characteristic::ServiceTime`]: crate::Characteristic::ServiceTime
    /// [`Stamp::RunQueue`]: mete_log::Stamp::RunQueue
    pub fn run_queue_offset_ns(&self) -> i64 {
        // SAFETY: the mapping begins on a page with this one word, which programs store whole, and is
        // touched by atomics only.
        unsafe { self.clocks.base().cast::<AtomicI64>().as_ref() }.load(Ordering::Relaxed)
    }

    /// All areas, in the processors' order.
    pub fn areas(&self) -> impl Iterator<Item = Area<'_>> {
        (0..self.processors).map(|processor| self.area(processor))
    }
}

/// How many processors this machine may ever have.
pub(crate) fn processors() -> Result<usize, KernelError> {
    libbpf_rs::num_possible_cpus().map_err(refused)
}

/// Opens, configures and verifies one of this crate's objects. What the loader has to say goes into
/// the error and not to the terminal.
pub(crate) fn load_object(
    bytes: &[u8],
    mut configure: impl FnMut(&mut OpenObject) -> libbpf_rs::Result<()>,
) -> Result<Object, KernelError> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(KernelError::NoTypeInformation);
    }
    let _quiet = Quiet::begin();
    let load = || {
        let mut open = ObjectBuilder::default().open_memory(bytes)?;
        configure(&mut open)?;
        open.load()
    };
    undisturbed(load).map_err(refused)
}

/// Tries again where the kernel has stopped looking at a program because a signal waited for this thread: it says
/// EAGAIN then, and that nothing is wrong with the program. The loader library tries five times at once; on a busy
/// machine what disturbs it may last longer than that.
fn undisturbed<T>(mut load: impl FnMut() -> libbpf_rs::Result<T>) -> libbpf_rs::Result<T> {
    const TRIES: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(20);
    for _ in 1..TRIES {
        match load() {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            loaded => return loaded,
        }
    }
    load()
}

/// What is decided between opening and loading: sizes, and programs that this kernel has no hook for.
fn configure(open: &mut OpenObject, processors: usize) -> libbpf_rs::Result<()> {
    let pids = crate::bind::table_entries();
    let btf = Btf::from_vmlinux()?;
    for mut map in open.maps_mut() {
        match map.name().to_str() {
            Some("areas" | "phases" | "deliveries") => map.set_max_entries(processors as u32)?,
            Some("counters") => map.set_max_entries((processors * crate::event::MAX_COUNTERS) as u32)?,
            Some("domain_of_pid") => map.set_value_size(2 * pids as u32)?,
            Some(".rodata.settings") => {
                map.set_initial_value(&settings(pids, processors, preempt_count(&btf)))?;
            }
            _ => {}
        }
    }
    let counts_per_processor = btf.type_by_name::<types::Struct<'_>>("mm_rss_stat").is_none();
    for mut program in open.progs_mut() {
        let has_hook = has_hook(&btf, program.section().to_str().unwrap_or_default());
        // Kernels that do not need this program lack what it calls.
        program.set_autoload(has_hook && (program.name() != "find_offsets" || counts_per_processor));
    }
    Ok(())
}

/// `struct settings` of `bpf/area.h`.
fn settings(pids: usize, processors: usize, preempt_count: Option<i64>) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&(pids as u32 - 1).to_ne_bytes());
    bytes[4..8].copy_from_slice(&(processors as u32).to_ne_bytes());
    bytes[8..].copy_from_slice(&preempt_count.unwrap_or(0).to_ne_bytes());
    bytes
}

/// From a processor's run queue to its count of interrupts, in bytes: both are variables that each
/// processor has, in one section.
fn preempt_count(btf: &Btf<'_>) -> Option<i64> {
    let section = btf.type_by_name::<types::DataSec<'_>>(".data..percpu")?;
    let place = |wanted: &str| {
        let mut variables = section.iter();
        let variable = variables.find(|variable| {
            let ty = btf.type_by_id::<types::Var<'_>>(variable.ty);
            ty.is_some_and(|ty| ty.name().is_some_and(|name| name == wanted))
        });
        variable.map(|variable| i64::from(variable.offset))
    };
    // From 6.2 to 6.14 it was the second member of a structure, behind a pointer.
    let count = place("__preempt_count").or_else(|| place("pcpu_hot").map(|place| place + 8))?;
    Some(count - place("runqueues")?)
}

/// Whether the typed tracepoint that a section names exists; other sections always load.
fn has_hook(btf: &Btf<'_>, section: &str) -> bool {
    section.strip_prefix("tp_btf/").is_none_or(|tracepoint| {
        btf.type_by_name::<types::Typedef<'_>>(&format!("btf_trace_{tracepoint}")).is_some()
    })
}

/// Maps the areas of an object and writes their headers.
pub(crate) fn map_areas(object: &Object, processors: usize) -> Result<Mapping, KernelError> {
    let areas = Mapping::of_map(object, "areas", processors * Shape::KERNEL.area_bytes())?;
    for processor in 0..processors {
        area_in(&areas, processor).initialise(processor as u32);
    }
    Ok(areas)
}

/// One processor's area in such a mapping.
pub(crate) fn area_in(areas: &Mapping, processor: usize) -> Area<'_> {
    let offset = processor * Shape::KERNEL.area_bytes();
    assert!(offset < areas.bytes(), "processors are counted before the areas are mapped");
    // SAFETY: the mapping holds whole areas and outlives the view; elements begin on pages; only
    // `Area` touches them.
    unsafe { Area::new(areas.base().byte_add(offset), Shape::KERNEL) }
}

fn refused(source: libbpf_rs::Error) -> KernelError {
    KernelError::Refused { detail: std::mem::take(&mut said()), source }
}

static SAID: Mutex<String> = Mutex::new(String::new());

fn said() -> MutexGuard<'static, String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the loader library's warnings, of which the last lines explain an error.
fn keep(_: PrintLevel, text: String) {
    const ENOUGH: usize = 4096;
    let mut said = said();
    said.push('\n');
    said.push_str(text.trim_end());
    let excess = said.len().saturating_sub(ENOUGH);
    let cut = (excess..said.len()).find(|&at| said.is_char_boundary(at)).unwrap_or(0);
    said.drain(..cut);
}

/// The loader library's output goes to [`keep`] while this lives.
pub(crate) struct Quiet(Option<(PrintLevel, libbpf_rs::PrintCallback)>);

impl Quiet {
    pub(crate) fn begin() -> Quiet {
        said().clear();
        Quiet(libbpf_rs::set_print(Some((PrintLevel::Warn, keep))))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        libbpf_rs::set_print(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_13_loading_that_a_signal_disturbs_is_tried_again_and_what_is_refused_is_not() {
        let tries = |disturbed: u32, then: fn() -> libbpf_rs::Result<()>| {
            let mut tries = 0;
            let load = || {
                tries += 1;
                if tries > disturbed {
                    then()
                } else {
                    Err(libbpf_rs::Error::from_raw_os_error(libc::EAGAIN))
                }
            };
            let loaded = undisturbed(load).map_err(|error| error.kind());
            (loaded, tries)
        };
        let refuse = || Err(libbpf_rs::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(tries(0, || Ok(())), (Ok(()), 1));
        assert_eq!(tries(4, || Ok(())), (Ok(()), 5));
        assert_eq!(tries(1, refuse), (Err(libbpf_rs::ErrorKind::PermissionDenied), 2));
        assert_eq!(tries(100, || Ok(())), (Err(libbpf_rs::ErrorKind::WouldBlock), 5), "it ends");
    }
}
