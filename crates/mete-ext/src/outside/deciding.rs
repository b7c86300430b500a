//! The thread in which a policy decides, as the scheduler's owner has it: begun, watched, ended.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

use rustix::process::{Pid, setpriority_process};
use rustix::thread::gettid;

use crate::ExtError;
use crate::outside::decider::Decider;
use crate::outside::memory::Memory;
use crate::outside::swap::{Failure, Owned};
use crate::outside::thread::{Done, Shared, be_ordinary, run, run_everywhere};

/// In this time the deciding thread ends, unless its policy hangs.
const ENDS: Duration = Duration::from_secs(2);
/// A policy hangs that computes for this time without coming to an end of what it was asked for.
const COMPUTES_AT_MOST: Duration = Duration::from_secs(1);
/// So does one that sleeps for this time, and meanwhile was looked at this often: the whole process may have been
/// stopped.
const SLEEPS_AT_MOST: Duration = Duration::from_secs(5);
const LOOKS_AT_LEAST: u32 = 20;

/// See the [module](self).
pub(crate) struct Deciding {
    thread: Option<JoinHandle<()>>,
    number: i32,
    pub shared: Arc<Shared>,
    hands_over: SyncSender<Arc<Memory>>,
    /// The thread's own mapping, once it has it.
    memory: Option<Arc<Memory>>,
    watched: Watched,
}

/// What was seen of the thread since it came to the end of a round.
struct Watched {
    turns: u64,
    since: Instant,
    used: Duration,
    looks: u32,
}

impl Deciding {
    /// Begins a thread for a policy of this name. It waits for the memory.
    pub fn begin(
        policy: Owned,
        name: &'static str,
        processors: usize,
        done: Done,
    ) -> Result<Deciding, ExtError> {
        let decider = Decider::new(policy, processors);
        let shared = Arc::new(Shared::of(name, done));
        let (hands_over, takes_over) = sync_channel(1);
        let (says_thread, hears_thread) = sync_channel(1);
        let of_thread = Arc::clone(&shared);
        let thread = Builder::new()
            .name("mete-policy".into())
            .spawn(move || decide(decider, of_thread, &says_thread, &takes_over))
            .map_err(ExtError::Thread)?;
        // It ends when `hands_over` is dropped.
        let number =
            hears_thread.recv().map_err(|_| ExtError::Thread(io::ErrorKind::BrokenPipe.into()))??;
        let watched = Watched { turns: 0, since: Instant::now(), used: Duration::ZERO, looks: 0 };
        Ok(Deciding { thread: Some(thread), number, shared, hands_over, memory: None, watched })
    }

    /// From here on the kernel's side has this thread decide.
    pub fn announce(&self, memory: &Memory) {
        memory.set_deciding(self.number);
    }

    /// Lets it decide, by a mapping that no other one uses.
    pub fn hand_over(&mut self, memory: Memory) {
        let memory = Arc::new(memory);
        self.memory = Some(Arc::clone(&memory));
        // The other side waits for it.
        let _ = self.hands_over.send(memory);
    }

    /// How the policy hangs, if it does. To be asked some times each second.
    pub fn hangs(&mut self, memory: &Memory) -> Option<String> {
        let turns = self.shared.turns.load(Ordering::Relaxed);
        if turns != self.watched.turns || self.shared.has_ended.load(Ordering::Acquire) {
            self.watched = Watched { turns, since: Instant::now(), used: self.used(), looks: 0 };
            return None;
        }
        self.watched.looks += 1;
        let computed = self.used().saturating_sub(self.watched.used);
        if computed >= COMPUTES_AT_MOST {
            return Some(format!("it has computed for {:.1} s without an answer", computed.as_secs_f64()));
        }
        let slept = self.watched.since.elapsed();
        let is_long = slept >= SLEEPS_AT_MOST && self.watched.looks >= LOOKS_AT_LEAST;
        (is_long && memory.is_asleep())
            .then(|| format!("it has slept for {:.1} s without an answer", slept.as_secs_f64()))
    }

    /// The policy hangs: whatever the thread does when it goes on, the kernel's side sees nothing of it, nor does another thread
    /// that decides.
    pub fn dismiss(&self) -> io::Result<()> {
        self.shared.stops.store(true, Ordering::Release);
        self.memory.as_ref().map_or(Ok(()), |memory| memory.come_off())
    }

    /// The policy hangs, and none takes its place: from here on the kernel's side decides by itself.
    pub fn give_up(&self, memory: &Memory, failure: Failure) {
        memory.set_deciding(0);
        self.shared.swap.note(failure);
        self.shared.has_ended.store(true, Ordering::Release);
        // Best effort: what it decides when it goes on would be carried out, and be the last.
        let _ = self.dismiss();
    }

    /// The processor time of the thread; nothing, if the kernel does not say.
    fn used(&self) -> Duration {
        let text = fs::read_to_string(format!("/proc/self/task/{}/schedstat", self.number));
        let used = text.ok().and_then(|text| text.split(' ').next()?.parse().ok());
        used.map_or(Duration::ZERO, Duration::from_nanos)
    }

    /// Has the thread end. One whose policy hangs does not: it goes on by itself, with what it uses, and schedules
    /// nothing any more.
    pub fn end(&mut self, wait: bool) {
        self.shared.stops.store(true, Ordering::Release);
        if !wait && let Some(thread) = Pid::from_raw(self.number) {
            // Best effort: it is a client now like any other, and may take processors that others want.
            let _ = setpriority_process(Some(thread), 19);
        }
        let begin = Instant::now();
        let hangs = |thread: &JoinHandle<()>| !thread.is_finished() && wait && begin.elapsed() < ENDS;
        while self.thread.as_ref().is_some_and(hangs) {
            sleep(Duration::from_millis(1));
        }
        self.thread.take().filter(JoinHandle::is_finished).map(JoinHandle::join);
    }
}

/// Says which thread this is, waits for the memory, and decides.
fn decide(
    mut decider: Decider,
    shared: Arc<Shared>,
    says_thread: &SyncSender<Result<i32, ExtError>>,
    takes_over: &Receiver<Arc<Memory>>,
) {
    let number = be_ordinary().and_then(|()| run_everywhere()).map(|()| gettid().as_raw_nonzero().get());
    // An error means that the other side has given up.
    let _ = says_thread.send(number);
    if let Ok(memory) = takes_over.recv() {
        decider.begin(&memory);
        run(decider, &memory, shared);
    }
}
