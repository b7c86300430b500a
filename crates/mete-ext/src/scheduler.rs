//! The scheduler inside the kernel as a value: loaded, ruling, gone.

use std::mem::offset_of;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::Link;
use libbpf_rs::skel::{OpenSkel, Skel};
use mete_kernel::{SharedNumbers, Weight, load_skeleton, mirror};
use mete_policy::Nanoseconds;
use rustix::time::{ClockId, clock_getres};

use crate::check::check;
use crate::ended::{Ended, Ending};
use crate::skeleton::ext::{ExtSkel, ExtSkelBuilder, types};
use crate::{ExtError, causes, flags, group};

/// Distributed group virtual-time round robin, which rules all ordinary tasks while this lives.
pub struct GroupScheduler {
    // Fields are dropped in this order: first the kernel takes its tasks back, then nothing is loaded any
    // more.
    _link: Link,
    _causes: Vec<Link>,
    skeleton: ExtSkel<'static>,
    settings: SharedNumbers<Settings>,
    counted: Counted,
    ending: Ending,
}

/// The quantum of group VTRR inside the kernel, if no other one is set: this, or the kernel's tick if that is longer.
const ORDINARY_QUANTUM: Nanoseconds = Nanoseconds::from_millis(1);

/// What a quantum may be, by sched_ext: the kernel ends slices at its ticks.
pub const QUANTA: RangeInclusive<Nanoseconds> = Nanoseconds::from_millis(1)..=Nanoseconds::from_millis(100);

/// A quantum that may be.
///
/// # Errors
///
/// [`ExtError::Quantum`]
pub fn check_quantum(quantum: Nanoseconds) -> Result<Nanoseconds, ExtError> {
    if QUANTA.contains(&quantum) { Ok(quantum) } else { Err(ExtError::Quantum { found: quantum }) }
}

/// The quantum of group VTRR inside the kernel, if no other one is set.
pub fn quantum_inside() -> Nanoseconds {
    in_whole_ticks(ORDINARY_QUANTUM, tick())
}

/// The time that a slice of this length takes: the kernel ends it at a tick. Where each slice is longer than the quantum of which the
/// policy thinks, most clients have had more than a round brings. Then processors take tasks from each other all the time,
/// because they have none that is due.
///
/// It is one of [`QUANTA`], if the quantum is, so that what was set once can be set again.
fn in_whole_ticks(quantum: Nanoseconds, tick: Nanoseconds) -> Nanoseconds {
    let tick = tick.get().max(1);
    let most = QUANTA.end().get() / tick * tick;
    Nanoseconds::new(quantum.get().next_multiple_of(tick).min(most.max(tick)))
}

/// The period at which the kernel looks whether a slice is over. Its coarse clocks go on at the same moments.
fn tick() -> Nanoseconds {
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    Nanoseconds::new(resolution.tv_sec as u64 * 1_000_000_000 + resolution.tv_nsec as u64)
}

mirror!(Settings of types::settings {
    quantum_ns: AtomicU64,
});

/// What the kernel's side counts. A program writes these numbers, so all of them are read as atomic ones, at their
/// places.
struct Counted {
    of_processors: SharedNumbers<[AtomicU64; size_of::<types::processor>() / size_of::<u64>()]>,
    of_all: SharedNumbers<[AtomicU64; size_of::<types::bss>() / size_of::<u64>()]>,
}

impl Counted {
    fn of(skeleton: &ExtSkel<'_>) -> std::io::Result<Counted> {
        let maps = &skeleton.maps;
        let processors = size_of::<types::bss_processors>() / size_of::<types::processor>();
        Ok(Counted {
            of_processors: SharedNumbers::of(&maps.bss_processors, processors)?,
            of_all: SharedNumbers::of(&maps.bss, 1)?,
        })
    }

    /// The sum of what lies at this place of each processor.
    fn sum(&self, place: usize) -> u64 {
        let all = self.of_processors.all().iter();
        all.map(|numbers| numbers[place / size_of::<u64>()].load(Ordering::Relaxed)).sum()
    }

    /// What lies at this place of the common variables.
    fn total(&self, place: usize) -> u64 {
        self.of_all.all()[0][place / size_of::<u64>()].load(Ordering::Relaxed)
    }
}

/// What the scheduler has done since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Tasks that were chosen to run next. Missed choices are counted, too.
    pub decisions: u64,
    /// Tasks that a processor took from another one, because it had nothing due itself.
    pub stolen: u64,
    /// Choices that could not be carried out, because the task had left at that moment.
    pub missed: u64,
    /// Tasks that went ahead of all others because they had waited for some seconds: the share of their
    /// cgroup is that small, or there are that many others.
    pub hastened: u64,
    /// Tasks that were taken for blocked and did wait. There should be none; each of them waited for two or
    /// three seconds.
    pub found: u64,
    /// Why the kernel has ended the scheduler, if it has.
    pub ended: Option<Ended>,
}

impl GroupScheduler {
    /// Loads the policy and switches all ordinary tasks to it.
    ///
    /// Needs Linux 6.12 with sched_ext and type information, and root or the capabilities `CAP_BPF`,
    /// `CAP_PERFMON` and `CAP_SYS_ADMIN`.
    ///
    /// # Errors
    ///
    /// [`ExtError`] says what is missing, which scheduler rules already, or what the kernel refused.
    pub fn start() -> Result<GroupScheduler, ExtError> {
        let processors = check(size_of::<types::bss_processors>() / size_of::<types::processor>())?;
        let mut skeleton = load_skeleton::<ExtSkelBuilder>(|open| {
            if let Some(settings) = &mut open.maps.rodata_data {
                settings.processor_count = processors;
            }
            let operations = open.struct_ops.mete_mut();
            operations.flags = flags::taken(operations.flags)?;
            causes::choose(open.open_object_mut())
        })?;
        let counted = Counted::of(&skeleton).map_err(ExtError::Memory)?;
        let ending = Ending::of(&skeleton.maps.bss_ending).map_err(ExtError::Memory)?;
        let settings = SharedNumbers::of(&skeleton.maps.bss_settings, 1).map_err(ExtError::Memory)?;
        store_quantum(&settings, quantum_inside());
        let causes = causes::watch(skeleton.object_mut()).map_err(ExtError::Refused)?;
        let link = skeleton.maps.mete.attach_struct_ops().map_err(ExtError::Refused)?;
        Ended::check(ending.read())?;
        Ok(GroupScheduler { _link: link, _causes: causes, skeleton, settings, counted, ending })
    }

    /// Sets the weight of a cgroup. It takes the place of the cgroup's `cpu.weight` until the cgroup is
    /// removed or this scheduler ends; `None` gives `cpu.weight` its place back.
    ///
    /// # Errors
    ///
    /// [`ExtError::Cgroup`] if the directory is no cgroup of version 2 that has a share of its own, and why.
    pub fn set_weight(&self, cgroup: &Path, weight: Option<Weight>) -> Result<(), ExtError> {
        let ExtSkel { progs, maps, .. } = &self.skeleton;
        group::set_weight(&progs.set_share, &maps.domains_of_cgroups, cgroup, weight)
    }

    /// Sets how long a task runs at a time, as a rule; from the next decision on. A slice ends at a tick of the kernel, so it
    /// is the next longer time that is some ticks. The answer is that time.
    ///
    /// # Errors
    ///
    /// [`ExtError::Quantum`] if it is not one of [`QUANTA`].
    pub fn set_quantum(&self, quantum: Nanoseconds) -> Result<Nanoseconds, ExtError> {
        let quantum = in_whole_ticks(check_quantum(quantum)?, tick());
        store_quantum(&self.settings, quantum);
        Ok(quantum)
    }

    /// What the scheduler has done since it started, and whether it still rules.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            decisions: self.counted.sum(offset_of!(types::processor, decisions)),
            stolen: self.counted.sum(offset_of!(types::processor, stolen)),
            missed: self.counted.sum(offset_of!(types::processor, missed)),
            hastened: self.counted.total(offset_of!(types::bss, hastened)),
            found: self.counted.total(offset_of!(types::bss, found)),
            ended: self.ending.read(),
        }
    }
}

fn store_quantum(settings: &SharedNumbers<Settings>, quantum: Nanoseconds) {
    settings.all()[0].quantum_ns.store(quantum.get(), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_6_a_quantum_is_some_ticks() {
        // Asked for, the tick, what a slice takes; in microseconds.
        let cases = [
            (1_000, 1_000, 1_000),
            (1_500, 1_000, 2_000),
            (1_000, 4_000, 4_000),
            (5_000, 4_000, 8_000),
            (8_000, 4_000, 8_000),
            (4_000, 3_333, 6_666),
            (15_000, 10_000, 20_000),
        ];
        for (asked, tick, takes) in cases {
            let [asked, tick, takes] = [asked, tick, takes].map(|us| Nanoseconds::new(us * 1_000));
            assert_eq!(in_whole_ticks(asked, tick), takes, "{asked:?}, {tick:?}");
        }
        // A period of 300 ticks a second is no whole part of the longest quantum.
        let tick = Nanoseconds::new(3_333_333);
        let longest = in_whole_ticks(*QUANTA.end(), tick);
        assert_eq!(longest, Nanoseconds::new(99_999_990));
        assert_eq!(check_quantum(longest).ok().map(|quantum| in_whole_ticks(quantum, tick)), Some(longest));
    }

    #[test]
    fn vtrr_6_the_tick_is_one_that_kernels_have() {
        // What kernels for x86-64 and others can be built with, in ticks a second. Some periods are no whole nanoseconds.
        let known = [100, 200, 250, 300, 500, 512, 1000, 1023, 1024, 1200];
        let found = 1_000_000_000 / tick().get();
        assert!(known.contains(&found), "{found} ticks a second");
        assert_eq!(quantum_inside().get() % tick().get(), 0);
    }
}
