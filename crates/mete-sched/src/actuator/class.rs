//! How the kernel schedules a thread: its scheduling class, and what it has within it.

use rustix::io::Errno;

use super::mask::number;
use super::threads::Setting;

/// A thread's scheduling class, as `sched_getattr` gives it. Deadlines are not among it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// `SCHED_OTHER`, `SCHED_BATCH`, `SCHED_IDLE`, `SCHED_FIFO` or `SCHED_RR`.
    policy: u32,
    /// The real-time priority; 0 for the classes without one.
    priority: u32,
    /// The nice value; 0 for the real-time classes.
    nice: i32,
    /// Whether threads and processes that it starts have the ordinary class.
    is_reset_on_fork: bool,
}

/// The kernel's form.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;
const RESET_ON_FORK: u64 = libc::SCHED_FLAG_RESET_ON_FORK as u64;
const FIFO: u32 = libc::SCHED_FIFO as u32;
const IDLE: u32 = libc::SCHED_IDLE as u32;
/// A twelfth of the ordinary weight, where idle threads have a 340th. Not 10, which `nice` gives: a thread
/// that has it is taken for one that has it from here.
const NICE_AFTER: i32 = 11;

impl Class {
    /// Real time, first in, first out. What the thread starts is ordinary.
    pub const fn fifo(priority: u32) -> Class {
        Class { policy: FIFO, priority, nice: 0, is_reset_on_fork: true }
    }

    /// Ordinary (`SCHED_OTHER`), with a nice value.
    pub const fn ordinary(nice: i32) -> Class {
        Class { policy: libc::SCHED_OTHER as u32, priority: 0, nice, is_reset_on_fork: false }
    }

    /// Ordinary, and before all other ordinary ones. What the thread starts is not.
    pub const fn foremost() -> Class {
        Class { is_reset_on_fork: true, ..Class::ordinary(-20) }
    }

    /// Behind all that is not idle (`SCHED_IDLE`). The thread keeps its nice value, which counts again when
    /// it is ordinary again.
    pub const fn behind(self) -> Class {
        Class { policy: IDLE, priority: 0, nice: self.nice, is_reset_on_fork: false }
    }

    /// Ordinary, with a nice value that has almost all others of its control group or session go first, and itself before
    /// those that are [behind](Class::behind), if they are not dozens. Where it is that nice or idle already, it stays as it is.
    pub fn after(self) -> Class {
        let is_idle = self.policy == IDLE;
        Class { nice: if is_idle { self.nice } else { self.nice.max(NICE_AFTER) }, ..self }
    }

    /// Whether a thread of this class competes with ordinary ones (`SCHED_OTHER`, `SCHED_BATCH`,
    /// `SCHED_IDLE`).
    pub const fn is_ordinary(self) -> bool {
        matches!(self.policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE)
    }

    /// The class of a thread.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn of_thread(thread: u32) -> Result<Class, Errno> {
        let found = Attributes::of_thread(thread)?;
        Ok(Class {
            policy: found.policy,
            priority: found.priority,
            nice: found.nice,
            is_reset_on_fork: found.flags & RESET_ON_FORK != 0,
        })
    }

    /// Gives a thread this class. A slice of its own (`sched_runtime` of an ordinary thread, since Linux
    /// 6.12) is lost.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn give_to(&self, thread: u32) -> Result<(), Errno> {
        self.give_with_slice(thread, 0)
    }

    /// Gives a thread this class and a slice of its own, in nanoseconds, which an ordinary one (`SCHED_OTHER`,
    /// `SCHED_BATCH`) keeps when it is put [behind](Class::behind). Before Linux 6.12 it has no effect.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn give_with_slice(&self, thread: u32, slice_ns: u64) -> Result<(), Errno> {
        let thread = number(thread)?.as_raw_nonzero().get();
        let told = Attributes {
            size: SIZE,
            policy: self.policy,
            flags: if self.is_reset_on_fork { RESET_ON_FORK } else { 0 },
            nice: self.nice,
            priority: self.priority,
            runtime: slice_ns,
            ..Attributes::default()
        };
        // SAFETY: the kernel reads SIZE bytes, which the attributes have, and they live through the call.
        answer(unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const told, 0) })
    }
}

impl Attributes {
    fn of_thread(thread: u32) -> Result<Attributes, Errno> {
        let thread = number(thread)?.as_raw_nonzero().get();
        let mut found = Attributes::default();
        // SAFETY: the kernel writes at most SIZE bytes, which the attributes have, and they live through the
        // call.
        answer(unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut found, SIZE, 0) })?;
        Ok(found)
    }
}

fn answer(returned: libc::c_long) -> Result<(), Errno> {
    if returned == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

impl Setting for Class {
    const BYTES: usize = 16;
    const MAGIC: [u8; 8] = *b"METECLS1";
    const EXTENSION: &'static str = "classes";

    fn of_thread(thread: u32) -> Result<Class, Errno> {
        Class::of_thread(thread)
    }

    fn give_to(&self, thread: u32) -> Result<(), Errno> {
        Class::give_to(self, thread)
    }

    /// A thread that is behind stays ours if it is given another nice value there, which it keeps.
    fn back(&self, told: &Class, original: &Class) -> Option<Class> {
        let is_behind = self.policy == IDLE && told.policy == IDLE;
        (is_behind && original.policy != IDLE).then_some(Class { nice: self.nice, ..*original })
    }

    fn write_to(&self, bytes: &mut [u8]) {
        let Class { policy, priority, nice, is_reset_on_fork } = *self;
        let numbers = [policy, priority, nice.cast_unsigned(), is_reset_on_fork.into()];
        let (places, _) = bytes.as_chunks_mut::<4>();
        places.iter_mut().zip(numbers).for_each(|(place, number)| *place = number.to_le_bytes());
    }

    fn read_from(bytes: &[u8]) -> Class {
        let (places, _) = bytes.as_chunks::<4>();
        let number = |nth: usize| places.get(nth).map_or(0, |place| u32::from_le_bytes(*place));
        Class {
            policy: number(0),
            priority: number(1),
            nice: number(2).cast_signed(),
            is_reset_on_fork: number(3) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_a_thread_that_was_given_another_nice_value_behind_comes_back_with_it() {
        let own = Class { nice: 3, ..Class::default() };
        let reniced = Class { nice: 7, ..own.behind() };
        assert_eq!(reniced.back(&own.behind(), &own), Some(Class { nice: 7, ..own }));
        assert_eq!(Class::default().back(&own.behind(), &own), None);
        assert_eq!(reniced.back(&own.behind(), &own.behind()), None, "its owner has put it behind");
        assert_eq!(Class::fifo(2).back(&Class::fifo(1), &own), None);
    }

    #[test]
    fn classes_survive_the_way_through_bytes() {
        let ordinary = Class { nice: -7, ..Class::default() };
        for class in [Class::fifo(3), ordinary.behind(), ordinary] {
            let mut bytes = [0; <Class as Setting>::BYTES];
            class.write_to(&mut bytes);
            assert_eq!(Class::read_from(&bytes), class);
        }
    }

    #[test]
    fn a_thread_that_is_behind_keeps_its_nice_value() {
        // A thread of its own: without privileges it cannot come back from behind.
        let after = std::thread::spawn(|| {
            let own = crate::domains::process::own_thread();
            let before = Class { nice: 5, ..Class::of_thread(own).unwrap() };
            before.give_to(own).unwrap();
            before.behind().give_to(own).unwrap();
            (before, Class::of_thread(own).unwrap())
        });
        let (before, after) = after.join().unwrap();
        assert_eq!((after, after.nice), (before.behind(), 5));
    }

    #[test]
    fn a_slice_that_a_thread_is_given_stays_with_it_behind_and_no_longer() {
        const SLICE_NS: u64 = 100_000_000;
        let slices = std::thread::spawn(|| {
            let thread = crate::domains::process::own_thread();
            let slice = || Attributes::of_thread(thread).unwrap().runtime;
            let own = Class::of_thread(thread).unwrap();
            let before = slice();
            own.give_with_slice(thread, SLICE_NS).unwrap();
            own.behind().give_to(thread).unwrap();
            let behind = slice();
            // Not every user may have a thread come back from behind.
            (own.give_to(thread).is_ok(), before, behind, slice())
        });
        let (is_back, before, behind, after) = slices.join().unwrap();
        if before == 0 {
            return println!("SKIPPED: before Linux 6.12 the slices of threads are all alike");
        }
        assert_eq!(behind, SLICE_NS);
        assert!(!is_back || after == before, "{after} ns, {before} before");
    }

    #[test]
    fn a_thread_that_is_to_run_after_others_is_no_nicer_than_it_has_to_be() {
        let nice = |class: Class| class.after().nice;
        assert_eq!([-5, 0, 11, 19].map(|value| nice(Class::ordinary(value))), [11, 11, 11, 19]);
        assert_eq!(Class::ordinary(3).behind().after(), Class::ordinary(3).behind());
    }

    #[test]
    fn no_thread_has_the_number_zero() {
        assert_eq!(Class::of_thread(0), Err(Errno::SRCH));
        assert_eq!(Class::fifo(1).give_to(0), Err(Errno::SRCH));
    }
}
