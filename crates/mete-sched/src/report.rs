//! What the scheduler found out, with names: for tables and for `--json`.

use std::fmt;

use mete_log::DomainId;
use mete_policy::{Permille, Role};
use serde::{Serialize, Serializer};

use crate::analysis::{Completeness, Findings, Lengths, Matrix};
use crate::domains::{BuiltIn, Domains, IDLE};
use crate::scheduler::{Scheduler, SchedulerCost};
use crate::sources::Meaning;

/// Everything that was found out since the scheduler began.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Every domain, "other" and "idle" included.
    pub domains: Vec<DomainReport>,
    /// Every processor.
    pub processors: Vec<ProcessorReport>,
    /// The client-to-driver transaction matrix, without its zeroes.
    pub transactions: Vec<Dealing>,
    /// Groups of domains that deal with one another.
    pub working_sets: Vec<Vec<String>>,
    /// The components that are read now.
    pub sources: Vec<String>,
    /// What was read and what was lost.
    pub completeness: Completeness,
    /// What the scheduler itself has cost.
    pub cost: SchedulerCost,
}

/// One domain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DomainReport {
    /// Its name.
    pub name: String,
    /// Which of the built-in domains it is; `None` if the user named it.
    #[serde(skip)]
    pub built_in: Option<BuiltIn>,
    /// Its role, given or found.
    #[serde(serialize_with = "as_displayed")]
    pub role: Role,
    /// How many processes it has now.
    pub processes: usize,
    /// Service time on each processor, in nanoseconds.
    pub service_ns: Vec<u64>,
    /// The share of one processor that it used in the last period, in thousandths.
    #[serde(serialize_with = "thousandths")]
    pub demand: Permille,
    /// The processor on which it was most recently.
    pub last_processor: Option<usize>,
    /// The processor on which it mostly is.
    pub processor: Option<usize>,
    /// The processor on which the policy has placed it.
    pub placed: Option<usize>,
    /// Wake-ups that it sent, by receiver.
    pub sent: Vec<Dealing>,
    /// Wake-ups that it received, by sender.
    pub received: Vec<Dealing>,
    /// Bytes that are resident for it; `None` if that is not logged or not known.
    pub memory_bytes: Option<u64>,
    /// Performance counters and events of components.
    pub events: Vec<EventReport>,
}

/// How often one domain dealt with another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dealing {
    /// The domain whose table this stands in: the client's, the sender's or the receiver's name.
    pub domain: String,
    /// The other domain: the driver's, the receiver's or the sender's name.
    pub correspondent: String,
    /// The number of dealings.
    pub count: u64,
}

/// One event in one domain. The lengths of phases are in ticks of the processor's counter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventReport {
    /// Its name.
    pub name: String,
    /// What its rows say.
    pub kind: EventKind,
    /// The number of rows.
    pub rows: u64,
    /// The sum of their counters.
    pub sum: u64,
    /// The counter of the newest row.
    pub last: u64,
    /// How the lengths are spread, if the event is a phase.
    #[serde(skip)]
    pub phase: Option<Phase>,
}

/// What the rows of an event say. The other [meanings](Meaning) have fields of their own in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A performance counter moved.
    Counter,
    /// Something was used.
    Access,
    /// A phase of use took some time.
    Phase,
    /// A value was logged.
    Sample,
}

impl EventKind {
    fn of(meaning: Meaning) -> Option<EventKind> {
        match meaning {
            Meaning::Counter => Some(EventKind::Counter),
            Meaning::Access => Some(EventKind::Access),
            Meaning::Phase => Some(EventKind::Phase),
            Meaning::Sample => Some(EventKind::Sample),
            _ => None,
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A derived `Serialize` of an enumeration without values writes into a formatter, too: one list of
        // words.
        self.serialize(f)
    }
}

/// How long a phase took.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// In ticks of the processor's counter.
    pub lengths: Lengths,
    /// The length of a tick; `None` if the clocks have not been compared long enough.
    pub ns_per_tick: Option<f64>,
}

impl Phase {
    /// This number of ticks in nanoseconds. It may be a mean, which has a fraction, so it is a plain number.
    pub fn ns(&self, ticks: f64) -> Option<f64> {
        Some(ticks * self.ns_per_tick?)
    }

    /// A quantile of the lengths in nanoseconds. It is off by at most 1/64.
    pub fn quantile_ns(&self, part: f64) -> Option<f64> {
        self.ns(self.lengths.quantile(part)?)
    }
}

impl EventReport {
    /// For a phase, the number of phases, because a row may stand for several. Otherwise, the number of rows.
    pub fn count(&self) -> u64 {
        self.phase.as_ref().map_or(self.rows, |phase| phase.lengths.count())
    }

    /// The mean length of a phase in nanoseconds. It is exact, apart from the clock's rate.
    pub fn mean_ns(&self) -> Option<f64> {
        let count = Some(self.count()).filter(|count| *count > 0)?;
        self.phase.as_ref()?.ns(self.sum as f64 / count as f64)
    }
}

/// One processor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessorReport {
    /// Its number.
    pub processor: usize,
    /// How much of it was in use in the last period, in thousandths; `None` if that is not known.
    #[serde(serialize_with = "known_thousandths")]
    pub utilisation: Option<Permille>,
    /// The recent mean length of its run queue, in thousandths of a task.
    #[serde(serialize_with = "known_thousandths")]
    pub queue: Option<Permille>,
    /// Mean lengths of its run queue at past polls, newest first.
    #[serde(serialize_with = "each_thousandths")]
    pub queue_history: Vec<Permille>,
}

fn thousandths<S: Serializer>(part: &Permille, serializer: S) -> Result<S::Ok, S::Error> {
    part.get().serialize(serializer)
}

fn known_thousandths<S: Serializer>(part: &Option<Permille>, serializer: S) -> Result<S::Ok, S::Error> {
    part.map(Permille::get).serialize(serializer)
}

fn each_thousandths<S: Serializer>(parts: &[Permille], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(parts.iter().map(|part| part.get()))
}

impl Report {
    /// What a scheduler has found out so far. The thread that polls must call this: the cost is that thread's
    /// time.
    pub fn of(scheduler: &Scheduler) -> Report {
        let (analysis, domains) = (scheduler.analysis(), scheduler.domains());
        let findings = analysis.findings();
        let all = domains.numbers();
        let working_sets = findings.working_sets.groups();
        Report {
            // A domain without a name has not been given out yet.
            domains: all
                .clone()
                .filter(|domain| !domains.name(*domain).is_empty())
                .map(|domain| domain_report(scheduler, domain))
                .collect(),
            processors: (0..analysis.period().queue.len())
                .map(|processor| processor_report(scheduler, processor))
                .collect(),
            transactions: all
                .clone()
                .flat_map(|client| transactions(findings, domains, analysis.period().roles, client))
                .collect(),
            working_sets: working_sets
                .iter()
                .map(|set| set.iter().map(|&domain| domains.name(domain).to_owned()).collect())
                .collect(),
            sources: analysis.sources().map(|source| source.label().to_owned()).collect(),
            completeness: completeness(scheduler),
            cost: scheduler.cost(),
        }
    }
}

/// The statement of the analysis, with what the search of `/proc` found late.
fn completeness(scheduler: &Scheduler) -> Completeness {
    let mut statement = scheduler.analysis().completeness();
    let late = scheduler.domains().late_bindings();
    if let Some(missed) = &mut statement.missed {
        (missed.late, missed.late_ns) = (late.processes, late.ran_ns);
    }
    statement
}

fn domain_report(scheduler: &Scheduler, domain: DomainId) -> DomainReport {
    let (analysis, domains) = (scheduler.analysis(), scheduler.domains());
    let (findings, period) = (analysis.findings(), analysis.period());
    let number = domain.index();
    let used = findings.service.used().total();
    DomainReport {
        name: domains.name(domain).to_owned(),
        built_in: BuiltIn::of(domain),
        role: period.roles.get(number).copied().unwrap_or_default(),
        // The idle tasks are no processes, although they are bound to this domain.
        processes: if domain == IDLE { 0 } else { domains.members(domain).count() },
        service_ns: (0..period.queue.len()).map(|processor| used.get(processor, number)).collect(),
        demand: period.demand.get(number).copied().unwrap_or_default(),
        last_processor: findings.service.last_seen(domain).map(|seen| seen.processor),
        processor: findings.processor_of(domain),
        placed: scheduler.placed(domain),
        sent: dealings(findings.traffic.sent().total(), domains, domain),
        received: dealings(findings.traffic.received().total(), domains, domain),
        memory_bytes: memory(findings, domain),
        events: events(findings, domain, scheduler.ns_per_tick()),
    }
}

fn as_displayed<S: Serializer>(value: &impl fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn processor_report(scheduler: &Scheduler, processor: usize) -> ProcessorReport {
    let analysis = scheduler.analysis();
    let queues = &analysis.findings().queues;
    let queue_history: Vec<_> = queues.history(processor).collect();
    let utilisation = analysis.utilisation(processor);
    ProcessorReport {
        processor,
        utilisation,
        queue: queues.mean(processor, queue_history.len()),
        queue_history,
    }
}

fn dealing(domains: &Domains, domain: DomainId, correspondent: DomainId, count: u64) -> Option<Dealing> {
    let name = |domain| domains.name(domain).to_owned();
    (count > 0).then(|| Dealing { domain: name(domain), correspondent: name(correspondent), count })
}

fn dealings(table: &Matrix, domains: &Domains, domain: DomainId) -> Vec<Dealing> {
    let row = domains.numbers().zip(table.row(domain.index()));
    row.filter_map(|(other, &count)| dealing(domains, domain, other, count)).collect()
}

fn transactions(findings: &Findings, domains: &Domains, roles: &[Role], client: DomainId) -> Vec<Dealing> {
    // A driver is no client of its own.
    let drivers = domains
        .numbers()
        .filter(|&domain| roles.get(domain.index()) == Some(&Role::Driver) && domain != client);
    drivers
        .filter_map(|driver| {
            dealing(domains, client, driver, findings.traffic.total_transactions(client, driver))
        })
        .collect()
}

fn memory(findings: &Findings, domain: DomainId) -> Option<u64> {
    let tally = findings.tallies.iter().find(|tally| tally.meaning == Meaning::Memory)?;
    let memory = tally.of(domain);
    // The kernel's sums are signed: of two processors, one may log that memory was given back a little before
    // the other one logs that it was taken.
    (memory.rows > 0).then(|| (memory.last as i64).max(0) as u64)
}

fn events(findings: &Findings, domain: DomainId, ns_per_tick: Option<f64>) -> Vec<EventReport> {
    let reports = findings.tallies.iter().filter_map(|tally| {
        let kind = EventKind::of(tally.meaning)?;
        let sum = tally.of(domain);
        (sum.rows > 0).then(|| EventReport {
            name: tally.name.clone(),
            kind,
            rows: sum.rows,
            sum: sum.sum,
            last: sum.last,
            phase: tally.lengths(domain).map(|lengths| Phase { lengths, ns_per_tick }),
        })
    });
    reports.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_roles_and_kinds_of_events_are_printed_as_one_word_each() {
        let kinds = [EventKind::Counter, EventKind::Access, EventKind::Phase, EventKind::Sample];
        let words = ["counter", "access", "phase", "sample"];
        assert_eq!(kinds.map(|kind| kind.to_string()), words);
        let json = kinds.map(|kind| serde_json::to_string(&kind).unwrap_or_default());
        assert_eq!(json, words.map(|word| format!("\"{word}\"")));
        let roles = [Role::Bystander, Role::Driver, Role::Client].map(|role| role.to_string());
        assert_eq!(roles, ["bystander", "driver", "client"]);
    }
}
