//! The periodic analysis: from log rows to what a policy wants to know (LOG-16, thesis §4.5.3).
//!
//! ```text
//!   every poll (20 ms)                          every period (some polls)
//!   rows ──▶ service time, dealings, queues,    ──▶ load, affinity, demand, transaction matrix,
//!            memory, counters, loss                 working sets: a mete_policy::Period
//! ```
//!
//! A poll looks at one index for each log file and processor. It reads the rows behind the indices that have
//! moved, in place, and allocates nothing. All tables are dense and made once.

// This module uses `sources`; `sources` does not use this module. What both need is in `missed`.
pub mod completeness;
pub mod lengths;
pub mod matrix;
pub mod run_queue;
pub mod service;
mod stream;
pub mod tally;
pub mod traffic;
pub mod working_sets;

use mete_log::{DomainId, NO_DOMAIN, Row};
use mete_policy::{Period, Permille, ProcessorId, Role};

pub use crate::missed_activity::MissedActivity;
pub use completeness::{Completeness, FileCount};
pub use lengths::Lengths;
pub use matrix::{Counts, Matrix};
pub use run_queue::RunQueues;
pub use service::{LastSeen, Service};
pub use tally::{Sum, Tally};
pub use traffic::Traffic;
pub use working_sets::WorkingSets;

use crate::configure::Layout;
use crate::domains::{FIRST, user_domains};
use crate::sources::{EventUse, Meaning, Source, SourceError};
use stream::{RowUse, Stream};

/// What the rows so far add up to.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Which domain ran where, for how long.
    pub service: Service,
    /// The run queues.
    pub queues: RunQueues,
    /// Which domain deals with which.
    pub traffic: Traffic,
    /// Groups of domains that should run together.
    pub working_sets: WorkingSets,
    /// Everything else that was logged.
    pub tallies: Vec<Tally>,
    /// Rows of user-level components, processor by domain. They say where a domain runs if the kernel
    /// component does not.
    rows_seen: Counts,
}

/// The analysis. See the [module](self).
pub struct Analysis {
    streams: Vec<Stream>,
    ended: Vec<FileCount>,
    findings: Findings,
    derived: Derived,
    layout: Layout,
    domains: usize,
    began_ns: u64,
    polled_ns: u64,
    period_began_ns: u64,
    polls: usize,
}

/// What a policy learns about the last period.
#[derive(Clone, Debug)]
struct Derived {
    given_roles: Vec<Option<Role>>,
    roles: Vec<Role>,
    processors: Vec<Option<ProcessorId>>,
    demand: Vec<Permille>,
    queue: Vec<Permille>,
    utilisation: Vec<Option<Permille>>,
}

impl Analysis {
    /// An analysis of this number of processors, and of one domain for each role. A role that is `None` is
    /// found out. All times are those of the monotonic clock.
    pub fn new(processors: usize, roles: Vec<Option<Role>>, layout: Layout, now_ns: u64) -> Analysis {
        let domains = roles.len();
        let findings = Findings {
            service: Service::new(processors, domains),
            queues: RunQueues::new(processors),
            traffic: Traffic::new(domains),
            working_sets: WorkingSets::new(domains),
            tallies: Vec::new(),
            rows_seen: Counts::new(processors, domains),
        };
        let derived = Derived {
            given_roles: roles,
            roles: vec![Role::Bystander; domains],
            processors: vec![None; domains],
            demand: vec![Permille::ZERO; domains],
            queue: vec![Permille::ZERO; processors],
            utilisation: vec![None; processors],
        };
        Analysis {
            streams: Vec::new(),
            ended: Vec::new(),
            findings,
            derived,
            layout,
            domains,
            began_ns: now_ns,
            polled_ns: now_ns,
            period_began_ns: now_ns,
            polls: 0,
        }
    }

    /// Configures a source's logs and reads them from now on.
    ///
    /// # Errors
    ///
    /// [`SourceError::Plan`] if its areas have no room for the log files.
    pub fn add(&mut self, source: Box<dyn Source>) -> Result<(), SourceError> {
        let tallies = &mut self.findings.tallies;
        let domains = self.domains;
        let stream = Stream::open(source, domains, self.layout, |event| tally_of(tallies, event, domains))?;
        self.streams.push(stream);
        Ok(())
    }

    /// The sources that are read.
    pub fn sources(&self) -> impl Iterator<Item = &dyn Source> {
        self.streams.iter().map(Stream::source)
    }

    /// Like [`Analysis::sources`], to bind processes.
    pub fn sources_mut(&mut self) -> impl Iterator<Item = &mut dyn Source> {
        self.streams.iter_mut().map(Stream::source_mut)
    }

    /// Lets go of sources that have ended, after a last look at their rows. What they logged stays in the
    /// findings.
    pub fn drop_ended(&mut self, now_ns: u64) {
        // The usual case. It allocates nothing.
        if self.streams.iter().all(|stream| stream.source().is_alive()) {
            return;
        }
        let (alive, mut ended): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.streams).into_iter().partition(|stream| stream.source().is_alive());
        self.streams = alive;
        for stream in &mut ended {
            stream.poll(|processor, meaning, row| self.findings.take(processor, meaning, row));
            self.ended.extend(stream.counts());
        }
        self.polled_ns = now_ns;
    }

    /// Reads what is new. Allocates nothing.
    pub fn poll(&mut self, now_ns: u64) {
        let findings = &mut self.findings;
        for stream in &mut self.streams {
            stream.poll(|processor, meaning, row| findings.take(processor, meaning, row));
        }
        // After all rows, so that only phases without a row that ends them are charged in advance.
        findings.service.settle(now_ns);
        findings.queues.end_poll();
        self.polled_ns = now_ns;
        self.polls += 1;
    }

    /// Reads what was logged until now. From now on, what the domains do is neither known nor charged, until
    /// [`Analysis::resume`].
    pub fn pause(&mut self, now_ns: u64) {
        self.poll(now_ns);
        self.findings.service.forget_now();
    }

    /// The logs go on after a pause of this length, which counts for no period.
    pub fn resume(&mut self, paused_ns: u64) {
        self.period_began_ns = self.period_began_ns.saturating_add(paused_ns);
    }

    /// Ends a period and derives from it what a policy asks for. Allocates nothing.
    pub fn end_period(&mut self, now_ns: u64) -> Period<'_> {
        let length_ns = now_ns.saturating_sub(self.period_began_ns).max(1);
        // The order matters: the roles of drivers decide which dealings are transactions, and these decide
        // which domains are clients.
        self.find_drivers();
        let findings = &mut self.findings;
        findings.service.end_period();
        findings.rows_seen.end_period();
        findings.traffic.end_period(&self.derived.roles);
        findings.working_sets.derive(&findings.traffic);
        self.derived.find_clients(&findings.traffic);
        self.derived.follow(findings, length_ns, self.polls.max(1));
        self.period_began_ns = now_ns;
        self.polls = 0;
        self.period()
    }

    /// What a policy learns about the last whole period.
    pub fn period(&self) -> Period<'_> {
        Period {
            roles: &self.derived.roles,
            transactions: self.findings.traffic.transactions().cells(),
            processors: &self.derived.processors,
            demand: &self.derived.demand,
            queue: &self.derived.queue,
        }
    }

    /// How much of a processor was in use in the last period; `None` if that is not known.
    pub fn utilisation(&self, processor: usize) -> Option<Permille> {
        self.derived.utilisation.get(processor).copied().flatten()
    }

    /// What the rows so far add up to.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// What was read and lost since the beginning.
    pub fn completeness(&self) -> Completeness {
        let counts = self.ended.iter().cloned().chain(self.streams.iter().flat_map(Stream::counts));
        Completeness {
            from_ns: self.began_ns,
            to_ns: self.polled_ns,
            files: completeness::by_file(counts),
            missed: self.missed(),
        }
    }

    /// What all sources together know to have missed; `None` if one of them cannot find that out.
    fn missed(&self) -> Option<MissedActivity> {
        self.sources().try_fold(MissedActivity::default(), |sum, source| Some(sum.plus(source.missed()?)))
    }

    /// Gives each domain that reports transactions of others the role of a driver, unless its role was given.
    fn find_drivers(&mut self) {
        let traffic = &self.findings.traffic;
        let given = self.derived.given_roles.iter();
        let domains = DomainId::all_below(self.domains);
        for (domain, (role, given)) in domains.zip(self.derived.roles.iter_mut().zip(given)) {
            let found = if traffic.is_driver(domain) { Role::Driver } else { Role::Bystander };
            // "other" and "idle" are no domains that the user named: they get no role here.
            *role = given.unwrap_or(if domain < FIRST { Role::Bystander } else { found });
        }
    }
}

/// The tally of an event. Events of one name and meaning are tallied together, so that a program that starts
/// again continues its tally.
fn tally_of(tallies: &mut Vec<Tally>, event: &EventUse, domains: usize) -> usize {
    let held = tallies.iter().position(|tally| tally.name == event.name && tally.meaning == event.meaning);
    held.unwrap_or_else(|| {
        tallies.push(Tally::new(&event.name, event.meaning, domains));
        tallies.len() - 1
    })
}

impl Derived {
    /// Makes every other domain that the user named a client as long as it deals with a driver. A domain that
    /// only computes is no client, or its load would keep clients away.
    fn find_clients(&mut self, traffic: &Traffic) {
        for domain in user_domains(self.roles.len()) {
            let nth = domain.index();
            let is_open = self.given_roles[nth].is_none() && self.roles[nth] == Role::Bystander;
            if is_open && self.deals_with_a_driver(domain, traffic) {
                self.roles[nth] = Role::Client;
            }
        }
    }

    fn deals_with_a_driver(&self, domain: DomainId, traffic: &Traffic) -> bool {
        user_domains(self.roles.len())
            .any(|driver| self.roles[driver.index()] == Role::Driver && traffic.deals_with(domain, driver))
    }

    fn follow(&mut self, findings: &Findings, length_ns: u64, polls: usize) {
        for domain in DomainId::all_below(self.roles.len()) {
            let nth = domain.index();
            self.processors[nth] = findings.processor_of(domain).map(ProcessorId::at);
            self.demand[nth] = Permille::of(findings.service.period_ns(domain), length_ns);
        }
        for processor in 0..self.queue.len() {
            // Time that was charged in advance may make the sum larger than the period.
            let busy = findings.service.busy_ns(processor);
            self.utilisation[processor] = busy.map(|ns| Permille::of(ns, length_ns).min(Permille::WHOLE));
            // Without samples of the run queue, a processor in use counts as one task.
            let fallback = self.utilisation[processor].unwrap_or_default();
            self.queue[processor] = findings.queues.mean(processor, polls).unwrap_or(fallback);
        }
    }
}

impl Findings {
    /// The processor that a domain mostly runs on: by service time, or, if there is none, by the domain's own
    /// rows.
    pub fn processor_of(&self, domain: DomainId) -> Option<usize> {
        self.service.most_run(domain).or_else(|| self.processor_by_rows(domain))
    }

    fn processor_by_rows(&self, domain: DomainId) -> Option<usize> {
        let rows = self.rows_seen.recent().column(domain.index()).enumerate();
        rows.filter(|&(_, rows)| rows > 0).max_by_key(|&(_, rows)| rows).map(|(processor, _)| processor)
    }

    fn take(&mut self, processor: usize, of: RowUse, row: Row) {
        let domain = row.domain.unwrap_or_default();
        let other = row.correspondent.unwrap_or(NO_DOMAIN);
        let (counter, stamp) = (row.counter.unwrap_or(1), row.stamp.unwrap_or(0));
        // A threshold makes one row of several wake-ups, and one row of the reader stands for all that are
        // like it.
        let wake_ups = of.occurrences.saturating_mul(of.rows);
        match of.meaning {
            Meaning::ServiceTime => self.service.pass(processor, domain, other, counter, stamp),
            Meaning::Sent => self.traffic.send(domain, other, wake_ups),
            Meaning::Received => self.traffic.receive(domain, other, wake_ups),
            Meaning::Woke => {
                self.traffic.send(domain, other, wake_ups);
                self.traffic.receive(other, domain, wake_ups);
            }
            Meaning::RunQueue => self.queues.sample(processor, counter),
            Meaning::Memory | Meaning::Counter => self.tally(of, domain, counter, stamp),
            Meaning::Access => {
                self.traffic.report(domain, other, counter.saturating_mul(of.occurrences));
                self.take_own(processor, of, domain, counter, stamp);
            }
            Meaning::Phase | Meaning::Sample => self.take_own(processor, of, domain, counter, stamp),
        }
    }

    /// Takes a row that a domain's own process wrote.
    fn take_own(&mut self, processor: usize, of: RowUse, domain: DomainId, counter: u64, stamp: u64) {
        // A component may write any number there.
        self.rows_seen.add(processor, domain.index(), 1);
        self.tally(of, domain, counter, stamp);
    }

    fn tally(&mut self, of: RowUse, domain: DomainId, counter: u64, stamp: u64) {
        if let Some(tally) = self.tallies.get_mut(of.tally) {
            tally.add(domain, counter, of, stamp);
        }
    }
}
