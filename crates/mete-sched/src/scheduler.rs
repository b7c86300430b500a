//! The scheduler: sources, analysis, policy and actuator in one loop (LOG-16).
//!
//! ```text
//!   every 20 ms    poll the logs                                   Analysis::poll
//!   every 100 ms   derive, decide, act                             Affinity (policy) → Affinity (actuator)
//!   every second   who has come, who has gone?                     Domains::scan, Discovery::look
//! ```
//!
//! Everything happens in the caller's thread. Only what happens every second may allocate or look
//! at `/proc`, and moving somebody, which is rare.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mete_kernel::{Characteristic, Kernel, KernelError};
use mete_log::DomainId;
use mete_log::clock::monotonic_ns;
use mete_policy::{self as policy, Move};
use mete_probe::attach::configured_processors;
use rustix::time::{ClockId, clock_gettime};

use crate::actuator::{self, ActuatorError, Restored};
use crate::analysis::Analysis;
use crate::configure::Layout;
use crate::domains::{Change, DomainError, DomainSpec, Domains, Empty, OTHER};
use crate::precedence::Precedence;
use crate::sources::{ComponentSource, Discovery, KernelSource, Source, SourceError, Unavailable};
use crate::ticker::Ticker;

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
    /// Whether all domains may be empty at first, and nothing is to be said of it. Else somebody must
    /// be in one, and each that is empty is a [`Notice::Empty`].
    pub may_be_empty: bool,
    /// The constants of the affinity policy; `None` to look on and do nothing.
    pub policy: Option<policy::affinity::Settings>,
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
            may_be_empty: false,
            policy: None,
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
    /// A domain could not be moved.
    NotMoved(Move, ActuatorError),
    /// A process that has come to a placed domain could not be put beside it.
    NotFollowed(u32, ActuatorError),
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
    pub restored: Option<Result<Restored, ActuatorError>>,
}

/// Policy and actuator together.
struct Placement {
    policy: policy::Affinity,
    actuator: actuator::Affinity,
}

/// A scheduler at work. Dropped, it puts back what it changed. See the [module](self).
pub struct Scheduler {
    settings: Settings,
    domains: Domains,
    analysis: Analysis,
    discovery: Option<Discovery>,
    components: Vec<String>,
    placement: Option<Placement>,
    ticker: Ticker,
    notices: Vec<Notice>,
    polls: u64,
    began_ns: u64,
    used_before_ns: u64,
    start_ns: u64,
    _precedence: Precedence,
}

impl Scheduler {
    /// Finds the domains' processes, starts the logs, and takes the components that are there. The
    /// thread that calls this is the one that polls.
    ///
    /// # Errors
    ///
    /// [`SchedulerError`]; nothing is attached or changed then.
    pub fn start(settings: Settings, specs: Vec<DomainSpec>) -> Result<Scheduler, SchedulerError> {
        let used_before_ns = thread_time_ns();
        let mut notices = Vec::new();
        let mut domains = Domains::new(specs)?;
        domains.scan();
        if !settings.may_be_empty {
            notices.extend(domains.check_matches()?.into_iter().map(Notice::Empty));
        }
        let kernel = start_kernel(&settings, &mut notices)?;
        let processors = kernel.as_ref().map_or_else(configured_processors, Source::processors);
        let roles = (0..domains.len()).map(|domain| domains.role(domain as DomainId)).collect();
        let placement =
            settings.policy.map(|policy| Placement::start(policy, domains.len(), processors)).transpose()?;
        let discovery =
            settings.components.then(|| start_discovery(&settings, processors, &mut notices)).flatten();
        let now_ns = monotonic_ns();
        let mut scheduler = Scheduler {
            analysis: Analysis::new(processors, roles, settings.layout, now_ns),
            discovery,
            components: Vec::new(),
            ticker: Ticker::new(settings.poll),
            settings,
            domains,
            placement,
            notices,
            polls: 0,
            began_ns: now_ns,
            used_before_ns,
            start_ns: 0,
            _precedence: Precedence::take(),
        };
        if let Some(kernel) = kernel {
            scheduler.read(Box::new(kernel))?;
        }
        scheduler.look_for_components();
        scheduler.start_ns = thread_time_ns().saturating_sub(used_before_ns);
        scheduler.began_ns = monotonic_ns();
        Ok(scheduler)
    }

    /// Reads another source from now on.
    ///
    /// # Errors
    ///
    /// [`SourceError`] if its logs cannot be laid out or it cannot be told who belongs where.
    pub fn read(&mut self, mut source: Box<dyn Source>) -> Result<(), SourceError> {
        for (path, domain) in self.domains.cgroups() {
            source.bind_cgroup(path, domain)?;
        }
        for change in self.domains.present() {
            source.bind(change)?;
        }
        self.analysis.add(source)
    }

    /// Polls until `stop` is true. `each` sees the scheduler after every poll.
    pub fn run(&mut self, stop: &AtomicBool, mut each: impl FnMut(&mut Scheduler)) {
        while !stop.load(Ordering::Relaxed) {
            if self.ticker.wait() {
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
        if self.polls.is_multiple_of(u64::from(self.settings.polls_in_period.max(1))) {
            self.end_period(now_ns);
        }
        if self.polls.is_multiple_of(self.polls_between(self.settings.housekeeping)) {
            self.keep_house(now_ns);
        }
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
        self.placement.as_ref()?.policy.placed(domain).map(usize::from)
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
        Ended { restored: self.placement.map(|placement| placement.actuator.finish()) }
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
        let changes = self.domains.scan().to_vec();
        for change in changes {
            self.follow(change);
        }
        self.analysis.drop_ended(now_ns);
        self.note_ended();
        self.look_for_components();
    }

    fn follow(&mut self, change: Change) {
        for source in self.analysis.sources_mut() {
            if let Err(error) = source.bind(change) {
                self.notices.push(Notice::Refused(error));
            }
        }
        if change.is_alive {
            self.place_beside(change);
        }
    }

    /// A process that has come to a placed domain goes to its processor; one that has left goes free.
    fn place_beside(&mut self, change: Change) {
        let Some(Placement { policy, actuator }) = &mut self.placement else { return };
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

    fn look_for_components(&mut self) {
        let found = self.discovery.as_mut().map(Discovery::look).unwrap_or_default();
        for found in found {
            let taken = found.and_then(|source| self.read_component(source));
            self.notices.push(taken.map_or_else(Notice::Refused, Notice::Component));
        }
    }

    fn read_component(&mut self, source: ComponentSource) -> Result<String, SourceError> {
        let label = source.label().to_owned();
        self.read(Box::new(source))?;
        self.components.push(label.clone());
        Ok(label)
    }

    fn note_ended(&mut self) {
        let (analysis, notices) = (&self.analysis, &mut self.notices);
        self.components.retain(|label| {
            let is_read = analysis.sources().any(|source| source.label() == label);
            if !is_read {
                notices.push(Notice::Ended(label.clone()));
            }
            is_read
        });
    }
}

impl Placement {
    fn start(
        settings: policy::affinity::Settings,
        domains: usize,
        processors: usize,
    ) -> Result<Placement, ActuatorError> {
        let actuator = actuator::Affinity::start()?;
        Ok(Placement { policy: policy::Affinity::new(domains, processors, settings), actuator })
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

fn start_discovery(settings: &Settings, processors: usize, notices: &mut Vec<Notice>) -> Option<Discovery> {
    let only = settings.component_directory.as_deref();
    Discovery::new(processors, only).map_err(|error| notices.push(Notice::NoDiscovery(error))).ok()
}

fn thread_time_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
