//! The dispatcher as a value: it acts as long as it lives.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

use mete_base::processors;
use mete_kernel::Weight;
use mete_log::DomainId;
use mete_policy::{Entry, Nanoseconds, Share};
use mete_sched::actuator::pauses::Pausable;
use mete_sched::actuator::{ActuatorError, Pauses, Restored, watcher};
use mete_sched::domains::dealt::{holder_of_first_process, make_policy, policy_domain};
use mete_sched::domains::process::{self, Population, Process};
use mete_sched::domains::selector::user_name;
use mete_sched::domains::shared::{share_of, smallest_shares};
use mete_sched::domains::{Domains, Emptied, FIRST, SharedDomain};
use rustix::io::Errno;

use crate::clock::used_by_thread;
use crate::error::PausingError;
use crate::manager::{Counts, Manager, Message};
use crate::members::{Candidates, Members, candidates};
use crate::thread::{Shared, run};

/// The largest number of clients. Each takes a descriptor, and the first ones two, as long as these are an eighth of all at most; this
/// number of descriptors is left for everything else.
const MOST_CLIENTS: usize = 4096;
const OTHER_DESCRIPTORS: u64 = 128;
/// How often it is asked whether a process has begun; how often all processes are looked at while any begin or end; and how often in any
/// case: one may come to a domain or a group, or leave it, without that.
const BETWEEN_LOOKS: Duration = Duration::from_millis(40);
const BETWEEN_SCANS: Duration = Duration::from_millis(250);
const BETWEEN_QUIET_SCANS: Duration = Duration::from_secs(1);
/// The most processors that a policy is asked for.
const MOST_PROCESSORS: usize = 64;

/// What the dispatcher is to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The policy's quantum.
    pub quantum: Nanoseconds,
}

impl Default for Setup {
    /// Quanta of 20 ms, twice those of the VTRR paper (§4): each turn costs some 0.2 ms of processor time, and a signal may take effect only with the
    /// kernel's next tick.
    fn default() -> Setup {
        Setup { quantum: Nanoseconds::from_millis(20) }
    }
}

/// How many processes of domains are not paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Jobs of a shell.
    pub jobs: usize,
    /// Of other users.
    pub of_others: usize,
    /// Those beyond 4,096, or for which there is no descriptor.
    pub without_room: usize,
}

impl LeftOut {
    /// All of them.
    #[must_use]
    pub fn all(self) -> usize {
        self.jobs + self.of_others + self.without_room
    }
}

/// For people, with what to do.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { jobs, of_others, without_room } = *self;
        let parts = [
            (
                jobs,
                "that are jobs of a shell, which would see them stop: start such by setsid or as services",
            ),
            (of_others, "of other users"),
            (without_room, "for which there is no room or no descriptor (ulimit -n)"),
        ];
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        let parts: Vec<_> = parts.map(|(number, why)| format!("{number} {why}")).collect();
        write!(f, "processes that are not paused: {}", parts.join("; "))
    }
}

type Ended = (Pauses, Result<(), ActuatorError>);

/// See the [crate](crate).
pub struct PausingDispatcher {
    domains: Domains,
    members: Members,
    left_out: LeftOut,
    /// The process groups that there are, and whether each is a job of a shell.
    groups: BTreeMap<u32, bool>,
    /// What each domain has.
    shares: Vec<Share>,
    /// Which domains had no process when they were looked at first, in sentences.
    empty_domains: Vec<String>,
    emptied: Emptied,
    news: Vec<String>,
    /// The processors on which clients may run, as far as the manager was told.
    processors: u64,
    unnamed: Option<io::Error>,
    /// How it went that all processes go on, if that was done because it could not go on.
    restored: Option<Restored>,
    shared: Arc<Mutex<Shared>>,
    /// When it was looked last, and at all processes; those that there were then, and whether it was others meanwhile.
    looked: Instant,
    scanned: Instant,
    scanned_fully: Instant,
    population: Option<Population>,
    has_changed: bool,
    /// What looks for processes have taken.
    own: Nanoseconds,
    /// `None`: the manager is to end.
    tells: Option<Sender<Message<Pausable>>>,
    thread: Option<JoinHandle<Ended>>,
}

impl PausingDispatcher {
    /// Has the processes of these domains run by this policy. The program that has all go on in the end is
    /// [this one](watcher::this_program).
    ///
    /// # Errors
    ///
    /// [`PausingError`] says what is missing. Nothing is changed then.
    pub fn start(
        policy: &Entry,
        domains: Vec<SharedDomain>,
        setup: Setup,
    ) -> Result<PausingDispatcher, PausingError> {
        PausingDispatcher::start_with(policy, domains, setup, watcher::this_program)
    }

    /// The same with another program, whose `main` must call [`watcher::take_over_if_asked`].
    ///
    /// # Errors
    ///
    /// As [`PausingDispatcher::start`].
    pub fn start_with(
        policy: &Entry,
        domains: Vec<SharedDomain>,
        setup: Setup,
        program: impl Fn() -> Command + Send + 'static,
    ) -> Result<PausingDispatcher, PausingError> {
        let shares: Vec<_> = domains.iter().map(|domain| share_of(domain.weight_or_ordinary())).collect();
        let mut domains = Domains::new(domains.into_iter().map(|domain| domain.spec))?;
        domains.scan();
        refuse_first_process(&domains)?;
        let empty_domains = domains.empty_so_far()?.iter().map(ToString::to_string).collect();
        check_rights(&domains)?;
        let room = room()?;
        let online = processors::online(MOST_PROCESSORS).into_iter().max().unwrap_or(0) + 1;
        let pauses = Pauses::start_with(program)?;
        let unnamed = pauses.unnamed().map(|error| io::Error::new(error.kind(), error.to_string()));
        let policy = make_policy(policy, &shares, (MOST_CLIENTS, online), setup.quantum);
        let manager = Manager::new(policy, pauses, (shares.len(), online), setup.quantum);
        let (tells, told) = channel();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let of_manager = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("mete-pausing".into())
            .spawn(move || run(manager, &told, &of_manager))
            .map_err(|source| PausingError::System { what: "start its thread", source })?;
        let mut dispatcher = PausingDispatcher {
            domains,
            members: Members::with_room(room),
            left_out: LeftOut::default(),
            groups: BTreeMap::new(),
            shares,
            empty_domains,
            emptied: Emptied::default(),
            news: Vec::new(),
            processors: u64::MAX,
            unnamed,
            restored: None,
            shared,
            looked: Instant::now(),
            scanned: Instant::now(),
            scanned_fully: Instant::now(),
            population: process::population(),
            has_changed: true,
            own: Nanoseconds::ZERO,
            tells: Some(tells),
            thread: Some(thread),
        };
        dispatcher.look_at_groups();
        dispatcher.take_up();
        Ok(dispatcher)
    }

    /// Looks which processes have begun or ended. To be called some times each second; it does not look more often than 25
    /// times.
    ///
    /// # Errors
    ///
    /// Why it cannot go on. All processes go on then.
    pub fn look(&mut self) -> Result<(), PausingError> {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            let (pauses, ended) = self.stop_manager().ok_or(PausingError::Over)?;
            self.restored = Some(pauses.finish());
            ended?;
            return Err(PausingError::Over);
        }
        if self.looked.elapsed() < BETWEEN_LOOKS {
            return Ok(());
        }
        let begin = used_by_thread();
        self.looked = Instant::now();
        let population = process::population();
        let before = std::mem::replace(&mut self.population, population);
        let has_begun = before.map(|before| before.newest) != population.map(|now| now.newest);
        self.has_changed |= before != population;
        let between = if self.has_changed { BETWEEN_SCANS } else { BETWEEN_QUIET_SCANS };
        let is_due = self.scanned.elapsed() >= between;
        if has_begun || is_due {
            if self.scanned_fully.elapsed() >= BETWEEN_QUIET_SCANS {
                self.scanned_fully = self.looked;
                self.domains.scan_fully();
            } else {
                self.domains.scan();
            }
            self.news.extend(self.emptied.look(&self.domains, self.looked));
            if is_due {
                (self.scanned, self.has_changed) = (self.looked, false);
                self.look_at_groups();
            }
            self.take_up();
        }
        self.own += used_by_thread().saturating_sub(begin);
        Ok(())
    }

    /// All processes are read for that, so it is done seldom; what a process starts is in a known group, as a rule.
    fn look_at_groups(&mut self) {
        // Where `/proc` cannot be read at the moment, all stay what they are.
        if let Ok(groups) = process::groups() {
            self.groups = groups;
        }
    }

    /// Processes of domains are clients, and those that belong to none are not.
    fn take_up(&mut self) {
        let refused = std::mem::take(&mut self.shared().refused);
        refused.into_iter().for_each(|number| self.members.remove(number));
        // Where `/proc` cannot be read at the moment, all stay what they are.
        let Ok(Candidates { there, jobs }) = candidates(&self.domains, &self.groups) else { return };
        for member in self.members.gone(&there) {
            self.tell(Message::Leave(member.number));
        }
        self.left_out = LeftOut { jobs, ..LeftOut::default() };
        let of_clients = smallest_shares(&self.shares);
        for (pid, (process, domain)) in there {
            if self.members.has(pid) {
                continue;
            }
            match Pausable::of(&process) {
                Ok(process_to_pause) => match self.members.add(&process, domain) {
                    Some(member) => self.tell(Message::Join {
                        number: member.number,
                        process: process_to_pause,
                        domain: policy_domain(domain),
                        share: of_clients[domain.index() - FIRST.index()],
                        allowed: member.allowed,
                    }),
                    None => self.left_out.without_room += 1,
                },
                // It has ended.
                Err(Errno::SRCH) => {}
                Err(Errno::PERM) => self.left_out.of_others += 1,
                Err(_) => self.left_out.without_room += 1,
            }
        }
        let (changed, processors) = self.members.look_at_masks();
        for member in changed {
            self.tell(Message::Allowed { number: member.number, allowed: member.allowed });
        }
        if processors != 0 && processors != self.processors {
            self.processors = processors;
            self.tell(Message::Processors(processors));
        }
    }

    /// If its thread has ended, the next look says so.
    fn tell(&self, message: Message<Pausable>) {
        let _ = self.tells.as_ref().map(|tells| tells.send(message));
    }

    /// Gives a domain, the one at this place among those that it was started with, another weight.
    ///
    /// # Panics
    ///
    /// If there are fewer domains.
    pub fn set_weight(&mut self, nth: usize, weight: Weight) {
        self.shares[nth] = share_of(weight);
        let of_clients = smallest_shares(&self.shares);
        let of_client = |domain: DomainId| of_clients[domain.index() - FIRST.index()];
        let clients = self.members.iter().map(|member| (member.number, of_client(member.domain))).collect();
        let domain = policy_domain(DomainId::new((FIRST.index() + nth) as u16));
        self.tell(Message::Shares { domain, share: self.shares[nth], clients });
    }

    /// What each domain has used since the dispatcher started, in their order.
    #[must_use]
    pub fn used(&self) -> Vec<Nanoseconds> {
        let used = self.shared().used.clone();
        let of_domain = |nth: usize| used.get(nth + 1).copied().unwrap_or_default();
        (0..self.shares.len()).map(of_domain).collect()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which domains had no process when it started, in sentences. Processes that come later are clients.
    #[must_use]
    pub fn empty_domains(&self) -> &[String] {
        &self.empty_domains
    }

    /// Which domains were found to have lost their last process since this was asked last, in sentences.
    pub fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// How many processes of domains are not paused, and why.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// What the dispatcher has done since it started.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let counts = self.shared().counts;
        Counts { own_ns: counts.own_ns + self.own, ..counts }
    }

    /// The reason why processes stay paused if this process and those that watch over it are killed at the same
    /// moment; `None` if the next start of this program has them go on.
    #[must_use]
    pub fn unnamed(&self) -> Option<&io::Error> {
        self.unnamed.as_ref()
    }

    /// Ends, has all processes go on, and reports how that went.
    #[must_use]
    pub fn finish(mut self) -> Restored {
        let restored = self.stop_manager().map(|(pauses, _)| pauses.finish());
        restored.or(self.restored).unwrap_or_default()
    }

    /// Ends the manager; `None` if it has ended before, or has panicked. Then what it had paused has gone on.
    fn stop_manager(&mut self) -> Option<Ended> {
        self.tells = None;
        self.thread.take()?.join().ok()
    }
}

impl Drop for PausingDispatcher {
    fn drop(&mut self) {
        // The pauses are dropped with it, and all goes on.
        drop(self.stop_manager());
    }
}

/// For how many clients there are descriptors.
fn room() -> Result<usize, PausingError> {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let for_clients = |most: u64| (most - most / 8).saturating_sub(OTHER_DESCRIPTORS);
    if for_clients(most) < 2 {
        let least = (most..).find(|least| for_clients(*least) >= 2).unwrap_or(u64::MAX);
        return Err(PausingError::FewDescriptors { most, least });
    }
    Ok(usize::try_from(for_clients(most)).unwrap_or(usize::MAX).min(MOST_CLIENTS))
}

/// With the first process, all that it has started would belong to its domain: the whole machine.
fn refuse_first_process(domains: &Domains) -> Result<(), PausingError> {
    match holder_of_first_process(domains) {
        Some(name) => Err(PausingError::FirstProcess { name: name.to_owned() }),
        None => Ok(()),
    }
}

/// An error if this user may pause none of the processes that there are.
fn check_rights(domains: &Domains) -> Result<(), PausingError> {
    // Whether they are jobs may change; whose they are, hardly.
    let groups = process::groups().unwrap_or_default().into_keys().map(|group| (group, false)).collect();
    let Ok(Candidates { there, .. }) = candidates(domains, &groups) else { return Ok(()) };
    let mut refused = None;
    for (process, domain) in there.values() {
        match Pausable::of(process) {
            Ok(_) => return Ok(()),
            Err(Errno::PERM) => refused = refused.or(Some((process, *domain))),
            Err(_) => {}
        }
    }
    let Some((Process { pid, .. }, domain)) = refused else { return Ok(()) };
    let owner = process::user(*pid).map_or_else(|| "another user".into(), user_name);
    Err(PausingError::NoRight { name: domains.name(domain).to_owned(), pid: *pid, owner })
}
