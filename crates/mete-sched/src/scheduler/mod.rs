//! The scheduler: sources, analysis, policy and actuator in one loop (LOG-16).
//!
//! ```text
//!   every 20 ms    poll the logs                                   Analysis::poll
//!   every 100 ms   derive, decide, act                             Affinity (policy) → Affinity (actuator)
//!   every second   find processes that have come or gone           Domains::scan
//! ```
//!
//! Everything happens in the caller's thread, except for the [search](Discovery) for components, because any
//! component could hold the search up. Two kinds of work may allocate or look at `/proc`: what is due every
//! second, and what is rare (moving a process, taking a component). Nothing in this module waits for another
//! process, with one exception: if both watchers were killed just before a process is to be moved, the move
//! waits for at most a fifth of a second.

mod settings;
mod start;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mete_base::processors::thread_time_ns;
use mete_kernel::KernelError;
use mete_log::DomainId;
use mete_log::clock::{Anchor, Calibration, monotonic_ns};
use mete_policy::{self as policy, Move, ProcessorId};

use crate::actuator::{self, ActuatorError, Restored};
use crate::analysis::Analysis;
use crate::domains::{Change, DomainError, Domains, OTHER, for_policy, of_policy};
use crate::notice::Notice;
use crate::precedence::Precedence;
use crate::sources::kernel::charged_within;
use crate::sources::{ComponentSource, Discovery, Source, SourceError, Trust};
use crate::ticker::Ticker;

pub use settings::Settings;

/// By how much the timer of a tick may be late on a busy machine.
const LATE: Duration = Duration::from_millis(10);
/// The largest number of components that are taken at one poll. To lay out the logs of each takes time.
const TAKEN_AT_ONCE: usize = 2;

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
pub struct SchedulerCost {
    /// Processor time that the scheduler's thread took to start, in nanoseconds: most of it is the kernel's
    /// verifier.
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

impl Scheduler {
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

    /// Reads all that was done until now, and looks at the processes, whether that is due or not. To be
    /// called before results are read, so that a process that has just ended is in no domain any more.
    ///
    /// The kernel charges a task when the task leaves its processor, and at ticks. The wait for a process may
    /// return shortly before the process leaves its processor for the last time, and a task that computes has
    /// not been charged since the last tick. After one more tick, both are in the log.
    pub fn read_to_end(&mut self) {
        let end = Instant::now() + charged_within(&self.settings.kernel) + LATE;
        let stop = AtomicBool::new(false);
        // The logs are read meanwhile: they have no room for the rows of a slow tick's whole period.
        self.run_with_end(Some(end), &stop, |_| stop.store(Instant::now() >= end, Ordering::Relaxed));
        self.domains.expect_change();
        self.keep_house(monotonic_ns());
    }

    /// Logs nothing from now on, until [`Scheduler::resume_those`]: what logs in the kernel is detached, and
    /// probes are off. What follows processes to their domains stays attached. The caller must not poll
    /// during the pause.
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

    /// Has the sources with a wanted label log again what they logged before [`Scheduler::pause`]. A label is
    /// [`KERNEL`](crate::sources::KERNEL), or a program and its process. No log file is laid out anew. The
    /// pause counts as no time at all, neither in periods nor in the [cost](Scheduler::cost).
    ///
    /// # Errors
    ///
    /// [`SourceError`] if a source cannot go on. The other sources log.
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

    /// The processor on which the policy has placed a domain.
    pub fn placed(&self, domain: DomainId) -> Option<usize> {
        let placement = self.placement.as_ref().filter(|placement| placement.actuator.is_some())?;
        placement.policy.placed(for_policy(domain)).map(ProcessorId::index)
    }

    /// The length of a tick of the processors' counter in nanoseconds, measured since the beginning. Programs
    /// log the lengths of phases in such ticks. `None` before the clocks have moved.
    pub fn ns_per_tick(&self) -> Option<f64> {
        Calibration::between(self.anchor, Anchor::now()).map(|calibration| calibration.ns_per_tick())
    }

    /// What the scheduler has cost so far. The thread that polls must call this: the cost is that thread's
    /// time.
    pub fn cost(&self) -> SchedulerCost {
        SchedulerCost {
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

    /// Tells every source. What one of them refuses becomes a notice.
    fn tell_each(&mut self, mut tell: impl FnMut(&mut dyn Source) -> Result<(), SourceError>) {
        let refused = self.analysis.sources_mut().filter_map(|source| tell(source).err());
        self.notices.extend(refused.map(Notice::Refused));
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
        self.tell_each(|source| source.attend());
        // After the sources have attended: that is how a source finds out that its component has ended.
        self.analysis.drop_ended(now_ns);
        self.note_ended();
    }

    /// Has the sources take stock, so that what newly bound processes hold already counts for their domains,
    /// even if these processes do nothing.
    fn take_stock(&mut self, now_ns: u64) {
        if !self.stock.is_due || now_ns < self.stock.not_before_ns {
            return;
        }
        self.tell_each(|source| source.take_stock());
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
        let new: Vec<_> =
            self.domains.new_cgroups().map(|(path, domain)| (path.to_owned(), domain)).collect();
        for (path, domain) in new {
            self.tell_each(|source| source.bind_cgroup(&path, domain));
        }
    }

    fn follow(&mut self, change: Change) {
        // A source that has bound the process by itself since this look knows better than the look.
        let seen = self.domains.kernel_binding_of(change.pid);
        self.tell_each(|source| source.rebind(change, seen));
        if change.is_alive {
            self.place_beside(change);
        }
    }

    /// Moves a process that has come to a placed domain to the domain's processor. Frees a process that has
    /// left a placed domain.
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

    /// Whether any source logs.
    #[must_use]
    pub fn logs_anything(&self) -> bool {
        self.analysis().sources().any(|source| !source.events().is_empty())
    }

    /// While no source logs yet, waits for components that were found and may still answer: at most this
    /// long, and not after `is_over` says so.
    pub fn wait_until_anything_logs(&mut self, patience: Duration, is_over: fn() -> bool) {
        const LOOK_EVERY: Duration = Duration::from_millis(5);
        let begin = Instant::now();
        while !self.logs_anything() && self.is_looking() && begin.elapsed() < patience && !is_over() {
            std::thread::sleep(LOOK_EVERY);
            self.tick();
        }
        // An answer may have arrived after the last tick.
        if !self.logs_anything() {
            self.tick();
        }
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
        let analysis = &self.analysis;
        // By path and not by label: a process may have several components of one name.
        let is_read = |path: &Path| analysis.sources().any(|source| source.found_at() == Some(path));
        let ended: Vec<_> = self.components.extract_if(.., |taken| !is_read(&taken.path)).collect();
        for TakenComponent { label, path } in ended {
            self.notices.push(Notice::Ended(label));
            self.let_go(&path);
        }
    }
}
