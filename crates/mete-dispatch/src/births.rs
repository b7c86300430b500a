//! Threads that clients start become clients at once, and not only when all threads are looked at: most processes of a
//! compilation live for less than the time between two looks.
//!
//! The manager tells of them, and keeps the processor of the one that started them free for a moment. A thread of its own takes
//! them up meanwhile, before all other ordinary ones. It is not in real time: it looks at threads in `/proc`, and if one of
//! them ends just then, waits in the kernel for the thread that clears up behind it, which in real time would be for ever.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, mem};

use mete_log::clock::nanoseconds;
use mete_policy::Nanoseconds;
use mete_sched::actuator::Class;
use mete_sched::domains::process::own_thread;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec};

use crate::bell::Bell;
use crate::mailbox::Mailbox;
use crate::memory::Birth;
use crate::register::Register;

/// How many births may wait. What is beyond it is found at the next look at all threads.
const MOST_WAITING: usize = 256;
/// After this many births the thread sleeps for this long: others run as well, however many threads begin.
const AT_ONCE: usize = 8;
const PAUSE: Duration = Duration::from_millis(2);
/// The thread's nice value.
const FOREMOST: i32 = -20;
/// How soon the thread notices that it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// By what the manager tells of births, and the thread hears of them.
#[derive(Clone, Debug)]
pub(crate) struct Births {
    told: Mailbox<Birth>,
    bell: Bell,
}

impl Births {
    /// None yet.
    ///
    /// # Errors
    ///
    /// The system's answer.
    pub fn new() -> io::Result<Births> {
        Ok(Births { told: Mailbox::with_room(MOST_WAITING), bell: Bell::new()? })
    }

    /// Tells of a birth, without waiting. False if it cannot be told now: the thread is found later.
    pub fn tell(&self, birth: Birth) -> bool {
        let is_told = self.told.try_put(birth);
        if is_told {
            self.bell.ring();
        }
        is_told
    }

    /// The next one that was told of.
    pub fn hear(&self) -> Option<Birth> {
        self.told.take()
    }

    /// Waits until one is told of, for some time at most.
    fn wait(&self) {
        let mut bell = [PollFd::new(&self.bell, PollFlags::IN)];
        // An error costs a look for nothing.
        let _ = poll(&mut bell, Timespec::try_from(LOOK).ok().as_ref());
        self.bell.silence();
    }
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
    let _ = Class::ordinary(FOREMOST).give_to(own_thread());
    while !shared.stops.load(Ordering::Acquire) {
        let Some(first) = births.hear() else {
            births.wait();
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
