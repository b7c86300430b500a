//! How a scheduler starts: domains and their members, the kernel component, policy and actuator, and the
//! search for components.

use std::sync::Arc;
use std::time::Duration;

use mete_base::processors::thread_time_ns;
use mete_kernel::Kernel;
use mete_log::clock::{Anchor, monotonic_ns};
use mete_policy::{self as policy, Role};
use mete_probe::attach::configured_processors;
use mete_probe::directory::Users;

use super::{Placement, Scheduler, SchedulerError, Settings, StockDue};
use crate::actuator::{self, ActuatorError};
use crate::analysis::Analysis;
use crate::domains::{DomainError, DomainSpec, Domains};
use crate::notice::Notice;
use crate::precedence::Precedence;
use crate::sources::{ComponentSource, Discovery, KernelSource, Source, Trust};
use crate::ticker::Ticker;

/// How long a start waits for components that are there already. Components that answer at all do so within a
/// moment; the others are taken when they answer.
const WAIT_AT_START: Duration = Duration::from_millis(100);

/// What exists before anything else at a start. The scheduler takes precedence already for loading, which
/// would take seconds on a full machine.
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
    /// Finds the domains' processes, starts the logs, and takes the components that are there. The thread
    /// that calls this must be the one that polls.
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

    /// Like [`Scheduler::start`], for domains that are chosen after the kernel component is loaded: loading
    /// takes a while.
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
            // Processes may have begun after the first look and before the kernel bound processes by itself.
            // Two looks are needed, because a process may become another program between a look and its
            // binding.
            scheduler.look_at_processes();
            scheduler.look_at_processes();
        }
        scheduler.domains.expect_kernel_bindings();
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
        let roles = domains.numbers().map(|domain| domains.role(domain)).collect();
        let trust = Arc::new(trust_in(&domains));
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

    fn take_first_components(&mut self) {
        let found = self.discovery.as_ref().map(|discovery| discovery.first(WAIT_AT_START));
        found.into_iter().flatten().for_each(|found| self.take(found));
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

/// Which components are believed as drivers.
fn trust_in(domains: &Domains) -> Trust {
    let drivers = domains.numbers().filter(|&domain| domains.role(domain) == Some(Role::Driver));
    let present = domains.present().map(|change| (change.pid, change.to));
    Trust::in_drivers(drivers.collect()).with_open(&domains.joinable_by_any_user(), present)
}
