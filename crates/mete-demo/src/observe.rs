//! The scheduler in one stretch of the demo: it only observes, or also acts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use mete_command::interrupt;
use mete_log::DomainId;
use mete_policy::{Permille, Role};
use mete_sched::domains::of_policy;
use mete_sched::sources::KERNEL;
use mete_sched::{DomainSpec, Notice, Scheduler, Selector, Settings};

use crate::cast::{CastProcess, DemoStage};
use crate::summary::StretchKind;

/// How often the logs are polled.
pub const POLL: Duration = Duration::from_millis(20);

/// One client that was moved.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// When it happened, in seconds of logging.
    pub at_s: f64,
    /// The client's name.
    pub client: String,
    /// The processor that it was moved to.
    pub to: usize,
    /// The same in words, with the reason.
    pub in_words: String,
}

/// The results of logging one stretch.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Transactions, client by driver.
    pub matrix: Vec<Vec<u64>>,
    /// The scheduler's decisions.
    pub moves: Vec<Moved>,
    /// What the user should know, in words; for example, what could not be logged.
    pub notes: Vec<String>,
    /// Why the kernel was not logged, although it was asked for.
    pub no_kernel: Option<String>,
    /// Rows read.
    pub rows: u64,
    /// Rows lost.
    pub lost: u64,
    /// Processor time of the scheduler's thread, as a share of the stretch.
    pub own_share: f64,
}

/// The sources that log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loggers {
    /// The kernel and the drivers' probes.
    All,
    /// The kernel alone.
    Kernel,
    /// The drivers' probes alone.
    Probes,
}

/// The scheduler over the cast of one stretch.
pub struct Observer {
    scheduler: Scheduler,
    drivers: Vec<DomainId>,
    clients: Vec<DomainId>,
    observed: Observed,
}

impl Observer {
    /// Starts logging, and also acting if the stretch is of that kind.
    pub fn start(
        kind: StretchKind,
        stage: &DemoStage,
        clients: &[CastProcess],
        kernel: bool,
    ) -> Result<Observer> {
        let policy = (kind == StretchKind::Act).then(policy);
        let defaults = Settings::default();
        let characteristics = if kernel { defaults.kernel.clone() } else { Vec::new() };
        let component_directory = Some(stage.directory());
        let settings =
            Settings { poll: POLL, policy, kernel: characteristics, component_directory, ..defaults };
        let domain = |part: &CastProcess, role| domain_of(part.name(), [part.pid()], role);
        let hogs = (!stage.hogs().is_empty())
            .then(|| domain_of("hogs", stage.hogs().iter().map(CastProcess::pid), Role::Bystander));
        let drivers = stage.drivers().iter().map(|part| domain(part, Role::Driver));
        let specs = drivers.chain(clients.iter().map(|part| domain(part, Role::Client))).chain(hogs);
        let scheduler = Scheduler::start(settings, specs.collect())?;
        let named = |part: &CastProcess| scheduler.domains().by_name(part.name());
        let drivers = stage.drivers().iter().filter_map(named).collect();
        let clients = clients.iter().filter_map(named).collect();
        Ok(Observer { scheduler, drivers, clients, observed: Observed::default() })
    }

    /// Polls until a moment, or until the end is asked for. Calls `each` with the matrix after every poll.
    pub fn run_until(&mut self, end: Instant, each: impl FnMut(&[Vec<u64>])) {
        self.run_while(|| Instant::now() < end, each);
    }

    /// The same for that number of polls.
    pub fn run_polls(&mut self, polls: u32, each: impl FnMut(&[Vec<u64>])) {
        let mut left = polls;
        self.run_while(
            || {
                left = left.saturating_sub(1);
                left > 0
            },
            each,
        );
    }

    /// Stops logging until [`Observer::resume`].
    pub fn pause(&mut self) -> Result<()> {
        Ok(self.scheduler.pause()?)
    }

    /// Goes on with these loggers.
    pub fn resume(&mut self, loggers: Loggers) -> Result<()> {
        Ok(self.scheduler.resume_those(|label| match loggers {
            Loggers::All => true,
            Loggers::Kernel => label == KERNEL,
            Loggers::Probes => label != KERNEL,
        })?)
    }

    /// Why the kernel is not logged, although it was asked for.
    pub fn no_kernel(&self) -> Option<&str> {
        self.observed.no_kernel.as_deref()
    }

    /// Polls while `goes_on`, which is called after every poll.
    fn run_while(&mut self, mut goes_on: impl FnMut() -> bool, mut each: impl FnMut(&[Vec<u64>])) {
        let stop = AtomicBool::new(false);
        let (drivers, clients, observed) = (&self.drivers, &self.clients, &mut self.observed);
        self.scheduler.run(&stop, |scheduler| {
            let notices: Vec<_> = scheduler.notices().collect();
            notices.iter().for_each(|notice| take(notice, scheduler, observed));
            observed.matrix = matrix(scheduler, clients, drivers);
            each(&observed.matrix);
            if !goes_on() || interrupt::asked() {
                // Relaxed: `run` reads it in this same thread, after this call.
                stop.store(true, Ordering::Relaxed);
            }
        });
    }

    /// Stops logging, puts processor masks back, and returns the results.
    pub fn finish(mut self) -> Observed {
        let completeness = self.scheduler.analysis().completeness();
        for file in &completeness.files {
            self.observed.rows += file.rows;
            self.observed.lost += file.overwritten.saturating_add(file.refused);
        }
        let left_out = completeness.missed.map_or(0, |missed| missed.runs);
        self.observed.lost = self.observed.lost.saturating_add(left_out);
        let cost = self.scheduler.cost();
        self.observed.own_share = cost.used_ns as f64 / cost.passed_ns.max(1) as f64;
        let failed = self.scheduler.finish().restored.map_or(0, |restored| restored.failed);
        if failed > 0 {
            self.observed
                .notes
                .push(format!("the processor masks of {failed} threads could not be put back"));
        }
        self.observed
    }
}

/// The demo's clients keep their processors busy by design, so there is no limit to the load of a processor.
/// Everything else is as for real loads.
fn policy() -> mete_policy::affinity::Settings {
    mete_policy::affinity::Settings { cap: Permille::MAX, ..mete_policy::affinity::Settings::default() }
}

fn domain_of(name: &str, pids: impl IntoIterator<Item = u32>, role: Role) -> DomainSpec {
    let selectors = pids.into_iter().map(Selector::Pid).collect();
    DomainSpec { name: name.to_owned(), selectors, role: None }.with_role(role)
}

fn matrix(scheduler: &Scheduler, clients: &[DomainId], drivers: &[DomainId]) -> Vec<Vec<u64>> {
    let traffic = &scheduler.analysis().findings().traffic;
    let rows = clients
        .iter()
        .map(|&client| drivers.iter().map(|&driver| traffic.total_transactions(client, driver)).collect());
    rows.collect()
}

fn take(notice: &Notice, scheduler: &Scheduler, observed: &mut Observed) {
    let name = |domain| scheduler.domains().name(of_policy(domain));
    match notice {
        Notice::Moved(decision, _) => {
            let (client, driver) = (name(decision.domain).to_owned(), name(decision.driver));
            let in_words = format!("{client} to processor {}, where {driver} is", decision.to);
            let at_s = scheduler.cost().passed_ns as f64 / 1e9;
            observed.moves.push(Moved { at_s, client, to: decision.to.index(), in_words });
        }
        Notice::NotMoved(decision, error) => {
            observed.notes.push(format!("{} could not be moved: {error}", name(decision.domain)));
        }
        // Kept apart from the notes, because the bench measures nothing without the kernel.
        Notice::NoKernel(_) => observed.no_kernel = notice.missing(),
        _ => {}
    }
    observed.notes.extend(notice.missing());
}
