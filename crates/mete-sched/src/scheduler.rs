//! The scheduler: sources, analysis, policy and actuator in one loop (LOG-16).
//!
//! ```text
//!   every 20 ms    poll the logs                                   Analysis::poll
//!   every 100 ms   derive, decide, act                             Affinity (policy) → Affinity (actuator)
//!   every second   who has come, who has gone?                     Domains::scan
//! ```
//!
//! Everything happens in the caller's thread, but for the [search](Discovery) for components, each of
//! which could hold it up. Only what happens every second may allocate or look at `/proc`, and moving
//! somebody or taking a component, which is rare. Nothing in here waits for another process, but for a
//! fifth of a second where both watchers were killed just before somebody is moved.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mete_kernel::{Characteristic, Kernel, KernelError};
use mete_log::DomainId;
use mete_log::clock::{Anchor, Calibration, monotonic_ns};
use mete_policy::{self as policy, Move, Role};
use mete_probe::attach::configured_processors;
use mete_probe::directory::Users;
use rustix::time::{ClockId, clock_gettime};

use crate::actuator::{self, ActuatorError, Restored};
use crate::analysis::Analysis;
use crate::configure::Layout;
use crate::domains::{Change, DivideBy, DomainError, DomainSpec, Domains, Empty, OTHER};
use crate::precedence::Precedence;
use crate::sources::{ComponentSource, Discovery, KernelSource, Source, SourceError, Trust, Unavailable};
use crate::ticker::Ticker;

/// How long a start waits for components that are there: those that answer do so within a moment, and the others come
/// when they come.
const WAIT_AT_START: Duration = Duration::from_millis(100);
/// Components that are taken at one poll at most: each takes time to lay out its logs.
const TAKEN_AT_ONCE: usize = 2;

/// What a scheduler is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How often the logs are polled. The papers' 20 ms.
    pub poll: Duration,
    /// How many polls make a period, at whose end the policy is asked. 5, so every 100 ms.
    pub polls_in_period: u32,
    /// How often membership and components are looked at. A second; less to find components that
    /// live briefly.
    pub housekeeping: Duration,
    /// How the logs are laid out.
    pub layout: Layout,
    /// What the kernel is to log; nothing, to do without the kernel component.
    pub kernel: Vec<Characteristic>,
    /// Whether there is to be an error if the kernel component cannot be loaded; else the
    /// components' own logs have to do.
    pub needs_kernel: bool,
    /// Whether user-level components are looked for.
    pub components: bool,
    /// The only directory in which they are looked for; `None` for wherever this user may look.
    pub component_directory: Option<PathBuf>,
    /// Whose components are looked for, beside the own ones and those of users who have a process in a domain or are
    /// selected for one.
    pub component_users: Users,
    /// Whether all domains may be empty at first, and nothing is to be said of it. Else somebody must
    /// be in one, and each that is empty is a [`Notice::Empty`].
    pub may_be_empty: bool,
    /// By what processes that no selector selects have domains of their own, if they have.
    pub divide: Option<DivideBy>,
    /// The constants of the affinity policy; `None` to look on and do nothing.
    pub policy: Option<policy::affinity::Settings>,
    /// Whether what the policy decides is carried out. Else each decision is a [`Notice::WouldMove`].
    pub acts: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        let run_queue = Characteristic::RunQueue { hertz: 100 };
        Settings {
            poll: Duration::from_millis(20),
            polls_in_period: 5,
            housekeeping: Duration::from_secs(1),
            layout: Layout::PerEvent,
            kernel: vec![Characteristic::ServiceTime, Characteristic::Ipc, run_queue],
            needs_kernel: false,
            components: true,
            component_directory: None,
            component_users: Users::These(BTreeSet::new()),
            may_be_empty: false,
            divide: None,
            policy: None,
            acts: true,
        }
    }
}

/// Why a scheduler cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    /// The domains.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The kernel component.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The actuator.
    #[error(transparent)]
    Actuator(#[from] ActuatorError),
}

/// Something that a user may want to know of.
#[derive(Debug)]
pub enum Notice {
    /// The kernel component is not there; the components' own logs have to do.
    NoKernel(KernelError),
    /// User-level components cannot be looked for.
    NoDiscovery(io::Error),
    /// A characteristic is not logged.
    Unavailable(Unavailable),
    /// Nobody is in a domain so far.
    Empty(Empty),
    /// A component is read from now on.
    Component(String),
    /// A component has ended.
    Ended(String),
    /// A component cannot be read, or not be told of a process.
    Refused(SourceError),
    /// A domain was moved: so many of its threads changed.
    Moved(Move, usize),
    /// A domain would be moved by a scheduler that [acts](Settings::acts).
    WouldMove(Move),
    /// A domain could not be moved.
    NotMoved(Move, ActuatorError),
    /// A process that has come to a placed domain could not be put beside it.
    NotFollowed(u32, ActuatorError),
    /// If this process and both that watch it are killed at the same moment, nothing is put back, for this reason.
    NotForTheNextStart(String),
}

/// What the scheduler itself has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cost {
    /// Processor time that its thread took to start: mostly the kernel's verifier.
    pub start_ns: u64,
    /// Processor time of its thread since then, in nanoseconds.
    pub used_ns: u64,
    /// Time that has passed, in nanoseconds.
    pub passed_ns: u64,
    /// Polls.
    pub polls: u64,
    /// Polls that were left out because the ones before took too long.
    pub missed: u64,
}

/// How a scheduler has ended.
#[derive(Debug)]
pub struct Ended {
    /// What was put back; `None` if nothing could have been changed.
    pub restored: Option<Restored>,
}

/// At most this part of the time goes into taking stock, however many processes come and go.
const STOCK_COSTS_AT_MOST: u64 = 100;

/// When the sources are to take stock again.
#[derive(Clone, Copy, Debug, Default)]
struct Stock {
    is_due: bool,
    not_before_ns: u64,
}

/// Policy and actuator together.
struct Placement {
    policy: policy::Affinity,
    /// None if decisions are only reported.
    actuator: Option<actuator::Affinity>,
}

/// A component that is read.
struct Taken {
    label: String,
    path: PathBuf,
}

/// A scheduler at work. Dropped, it puts back what it changed. See the [module](self).
pub struct Scheduler {
    settings: Settings,
    domains: Domains,
    analysis: Analysis,
    discovery: Option<Discovery<ComponentSource>>,
    trust: Arc<Trust>,
    components: Vec<Taken>,
    placement: Option<Placement>,
    stock: Stock,
    ticker: Ticker,
    notices: Vec<Notice>,
    polls: u64,
    began_ns: u64,
    /// Since when it pauses, if it does.
    paused_ns: Option<u64>,
    /// The clocks at the beginning.
    anchor: Anchor,
    used_before_ns: u64,
    start_ns: u64,
    _precedence: Precedence,
}

/// What a start begins with. Loading takes precedence, too: on a full machine it would take seconds.
struct Begun {
    notices: Vec<Notice>,
    used_before_ns: u64,
    precedence: Precedence,
}

impl Begun {
    fn now() -> Begun {
        Begun { notices: Vec::new(), used_before_ns: thread_time_ns(), precedence: Precedence::take() }
    }
}

/// The domains and who is in them.
struct Members {
    domains: Domains,
    /// Users who are selected as such.
    selected: Vec<u32>,
}

impl Members {
    fn find(
        settings: &Settings,
        specs: Vec<DomainSpec>,
        notices: &mut Vec<Notice>,
    ) -> Result<Members, DomainError> {
        let selected = specs.iter().flat_map(DomainSpec::users).collect();
        let mut domains = Domains::new(specs)?;
        if let Some(by) = settings.divide {
            domains.divide(by);
        }
        domains.scan();
        if !settings.may_be_empty {
            notices.extend(domains.check_matches()?.into_iter().map(Notice::Empty));
        }
        Ok(Members { domains, selected })
    }
}

impl Scheduler {
    /// Finds the domains' processes, starts the logs, and takes the components that are there. The
    /// thread that calls this is the one that polls.
    ///
    /// # Errors
    ///
    /// [`SchedulerError`]; nothing is attached or changed then.
    pub fn start(settings: Settings, specs: Vec<DomainSpec>) -> Result<Scheduler, SchedulerError> {
        let mut begun = Begun::now();
        let members = Members::find(&settings, specs, &mut begun.notices)?;
        let kernel = start_kernel(&settings, &mut begun.notices)?;
        Scheduler::begin(settings, members, kernel, begun)
    }

    /// The same for domains that are chosen once the kernel component is loaded, which takes a while.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::start`].
    pub fn start_for(
        settings: Settings,
        specs: impl FnOnce() -> Vec<DomainSpec>,
    ) -> Result<Scheduler, SchedulerError> {
        let mut begun = Begun::now();
        let kernel = start_kernel(&settings, &mut begun.notices)?;
        let members = Members::find(&settings, specs(), &mut begun.notices)?;
        Scheduler::begin(settings, members, kernel, begun)
    }

    fn begin(
        settings: Settings,
        members: Members,
        kernel: Option<KernelSource>,
        begun: Begun,
    ) -> Result<Scheduler, SchedulerError> {
        let processors = kernel.as_ref().map_or_else(configured_processors, Source::processors);
        let mut scheduler = Scheduler::new(settings, members, processors, begun)?;
        if let Some(kernel) = kernel {
            scheduler.read(Box::new(kernel))?;
            // What has begun since the first look, before the kernel bound processes by itself; twice, because a
            // process may have become another program between a look and its binding.
            scheduler.look_at_processes();
            scheduler.look_at_processes();
        }
        scheduler.domains.begin();
        scheduler.take_first_components();
        scheduler.start_ns = thread_time_ns().saturating_sub(scheduler.used_before_ns);
        scheduler.began_ns = monotonic_ns();
        // What passed until now is no part of the beat.
        scheduler.ticker.begin_anew();
        Ok(scheduler)
    }

    /// Reads nothing yet; the search for components has begun.
    fn new(
        settings: Settings,
        members: Members,
        processors: usize,
        begun: Begun,
    ) -> Result<Scheduler, SchedulerError> {
        let Members { domains, selected } = members;
        let Begun { mut notices, used_before_ns, precedence } = begun;
        let all = 0..domains.len() as DomainId;
        let roles: Vec<_> = all.clone().map(|domain| domains.role(domain)).collect();
        let drivers = all.filter(|&domain| domains.role(domain) == Some(Role::Driver)).collect();
        let present = domains.present().map(|change| (change.pid, change.to));
        let trust = Arc::new(Trust::in_drivers(drivers).with_open(&domains.open(), present));
        let placement = Placement::start(&settings, domains.len(), processors)?;
        let actuator = placement.as_ref().and_then(|placement| placement.actuator.as_ref());
        let unnamed = actuator.and_then(actuator::Affinity::unnamed);
        notices.extend(unnamed.map(|why| Notice::NotForTheNextStart(why.to_string())));
        let discovery = settings
            .components
            .then(|| start_discovery(&settings, processors, &trust, selected, &mut notices))
            .flatten();
        if let Some(discovery) = &discovery {
            discovery.follow(domains.present().collect());
        }
        let now_ns = monotonic_ns();
        Ok(Scheduler {
            analysis: Analysis::new(processors, roles, settings.layout, now_ns),
            discovery,
            trust,
            components: Vec::new(),
            stock: Stock::default(),
            ticker: Ticker::new(settings.poll),
            settings,
            domains,
            placement,
            notices,
            polls: 0,
            began_ns: now_ns,
            paused_ns: None,
            anchor: Anchor::now(),
            used_before_ns,
            start_ns: 0,
            _precedence: precedence,
        })
    }

    /// Reads another source from now on.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if its logs cannot be laid out or it cannot be told who belongs where.
    pub fn read(&mut self, mut source: Box<dyn Source>) -> Result<(), SourceError> {
        self.trust.look_anew();
        if source.select(&self.domains.rules(), self.domains.division().as_ref())? {
            self.domains.hand_over();
        }
        for (path, domain) in self.domains.cgroups() {
            source.bind_cgroup(path, domain)?;
        }
        for change in self.domains.present() {
            source.bind(change)?;
        }
        self.analysis.add(source)
    }

    /// Polls until `stop` is true. `each` sees the scheduler after every poll.
    pub fn run(&mut self, stop: &AtomicBool, each: impl FnMut(&mut Scheduler)) {
        self.run_with_end(None, stop, each);
    }

    /// The same with one more poll at `end`, between two beats.
    pub fn run_with_end(
        &mut self,
        end: Option<Instant>,
        stop: &AtomicBool,
        mut each: impl FnMut(&mut Scheduler),
    ) {
        let now = Instant::now();
        let until_end = end.map(|end| end.saturating_duration_since(now).as_nanos() as u64);
        let mut end_ns = until_end.map(|until| monotonic_ns().saturating_add(until));
        while !stop.load(Ordering::Relaxed) {
            if self.ticker.wait_or(end_ns) {
                end_ns = end_ns.filter(|&end| monotonic_ns() < end);
                self.tick();
                each(self);
            }
        }
    }

    /// One poll, and what else is due. [`Scheduler::run`] calls this in time.
    pub fn tick(&mut self) {
        let now_ns = monotonic_ns();
        self.analysis.poll(now_ns);
        self.polls += 1;
        self.take_components();
        if self.polls.is_multiple_of(u64::from(self.settings.polls_in_period.max(1))) {
            self.end_period(now_ns);
        }
        if self.polls.is_multiple_of(self.polls_between(self.settings.housekeeping)) {
            self.keep_house(now_ns);
        }
    }

    /// One poll and a look at the processes, due or not, before results are read: a process that has just ended is in no
    /// domain any more.
    pub fn tick_before_results(&mut self) {
        self.tick();
        self.domains.expect_change();
        self.keep_house(monotonic_ns());
    }

    /// Logs nothing from now on, until [`Scheduler::resume`]: what logs in the kernel is detached, and probes are off. What
    /// follows processes to their domains stays attached. To be polled no more meanwhile.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if a source cannot be told; the others pause.
    pub fn pause(&mut self) -> Result<(), SourceError> {
        let told = self.tell_all(|source| source.pause());
        let now_ns = monotonic_ns();
        self.analysis.pause(now_ns);
        self.paused_ns.get_or_insert(now_ns);
        told
    }

    /// Logs what it logged before [`Scheduler::pause`], without laying anything out anew. The pause counts as no time at
    /// all, in periods and in the [cost](Scheduler::cost).
    ///
    /// # Errors
    ///
    /// [`SourceError`] if a source cannot go on; the others log.
    pub fn resume(&mut self) -> Result<(), SourceError> {
        self.resume_those(|_| true)
    }

    /// The same, but only sources with a label that is wanted ([`KERNEL`](crate::sources::KERNEL), or a program and its process) log again.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::resume`].
    pub fn resume_those(&mut self, is_wanted: impl Fn(&str) -> bool) -> Result<(), SourceError> {
        let resume =
            |source: &mut dyn Source| if is_wanted(source.label()) { source.resume() } else { Ok(()) };
        let told = self.tell_all(resume);
        if let Some(paused_ns) = self.paused_ns.take() {
            let passed_ns = monotonic_ns().saturating_sub(paused_ns);
            self.analysis.resume(passed_ns);
            self.began_ns += passed_ns;
        }
        self.ticker.begin_anew();
        told
    }

    /// What has happened since this was called last.
    pub fn notices(&mut self) -> impl Iterator<Item = Notice> {
        self.notices.drain(..)
    }

    /// The domains.
    pub fn domains(&self) -> &Domains {
        &self.domains
    }

    /// The analysis.
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// The analysis, to ask for the completeness of an interval.
    pub fn analysis_mut(&mut self) -> &mut Analysis {
        &mut self.analysis
    }

    /// Where the policy has put a domain.
    pub fn placed(&self, domain: DomainId) -> Option<usize> {
        let placement = self.placement.as_ref().filter(|placement| placement.actuator.is_some())?;
        placement.policy.placed(domain).map(usize::from)
    }

    /// How long a tick of the processors' counter is, by which programs tell lengths of phases: as it was since the beginning.
    /// `None` before the clocks have moved.
    pub fn ns_per_tick(&self) -> Option<f64> {
        Calibration::between(self.anchor, Anchor::now()).map(|calibration| calibration.duration_ns(1))
    }

    /// What the scheduler has cost so far. To be called by the thread that polls.
    pub fn cost(&self) -> Cost {
        Cost {
            start_ns: self.start_ns,
            used_ns: thread_time_ns().saturating_sub(self.used_before_ns).saturating_sub(self.start_ns),
            passed_ns: monotonic_ns().saturating_sub(self.began_ns),
            polls: self.polls,
            missed: self.ticker.missed(),
        }
    }

    /// Ends: stops logging and puts back what was changed.
    pub fn finish(self) -> Ended {
        let actuator = self.placement.and_then(|placement| placement.actuator);
        Ended { restored: actuator.map(actuator::Affinity::finish) }
    }

    /// Tells every source, and answers what the first one said that failed.
    fn tell_all(
        &mut self,
        tell: impl FnMut(&mut dyn Source) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        self.analysis.sources_mut().map(tell).fold(Ok(()), Result::and)
    }

    fn polls_between(&self, interval: Duration) -> u64 {
        (interval.as_nanos() / self.ticker.period().as_nanos()).max(1) as u64
    }

    fn end_period(&mut self, now_ns: u64) {
        let period = self.analysis.end_period(now_ns);
        let Some(placement) = &mut self.placement else { return };
        let moves = placement.policy.decide(&period);
        if !moves.is_empty() {
            let moves = moves.to_vec();
            self.carry_out(&moves);
        }
    }

    fn carry_out(&mut self, moves: &[Move]) {
        let Some(Placement { policy, actuator }) = &mut self.placement else { return };
        let Some(actuator) = actuator else {
            return self.notices.extend(moves.iter().copied().map(Notice::WouldMove));
        };
        for &proposal in moves {
            let members: Vec<_> = self.domains.members(proposal.domain).collect();
            match actuator.place(proposal.domain, &members, usize::from(proposal.to)) {
                Ok(threads) => self.notices.push(Notice::Moved(proposal, threads)),
                Err(error) => {
                    policy.refused(proposal);
                    self.notices.push(Notice::NotMoved(proposal, error));
                }
            }
        }
    }

    fn keep_house(&mut self, now_ns: u64) {
        self.look_at_processes();
        self.take_stock(now_ns);
        for source in self.analysis.sources_mut() {
            if let Err(error) = source.attend() {
                self.notices.push(Notice::Refused(error));
            }
        }
        self.analysis.drop_ended(now_ns);
        self.note_ended();
    }

    /// What processes that were bound meanwhile hold is theirs, also if they do nothing.
    fn take_stock(&mut self, now_ns: u64) {
        if !self.stock.is_due || now_ns < self.stock.not_before_ns {
            return;
        }
        for source in self.analysis.sources_mut() {
            if let Err(error) = source.take_stock() {
                self.notices.push(Notice::Refused(error));
            }
        }
        let took_ns = monotonic_ns().saturating_sub(now_ns);
        self.stock = Stock { is_due: false, not_before_ns: now_ns + took_ns * STOCK_COSTS_AT_MOST };
    }

    fn look_at_processes(&mut self) {
        let analysis = &self.analysis;
        for (kind, domain) in analysis.sources().flat_map(Source::kinds) {
            self.domains.name_kind(kind, domain);
        }
        let bound = |pid| analysis.sources().find_map(|source| source.bound(pid));
        let changes = self.domains.scan_beside(bound).to_vec();
        self.stock.is_due |= changes.iter().any(|change| change.is_alive);
        self.trust.look_anew();
        for &change in &changes {
            self.follow(change);
        }
        if let Some(discovery) = &self.discovery {
            discovery.follow(changes);
        }
        for (path, domain) in self.domains.new_cgroups() {
            for source in self.analysis.sources_mut() {
                if let Err(error) = source.bind_cgroup(path, domain) {
                    self.notices.push(Notice::Refused(error));
                }
            }
        }
    }

    fn follow(&mut self, change: Change) {
        let seen = self.domains.seen(change.pid);
        for source in self.analysis.sources_mut() {
            if let Err(error) = source.rebind(change, seen) {
                self.notices.push(Notice::Refused(error));
            }
        }
        if change.is_alive {
            self.place_beside(change);
        }
    }

    /// A process that has come to a placed domain goes to its processor; one that has left goes free.
    fn place_beside(&mut self, change: Change) {
        let Some(Placement { policy, actuator: Some(actuator) }) = &mut self.placement else { return };
        let placed = |domain| policy.placed(domain).filter(|_| domain != OTHER);
        match (placed(change.from), placed(change.to)) {
            (_, Some(processor)) => {
                if let Err(error) = actuator.place(change.to, &[change.pid], usize::from(processor)) {
                    self.notices.push(Notice::NotFollowed(change.pid, error));
                }
            }
            (Some(_), None) => actuator.release(change.pid),
            (None, None) => {}
        }
    }

    /// Whether there are components that may still answer.
    pub fn is_looking(&self) -> bool {
        self.discovery.as_ref().is_some_and(|discovery| !discovery.is_settled())
    }

    fn take_first_components(&mut self) {
        let found = self.discovery.as_ref().map(|discovery| discovery.first(WAIT_AT_START));
        found.into_iter().flatten().for_each(|found| self.take(found));
    }

    fn take_components(&mut self) {
        for _ in 0..TAKEN_AT_ONCE {
            let Some(found) = self.discovery.as_ref().and_then(Discovery::next) else { return };
            self.take(found);
        }
    }

    fn take(&mut self, found: Result<ComponentSource, SourceError>) {
        let taken = found.and_then(|source| self.read_component(source));
        self.notices.push(taken.map_or_else(Notice::Refused, Notice::Component));
    }

    fn read_component(&mut self, source: ComponentSource) -> Result<String, SourceError> {
        let (label, path) = (source.label().to_owned(), source.path().to_owned());
        self.read(Box::new(source)).inspect_err(|_| self.let_go(&path))?;
        self.components.push(Taken { label: label.clone(), path });
        Ok(label)
    }

    fn let_go(&self, path: &Path) {
        if let Some(discovery) = &self.discovery {
            discovery.let_go(path);
        }
    }

    fn note_ended(&mut self) {
        let (analysis, notices, discovery) = (&self.analysis, &mut self.notices, &self.discovery);
        self.components.retain(|Taken { label, path }| {
            let is_read = analysis.sources().any(|source| source.found_at() == Some(path));
            if !is_read {
                notices.push(Notice::Ended(label.clone()));
                if let Some(discovery) = discovery {
                    discovery.let_go(path);
                }
            }
            is_read
        });
    }
}

impl Placement {
    /// None without a policy.
    fn start(
        settings: &Settings,
        domains: usize,
        processors: usize,
    ) -> Result<Option<Placement>, ActuatorError> {
        let Some(policy) = settings.policy else { return Ok(None) };
        let actuator = settings.acts.then(actuator::Affinity::start).transpose()?;
        Ok(Some(Placement { policy: policy::Affinity::new(domains, processors, policy), actuator }))
    }
}

fn start_kernel(
    settings: &Settings,
    notices: &mut Vec<Notice>,
) -> Result<Option<KernelSource>, SchedulerError> {
    if settings.kernel.is_empty() {
        return Ok(None);
    }
    match Kernel::load().and_then(|kernel| KernelSource::start(kernel, &settings.kernel)) {
        Ok((source, missing)) => {
            notices.extend(missing.into_iter().map(Notice::Unavailable));
            Ok(Some(source))
        }
        Err(error) if settings.needs_kernel => Err(error.into()),
        Err(error) => {
            notices.push(Notice::NoKernel(error));
            Ok(None)
        }
    }
}

fn start_discovery(
    settings: &Settings,
    processors: usize,
    trust: &Arc<Trust>,
    selected: Vec<u32>,
    notices: &mut Vec<Notice>,
) -> Option<Discovery<ComponentSource>> {
    let only = settings.component_directory.as_deref();
    let users = match &settings.component_users {
        Users::All => Users::All,
        Users::These(users) => Users::These(users.iter().copied().chain(selected).collect()),
    };
    let discovery = Discovery::start(processors, only, users, trust);
    discovery.map_err(|error| notices.push(Notice::NoDiscovery(error))).ok()
}

fn thread_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
