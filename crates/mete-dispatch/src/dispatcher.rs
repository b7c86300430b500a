//! The dispatcher as a value: it acts as long as it lives.

use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use std::{io, thread};

use libbpf_rs::{Link, MapHandle};
use mete_base::locked::LockedMemory;
use mete_base::processors;
use mete_kernel::{Weight, check_capabilities, load_skeleton};
use mete_log::DomainId;
use mete_policy::{Entry, Nanoseconds, Share};
use mete_sched::actuator::classes::Adopted;
use mete_sched::actuator::{Classes, Restored, watcher};
use mete_sched::domains::dealt::{holder_of_first_process, make_policy, policy_domain};
use mete_sched::domains::shared::{share_of, smallest_shares};
use mete_sched::domains::{DomainError, Domains, Emptied, FIRST, SharedDomain};

use crate::bell::Bell;
use crate::births::Births;
use crate::channels::Channels;
use crate::counts::Counts;
use crate::dues::Dues;
use crate::error::DispatchError;
use crate::foremost::Foremost;
use crate::manager::Manager;
use crate::members::candidates;
use crate::memory::{MOST_CLIENTS, MOST_PROCESSORS, Memory};
use crate::message::now;
use crate::midwife::Midwife;
use crate::register::{ClientLinks, Register};
use crate::skeleton::{DispatchSkel, DispatchSkelBuilder};
use crate::step_back::StepBack;
use crate::thread::{self as manager_thread, Bound, Shared};
use crate::threads::KernelThreads;

/// The real-time priority of chosen clients: the lowest.
const FRONT: u32 = 1;
/// The process that sees all threads by the kernel's own numbers has this namespace (`PROC_PID_INIT_INO`).
const KERNELS_NAMESPACE: &str = "pid:[4026531836]";

/// What the dispatcher is to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The policy's quantum.
    pub quantum: Nanoseconds,
    /// What all tasks that are no clients have together, as if they were a domain.
    pub rest: Weight,
}

impl Default for Setup {
    /// Quanta of 4 ms; the rest has what a domain has of which nothing is said.
    fn default() -> Setup {
        Setup { quantum: Nanoseconds::from_millis(4), rest: Weight::ORDINARY }
    }
}

/// See the [crate](crate).
pub struct Dispatcher {
    domains: Domains,
    register: Arc<Mutex<Register>>,
    midwife: Option<Midwife>,
    /// What each domain has.
    shares: Vec<Share>,
    /// What was wrong with the domains when they were looked at first, in sentences.
    empty_domains: Vec<String>,
    emptied: Emptied,
    news: Vec<String>,
    /// Why nothing would be put back after all processes were killed that could do it.
    unnamed: Option<io::Error>,
    /// How putting back went, if it could not go on.
    restored: Option<Restored>,
    bell: Bell,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), DispatchError>>>,
    // Dropped in this order: first nothing is written any more, then the programs go.
    _links: Vec<Link>,
    skeleton: DispatchSkel<'static>,
    _bound: Bound,
    /// If it may be locked. Else the manager may wait for a page, behind a client that it has put in front.
    locked: Option<LockedMemory>,
    /// Until it begins.
    foremost: Option<Foremost>,
}

impl Dispatcher {
    /// Dispatches the threads of these domains. The program that puts classes back is
    /// [this one](watcher::this_program).
    ///
    /// Needs type information of the kernel, and root or the capabilities `CAP_BPF`, `CAP_PERFMON` and
    /// `CAP_SYS_NICE`.
    ///
    /// # Errors
    ///
    /// [`DispatchError`] says what is missing. Nothing is changed then.
    pub fn start(
        policy: &Entry,
        domains: Vec<SharedDomain>,
        setup: Setup,
    ) -> Result<Dispatcher, DispatchError> {
        Dispatcher::start_with(policy, domains, setup, watcher::this_program)
    }

    /// The same with another program, whose `main` must call [`watcher::take_over_if_asked`].
    ///
    /// # Errors
    ///
    /// As [`Dispatcher::start`].
    pub fn start_with(
        policy: &Entry,
        domains: Vec<SharedDomain>,
        setup: Setup,
        program: impl Fn() -> Command + Send + 'static,
    ) -> Result<Dispatcher, DispatchError> {
        check_namespace()?;
        check_capabilities()?;
        let foremost = Foremost::begin();
        let processors = check_processors()?;
        let shares: Vec<_> = domains.iter().map(|domain| share_of(domain.weight_or_ordinary())).collect();
        let (domains, empty_domains) = scan_domains(domains)?;
        let skeleton = load_skeleton::<DispatchSkelBuilder>(|_| Ok(()))?;
        let memory = Memory::of(&skeleton).map_err(|error| system("map the clients' accounts", error))?;
        let channels = Channels::new().map_err(|error| system("make an event", error))?;
        let bound = Bound::set().map_err(|error| system("bound its time", error))?;
        let classes = Classes::start_with(FRONT, program)?;
        // After the processes were started that put classes back: theirs is their own.
        let locked = LockedMemory::new().ok();
        let unnamed = classes.unnamed().map(|error| io::Error::new(error.kind(), error.to_string()));
        let links = client_links(&skeleton, &memory, &channels)?;
        let register = Register::new(domains.len(), smallest_shares(&shares), classes, links);
        let manager = Manager::new(
            make_policy(policy, &shares, (MOST_CLIENTS, processors), setup.quantum),
            memory,
            KernelThreads::new(),
            channels.clone(),
            processors,
            (StepBack::new(now()), dues_beside(&shares, setup.rest)),
            now(),
        );
        let shared = Arc::new(Shared::default());
        let thread = start_manager(manager, &skeleton, &channels.bell, &shared)?;
        let dispatcher = Dispatcher {
            domains,
            register: Arc::new(Mutex::new(register)),
            midwife: None,
            shares,
            empty_domains,
            emptied: Emptied::default(),
            news: Vec::new(),
            unnamed,
            restored: None,
            bell: channels.bell,
            shared,
            thread: Some(thread),
            _links: Vec::new(),
            skeleton,
            _bound: bound,
            locked,
            foremost: Some(foremost),
        };
        dispatcher.begin(channels.births)
    }

    /// Has the kernel tell of threads, and takes those up that are there.
    fn begin(mut self, births: Births) -> Result<Dispatcher, DispatchError> {
        self._links = self.attach_programs()?;
        let midwife = Midwife::start(births, Arc::clone(&self.register));
        self.midwife = Some(midwife.map_err(|error| system("start its second thread", error))?);
        if let Err(error) = self.look_at_all() {
            let _ = self.stop_manager();
            self.put_back();
            return Err(error);
        }
        Ok(self)
    }

    fn attach_programs(&mut self) -> Result<Vec<Link>, DispatchError> {
        let programs = &mut self.skeleton.progs;
        let each = [
            &mut programs.on_switch,
            &mut programs.on_wakeup,
            &mut programs.on_wakeup_new,
            &mut programs.on_fork,
            &mut programs.on_exec,
        ];
        each.into_iter().map(|program| program.attach().map_err(DispatchError::Attach)).collect()
    }

    /// Whether it dispatches. What domains have used before that, they had from the kernel's own scheduler.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.shared.begins.load(Ordering::Acquire)
    }

    /// Begins to dispatch, when it is called first: what starts processes or threads should be done before. Looks which threads have begun
    /// and ended, and says if the dispatcher cannot go on. To be called some
    /// times each second.
    ///
    /// # Errors
    ///
    /// [`DispatchError::Refused`], [`DispatchError::Classes`]; all classes are put back then, and every later
    /// call fails.
    pub fn look(&mut self) -> Result<(), DispatchError> {
        if !self.shared.begins.swap(true, Ordering::AcqRel) {
            // An error leaves the memory as it is: the manager may wait for it.
            let _ = self.locked.as_ref().map(LockedMemory::be_there);
            self.bell.ring();
            self.foremost = None;
        }
        let is_over = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        let looked =
            if is_over { self.stop_manager().and(Err(DispatchError::Over)) } else { self.look_at_all() };
        if looked.is_err() {
            // The manager first: it would change classes that are put back.
            let _ = self.stop_manager();
            self.put_back();
        }
        looked
    }

    /// The register is locked only before and after the search: threads that are born wait for it in real
    /// time.
    fn look_at_all(&mut self) -> Result<(), DispatchError> {
        self.register().begin_look();
        self.domains.scan();
        self.news.extend(self.emptied.look(&self.domains, Instant::now()));
        let there = candidates(&self.domains);
        self.register().end_look(there)
    }

    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a domain, the one at this place among those that it was started with, another weight.
    ///
    /// # Panics
    ///
    /// If there are fewer domains.
    pub fn set_weight(&mut self, nth: usize, weight: Weight) {
        let share = share_of(weight);
        self.shares[nth] = share;
        let domain = DomainId::new((FIRST.index() + nth) as u16);
        let of_threads = smallest_shares(&self.shares);
        self.register().set_share(domain, share, of_threads);
    }

    /// What each domain has used since the dispatcher started, in their order.
    #[must_use]
    pub fn used(&self) -> Vec<Nanoseconds> {
        self.register().used()
    }

    /// Which domains had no thread when it started, in sentences. Threads that come later are dispatched.
    #[must_use]
    pub fn empty_domains(&self) -> &[String] {
        &self.empty_domains
    }

    /// Which domains were found to have lost their last process since this was asked last, in sentences.
    pub fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.news)
    }

    /// How many threads are dispatched.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.register().clients()
    }

    /// How many threads of domains are not dispatched: because 16,384 others are, because their control group
    /// may not have enough real time, or because the kernel refuses to put them in front.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.register().left_out() + usize::try_from(self.counts().refused).unwrap_or(usize::MAX)
    }

    /// What the dispatcher has done since it started.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let counts = *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let of_births = self.midwife.as_ref().map_or(Nanoseconds::ZERO, Midwife::own_time);
        Counts { own_ns: counts.own_ns + of_births, ..counts }
    }

    /// The reason why classes stay as they are if this process and those that put classes back are killed at
    /// the same moment; `None` if the next start of this program puts them back.
    #[must_use]
    pub fn unnamed(&self) -> Option<&io::Error> {
        self.unnamed.as_ref()
    }

    /// Ends, puts all classes back, and reports how that went.
    pub fn finish(mut self) -> Restored {
        let _ = self.stop_manager();
        self.put_back()
    }

    fn put_back(&mut self) -> Restored {
        let restored = self.register().put_back();
        self.restored = restored.or(self.restored);
        self.restored.unwrap_or_default()
    }

    /// Ends the manager; an error if it has ended before.
    fn stop_manager(&mut self) -> Result<(), DispatchError> {
        self.shared.stops.store(true, Ordering::Release);
        self.bell.ring();
        let panicked = |_| Err(system("go on: its thread has ended", io::ErrorKind::Other.into()));
        let ended = self.thread.take().map(|thread| thread.join().unwrap_or_else(panicked));
        // Without the manager, it hears of nothing more.
        self.midwife = None;
        ended.unwrap_or(Ok(()))
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        // First the manager ends: it would change classes that are put back.
        let _ = self.stop_manager();
    }
}

/// The domains, with the processes that are in them now; and which have none, in sentences.
fn scan_domains(domains: Vec<SharedDomain>) -> Result<(Domains, Vec<String>), DispatchError> {
    let mut domains = Domains::new(domains.into_iter().map(|domain| domain.spec))?;
    domains.scan();
    refuse_first_process(&domains)?;
    let empty = empty_domains(&domains)?;
    Ok((domains, empty))
}

/// What the register needs so that threads become clients.
fn client_links(
    skeleton: &DispatchSkel<'_>,
    memory: &Memory,
    channels: &Channels<Adopted>,
) -> Result<ClientLinks, DispatchError> {
    let clients = MapHandle::try_from(&skeleton.maps.clients_of_threads).map_err(DispatchError::Attach)?;
    Ok(ClientLinks { memory: memory.clone(), clients_of_threads: clients, channels: channels.clone() })
}

/// With the first process, all that it has started would belong to its domain: the whole machine.
fn refuse_first_process(domains: &Domains) -> Result<(), DispatchError> {
    match holder_of_first_process(domains) {
        Some(name) => Err(DispatchError::FirstProcess { name: name.to_owned() }),
        None => Ok(()),
    }
}

/// Which domains have no member yet; an error if one can never have any.
fn empty_domains(domains: &Domains) -> Result<Vec<String>, DomainError> {
    Ok(domains.empty_so_far()?.iter().map(ToString::to_string).collect())
}

/// What the rest of the machine is due beside domains of these shares.
fn dues_beside(shares: &[Share], rest: Weight) -> Dues {
    let mut dues = Dues::new(rest, now());
    for (nth, share) in (FIRST.index()..).zip(shares) {
        dues.set_share(policy_domain(DomainId::new(nth as u16)), *share);
    }
    dues
}

/// Starts the manager's thread, and waits until it has its priority.
fn start_manager(
    manager: Manager<KernelThreads>,
    skeleton: &DispatchSkel<'_>,
    bell: &Bell,
    shared: &Arc<Shared>,
) -> Result<JoinHandle<Result<(), DispatchError>>, DispatchError> {
    let ring = MapHandle::try_from(&skeleton.maps.rows).map_err(DispatchError::Attach)?;
    let (bell, shared) = (bell.clone(), Arc::clone(shared));
    let (tell, hear) = sync_channel(1);
    let thread = thread::Builder::new()
        .name("mete-dispatch".into())
        .spawn(move || manager_thread::run(manager, &ring, &bell, &shared, &tell))
        .map_err(|error| system("start its thread", error))?;
    let ended = || Err(system("start its thread", io::ErrorKind::Other.into()));
    hear.recv().unwrap_or_else(|_| ended())?;
    Ok(thread)
}

fn check_namespace() -> Result<(), DispatchError> {
    let own = std::fs::read_link("/proc/self/ns/pid")
        .map_err(|error| system("look at its own namespace of processes", error))?;
    if own.as_os_str() == KERNELS_NAMESPACE { Ok(()) } else { Err(DispatchError::Namespace) }
}

fn check_processors() -> Result<usize, DispatchError> {
    let found = mete_kernel::record::possible_processors()?;
    if found > MOST_PROCESSORS {
        return Err(DispatchError::TooManyProcessors { found, most: MOST_PROCESSORS });
    }
    // A client is chosen for each processor, up to the last one that runs.
    let last = processors::online(found).into_iter().max().unwrap_or(0);
    Ok(last + 1)
}

fn system(what: &'static str, source: io::Error) -> DispatchError {
    DispatchError::System { what, source }
}
