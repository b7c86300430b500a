//! Threads that clients start become clients at once, and not only when all threads are looked at: most processes of a
//! compilation live for less than the time between two looks.
//!
//! The manager tells of them; a thread of its own takes them up, in real time below the manager and above all clients, because
//! on a busy machine an ordinary thread would wait as long as those that it is to take up live.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use mete_log::clock::nanoseconds;
use mete_policy::Nanoseconds;
use mete_sched::actuator::Class;
use mete_sched::actuator::classes::PRECEDENCE;
use mete_sched::domains::process::own_thread;
use rustix::time::ClockId;

use crate::memory::Birth;
use crate::register::Register;

/// How many births may wait. What is beyond it is found at the next look at all threads.
const MOST_WAITING: usize = 256;
/// After this many births the thread sleeps for this long: others run as well, however many threads begin.
const AT_ONCE: usize = 8;
const PAUSE: Duration = Duration::from_millis(2);
/// How soon the thread notices that it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// By what the manager tells of births, without waiting.
#[derive(Debug)]
pub(crate) struct BirthTeller(SyncSender<Birth>);

impl BirthTeller {
    /// Whether there was room. If not, the thread is found later.
    pub fn tell(&self, birth: Birth) -> bool {
        self.0.try_send(birth).is_ok()
    }
}

/// What births are heard by.
pub(crate) fn channel() -> (BirthTeller, Receiver<Birth>) {
    let (sender, births) = sync_channel(MOST_WAITING);
    (BirthTeller(sender), births)
}

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
    pub fn start(births: Receiver<Birth>, register: Arc<Mutex<Register>>) -> io::Result<Midwife> {
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

fn take_up(births: &Receiver<Birth>, register: &Mutex<Register>, shared: &Shared) {
    // Without the priority it is only later.
    let _ = Class::fifo(PRECEDENCE - 1).give_to(own_thread());
    while !shared.stops.load(Ordering::Acquire) {
        let first = match births.recv_timeout(LOOK) {
            Ok(birth) => birth,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let mut register = register.lock().unwrap_or_else(PoisonError::into_inner);
        let others = std::iter::from_fn(|| births.try_recv().ok());
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
