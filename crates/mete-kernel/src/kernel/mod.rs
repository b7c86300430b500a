//! The kernel component as a value: its loaded programs, its log areas and what is attached.

mod attach;
mod bind;
mod memory;
mod missed;
mod select;

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};

use libbpf_rs::btf::{Btf, types};
use libbpf_rs::skel::OpenSkel;
use mete_log::Area;
use mete_log::layout::PAGE;

use self::attach::Attached;
use self::bind::Bindings;
pub use self::bind::{Bound, DomainTable, Principal};
pub use self::select::{DividedBy, Division, ProcessKind, Rule, Selects, ThreadName};
use crate::areas::LogAreas;
use crate::load::{load_skeleton, processors};
use crate::map::Mapping;
use crate::skeleton::map;
use crate::skeleton::mete::types::{bss_clocks, settings};
use crate::skeleton::mete::{MeteSkel, MeteSkelBuilder, OpenMeteSkel};
use crate::{KernelError, privilege};

// The one global that `run_queue_offset_ns` reads is at the beginning of its map.
const _: () = assert!(std::mem::offset_of!(bss_clocks, ahead_ns) == 0);

/// The loaded kernel component. Dropping it detaches and unloads everything.
pub struct Kernel {
    // Fields are dropped in this order: first nothing runs any more, then nothing is mapped.
    pub(crate) attached: Attached,
    pub(crate) bindings: Bindings,
    areas: LogAreas,
    clocks: Mapping,
    pub(crate) skeleton: MeteSkel<'static>,
    /// The rule by which the programs divide processes into kinds, or did at last.
    divided_by: Option<DividedBy>,
}

impl Kernel {
    /// Loads the programs and maps the log areas; attaches nothing.
    ///
    /// Needs Linux 5.17 with type information, root or the capabilities `CAP_BPF` and `CAP_PERFMON`,
    /// and the first pid namespace.
    ///
    /// # Errors
    ///
    /// [`KernelError`] says which of these is missing, or what the kernel refused.
    pub fn load() -> Result<Kernel, KernelError> {
        privilege::check_capabilities()?;
        privilege::check_pid_namespace()?;
        let processors = processors()?;
        let skeleton = load_skeleton::<MeteSkelBuilder>(|open| configure(open, processors))?;
        let areas = LogAreas::new(map!(skeleton, areas), processors)?;
        let bindings = Bindings::new(map!(skeleton, domain_of_pid))?;
        let clocks = map!(skeleton, bss_clocks).mapped(PAGE)?;
        Ok(Kernel { attached: Attached::default(), bindings, areas, clocks, skeleton, divided_by: None })
    }

    /// How many processors there may be, which is the number of areas.
    pub fn processors(&self) -> usize {
        self.areas.processors()
    }

    /// The log area of one processor, in [`Shape::KERNEL`]. The number is taken modulo
    /// [`Kernel::processors`].
    ///
    /// [`Shape::KERNEL`]: mete_log::Shape::KERNEL
    pub fn area(&self, processor: usize) -> Area<'_> {
        self.areas.area(processor)
    }

    /// How far the monotonic clock is ahead of the clock of the run queues, in nanoseconds. This converts a
    /// stamp by [`Stamp::RunQueue`] to a moment.
    ///
    /// The programs renew it a hundred times a second, while [`Characteristic::ServiceTime`] or a counter is
    /// logged.
    ///
    /// [`Characteristic::ServiceTime`]: crate::Characteristic::ServiceTime
    /// [`Stamp::RunQueue`]: mete_log::Stamp::RunQueue
    pub fn run_queue_offset_ns(&self) -> i64 {
        // SAFETY: the mapping begins on a page, with this one word. Programs store the word whole, and it is
        // accessed by atomics only.
        unsafe { self.clocks.base().cast::<AtomicI64>().as_ref() }.load(Ordering::Relaxed)
    }

    /// All areas, in the order of the processors.
    pub fn areas(&self) -> impl Iterator<Item = Area<'_>> {
        (0..self.processors()).map(|processor| self.area(processor))
    }
}

/// Sets what must be known between opening and loading: the sizes of maps, the constants, and which programs
/// have a hook in this kernel.
fn configure(open: &mut OpenMeteSkel<'static>, processors: usize) -> libbpf_rs::Result<()> {
    let pids = bind::table_entries();
    let btf = Btf::from_vmlinux()?;
    let maps = &mut open.maps;
    for per_processor in [&mut maps.areas, &mut maps.phases, &mut maps.deliveries] {
        per_processor.set_max_entries(processors as u32)?;
    }
    maps.counters.set_max_entries((processors * crate::event::MAX_COUNTERS) as u32)?;
    maps.domain_of_pid.set_value_size(2 * pids as u32)?;
    let constants =
        maps.rodata_settings_data.as_deref_mut().ok_or(io::Error::from(io::ErrorKind::NotFound))?;
    constants.settings = settings {
        pid_mask: pids as u32 - 1,
        processors: processors as u32,
        preempt_count: preempt_count(&btf).unwrap_or(0),
    };
    for mut program in open.open_object_mut().progs_mut() {
        let has_hook = has_hook(&btf, program.section().to_str().unwrap_or_default());
        program.set_autoload(has_hook);
    }
    // Kernels that do not need this program lack a helper that it calls.
    let counts_per_processor = btf.type_by_name::<types::Struct<'_>>("mm_rss_stat").is_none();
    open.progs.find_offsets.set_autoload(counts_per_processor);
    Ok(())
}

/// The distance from the run queue of a processor to its count of interrupts, in bytes. Both are variables
/// that each processor has, in one section.
fn preempt_count(btf: &Btf<'_>) -> Option<i64> {
    // From 6.2 to 6.14 it was the second member of a structure, after a pointer.
    let count = variable_offset(btf, "__preempt_count")
        .or_else(|| variable_offset(btf, "pcpu_hot").map(|offset| offset + 8))?;
    Some(count - variable_offset(btf, "runqueues")?)
}

/// Where a variable that each processor has lies in their section.
fn variable_offset(btf: &Btf<'_>, wanted: &str) -> Option<i64> {
    let section = btf.type_by_name::<types::DataSec<'_>>(".data..percpu")?;
    let variable = section.iter().find(|variable| {
        let ty = btf.type_by_id::<types::Var<'_>>(variable.ty);
        ty.is_some_and(|ty| ty.name().is_some_and(|name| name == wanted))
    });
    variable.map(|variable| i64::from(variable.offset))
}

/// Whether the typed tracepoint that a section of a program names exists in the kernel of these types. Programs of other kinds always load.
pub fn has_hook(btf: &Btf<'_>, section: &str) -> bool {
    section.strip_prefix("tp_btf/").is_none_or(|tracepoint| {
        btf.type_by_name::<types::Typedef<'_>>(&format!("btf_trace_{tracepoint}")).is_some()
    })
}
