//! The scheduler: sources, analysis, policy and actuator in one loop (LOG-16).
//!
//! ```text
//!   every 20 ms    poll the logs                                   Analysis::poll
//!   every 100 ms   derive, decide, act                             Affinity (policy) → Affinity (actuator)
//!   every second   find processes that have come or gone           Domains::scan
//! ```
//!
//! Everything happens in the caller's thread, except for the [search](Discovery) for components, because any
//! component could hold the search up. Two kinds of work may allocate or look at `/proc`: what is due every second,
//! and what is rare (moving a process, taking a component). Nothing in this module waits for another process, with
//! one exception: if both watchers were killed just before a process is to be moved, the move waits for at most a
//! fifth of a second.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mete_base::processors::thread_time_ns;
use mete_kernel::{Characteristic, Kernel, KernelError};
use mete_log::DomainId;
use mete_log::clock::{Anchor, Calibration, monotonic_ns};
use mete_policy::{self as policy, Move, ProcessorId, Role};
use mete_probe::attach::configured_processors;
use mete_probe::directory::Users;

use crate::actuator::{self, ActuatorError, Restored};
use crate::analysis::Analysis;
use crate::configure::Layout;
use crate::domains::{Change, DivideBy, DomainError, DomainSpec, Domains, OTHER, for_policy, of_policy};
use crate::notice::Notice;
use crate::precedence::Precedence;
use crate::sources::kernel::charged_within;
use crate::sources::{ComponentSource, Discovery, KernelSource, Source, SourceError, Trust};
use crate::ticker::Ticker;

/// How long a start waits for components that are there already. Components that answer at all do so within a moment;
/// the others are taken when they answer.
const WAIT_AT_START: Duration = Duration::from_millis(100);
/// By how much the timer of a tick may be late on a busy machine.
const LATE: Duration = Duration::from_millis(10);
/// The largest number of components that are taken at one poll. To lay out the logs of each takes time.
const TAKEN_AT_ONCE: usize = 2;

/// What a scheduler should do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The time between two polls of the logs. The papers use 20 ms.
    pub poll: Duration,
    /// The number of polls in a period. The policy is asked at the end of each period: with 5 polls, every 100 ms.
    pub polls_in_period: u32,
    /// The time between two looks at processes and components: one second, or less to find components that live only
    /// briefly.
    pub housekeeping: Duration,
    /// How the logs are laid out.
    pub layout: Layout,
    /// What the kernel should log. If it is empty, the kernel component is not used.
    pub kernel: Vec<Characteristic>,
    /// Whether it is an error if the kernel component cannot be loaded. If false, the scheduler goes on with the logs of
    /// components alone.
    pub needs_kernel: bool,
    /// Whether the scheduler looks for user-level components.
    pub components: bool,
    /// The only directory in which it looks for them; `None` for every directory that this user may look into.
    pub component_directory: Option<PathBuf>,
    /// The users whose components the scheduler looks for. It always looks for this user's components and for those of
    /// users who have a process in a domain or are selected for a domain.
    pub component_users: Users,
    /// Whether all domains may be empty at first, without a notice. If not, at least one domain must have a member, and
    /// each domain that is empty causes a [`Notice::Empty`].
    pub may_be_empty: bool,
    /// The property by which processes that no selector selects are divided into domains; `None` for no division.
    pub divide: Option<DivideBy>,
    /// The constants of the affinity policy; `None` to observe only and move nothing.
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
    /// The domains cannot be set up.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The kernel component cannot be loaded.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A source cannot be used.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The actuator cannot be started.
    #[error(transparent)]
    Actuator(#[from] ActuatorError),
}

/// What the scheduler itself has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Cost {
    /// Processor time that the scheduler's thread took to start, in nanoseconds: most of it is the kernel's verifier.
    pub start_ns: u64,
    /// Processor time of the scheduler's thread since the start, in nanoseconds.
    pub used_ns: u64,
    /// Time that has passed since the start, pauses left out, in nanoseconds.
    pub passed_ns: u64,
    /// The number of polls.
    pub polls: u64,
    /// The number of polls that were left out because earlier polls took too long.
    pub missed: u64,
}

/// How a scheduler has ended.
#[derive(Debug)]
pub struct Ended {
    /// What was put back; `None` if the scheduler had no actuator and so could not change anything.
    pub restored: Option<Restored>,
}

/// Divisor: taking stock uses at most this fraction of the time, however many processes come and go.
const STOCK_COSTS_AT_MOST: u64 = 100;

/// Whether and when the sources have to take stock again.
#[derive(Clone, Copy, Debug, Default)]
struct StockDue {
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
struct TakenComponent {
    label: String,
    path: PathBuf,
}

/// A scheduler at work. When it is dropped, it puts back what it changed. See the [module](self).
pub struct Scheduler {
    settings: Settings,
    domains: Domains,
    analysis: Analysis,
    discovery: Option<Discovery<ComponentSource>>,
    trust: Arc<Trust>,
    components: Vec<TakenComponent>,
    placement: Option<Placement>,
    stock: StockDue,
    ticker: Ticker,
    notices: Vec<Notice>,
    polls: u64,
    began_ns: u64,
    /// When the present pause began; `None` if the scheduler does not pause.
    paused_ns: Option<u64>,
    /// The clocks at the beginning, to find out the length of a tick.
    anchor: Anchor,
    used_before_ns: u64,
    start_ns: u64,
    _precedence: Precedence,
}

/// What exists before anything else at a start. The scheduler takes precedence already for loading, which would take
/// seconds on a full machine.
struct BegunStart {
    notices: Vec<Notice>,
    used_before_ns: u64,
    precedence: Precedence,
}

impl BegunStart {
    fn now() -> BegunStart {
        BegunStart { notices: Vec::new(), used_before_ns: thread_time_ns(), precedence: Precedence::take() }
    }
}

/// The domains, with the members that were found at the start.
struct DomainMembers {
    domains: Domains,
    /// Users whom a selector names.
    selected: Vec<u32>,
}

impl DomainMembers {
    fn find(
        settings: &Settings,
        specs: Vec<DomainSpec>,
        notices: &mut Vec<Notice>,
    ) -> Result<DomainMembers, DomainError> {
        let selected = specs.iter().flat_map(DomainSpec::users).collect();
        let mut domains = Domains::new(specs)?;
        if let Some(by) = settings.divide {
            domains.divide(by);
        }
        domains.scan();
        if !settings.may_be_empty {
            notices.extend(domains.check_matches()?.into_iter().map(Notice::Empty));
        }
        Ok(DomainMembers { domains, selected })
    }
}

impl Scheduler {
    /// Finds the domains' processes, starts the logs, and takes the components that are there. The thread that calls
    /// this must be the one that polls.
    ///
    /// # Errors
    ///
    /// [`SchedulerError`]. Nothing is attached or changed then.
    pub fn start(settings: Settings, specs: Vec<DomainSpec>) -> Result<Scheduler, SchedulerError> {
        let mut begun = BegunStart::now();
        let members = DomainMembers::find(&settings, specs, &mut begun.notices)?;
        let kernel = start_kernel(&settings, &mut begun.notices)?;
        Scheduler::begin(settings, members, kernel, begun)
    }

    /// Like [`Scheduler::start`], for domains that are chosen after the kernel component is loaded: loading takes a
    /// while.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::start`].
    pub fn start_for(
        settings: Settings,
        specs: impl FnOnce() -> Vec<DomainSpec>,
    ) -> Result<Scheduler, SchedulerError> {
        let mut begun = BegunStart::now();
        let kernel = start_kernel(&settings, &mut begun.notices)?;
        let members = DomainMembers::find(&settings, specs(), &mut begun.notices)?;
        Scheduler::begin(settings, members, kernel, begun)
    }

    fn begin(
        settings: Settings,
        members: DomainMembers,
        kernel: Option<KernelSource>,
        begun: BegunStart,
    ) -> Result<Scheduler, SchedulerError> {
        let processors = kernel.as_ref().map_or_else(configured_processors, Source::processors);
        let mut scheduler = Scheduler::new(settings, members, processors, begun)?;
        if let Some(kernel) = kernel {
            scheduler.read(Box::new(kernel))?;
            // Processes may have begun after the first look and before the kernel bound processes by itself. Two looks
            // are needed, because a process may become another program between a look and its binding.
            scheduler.look_at_processes();
            scheduler.look_at_processes();
        }
        scheduler.domains.begin();
        scheduler.take_first_components();
        scheduler.start_ns = thread_time_ns().saturating_sub(scheduler.used_before_ns);
        scheduler.began_ns = monotonic_ns();
        // The time that the start took is no part of the beat.
        scheduler.ticker.begin_anew();
        Ok(scheduler)
    }

    /// A scheduler that reads nothing yet. The search for components has begun.
    fn new(
        settings: Settings,
        members: DomainMembers,
        processors: usize,
        begun: BegunStart,
    ) -> Result<Scheduler, SchedulerError> {
        let DomainMembers { domains, selected } = members;
        let BegunStart { mut notices, used_before_ns, precedence } = begun;
        let all = domains.numbers();
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
            // The processes that are there already, so that the search begins with their users' directories.
            discovery.follow(domains.present().collect());
        }
        let now_ns = monotonic_ns();
        Ok(Scheduler {
            analysis: Analysis::new(processors, roles, settings.layout, now_ns),
            discovery,
            trust,
            components: Vec::new(),
            stock: StockDue::default(),
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

    /// Reads one more source from now on.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if the source's logs cannot be laid out, or if the source refuses the bindings.
    pub fn read(&mut self, mut source: Box<dyn Source>) -> Result<(), SourceError> {
        // Numbers of processes may have been given out again since the last look.
        self.trust.look_anew();
        // The rules come before the bindings: a process that begins in between is bound by the kernel.
        if source.select(&self.domains.rules(), self.domains.division().as_ref())? {
            self.domains.hand_over();
        }
        for (path, domain) in self.domains.cgroups() {
            source.bind_cgroup(path, domain)?;
        }
        for change in self.domains.present() {
            source.bind(change)?;
        }
        // Last, because this has the source log: its first rows are in their domains.
        self.analysis.add(source)
    }

    /// Polls until `stop` is true. `each` is called with the scheduler after every poll.
    pub fn run(&mut self, stop: &AtomicBool, each: impl FnMut(&mut Scheduler)) {
        self.run_with_end(None, stop, each);
    }

    /// Like [`Scheduler::run`], with one more poll at `end`, between two beats.
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
                // A moment in the past would end every further wait at once.
                end_ns = end_ns.filter(|&end| monotonic_ns() < end);
                self.tick();
                each(self);
            }
        }
    }

    /// Polls once, and does whatever else is due. [`Scheduler::run`] calls this in time.
    pub fn tick(&mut self) {
        let now_ns = monotonic_ns();
        self.analysis.poll(now_ns);
        self.polls += 1;
        // After the poll, so that the time that this takes does not delay the reading of rows.
        self.take_components();
        if self.polls.is_multiple_of(u64::from(self.settings.polls_in_period.max(1))) {
            self.end_period(now_ns);
        }
        if self.polls.is_multiple_of(self.polls_between(self.settings.housekeeping)) {
            self.keep_house(now_ns);
        }
    }

    /// Reads all that was done until now, and looks at the processes, whether that is due or not. To be called before
    /// results are read, so that a process that has just ended is in no domain any more.
    ///
    /// The kernel charges a task when the task leaves its processor, and at ticks. The wait for a process may return
    /// shortly before the process leaves its processor for the last time, and a task that computes has not been charged
    /// since the last tick. After one more tick, both are in the log.
    pub fn read_to_end(&mut self) {
        let end = Instant::now() + charged_within(&self.settings.kernel) + LATE;
        let stop = AtomicBool::new(false);
        // The logs are read meanwhile: they have no room for the rows of a slow tick's whole period.
        self.run_with_end(Some(end), &stop, |_| stop.store(Instant::now() >= end, Ordering::Relaxed));
        self.domains.expect_change();
        self.keep_house(monotonic_ns());
    }

    /// Logs nothing from now on, until [`Scheduler::resume`]: what logs in the kernel is detached, and probes are off.
    /// What follows processes to their domains stays attached. The caller must not poll during the pause.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if a source cannot be told. The other sources pause.
    pub fn pause(&mut self) -> Result<(), SourceError> {
        let told = self.tell_all(|source| source.pause());
        let now_ns = monotonic_ns();
        self.analysis.pause(now_ns);
        // A second call during a pause does not shorten the pause.
        self.paused_ns.get_or_insert(now_ns);
        told
    }

    /// Logs again what was logged before [`Scheduler::pause`]. No log file is laid out anew. The pause counts as no
    /// time at all, neither in periods nor in the [cost](Scheduler::cost).
    ///
    /// # Errors
    ///
    /// [`SourceError`] if a source cannot go on. The other sources log.
    pub fn resume(&mut self) -> Result<(), SourceError> {
        self.resume_those(|_| true)
    }

    /// Like [`Scheduler::resume`], but only sources with a wanted label log again. A label is
    /// [`KERNEL`](crate::sources::KERNEL), or a program and its process.
    ///
    /// # Errors
    ///
    /// As [`Scheduler::resume`].
    pub fn resume_those(&mut self, is_wanted: impl Fn(&str) -> bool) -> Result<(), SourceError> {
        let told = self.tell_all(|source| if is_wanted(source.label()) { source.resume() } else { Ok(()) });
        if let Some(paused_ns) = self.paused_ns.take() {
            let passed_ns = monotonic_ns().saturating_sub(paused_ns);
            self.analysis.resume(passed_ns);
            // Moved by the pause, so that the cost counts no time of it.
            self.began_ns += passed_ns;
        }
        self.ticker.begin_anew();
        told
    }

    /// The notices since the last call.
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

    /// The analysis, with which the caller can ask for the completeness of an interval.
    pub fn analysis_mut(&mut self) -> &mut Analysis {
        &mut self.analysis
    }

    /// The processor on which the policy has placed a domain.
    pub fn placed(&self, domain: DomainId) -> Option<usize> {
        let placement = self.placement.as_ref().filter(|placement| placement.actuator.is_some())?;
        placement.policy.placed(for_policy(domain)).map(ProcessorId::index)
    }

    /// The length of a tick of the processors' counter in nanoseconds, measured since the beginning. Programs log the
    /// lengths of phases in such ticks. `None` before the clocks have moved.
    pub fn ns_per_tick(&self) -> Option<f64> {
        Calibration::between(self.anchor, Anchor::now()).map(|calibration| calibration.duration_ns(1))
    }

    /// What the scheduler has cost so far. The thread that polls must call this: the cost is that thread's time.
    pub fn cost(&self) -> Cost {
        Cost {
            start_ns: self.start_ns,
            used_ns: thread_time_ns().saturating_sub(self.used_before_ns).saturating_sub(self.start_ns),
            passed_ns: monotonic_ns().saturating_sub(self.began_ns),
            polls: self.polls,
            missed: self.ticker.missed(),
        }
    }

    /// Ends the scheduler: stops logging and puts back what was changed.
    pub fn finish(self) -> Ended {
        let actuator = self.placement.and_then(|placement| placement.actuator);
        Ended { restored: actuator.map(actuator::Affinity::finish) }
    }

    /// Tells every source, and returns the first failure.
    fn tell_all(
        &mut self,
        tell: impl FnMut(&mut dyn Source) -> Result<(), SourceError>,
    ) -> Result<(), SourceError> {
        // `fold` goes on after a failure, so that every source is told; `and` keeps the first failure.
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
            let domain = of_policy(proposal.domain);
            let members: Vec<_> = self.domains.members(domain).collect();
            match actuator.place(domain, &members, proposal.to.index()) {
                Ok(threads) => self.notices.push(Notice::Moved(proposal, threads)),
                Err(error) => {
                    // The policy counts on its moves, so it has to know that this domain is where it was.
                    policy.refused(proposal);
                    self.notices.push(Notice::NotMoved(proposal, error));
                }
            }
        }
    }

    fn keep_house(&mut self, now_ns: u64) {
        self.look_at_processes();
        // After the look: stock is due when the look has bound a process.
        self.take_stock(now_ns);
        for source in self.analysis.sources_mut() {
            if let Err(error) = source.attend() {
                self.notices.push(Notice::Refused(error));
            }
        }
        // After the sources have attended: that is how a source finds out that its component has ended.
        self.analysis.drop_ended(now_ns);
        self.note_ended();
    }

    /// Has the sources take stock, so that what newly bound processes hold already counts for their domains, even if
    /// these processes do nothing.
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
        // A pause that is a multiple of the effort bounds the share of the time.
        self.stock = StockDue { is_due: false, not_before_ns: now_ns + took_ns * STOCK_COSTS_AT_MOST };
    }

    fn look_at_processes(&mut self) {
        let analysis = &self.analysis;
        // Names first: the scan below may find processes in domains that the kernel has given out meanwhile.
        for (kind, domain) in analysis.sources().flat_map(Source::kinds) {
            self.domains.name_kind(kind, domain);
        }
        let changes =
            self.domains.scan_beside(|pid| analysis.sources().find_map(|source| source.bound(pid))).to_vec();
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
        // A source that has bound the process by itself since this look knows better than the look.
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

    /// Moves a process that has come to a placed domain to the domain's processor. Frees a process that has left a
    /// placed domain.
    fn place_beside(&mut self, change: Change) {
        let Some(Placement { policy, actuator: Some(actuator) }) = &mut self.placement else { return };
        // Processes in no domain are never moved.
        let placed = |domain: DomainId| policy.placed(for_policy(domain)).filter(|_| domain != OTHER);
        match (placed(change.from), placed(change.to)) {
            (_, Some(processor)) => {
                if let Err(error) = actuator.place(change.to, &[change.pid], processor.index()) {
                    self.notices.push(Notice::NotFollowed(change.pid, error));
                }
            }
            (Some(_), None) => actuator.release(change.pid),
            (None, None) => {}
        }
    }

    /// Whether some components that were found may still answer.
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
        // The search must know that the component was let go, or it would never offer it again.
        self.read(Box::new(source)).inspect_err(|_| self.let_go(&path))?;
        self.components.push(TakenComponent { label: label.clone(), path });
        Ok(label)
    }

    fn let_go(&self, path: &Path) {
        if let Some(discovery) = &self.discovery {
            discovery.let_go(path);
        }
    }

    fn note_ended(&mut self) {
        let (analysis, notices, discovery) = (&self.analysis, &mut self.notices, &self.discovery);
        self.components.retain(|TakenComponent { label, path }| {
            // By path and not by label: a process may have several components of one name.
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
