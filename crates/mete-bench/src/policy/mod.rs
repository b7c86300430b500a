//! What decisions of the policies cost, and how fast simulations run (VTRR-4, VTRR-5).

pub mod drive;
mod heap;
mod host;
pub mod surfaces;

use std::time::Instant;

use mete_measure::Bar;
use mete_measure::interleave::{Samples, interleave, quotients};
use mete_measure::processor::{self, Pinned};
use mete_measure::reason::{Reason, made};
use mete_measure::report::Row;
use mete_policy::{Eevdf, Nanoseconds, Vtrr, Wfq};

use crate::context::Context;
use drive::{FirstClient, Subject, ready};

/// The number of clients with which the sorted queues are compared with a bare heap.
const SORTED: u32 = 10_000;
/// The usual number of clients.
const USUAL: u32 = 100;
/// Quanta of one sample of the simulated machine.
const QUANTA: u64 = 100_000;
/// Simulated time of one sample of the TAVS host.
const TAVS_NS: u64 = 30_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum MeasuredPolicy {
    Nothing,
    Vtrr(u32),
    BareHeap,
    Wfq,
    Eevdf,
}

const POLICIES: [MeasuredPolicy; 8] = [
    MeasuredPolicy::Nothing,
    MeasuredPolicy::Vtrr(10),
    MeasuredPolicy::Vtrr(USUAL),
    MeasuredPolicy::Vtrr(SORTED),
    MeasuredPolicy::Vtrr(1_000_000),
    MeasuredPolicy::BareHeap,
    MeasuredPolicy::Wfq,
    MeasuredPolicy::Eevdf,
];

impl MeasuredPolicy {
    fn begin(self) -> Subject {
        match self {
            MeasuredPolicy::Nothing => ready(1, |_| FirstClient),
            MeasuredPolicy::Vtrr(clients) => ready(clients, Vtrr::new),
            MeasuredPolicy::BareHeap => heap::bare(SORTED),
            MeasuredPolicy::Wfq => ready(SORTED, Wfq::new),
            MeasuredPolicy::Eevdf => ready(SORTED, Eevdf::new),
        }
    }
}

pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    let mut rows = match Pinned::to(processor::quietest()) {
        Ok(_pinned) => [decisions(context), vec![machine(context), tavs_host(context)]].concat(),
        Err(reason) => vec![Row::new("policy: decisions", "ns", Err(reason))],
    };
    rows.push(surfaces(context));
    rows
}

fn decisions(context: &mut Context<'_>) -> Vec<Row> {
    let mut started: Vec<(MeasuredPolicy, Subject)> = Vec::new();
    let rounds = context.rounds(60);
    let samples = interleave("policy", rounds, &POLICIES, context.progress, |policy| {
        // A subject is made when it is first measured: a million clients take a while.
        match started.iter_mut().find(|(known, _)| *known == policy) {
            Some((_, subject)) => subject.sample(),
            None => {
                let mut subject = policy.begin();
                let sample = subject.sample();
                started.push((policy, subject));
                sample
            }
        }
    });
    decision_rows(&samples)
}

fn decision_rows(samples: &Samples<MeasuredPolicy>) -> Vec<Row> {
    use MeasuredPolicy::*;
    const DECISION: &str = "pick, charge and requeue; random shares up to 100; the loop included";
    let ns = |name: &str, cost| Row::new(format!("policy: {name}"), "ns", samples.of(cost));
    let ratio = |name: &str, cost, base| {
        let quotients = samples.of(cost).and_then(|cost| quotients(&cost, &samples.of(base)?));
        Row::new(format!("policy: {name}"), "ratio", quotients)
    };
    vec![
        ns("none", Nothing).note("the loop with a policy that always picks the same client"),
        ns("vtrr, 100 clients", Vtrr(USUAL)).bar(Bar::Below(15.0)).note(DECISION),
        ns("vtrr, 1,000,000 clients", Vtrr(1_000_000)).note(DECISION),
        ratio("vtrr, 1,000,000 / 100 clients", Vtrr(1_000_000), Vtrr(USUAL)).bar(Bar::Below(3.0)),
        ratio("vtrr, 10,000 / 10 clients", Vtrr(SORTED), Vtrr(10)).bar(Bar::Below(1.3)),
        ns("bare binary heap, 10,000 clients", BareHeap)
            .note("the standard library's, popped and pushed; nothing else is done"),
        ns("wfq, 10,000 clients", Wfq).note(DECISION),
        ratio("wfq / bare binary heap, 10,000 clients", Wfq, BareHeap).bar(Bar::AtMost(1.5)),
        ns("eevdf, 10,000 clients", Eevdf).note(DECISION),
        ratio("eevdf / bare binary heap, 10,000 clients", Eevdf, BareHeap).bar(Bar::AtMost(1.5)),
    ]
}

/// The simulator without guests, on one processor.
fn machine(context: &mut Context<'_>) -> Row {
    let mut run = host::hogs(USUAL, Vtrr::new);
    let rounds = context.rounds(60);
    let samples = interleave("simulated machine", rounds, &[()], context.progress, |()| {
        // Going on by no time only asks for the count of decisions so far.
        let before = run(0).map_err(Reason::from_error)?;
        let begin = Instant::now();
        let after = run(QUANTA).map_err(Reason::from_error)?;
        Ok((after - before) as f64 / begin.elapsed().as_secs_f64() / 1e6)
    });
    Row::new("policy: simulated machine without guests", "M/s", samples.of(()))
        .bar(Bar::AtLeast(10.0))
        .note("decisions a second under vtrr, 100 clients, one processor")
}

fn tavs_host(context: &mut Context<'_>) -> Row {
    let mut host = host::tavs();
    let rounds = context.rounds(60);
    let samples = interleave("TAVS host", rounds, &[()], context.progress, |()| {
        let run = made(&mut host)?;
        let begin = Instant::now();
        run(Nanoseconds::new(TAVS_NS)).map_err(Reason::from_error)?;
        Ok(TAVS_NS as f64 / begin.elapsed().as_nanos() as f64)
    });
    Row::new("policy: simulated TAVS host", "s/s", samples.of(())).bar(Bar::AtLeast(300.0)).note(
        "simulated seconds a second: seven domains, network and driver (scenario tavs-host), credit-tavs",
    )
}

/// The surfaces of the study `vtrr-error` on all processors.
fn surfaces(context: &mut Context<'_>) -> Row {
    let rounds = context.rounds(30);
    let samples = interleave("error surfaces", rounds, &[()], context.progress, |()| {
        surfaces::decisions_a_second().map(|decisions| decisions / 1e6)
    });
    let processors = mete_sim::all_processors();
    Row::new("policy: service-time-error surfaces", "M/s", samples.of(()))
        .bar(Bar::AtLeast(40.0))
        .note(format!("decisions a second of vtrr, wrr and wfq, errors kept, on {processors} processors"))
}
