//! What was logged, as JSON lines.

use std::collections::BTreeMap;

use mete_command::output::Output;
use mete_sched::analysis::{FileCount, MissedActivity};
use mete_sched::{DomainReport, EventKind, EventReport, SchedulerCost};
use serde::Serialize;

use super::{Logged, Program, ordered, service_ns};

/// One line of JSON. Its `scope` is `whole` or `interval`; times are from the beginning of logging.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    scope: &'static str,
    from_s: f64,
    to_s: f64,
    #[serde(flatten)]
    what: LineContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum LineContent<'a> {
    Domain {
        domain: &'a str,
        role: String,
        processes: usize,
        service_ns: u64,
        service_ns_by_processor: &'a [u64],
        percent: f64,
        memory_bytes: Option<u64>,
        counters: BTreeMap<&'a str, u64>,
    },
    WakeUps {
        sender: &'a str,
        receiver: &'a str,
        sent: u64,
    },
    WithinOther {
        program: &'a str,
        ran_ns: u64,
    },
    Received {
        receiver: &'a str,
        sender: &'a str,
        received: u64,
    },
    Event {
        domain: &'a str,
        event: &'a str,
        r#type: EventKind,
        rows: u64,
        sum: Option<u64>,
        last: Option<u64>,
        count: u64,
        mean_ns: Option<u64>,
        p50_ns: Option<u64>,
        p99_ns: Option<u64>,
    },
    Transactions {
        client: &'a str,
        driver: &'a str,
        count: u64,
    },
    Processor {
        processor: usize,
        busy_percent: Option<f64>,
        run_queue: Option<f64>,
    },
    Completeness {
        complete: bool,
        not_logged: &'a [String],
        files: &'a [FileCount],
        missed: Option<MissedActivity>,
        cost: SchedulerCost,
    },
}

/// Prints everything about an interval, or about the whole time of logging.
pub fn print(scope: &'static str, logged: &Logged, output: &mut Output) -> anyhow::Result<()> {
    let (from_s, to_s) = (logged.from.as_secs_f64(), logged.to.as_secs_f64());
    let all = ordered(logged).into_iter().flat_map(|domain| domain_objects(logged, domain));
    for (kind, what) in all.chain(other_objects(logged)) {
        output.object(&Line { kind, scope, from_s, to_s, what })?;
    }
    Ok(())
}

fn domain_objects<'a>(logged: &'a Logged, domain: &'a DomainReport) -> Vec<(&'static str, LineContent<'a>)> {
    let name = domain.name.as_str();
    let counters = domain.events.iter().filter(|event| event.kind == EventKind::Counter);
    let itself = LineContent::Domain {
        domain: name,
        role: domain.role.to_string(),
        processes: domain.processes,
        service_ns: service_ns(domain),
        service_ns_by_processor: &domain.service_ns,
        percent: 100.0 * logged.share(domain),
        memory_bytes: domain.memory_bytes,
        counters: counters.map(|counter| (counter.name.as_str(), counter.sum)).collect(),
    };
    let mut objects = vec![("domain", itself)];
    objects.extend(domain.sent.iter().map(|to| {
        ("sent", LineContent::WakeUps { sender: name, receiver: &to.correspondent, sent: to.count })
    }));
    objects.extend(domain.received.iter().map(|from| {
        (
            "received",
            LineContent::Received { receiver: name, sender: &from.correspondent, received: from.count },
        )
    }));
    objects.extend(
        domain
            .events
            .iter()
            .filter(|event| event.kind != EventKind::Counter)
            .map(|event| ("event", event_object(name, event))),
    );
    objects
}

fn event_object<'a>(domain: &'a str, event: &'a EventReport) -> LineContent<'a> {
    let phase = event.phase.as_ref();
    let whole = |ns: f64| ns.round() as u64;
    let value = |value: u64| phase.map_or(Some(value), |phase| phase.ns(value as f64).map(whole));
    let quantile = |part| phase.and_then(|phase| phase.quantile_ns(part)).map(whole);
    LineContent::Event {
        domain,
        event: &event.name,
        r#type: event.kind,
        rows: event.rows,
        sum: value(event.sum),
        last: value(event.last),
        count: event.count(),
        mean_ns: event.mean_ns().map(whole),
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
    }
}

fn other_objects(logged: &Logged) -> Vec<(&'static str, LineContent<'_>)> {
    let processors = logged.queues.iter().enumerate().map(|(processor, &run_queue)| {
        let busy_percent = logged.busy(processor).map(|share| 100.0 * share);
        ("processor", LineContent::Processor { processor, busy_percent, run_queue })
    });
    let transactions = logged.report.transactions.iter().map(|dealing| {
        let (client, driver) = (dealing.domain.as_str(), dealing.correspondent.as_str());
        ("transactions", LineContent::Transactions { client, driver, count: dealing.count })
    });
    let within_other = logged.within_other.iter().map(|Program { name, ran_ns }| {
        ("within_other", LineContent::WithinOther { program: name, ran_ns: *ran_ns })
    });
    let completeness = &logged.report.completeness;
    let (complete, files) = (logged.is_complete(), completeness.files.as_slice());
    let (missed, cost) = (completeness.missed, logged.report.cost);
    let not_logged = logged.not_logged.as_slice();
    let statement = ("completeness", LineContent::Completeness { complete, not_logged, files, missed, cost });
    processors.chain(transactions).chain(within_other).chain([statement]).collect()
}
