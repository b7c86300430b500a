//! Threads that clients start become clients at once, and not only when all threads are looked at: most
//! processes of a compilation live for less than the time between two looks.
//!
//! The manager tells of them, and keeps the processor of the one that started them free for a moment. A
//! thread of its own takes them up meanwhile, before all other ordinary ones. It is not in real time: it
//! looks at threads in `/proc`, and if one of them ends just then, waits in the kernel for the thread that
//! clears up behind it, which in real time would be for ever.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use mete_log::clock::nanoseconds;
use mete_policy::Nanoseconds;
use mete_sched::actuator::Class;
use mete_sched::domains::process::own_thread;
use rustix::time::ClockId;

use crate::births::Births;
use crate::register::Register;

/// After this many births the thread sleeps for this long: others run as well, however many threads begin.
const AT_ONCE: usize = 8;
const PAUSE: Duration = Duration::from_millis(2);
/// How soon the thread notices that it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// The thread that takes up what is born. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Midwife {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stops: AtomicBool,
    own_ns: AtomicU64,
}

impl Midwife {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system's answer.
    pub fn start(births: Births, register: Arc<Mutex<Register>>) -> io::Result<Midwife> {
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("mete-births".into())
            .spawn(move || take_up(&births, &register, &its))?;
        Ok(Midwife { shared, thread: Some(thread) })
    }

    /// The processor time that it has used.
    pub fn own_time(&self) -> Nanoseconds {
        Nanoseconds::new(self.shared.own_ns.load(Ordering::Relaxed))
    }
}

impl Drop for Midwife {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Release);
        // A panic there was told of already.
        let _ = mem::take(&mut self.thread).map(JoinHandle::join);
    }
}

fn take_up(births: &Births, register: &Mutex<Register>, shared: &Shared) {
    // Without the precedence it is only later.
    let _ = Class::foremost().give_to(own_thread());
    while !shared.stops.load(Ordering::Acquire) {
        let Some(first) = births.hear() else {
            births.wait(LOOK);
            continue;
        };
        let mut register = register.lock().unwrap_or_else(PoisonError::into_inner);
        let others = std::iter::from_fn(|| births.hear());
        let taken_up =
            [first].into_iter().chain(others).take(AT_ONCE).map(|birth| register.take_up_born(birth));
        let is_full = taken_up.count() == AT_ONCE;
        drop(register);
        shared.own_ns.store(nanoseconds(ClockId::ThreadCPUTime), Ordering::Relaxed);
        if is_full {
            thread::sleep(PAUSE);
        }
    }
}
