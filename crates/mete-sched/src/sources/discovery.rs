//! Looking for components beside whoever reads them (LOG-11, LOG-16).
//!
//! Any user can listen at a socket, be stopped, or fill a directory. So everything that has to do with
//! components that are not taken yet happens in a thread of its own, which hands over those that are
//! ready. Whoever reads them takes what has arrived and never waits.
//!
//! ```text
//!   directories ──▶ Finder ──▶ introduced ──▶ given memory ──▶ arrivals ──▶ the thread that polls
//!                     ▲                                                         │
//!                     └──────────────── let go, to be tried again ──────────────┘
//! ```

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

/// A component that does not introduce itself, or carry out what it is told at first, within this time is stopped or
/// broken. Nobody waits for it meanwhile. On a full machine the thread that answers was seen to wait several hundred
/// milliseconds for its turn.
const PATIENCE: Duration = Duration::from_secs(3);
/// Directories that come are found by looking, where they may come at all.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// All directories are read again, whether something has come or not.
const READ_ALL_EVERY: Duration = Duration::from_secs(10);
/// The thread ends within this time, or by itself later.
const END_WITHIN: Duration = Duration::from_millis(50);

/// What a component becomes before it is handed over.
pub trait Arrival: Sized + Send + 'static {
    /// Begins with a component that has introduced itself. There are that many processors.
    ///
    /// # Errors
    ///
    /// [`SourceError`]; the component is let go then.
    fn begin(component: Component, processors: usize, trust: &Arc<Trust>) -> Result<Self, SourceError>;

    /// Goes on without waiting; whether it can be handed over.
    ///
    /// # Errors
    ///
    /// As [`Arrival::begin`].
    fn advance(&mut self) -> Result<bool, SourceError>;

    /// Where the component was found.
    fn path(&self) -> &Path;

    /// Readable when it can go on.
    fn fd(&self) -> BorrowedFd<'_>;
}

/// A component as it is.
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

    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// A component that has memory for its logs, and logs once it has been told who belongs where.
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
        let gone = || AttachError::Gone { path: self.path().to_owned() };
        if self.is_alive() { Ok(is_ready) } else { Err(gone().into()) }
    }

    fn path(&self) -> &Path {
        ComponentSource::path(self)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// See the [module](self). Dropped, it looks no longer; what it has handed over stays.
#[derive(Debug)]
pub struct Discovery<T> {
    arrivals: Receiver<Result<T, SourceError>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the two threads share.
#[derive(Debug)]
struct Shared {
    /// Readable when there is an order.
    wake: OwnedFd,
    orders: Mutex<Vec<Order>>,
    ends: AtomicBool,
    is_settled: AtomicBool,
}

/// What the thread that looks is told.
#[derive(Debug)]
enum Order {
    /// Membership has changed.
    Follow(Vec<Change>),
    /// A component that was handed over is not wanted any more.
    LetGo(PathBuf),
}

impl<T: Arrival> Discovery<T> {
    /// Looks for components from now on, in one directory, or wherever this user may look: at the own ones, those of
    /// `users`, and those of users to whom a [member](Discovery::follow) of a domain belongs. They get areas for that many
    /// processors.
    ///
    /// # Errors
    ///
    /// If the directory, or else this user's own, cannot be made or watched, or there can be no thread.
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
            whose: follows.then(|| Whose { asked: users, members: BTreeMap::new(), last: 0 }),
            begun: Vec::new(),
            sender,
            shared: Arc::clone(&shared),
            next_look: Instant::now(),
            next_full: Instant::now() + READ_ALL_EVERY,
        };
        let thread = std::thread::Builder::new().name("mete-seeker".into()).spawn(|| seeker.seek())?;
        Ok(Discovery { arrivals, shared, thread: Some(thread) })
    }

    /// The next component that is ready, or what has failed. Does not wait.
    pub fn next(&self) -> Option<Result<T, SourceError>> {
        self.arrivals.try_recv().ok()
    }

    /// The same, waiting for one.
    pub fn next_within(&self, timeout: Duration) -> Option<Result<T, SourceError>> {
        self.arrivals.recv_timeout(timeout).ok()
    }

    /// Those that are ready once everybody who is there has answered, or at the end of this time.
    pub fn first(&self, timeout: Duration) -> Vec<Result<T, SourceError>> {
        const STEP: Duration = Duration::from_millis(1);
        let (end, mut found) = (Instant::now() + timeout, Vec::new());
        loop {
            // Asked first: what is settled has arrived.
            let is_settled = self.is_settled();
            match self.arrivals.recv_timeout(if is_settled { Duration::ZERO } else { STEP }) {
                Ok(arrival) => found.push(arrival),
                Err(RecvTimeoutError::Timeout) if !is_settled && Instant::now() < end => {}
                Err(_) => return found,
            }
        }
    }

    /// Whether everybody who is there has answered, as far as is known.
    pub fn is_settled(&self) -> bool {
        self.shared.is_settled.load(Ordering::Acquire)
    }

    /// Whoever has come to a domain or left it. Components of their users are looked for.
    pub fn follow(&self, changes: Vec<Change>) {
        if !changes.is_empty() {
            self.order(Order::Follow(changes));
        }
    }

    /// A component that was handed over has been let go; it may be found again after a while.
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
        // It may be reading a directory that answers slowly, and nobody waits for that.
        let end = Instant::now() + END_WITHIN;
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Shared {
    fn wake(&self) {
        // If it is full already, it wakes as well.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn take_orders(&self) -> Vec<Order> {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        std::mem::take(&mut *self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The thread that looks.
struct Seeker<T> {
    finder: Finder,
    processors: usize,
    trust: Arc<Trust>,
    /// Whose directories are followed, if others' may be looked into at all.
    whose: Option<Whose>,
    begun: Vec<Begun<T>>,
    sender: Sender<Result<T, SourceError>>,
    shared: Arc<Shared>,
    next_look: Instant,
    next_full: Instant,
}

/// Whose components are looked for.
struct Whose {
    /// Those that were asked for.
    asked: Users,
    /// Members of domains with their users.
    members: BTreeMap<u32, Member>,
    /// The member that was looked at last.
    last: u32,
}

#[derive(Clone, Copy, Default)]
struct Member {
    user: Option<u32>,
    looks: u8,
}

impl Whose {
    fn follow(&mut self, changes: &[Change]) {
        for change in changes {
            if change.is_alive && change.to != OTHER {
                self.members.entry(change.pid).or_default();
            } else {
                self.members.remove(&change.pid);
            }
        }
    }

    /// Those whose components are to be looked for. Looks at new members, and at some others: users change.
    fn users(&mut self) -> Users {
        const LOOKS: u8 = 2;
        const OTHERS_AT_ONCE: usize = 8;
        let Users::These(asked) = &self.asked else { return Users::All };
        let behind =
            self.members.range(self.last.saturating_add(1)..).chain(self.members.range(..=self.last));
        let next: Vec<u32> = behind.map(|(&pid, _)| pid).take(OTHERS_AT_ONCE).collect();
        self.last = next.last().copied().unwrap_or(0);
        for (pid, member) in &mut self.members {
            if member.looks < LOOKS || next.contains(pid) {
                *member = Member { user: process::user(*pid), looks: member.looks.saturating_add(1) };
            }
        }
        Users::These(
            asked.iter().copied().chain(self.members.values().filter_map(|member| member.user)).collect(),
        )
    }
}

/// A component that is given memory.
struct Begun<T> {
    arrival: T,
    deadline: Instant,
}

impl<T: Arrival> Seeker<T> {
    fn seek(mut self) {
        // It does little, and a component that starts, or the end of the process, must not wait for its turn.
        let _precedence = Precedence::take();
        while !self.shared.ends.load(Ordering::Acquire) {
            for order in self.shared.take_orders() {
                self.obey(order);
            }
            self.look_in_time();
            self.step();
            let is_settled = self.finder.is_settled() && self.begun.is_empty();
            self.shared.is_settled.store(is_settled, Ordering::Release);
            self.wait();
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::LetGo(path) => self.finder.let_go(&path),
            Order::Follow(changes) => {
                if let Some(whose) = &mut self.whose {
                    whose.follow(&changes);
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
            if let Some(whose) = &mut self.whose {
                self.finder.follow(&whose.users());
            }
            self.next_look = now + LOOK_EVERY;
        }
    }

    fn step(&mut self) {
        for found in self.finder.step(PATIENCE).into_iter().filter(|found| !is_meant_so(found)) {
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
        self.begun.push(Begun { arrival, deadline: Instant::now() + PATIENCE });
        Ok(())
    }

    fn fail(&mut self, arrival: &T, error: SourceError) {
        self.finder.let_go(arrival.path());
        self.tell(Err(error));
    }

    fn tell(&self, arrival: Result<T, SourceError>) {
        // Whoever wanted to know may be gone.
        let _ = self.sender.send(arrival);
    }

    fn wait(&mut self) {
        let now = Instant::now();
        let next_look = self.whose.as_ref().map(|_| self.next_look);
        let ends = self.begun.iter().map(|begun| begun.deadline);
        let next = ends.chain(next_look).fold(self.next_full, Instant::min);
        let others = self.begun.iter().map(|begun| begun.arrival.fd());
        let others: Vec<_> = others.chain([self.shared.wake.as_fd()]).collect();
        self.finder.wait_or(next.saturating_duration_since(now), &others);
    }
}

/// Another finder of this process may have it, and a program that reads its own probes does so on purpose.
fn is_meant_so(found: &Result<Component, AttachError>) -> bool {
    matches!(found, Err(AttachError::Busy { pid, scheduler, .. }) if [std::process::id(), *pid].contains(scheduler))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_another_scheduler_reads_is_worth_a_word() {
        let own = std::process::id();
        let busy = |pid, scheduler| Err(AttachError::Busy { component: "x".into(), pid, scheduler });
        assert!(is_meant_so(&busy(own + 1, own)), "read by us, through an earlier finder");
        assert!(is_meant_so(&busy(own + 1, own + 1)), "reads itself");
        assert!(!is_meant_so(&busy(own + 1, own + 2)), "read by somebody else");
    }
}
