//! What was logged in an interval: the difference of two reports.

use mete_policy::Permille;
use std::time::Duration;

use crate::domains::BuiltIn;
use crate::other_programs::Program;
use crate::report::{Dealing, DomainReport, EventReport, Phase, Report};
use crate::scheduler::{Scheduler, SchedulerCost};
use crate::sources::KERNEL;

/// Mean lengths of run queues: their sums over the polls so far, in thousandths of a task.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    sums: Vec<u64>,
    polls: u64,
}

impl Queues {
    /// Adds the newest poll.
    pub fn note(&mut self, scheduler: &Scheduler) {
        let queues = &scheduler.analysis().findings().queues;
        let means = (0..scheduler.analysis().period().queue.len()).map(|processor| queues.mean(processor, 1));
        self.sums.resize(means.len(), 0);
        for (sum, mean) in self.sums.iter_mut().zip(means) {
            *sum += u64::from(mean.map_or(0, Permille::get));
        }
        self.polls += 1;
    }

    /// The mean length since an earlier moment; `None` where no length was ever sampled.
    fn since(&self, before: &Queues, processor: usize) -> Option<f64> {
        let sum = *self.sums.get(processor)?;
        let polls = self.polls.saturating_sub(before.polls).max(1);
        let sum_before = before.sums.get(processor).copied().unwrap_or(0);
        (sum > 0).then(|| (sum - sum_before) as f64 / 1000.0 / polls as f64)
    }
}

/// Where an interval began.
#[derive(Clone)]
pub struct Interval {
    origin_ns: u64,
    before: Report,
    queues: Queues,
}

/// What was logged between two moments.
pub struct Logged {
    /// From the beginning of logging.
    pub from: Duration,
    /// From the beginning of logging.
    pub to: Duration,
    /// What happened in between. Values that are not sums are those at the end.
    pub report: Report,
    /// The mean length of each processor's run queue.
    pub queues: Vec<Option<f64>>,
    /// The programs in "other", the largest first, where they were looked for.
    pub within_other: Vec<Program>,
    /// What was asked for and could not be logged, and why.
    pub not_logged: Vec<String>,
}

impl Interval {
    /// An interval that begins now. All times are counted from here.
    pub fn new(before: Report) -> Interval {
        Interval { origin_ns: before.cost.passed_ns, before, queues: Queues::default() }
    }

    /// How long ago it began.
    pub fn elapsed(&self, scheduler: &Scheduler) -> Duration {
        Duration::from_nanos(scheduler.cost().passed_ns.saturating_sub(self.before.cost.passed_ns))
    }

    /// Ends it, and begins the next one.
    pub fn end(&mut self, now: Report, queues: &Queues) -> Logged {
        let since_origin = |report: &Report| Duration::from_nanos(report.cost.passed_ns - self.origin_ns);
        let means = (0..now.processors.len()).map(|processor| queues.since(&self.queues, processor));
        let logged = Logged {
            from: since_origin(&self.before),
            to: since_origin(&now),
            report: difference(&now, &self.before),
            queues: means.collect(),
            within_other: Vec::new(),
            not_logged: Vec::new(),
        };
        *self = Interval { origin_ns: self.origin_ns, before: now, queues: queues.clone() };
        logged
    }
}

impl Logged {
    /// How long it was.
    pub fn seconds(&self) -> f64 {
        (self.to - self.from).as_secs_f64()
    }

    /// The share of time that a processor was not idle; `None` if the kernel is not logged.
    pub fn busy(&self, processor: usize) -> Option<f64> {
        let of = |domain: &DomainReport| domain.service_ns.get(processor).copied().unwrap_or(0);
        let all: u64 = self.report.domains.iter().map(of).sum();
        let idle: u64 = self.report.domains.iter().filter(|domain| is_idle(domain)).map(of).sum();
        (all > 0).then(|| (all - idle) as f64 / all as f64)
    }

    /// Processor time of a domain as a share of one processor.
    pub fn share(&self, domain: &DomainReport) -> f64 {
        self.share_of(service_ns(domain))
    }

    /// Any processor time as a share of one processor.
    pub fn share_of(&self, ns: u64) -> f64 {
        ns as f64 / 1e9 / self.seconds().max(1e-9)
    }

    /// Whether everything that was asked for was logged, and every row was read. A log without sources is not
    /// complete.
    pub fn is_complete(&self) -> bool {
        let has_sources = !self.report.sources.is_empty() || !self.report.completeness.files.is_empty();
        has_sources && self.not_logged.is_empty() && self.report.completeness.is_complete()
    }

    /// Whether the kernel is logged.
    pub fn has_kernel(&self) -> bool {
        self.report.sources.iter().any(|source| source == KERNEL)
    }
}

/// Whether this is the domain of the processors' idle time.
pub fn is_idle(domain: &DomainReport) -> bool {
    domain.built_in == Some(BuiltIn::Idle)
}

/// Processor time on all processors.
pub fn service_ns(domain: &DomainReport) -> u64 {
    domain.service_ns.iter().sum()
}

fn difference(now: &Report, before: &Report) -> Report {
    let domains = now.domains.iter().map(|domain| {
        let earlier = before.domains.iter().find(|earlier| earlier.name == domain.name);
        earlier.map_or_else(|| domain.clone(), |earlier| domain_difference(domain, earlier))
    });
    Report {
        domains: domains.collect(),
        transactions: dealings(&now.transactions, &before.transactions),
        completeness: now.completeness.since(&before.completeness),
        cost: cost(now.cost, before.cost),
        ..now.clone()
    }
}

fn cost(now: SchedulerCost, before: SchedulerCost) -> SchedulerCost {
    SchedulerCost {
        start_ns: now.start_ns,
        used_ns: now.used_ns.saturating_sub(before.used_ns),
        passed_ns: now.passed_ns.saturating_sub(before.passed_ns),
        polls: now.polls.saturating_sub(before.polls),
        missed: now.missed.saturating_sub(before.missed),
    }
}

fn domain_difference(now: &DomainReport, before: &DomainReport) -> DomainReport {
    let service =
        now.service_ns.iter().zip(&before.service_ns).map(|(now, before)| now.saturating_sub(*before));
    DomainReport {
        service_ns: service.collect(),
        sent: dealings(&now.sent, &before.sent),
        received: dealings(&now.received, &before.received),
        events: events(&now.events, &before.events),
        ..now.clone()
    }
}

fn dealings(now: &[Dealing], before: &[Dealing]) -> Vec<Dealing> {
    let newly = now.iter().map(|dealing| {
        let is_same = |earlier: &&Dealing| {
            (&earlier.domain, &earlier.correspondent) == (&dealing.domain, &dealing.correspondent)
        };
        let earlier = before.iter().find(is_same);
        let earlier = earlier.map_or(0, |earlier| earlier.count);
        Dealing { count: dealing.count.saturating_sub(earlier), ..dealing.clone() }
    });
    newly.filter(|dealing| dealing.count > 0).collect()
}

fn events(now: &[EventReport], before: &[EventReport]) -> Vec<EventReport> {
    let newly = now.iter().map(|event| {
        let earlier = before.iter().find(|earlier| earlier.name == event.name && earlier.kind == event.kind);
        let (rows, sum) = earlier.map_or((0, 0), |earlier| (earlier.rows, earlier.sum));
        let lengths_before = earlier.and_then(|earlier| Some(&earlier.phase.as_ref()?.lengths));
        let phase = event.phase.as_ref().map(|now| match lengths_before {
            Some(before) => Phase { lengths: now.lengths.since(before), ..now.clone() },
            None => now.clone(),
        });
        EventReport {
            rows: event.rows.saturating_sub(rows),
            sum: event.sum.saturating_sub(sum),
            phase,
            ..event.clone()
        }
    });
    newly.filter(|event| event.rows > 0).collect()
}
