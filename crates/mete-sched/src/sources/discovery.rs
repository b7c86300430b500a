//! The search for components, in a thread beside the one that reads them (LOG-11, LOG-16).
//!
//! Any user can listen at a socket, stop a process, or fill a directory. So everything that concerns
//! components that are not taken yet happens in a thread of its own. That thread hands over the components
//! that are ready. The thread that reads them takes what has arrived and never waits.
//!
//! ```text
//!   directories ──▶ Finder ──▶ introduced ──▶ given memory ──▶ arrivals ──▶ the thread that polls
//!                     ▲                                                         │
//!                     └──────────────── let go, to be tried again ──────────────┘
//! ```

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mete_probe::attach::{AttachError, Component};
use mete_probe::directory::{self, Users};
use mete_probe::finder::Finder;
use rustix::event::EventfdFlags;

use super::{ComponentSource, Source, SourceError, Trust};
use crate::domains::process;
use crate::domains::{Change, OTHER};
use crate::precedence::Precedence;

/// The time within which a component must introduce itself and carry out what it is told at first. A
/// component that takes longer is stopped or broken. No other component waits for it meanwhile. On a full
/// machine, the thread that answers was seen to wait several hundred milliseconds for its turn.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often the thread looks for new directories, where there may be new ones at all.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often all directories are read again, whether anything in them was reported or not.
const READ_ALL_EVERY: Duration = Duration::from_secs(10);
/// How long a drop waits for the thread to end. If the thread takes longer, it ends by itself later.
const END_WITHIN: Duration = Duration::from_millis(50);

/// What a component becomes before it is handed over. Its descriptor is readable when there is something for
/// [`Arrival::advance`] to do.
pub trait Arrival: AsFd + Sized + Send + 'static {
    /// Begins with a component that has introduced itself. The machine has this number of processors.
    ///
    /// # Errors
    ///
    /// [`SourceError`]. The component is let go then.
    fn begin(component: Component, processors: usize, trust: &Arc<Trust>) -> Result<Self, SourceError>;

    /// Goes on without waiting. Returns whether the component can be handed over.
    ///
    /// # Errors
    ///
    /// As [`Arrival::begin`].
    fn advance(&mut self) -> Result<bool, SourceError>;

    /// Where the component was found.
    fn path(&self) -> &Path;
}

/// A component that is handed over as it is.
impl Arrival for Component {
    fn begin(
        component: Component,
        _processors: usize,
        _trust: &Arc<Trust>,
    ) -> Result<Component, SourceError> {
        Ok(component)
    }

    fn advance(&mut self) -> Result<bool, SourceError> {
        Ok(true)
    }

    fn path(&self) -> &Path {
        Component::path(self)
    }
}

/// A component that has memory for its logs. It logs once it has been told which processes belong where.
impl Arrival for ComponentSource {
    fn begin(
        component: Component,
        processors: usize,
        trust: &Arc<Trust>,
    ) -> Result<ComponentSource, SourceError> {
        ComponentSource::start(component, processors, trust)
    }

    fn advance(&mut self) -> Result<bool, SourceError> {
        let is_ready = self.settle()?;
        if self.is_alive() {
            return Ok(is_ready);
        }
        Err(AttachError::Gone { path: self.path().to_owned() }.into())
    }

    fn path(&self) -> &Path {
        ComponentSource::path(self)
    }
}

/// See the [module](self). When this is dropped, the search ends; components that were handed over stay.
#[derive(Debug)]
pub struct Discovery<T> {
    arrivals: Receiver<Result<T, SourceError>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread that polls and the thread that looks share.
#[derive(Debug)]
struct Shared {
    /// Readable when there is an order, or when the thread should end.
    wake: OwnedFd,
    orders: Mutex<Vec<Order>>,
    /// Whether the thread should end.
    ends: AtomicBool,
    /// Whether all components that were found have answered.
    is_settled: AtomicBool,
}

/// What the thread that polls tells the thread that looks.
#[derive(Debug)]
enum Order {
    /// Membership has changed.
    Follow(Vec<Change>),
    /// A component that was handed over is no longer wanted.
    LetGo(PathBuf),
}

impl<T: Arrival> Discovery<T> {
    /// Looks for components from now on: in one directory, or wherever this user may look. Then it looks for
    /// this user's components, those of `users`, and those of users who have a [member](Discovery::follow) of
    /// a domain. The components get areas for this number of processors.
    ///
    /// # Errors
    ///
    /// An error if the directory (or, without one, this user's own directory) cannot be made or watched, or
    /// if no thread can be started.
    pub fn start(
        processors: usize,
        only: Option<&Path>,
        users: Users,
        trust: &Arc<Trust>,
    ) -> io::Result<Discovery<T>> {
        let finder = match only {
            Some(only) => Finder::in_directories(vec![only.to_owned()])?,
            None => Finder::of_users(&users)?,
        };
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (orders, ends, is_settled) = Default::default();
        let shared = Arc::new(Shared { wake, orders, ends, is_settled });
        let (sender, arrivals) = channel();
        let follows = only.is_none() && directory::may_look_at_others();
        let seeker = Seeker {
            finder,
            processors,
            trust: Arc::clone(trust),
            sought: follows.then(|| UsersSought { asked: users, members: BTreeMap::new(), last: 0 }),
            begun: Vec::new(),
            sender,
            shared: Arc::clone(&shared),
            next_look: Instant::now(),
            next_full: Instant::now() + READ_ALL_EVERY,
        };
        let thread = std::thread::Builder::new().name("mete-seeker".into()).spawn(|| seeker.seek())?;
        Ok(Discovery { arrivals, shared, thread: Some(thread) })
    }

    /// The next component that is ready, or the reason why one has failed. Does not wait.
    pub fn next(&self) -> Option<Result<T, SourceError>> {
        self.arrivals.try_recv().ok()
    }

    /// Like [`Discovery::next`], but waits for a component for at most this time.
    pub fn next_within(&self, timeout: Duration) -> Option<Result<T, SourceError>> {
        self.arrivals.recv_timeout(timeout).ok()
    }

    /// The components that are ready after every component that is there has answered, or at the end of this
    /// time.
    pub fn first(&self, timeout: Duration) -> Vec<Result<T, SourceError>> {
        const STEP: Duration = Duration::from_millis(1);
        let (end, mut found) = (Instant::now() + timeout, Vec::new());
        loop {
            // This must come before the look at the arrivals: if the search is settled, everything has
            // arrived.
            let is_settled = self.is_settled();
            match self.arrivals.recv_timeout(if is_settled { Duration::ZERO } else { STEP }) {
                Ok(arrival) => found.push(arrival),
                Err(RecvTimeoutError::Timeout) if !is_settled && Instant::now() < end => {}
                Err(_) => return found,
            }
        }
    }

    /// Whether every component that is there has answered, as far as is known.
    pub fn is_settled(&self) -> bool {
        // Acquire, with the Release of the thread that looks: what it sent before is in the channel.
        self.shared.is_settled.load(Ordering::Acquire)
    }

    /// Notes processes that have come to a domain or left it. The search includes components of their users.
    pub fn follow(&self, changes: Vec<Change>) {
        if !changes.is_empty() {
            self.order(Order::Follow(changes));
        }
    }

    /// Notes that a component that was handed over has been let go. It may be found again after a while.
    pub fn let_go(&self, path: &Path) {
        self.order(Order::LetGo(path.to_owned()));
    }
}

impl<T> Discovery<T> {
    fn order(&self, order: Order) {
        self.shared.orders.lock().unwrap_or_else(PoisonError::into_inner).push(order);
        self.shared.wake();
    }
}

impl<T> Drop for Discovery<T> {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        self.shared.wake();
        let Some(thread) = self.thread.take() else { return };
        // The thread may be reading a directory that answers slowly. No program should wait for that.
        let end = Instant::now() + END_WITHIN;
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Shared {
    fn wake(&self) {
        // An error means that the counter is full. Then the thread wakes all the same.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn take_orders(&self) -> Vec<Order> {
        // Read before the orders are taken: an order that comes in between wakes the thread once more.
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        std::mem::take(&mut *self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The thread that looks.
struct Seeker<T> {
    finder: Finder,
    processors: usize,
    trust: Arc<Trust>,
    /// The users whose directories are followed; `None` if the thread may not look into other users'
    /// directories.
    sought: Option<UsersSought>,
    begun: Vec<BegunArrival<T>>,
    sender: Sender<Result<T, SourceError>>,
    shared: Arc<Shared>,
    next_look: Instant,
    next_full: Instant,
}

/// The users whose components are looked for.
struct UsersSought {
    /// The users that were asked for.
    asked: Users,
    /// The members of domains, with their users.
    members: BTreeMap<u32, MemberUser>,
    /// The member that was looked at last.
    last: u32,
}

/// The user of a member, and how often it was looked up.
#[derive(Clone, Copy, Default)]
struct MemberUser {
    user: Option<u32>,
    looks: u8,
}

impl UsersSought {
    fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            if change.is_alive && change.to != OTHER {
                self.members.entry(change.pid).or_default();
            } else {
                self.members.remove(&change.pid);
            }
        }
    }

    /// The users whose components should be looked for now. Looks up the users of new members, and of a few
    /// others, because a process may change its user.
    fn users(&mut self) -> Users {
        /// Twice, because a process may change its user soon after its start.
        const LOOKS: u8 = 2;
        const OTHERS_AT_ONCE: usize = 8;
        let Users::These(asked) = &self.asked else { return Users::All };
        // From behind the last one to the end, and from the beginning: each member has its turn.
        let behind =
            self.members.range(self.last.saturating_add(1)..).chain(self.members.range(..=self.last));
        let next: Vec<u32> = behind.map(|(&pid, _)| pid).take(OTHERS_AT_ONCE).collect();
        self.last = next.last().copied().unwrap_or(0);
        for (pid, member) in &mut self.members {
            if member.looks < LOOKS || next.contains(pid) {
                *member = MemberUser { user: process::user(*pid), looks: member.looks.saturating_add(1) };
            }
        }
        Users::These(
            asked.iter().copied().chain(self.members.values().filter_map(|member| member.user)).collect(),
        )
    }
}

/// A component that has not yet done what it was told at first.
struct BegunArrival<T> {
    arrival: T,
    deadline: Instant,
}

impl<T: Arrival> Seeker<T> {
    fn seek(mut self) {
        // The thread does little, and neither a component that starts nor the end of the process should wait
        // for its turn.
        let _precedence = Precedence::take();
        while !self.shared.ends.load(Ordering::Acquire) {
            for order in self.shared.take_orders() {
                self.obey(order);
            }
            self.look_in_time();
            self.step();
            let is_settled = self.finder.is_settled() && self.begun.is_empty();
            // Release: everything that the steps above have sent is in the channel before this can be read.
            self.shared.is_settled.store(is_settled, Ordering::Release);
            self.wait();
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::LetGo(path) => self.finder.let_go(&path),
            Order::Follow(changes) => {
                if let Some(sought) = &mut self.sought {
                    sought.follow(&changes);
                    self.next_look = Instant::now();
                }
            }
        }
    }

    fn look_in_time(&mut self) {
        let now = Instant::now();
        if now >= self.next_full {
            self.finder.look_again();
            self.next_full = now + READ_ALL_EVERY;
        }
        if now >= self.next_look {
            if let Some(sought) = &mut self.sought {
                self.finder.follow(&sought.users());
            }
            self.next_look = now + LOOK_EVERY;
        }
    }

    fn step(&mut self) {
        for found in self.finder.step(PATIENCE).into_iter().filter(|found| !is_on_purpose(found)) {
            let begun = found.map_err(SourceError::from).and_then(|component| self.begin(component));
            if let Err(error) = begun {
                self.tell(Err(error));
            }
        }
        for mut begun in std::mem::take(&mut self.begun) {
            match begun.arrival.advance() {
                Ok(true) => self.tell(Ok(begun.arrival)),
                Ok(false) if Instant::now() < begun.deadline => self.begun.push(begun),
                Ok(false) => {
                    let component = begun.arrival.path().display().to_string();
                    self.fail(&begun.arrival, AttachError::Silent { component, limit: PATIENCE }.into());
                }
                Err(error) => self.fail(&begun.arrival, error),
            }
        }
    }

    fn begin(&mut self, component: Component) -> Result<(), SourceError> {
        let path = component.path().to_owned();
        let arrival =
            T::begin(component, self.processors, &self.trust).inspect_err(|_| self.finder.let_go(&path))?;
        self.begun.push(BegunArrival { arrival, deadline: Instant::now() + PATIENCE });
        Ok(())
    }

    fn fail(&mut self, arrival: &T, error: SourceError) {
        // The finder may find the component again and try anew.
        self.finder.let_go(arrival.path());
        self.tell(Err(error));
    }

    fn tell(&self, arrival: Result<T, SourceError>) {
        // An error means that the receiver is gone. The arrival is dropped then.
        let _ = self.sender.send(arrival);
    }

    fn wait(&mut self) {
        let now = Instant::now();
        let next_look = self.sought.as_ref().map(|_| self.next_look);
        let ends = self.begun.iter().map(|begun| begun.deadline);
        let next = ends.chain(next_look).fold(self.next_full, Instant::min);
        let others = self.begun.iter().map(|begun| begun.arrival.as_fd());
        let others: Vec<_> = others.chain([self.shared.wake.as_fd()]).collect();
        self.finder.wait_or(next.saturating_duration_since(now), &others);
    }
}

/// Whether a component is read by another scheduler on purpose: another finder of this process may have it,
/// and a program may read its own probes.
fn is_on_purpose(found: &Result<Component, AttachError>) -> bool {
    matches!(found, Err(AttachError::Busy { pid, scheduler, .. }) if [std::process::id(), *pid].contains(scheduler))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_component_that_another_scheduler_reads_is_reported() {
        let own = std::process::id();
        let busy = |pid, scheduler| Err(AttachError::Busy { component: "x".into(), pid, scheduler });
        assert!(is_on_purpose(&busy(own + 1, own)), "read by this process, through an earlier finder");
        assert!(is_on_purpose(&busy(own + 1, own + 1)), "reads itself");
        assert!(!is_on_purpose(&busy(own + 1, own + 2)), "read by another scheduler");
    }
}
