//! Finding components: those that are there, and those that start later.
//!
//! Any user can listen at a socket and send nothing, so nothing here waits for one component. All components
//! that are being taken [introduce](Introduction) themselves side by side. One that does not answer is tried
//! again after a time that doubles, and each user has a share of the tries.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, Mode, OFlags, inotify};

use crate::attach::{AttachError, Component, Introduction, Progress};
use crate::directory;

/// The time until a component that did not answer is tried again. It doubles with each further failure.
const RETRY_SILENT: Duration = Duration::from_secs(1);
/// The same for a component that another scheduler reads: that scheduler may be about to end.
const RETRY_BUSY: Duration = Duration::from_millis(100);
/// The number of times that this time doubles.
const DOUBLINGS: u32 = 6;
/// The most components of one user that are called at once. Those that send nothing hold their places until
/// their time is over.
const MOST_CALLED: usize = 8;
/// The same for this process's own user, who can harm no other user by it.
const MOST_OWN_CALLED: usize = 64;
/// The most components of all users that are called at once: each takes a descriptor.
const MOST_CALLED_TOGETHER: usize = 256;
/// The most components of one other user that are taken: each takes memory for logs and time to read them.
pub const MOST_TAKEN: usize = 256;
/// The descriptors of a component that is taken: its socket and its memory. The components of all other users
/// together leave half of the descriptors to the other work of this process. Those of one user leave half of
/// that half to the other users.
const DESCRIPTORS_OF_ONE: u64 = 2;
/// The shortest time between two readings of the directories, whatever happens in them.
const SHORTEST_BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Reading the directories and calling the components found there takes one part in this number of a
/// processor's time at most.
const LOOKS_COST_AT_MOST: u32 = 20;

/// Looks for components in all directories that this user may look into.
#[derive(Debug)]
pub struct Finder {
    directories: Vec<WatchedDirectory>,
    changes: OwnedFd,
    known: HashMap<PathBuf, KnownSocket>,
    called: Vec<CalledComponent>,
    /// The time of the last call to a component of each user.
    turns: BTreeMap<u32, Instant>,
    next_look: Instant,
    has_changes: bool,
    /// The number of components of other users for which there are descriptors.
    room: usize,
}

/// The numbers of a user's components that were called and that are taken.
#[derive(Clone, Copy, Debug, Default)]
struct UserLoad {
    called: usize,
    taken: usize,
}

/// A component that has introduced itself, or why it cannot be taken.
pub type Found = Result<Component, AttachError>;

/// The components that are due, by user. The first one to be called comes last.
type DueQueues = BTreeMap<u32, Vec<PathBuf>>;

/// A directory that is looked into.
#[derive(Debug)]
struct WatchedDirectory {
    path: PathBuf,
    /// By device and inode, because another directory can get the same path.
    identity: (u64, u64),
    watch: i32,
    /// Its lock. A directory that is watched is not removed, so that new components are noticed in it.
    _held: Option<OwnedFd>,
}

/// What is known of a socket.
#[derive(Clone, Copy, Debug)]
struct KnownSocket {
    inode: u64,
    /// The owner of its directory.
    user: u32,
    state: SocketState,
    /// The number of tries without success so far.
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketState {
    /// To be called, from this moment on.
    Due(Instant),
    Called,
    Taken,
    /// Not to be tried again.
    Unfit,
}

/// A component that was called.
#[derive(Debug)]
struct CalledComponent {
    path: PathBuf,
    introduction: Introduction,
}

/// The finder has made the own directory, if no program had. It leaves none behind that is empty.
impl Drop for Finder {
    fn drop(&mut self) {
        // The locks that keep the directories in their places.
        self.directories.clear();
        directory::remove_unused();
    }
}

impl Finder {
    /// Looks where this user's programs publish themselves; for root, where those of all users do.
    ///
    /// # Errors
    ///
    /// If the own directory cannot be made or watched.
    pub fn new() -> io::Result<Finder> {
        Finder::of_users(&directory::Users::All)
    }

    /// Looks where the programs of this user publish themselves, and where those of the given users do, if
    /// this user may look there. [`Finder::follow`] takes up directories that are made later.
    ///
    /// # Errors
    ///
    /// As [`Finder::new`].
    pub fn of_users(users: &directory::Users) -> io::Result<Finder> {
        let held = directory::prepare_and_hold(&directory::own())?;
        let mut finder = Finder::in_directories(vec![directory::own()])?;
        drop(held);
        finder.follow(users);
        Ok(finder)
    }

    /// Looks in the directories given.
    ///
    /// # Errors
    ///
    /// If one cannot be watched.
    pub fn in_directories(directories: Vec<PathBuf>) -> io::Result<Finder> {
        let changes = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let mut finder = Finder {
            directories: Vec::new(),
            changes,
            known: HashMap::new(),
            called: Vec::new(),
            turns: BTreeMap::new(),
            next_look: Instant::now(),
            has_changes: true,
            room: room(),
        };
        for path in directories {
            let watched = finder.watch(path)?;
            finder.directories.push(watched);
        }
        Ok(finder)
    }

    /// From now on looks in those directories of the given users that exist, and in no others.
    pub fn follow(&mut self, users: &directory::Users) {
        let wanted = directory::of(users);
        let watched = std::mem::take(&mut self.directories).into_iter();
        let (kept, left): (Vec<_>, Vec<_>) =
            watched.partition(|watched| wanted.contains(&watched.path) && watched.is_there());
        self.directories = kept;
        for watched in left {
            // If the directory is gone, the kernel has removed the watch itself.
            let _ = inotify::remove_watch(&self.changes, watched.watch);
            self.has_changes = true;
        }
        for path in wanted {
            if !self.directories.iter().any(|watched| watched.path == path)
                // A directory that is gone again, or that this user may not look into, is left out.
                && let Ok(watched) = self.watch(path)
            {
                self.directories.push(watched);
                self.has_changes = true;
            }
        }
    }

    fn watch(&self, path: PathBuf) -> io::Result<WatchedDirectory> {
        let arrivals = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
        let watch = inotify::add_watch(&self.changes, &path, arrivals)?;
        let (identity, held) = (identity(&path)?, directory::hold(&path));
        Ok(WatchedDirectory { path, identity, watch, _held: held })
    }

    /// Looks for components and continues with those that it has found, without waiting for any. Returns
    /// those that have introduced themselves; each has `patience` to do so. A failure is reported once, and
    /// tried again silently. On the way it removes the sockets of programs that have ended, in this user's
    /// own directories.
    pub fn step(&mut self, patience: Duration) -> Vec<Found> {
        if self.has_changes && Instant::now() >= self.next_look {
            self.look();
        }
        self.advance(patience)
    }

    /// Has the next [`Finder::step`] look into all directories, even if nothing is new there.
    pub fn look_again(&mut self) {
        self.has_changes = true;
    }

    /// Whether everything new was looked at, and no component that was called can still answer.
    pub fn is_settled(&self) -> bool {
        let now = Instant::now();
        !self.has_changes && self.called.is_empty() && !self.known.values().any(|known| known.is_due(now))
    }

    /// Notes that a component that was taken has been released. It can be taken again after a while.
    pub fn let_go(&mut self, path: &Path) {
        if let Some(known) = self.known.get_mut(path) {
            known.fail(RETRY_SILENT);
        }
    }

    /// Waits until a component may have arrived or sent something, or until one of the others can be read,
    /// but `timeout` at most.
    pub fn wait_or(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) {
        let now = Instant::now();
        let due = self.known.values().filter_map(|known| match known.state {
            SocketState::Due(at) => Some(at),
            _ => None,
        });
        let due = due.filter(|_| self.called.len() < MOST_CALLED_TOGETHER);
        // A component that is due already but not called waits for others to answer.
        let due = due.filter(|&at| at > now);
        let ends = self.called.iter().map(|called| called.introduction.deadline());
        let next = due.chain(ends).min();
        let timeout = next.map_or(timeout, |next| timeout.min(next.saturating_duration_since(now)));
        // A component that arrives before the next look is found by it.
        let is_open = !self.has_changes && now >= self.next_look;
        let until_look = self.next_look.saturating_duration_since(now);
        let timeout = if is_open { timeout } else { timeout.min(until_look) };
        self.has_changes |= self.wait_for(timeout, is_open, others);
    }

    /// Waits for the components that were called, for the others, and for arrivals if asked to. Answers
    /// whether some component may have arrived.
    fn wait_for(&self, timeout: Duration, for_arrivals: bool, others: &[BorrowedFd<'_>]) -> bool {
        let arrivals = for_arrivals.then(|| PollFd::new(&self.changes, PollFlags::IN));
        let others = others.iter().map(|&other| PollFd::from_borrowed_fd(other, PollFlags::IN));
        let called = self.called.iter().map(|called| PollFd::new(&called.introduction, PollFlags::IN));
        let mut poll: Vec<_> = arrivals.into_iter().chain(others).chain(called).collect();
        // A signal ends the waiting early, which does no harm.
        let is_ready = rustix::event::poll(&mut poll, Some(&timespec(timeout))).is_ok_and(|ready| ready > 0);
        is_ready && for_arrivals && !poll[0].revents().is_empty()
    }

    /// Reads the directories and notes the sockets in them.
    fn look(&mut self) {
        let begin = Instant::now();
        // Before the directories are read: a change from here on causes another look.
        self.drain_changes();
        self.has_changes = false;
        let mut present = HashSet::new();
        for directory in self.directories.iter().map(|watched| &watched.path) {
            let Some(user) = directory::owner(directory) else { continue };
            for path in directory::sockets(directory).into_iter().filter(|path| !is_own(path)) {
                // A link is no socket: it could lead to another user's.
                let found = fs::symlink_metadata(&path).ok().filter(|found| found.file_type().is_socket());
                let Some(inode) = found.map(|found| found.ino()) else { continue };
                // Another inode is another socket of the same name, about which nothing is known.
                let known = self.known.get(&path).filter(|known| known.inode == inode);
                let known = known.copied().unwrap_or(KnownSocket {
                    inode,
                    user,
                    state: SocketState::Due(begin),
                    failures: 0,
                });
                self.known.insert(path.clone(), known);
                present.insert(path);
            }
        }
        self.known.retain(|path, _| present.contains(path));
        self.called.retain(|called| present.contains(&called.path));
        let known = &self.known;
        self.turns.retain(|user, _| known.values().any(|known| known.user == *user));
        let end = Instant::now();
        self.next_look = end + SHORTEST_BETWEEN_LOOKS.max((end - begin) * LOOKS_COST_AT_MOST);
    }

    /// Calls the components that are due, and takes the packets of those that were called.
    fn advance(&mut self, patience: Duration) -> Vec<Found> {
        let mut found = self.call_all(patience);
        for CalledComponent { path, introduction } in std::mem::take(&mut self.called) {
            match introduction.advance() {
                Ok(Progress::Waiting(introduction)) => {
                    self.called.push(CalledComponent { path, introduction: *introduction });
                }
                Ok(Progress::Taken(component)) => found.extend(self.settle(path, Ok(*component))),
                Err(error) => found.extend(self.settle(path, Err(error))),
            }
        }
        found
    }

    /// Calls the components that are due: always one of the user whose last turn is longest ago.
    fn call_all(&mut self, patience: Duration) -> Vec<Found> {
        let (begin, mut found) = (Instant::now(), Vec::new());
        let mut loads = self.loads();
        let mut queues = self.queues(&loads);
        while self.called.len() < MOST_CALLED_TOGETHER {
            let longest_ago = queues.keys().min_by_key(|user| self.turns.get(*user));
            let Some(user) = longest_ago.copied() else { break };
            let is_room = self.has_room(user, &loads);
            let Some(path) = queues.get_mut(&user).and_then(Vec::pop).filter(|_| is_room) else {
                queues.remove(&user);
                continue;
            };
            let Some(known) = self.known.get_mut(&path) else { continue };
            known.state = SocketState::Called;
            self.turns.insert(user, Instant::now());
            match call(&path, user, patience) {
                Ok(introduction) => {
                    loads.entry(user).or_default().called += 1;
                    self.called.push(CalledComponent { path, introduction });
                }
                Err(error) => found.extend(self.settle(path, Err(error))),
            }
        }
        // A socket at which no process listens is quickly called, and quickly made.
        self.next_look += begin.elapsed() * LOOKS_COST_AT_MOST;
        found
    }

    fn loads(&self) -> BTreeMap<u32, UserLoad> {
        let mut loads: BTreeMap<u32, UserLoad> = BTreeMap::new();
        for known in self.known.values() {
            let load = loads.entry(known.user).or_default();
            load.called += usize::from(known.state == SocketState::Called);
            load.taken += usize::from(known.state == SocketState::Taken);
        }
        loads
    }

    /// The components that are due and may be called. Those that have failed least often come first.
    fn queues(&self, loads: &BTreeMap<u32, UserLoad>) -> DueQueues {
        let now = Instant::now();
        let mut due: BTreeMap<u32, Vec<(u32, &PathBuf)>> = BTreeMap::new();
        for (path, known) in self.known.iter().filter(|(_, known)| known.is_due(now)) {
            due.entry(known.user).or_default().push((known.failures, path));
        }
        due.retain(|&user, _| self.has_room(user, loads));
        due.into_iter().map(|(user, due)| (user, in_order(due))).collect()
    }

    /// Whether one more component of a user may be called.
    fn has_room(&self, user: u32, loads: &BTreeMap<u32, UserLoad>) -> bool {
        let load = loads.get(&user).copied().unwrap_or_default();
        // This user's components take no places of other users' components.
        if user == directory::user() {
            return load.called < MOST_OWN_CALLED;
        }
        let others = loads.iter().filter(|(other, _)| **other != directory::user());
        let together: usize = others.map(|(_, load)| load.called + load.taken).sum();
        // Rounded up, so that the first component fits however small the room is.
        let most = MOST_TAKEN.min(self.room.div_ceil(2));
        load.called < MOST_CALLED && load.called + load.taken < most && together < self.room
    }

    /// Notes the outcome of a call. Returns it if it is worth reporting.
    fn settle(&mut self, path: PathBuf, outcome: Found) -> Option<Found> {
        let Some(known) = self.known.get_mut(&path) else { return Some(outcome) };
        let is_first = known.failures == 0;
        match &outcome {
            Ok(_) => known.state = SocketState::Taken,
            Err(AttachError::Gone { .. }) => {
                // If the socket cannot be removed, it is found stale again, which does no harm.
                let _ = remove_stale(&path, known.inode);
                known.fail(RETRY_SILENT);
                return None;
            }
            Err(AttachError::Busy { .. }) => known.fail(RETRY_BUSY),
            Err(AttachError::Silent { .. } | AttachError::System { .. }) => known.fail(RETRY_SILENT),
            Err(_) => known.state = SocketState::Unfit,
        }
        (outcome.is_ok() || is_first).then_some(outcome)
    }

    /// Reads and drops the notices of changes: it only matters that there was one.
    fn drain_changes(&self) {
        let mut space = [core::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.changes, &mut space);
        while reader.next().is_ok() {}
    }
}

impl WatchedDirectory {
    /// Whether the path still leads to this directory.
    fn is_there(&self) -> bool {
        identity(&self.path).ok() == Some(self.identity)
    }
}

impl KnownSocket {
    fn is_due(&self, now: Instant) -> bool {
        matches!(self.state, SocketState::Due(at) if at <= now)
    }

    /// Notes a failure: the component is tried again later, each time after twice the last time.
    fn fail(&mut self, first: Duration) {
        let delay = first.saturating_mul(1 << self.failures.min(DOUBLINGS));
        self.failures = self.failures.saturating_add(1);
        self.state = SocketState::Due(Instant::now() + delay);
    }
}

impl AsFd for Finder {
    /// Readable when a component may have arrived.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.changes.as_fd()
    }
}

/// Calls the component in a directory of `owner`, which must belong to the same user.
fn call(path: &Path, owner: u32, patience: Duration) -> Result<Introduction, AttachError> {
    let introduction = Introduction::begin(path, patience)?;
    let user = introduction.user();
    if user != owner {
        return Err(AttachError::Misplaced { component: path.display().to_string(), user, owner });
    }
    Ok(introduction)
}

/// The paths of components with their numbers of failures, the first one to be called last.
fn in_order(mut due: Vec<(u32, &PathBuf)>) -> Vec<PathBuf> {
    due.sort_unstable_by_key(|(failures, _)| std::cmp::Reverse(*failures));
    due.into_iter().map(|(_, path)| path.clone()).collect()
}

/// The number of components of other users for which this process has descriptors.
fn room() -> usize {
    const PART: u64 = 2;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let room = limit.unwrap_or(u64::MAX) / PART / DESCRIPTORS_OF_ONE;
    usize::try_from(room).unwrap_or(usize::MAX)
}

fn timespec(time: Duration) -> rustix::time::Timespec {
    rustix::time::Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

fn identity(directory: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(directory)?;
    Ok((found.dev(), found.ino()))
}

/// Whether this is the process's own socket: a scheduler with probes does not read itself.
fn is_own(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    stem.split('-').next() == Some(std::process::id().to_string().as_str())
}

/// Removes a socket at which no process listens, unless another one has its name by now. It never removes one
/// in another user's directory: that user could put another directory in its place at any moment, and root
/// would delete what that one leads to.
pub(crate) fn remove_stale(path: &Path, inode: u64) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    let is_own = rustix::fs::fstat(&folder)?.st_uid == directory::user();
    if is_own && rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_ino == inode {
        rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::DirBuilderExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn log_11_a_component_that_does_not_answer_is_tried_again_after_twice_as_long_each_time() {
        let begin = Instant::now();
        let mut known = KnownSocket { inode: 1, user: 1, state: SocketState::Called, failures: 0 };
        let delays: Vec<_> = (0..9)
            .map(|_| {
                known.fail(RETRY_SILENT);
                let SocketState::Due(at) = known.state else { panic!("{known:?}") };
                // In whole seconds: the time that passes meanwhile is shorter.
                (at - begin).as_secs()
            })
            .collect();
        assert!(
            delays.iter().zip([1, 2, 4, 8, 16, 32, 64, 64, 64]).all(|(found, least)| *found >= least),
            "{delays:?}"
        );
        assert!(delays[8] < 128 && !known.is_due(begin), "{delays:?}");
    }

    /// A finder that knows the given number of taken components of each user, and of each one more that is
    /// due.
    fn finder_that_knows(users: &[(u32, usize)]) -> Finder {
        // With as many descriptors as it needs.
        let mut finder = Finder::in_directories(Vec::new()).unwrap();
        finder.room = usize::MAX;
        for &(user, taken) in users {
            let known = |state| KnownSocket { inode: 1, user, state, failures: 0 };
            let all =
                (0..taken).map(|number| (format!("/{user}/{number}").into(), known(SocketState::Taken)));
            finder.known.extend(all);
            finder.known.insert(format!("/{user}/due").into(), known(SocketState::Due(Instant::now())));
        }
        finder
    }

    #[test]
    fn log_11_a_limited_number_of_components_of_another_user_is_taken() {
        let (own, other) = (directory::user(), directory::user() + 1);
        let next = |users: &[_]| {
            let finder = finder_that_knows(users);
            finder.queues(&finder.loads()).into_values().find_map(|mut queue| queue.pop())
        };
        assert_eq!(next(&[(other, MOST_TAKEN - 1)]), Some(format!("/{other}/due").into()));
        assert_eq!(next(&[(other, MOST_TAKEN)]), None);
        assert_eq!(next(&[(other, MOST_TAKEN), (own, 2 * MOST_TAKEN)]), Some(format!("/{own}/due").into()));
    }

    #[test]
    fn log_11_a_component_that_does_not_answer_is_reported_once() {
        let mut finder = finder_that_knows(&[(1, 0)]);
        let mut told = |error| finder.settle("/1/due".into(), Err(error)).is_some();
        let silent = || AttachError::Silent { component: "x".into(), limit: Duration::ZERO };
        assert!(told(silent()) && !told(silent()));
        assert!(!told(AttachError::Gone { path: "/1/due".into() }), "an end is no failure");
        assert!(!told(silent()));
    }

    /// A directory for a test, with a socket at which no process listens. Dropped, it is removed.
    struct LeftSocket(PathBuf);

    impl LeftSocket {
        fn new(name: &str) -> LeftSocket {
            let path = std::env::temp_dir().join(format!("mete-finder-{}-{name}", std::process::id()));
            fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
            let left = LeftSocket(path);
            drop(UnixListener::bind(left.socket()).unwrap());
            left
        }

        fn socket(&self) -> PathBuf {
            self.0.join("1.sock")
        }

        fn inode(&self) -> u64 {
            fs::symlink_metadata(self.socket()).unwrap().ino()
        }
    }

    impl Drop for LeftSocket {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn log_11_components_of_others_leave_descriptors_to_everything_else_and_to_one_another() {
        let [one, other, third] = [1, 2, 3].map(|nth| directory::user() + nth);
        let mut finder = Finder::in_directories(Vec::new()).unwrap();
        finder.room = 8;
        let has_room = |user, loads: &[(u32, usize)]| {
            let loads = loads.iter().map(|&(user, taken)| (user, UserLoad { called: 0, taken }));
            finder.has_room(user, &loads.collect())
        };
        assert!(has_room(one, &[(one, 3)]) && !has_room(one, &[(one, 4)]));
        assert!(has_room(other, &[(one, 4), (other, 3)]) && !has_room(third, &[(one, 4), (other, 4)]));
        assert!(has_room(directory::user(), &[(one, 4), (other, 4)]));
        assert!(room() > 0);
    }

    #[test]
    fn log_11_components_are_called_in_the_order_of_their_failures_and_users_in_turn() {
        let mut finder = Finder::in_directories(Vec::new()).unwrap();
        let users = [1, 2].map(|nth| directory::user() + nth);
        for (nth, user) in users.into_iter().enumerate() {
            for failures in [2, 0, 1] {
                let known = KnownSocket { inode: 1, user, state: SocketState::Due(Instant::now()), failures };
                finder.known.insert(format!("/nowhere/{nth}-{failures}.sock").into(), known);
            }
        }
        let queues = finder.queues(&finder.loads());
        let of = |nth: usize| [2, 1, 0].map(|failures| format!("/nowhere/{nth}-{failures}.sock").into());
        let expected: DueQueues = (0..).zip(users).map(|(nth, user)| (user, of(nth).to_vec())).collect();
        assert_eq!(queues, expected, "the first one last");
        // No process listens: all have been called, and will be called again after a while.
        assert!(finder.advance(Duration::from_secs(1)).is_empty());
        assert!(finder.queues(&finder.loads()).is_empty() && finder.known.len() == 6);
    }

    #[test]
    fn log_11_a_socket_that_is_left_is_removed_unless_its_name_is_taken_again() {
        let left = LeftSocket::new("own");
        remove_stale(&left.socket(), left.inode() + 1).unwrap();
        assert!(left.socket().exists());
        remove_stale(&left.socket(), left.inode()).unwrap();
        assert!(!left.socket().exists());
    }

    #[test]
    fn log_11_nothing_is_removed_through_a_link_in_the_place_of_a_directory() {
        let left = LeftSocket::new("behind-link");
        let link = left.0.join("link");
        std::os::unix::fs::symlink(&left.0, &link).unwrap();
        remove_stale(&link.join("1.sock"), left.inode()).unwrap_err();
        assert!(left.socket().exists());
    }

    #[test]
    fn log_11_root_removes_nothing_in_the_directories_of_others() {
        const OTHER_USER: u32 = 65534;
        if directory::user() != 0 {
            println!("SKIPPED: log_11_root_removes_nothing_in_the_directories_of_others: not root");
            return;
        }
        let left = LeftSocket::new("others");
        std::os::unix::fs::chown(&left.0, Some(OTHER_USER), None).unwrap();
        let mut finder = Finder::in_directories(vec![left.0.clone()]).unwrap();
        assert!(finder.step(Duration::from_secs(20)).is_empty() && finder.called.is_empty());
        assert!(left.socket().exists());
    }
}
