//! A scheduler and a program with probes, each in its own process.

mod common;

use std::collections::HashMap;

use common::{Log, SocketDirectory, Subject, id, poll_all, until};
use mete_log::{DomainId, Stamp};

#[test]
fn log_12_rows_are_read_in_place_from_memory_that_the_scheduler_provided() {
    let place = SocketDirectory::new("first");
    let subject = Subject::start(&place, &["count", "1"]);
    let mut component = subject.connect();
    assert_eq!(component.pid(), subject.pid());
    assert_eq!(component.name(), "mete-probe-subject");
    let number = component.event("number").expect("published").id;
    let log = Log::of(&mut component, 1024, Stamp::Hardware);
    let mut readers = log.readers();
    assert_eq!(poll_all(&mut readers, |_, _| ()).rows, 0, "no row before an event is enabled");

    component.enable(number).expect("enable");
    let mut counters = HashMap::new();
    until(|| {
        let _ = poll_all(&mut readers, |processor, row| {
            let (own, thread) = (DomainId::default(), DomainId::new(1));
            assert_eq!((row.event, row.domain, row.correspondent), (Some(number), Some(own), Some(thread)));
            assert!(row.stamp.expect("stamped") > 0);
            let last = counters.insert(processor, row.counter);
            assert!(last.is_none_or(|last| last < row.counter), "in the order of writing");
        });
        (!counters.is_empty()).then_some(())
    });
    subject.finish();
}

/// The counters of the rows that some orders cause.
fn rows_after(subject: &mut Subject, log: &Log, orders: &[&str]) -> Vec<u64> {
    let mut readers = log.readers();
    for order in orders {
        subject.say(order);
        subject.line();
    }
    let mut counters = Vec::new();
    let _ = poll_all(&mut readers, |_, row| counters.push(row.counter.expect("selected")));
    counters
}

#[test]
fn log_1_a_phase_charges_its_delta_at_the_exit() {
    let place = SocketDirectory::new("phases");
    let mut subject = Subject::start(&place, &["phases"]);
    let mut component = subject.connect();
    let log = Log::of(&mut component, 64, Stamp::None);
    let phase = id(&component, "phase");

    assert_eq!(rows_after(&mut subject, &log, &["enter 10", "exit 12"]), [], "off");
    assert_eq!(rows_after(&mut subject, &log, &["enter 20"]), []);
    component.enable(phase).expect("enable");
    assert_eq!(rows_after(&mut subject, &log, &["exit 25"]), [], "switched on in between");
    assert_eq!(rows_after(&mut subject, &log, &["enter 30", "exit 37"]), [7]);
    assert_eq!(rows_after(&mut subject, &log, &["enter 5", "exit 3"]), [u64::MAX - 1], "modulo 2^64");
    assert_eq!(rows_after(&mut subject, &log, &["enter 40"]), []);
    component.disable(phase).expect("disable");
    assert_eq!(rows_after(&mut subject, &log, &["exit 50"]), [], "switched off in between");
    subject.finish();
}

#[test]
fn log_8_a_threshold_makes_every_nth_phase_a_row() {
    let place = SocketDirectory::new("threshold");
    let mut subject = Subject::start(&place, &["phases"]);
    let mut component = subject.connect();
    let mut log = Log::new(64, Stamp::None);
    let phase = id(&component, "phase");
    log.plan.threshold(phase, DomainId::new(0), 3).expect("a threshold");
    log.apply();
    component.provide(log.region.clone()).expect("provide");
    component.enable(phase).expect("enable");
    // Each processor counts for itself, and the subject may move between them.
    let processors = log.region.processors() as u64;
    let mut rows = 0;
    for value in 0..60 {
        let orders = [format!("enter {value}"), format!("exit {}", value + 2)];
        let counters = rows_after(&mut subject, &log, &[&orders[0], &orders[1]]);
        assert!(counters.iter().all(|&counter| counter == 2), "{counters:?}");
        rows += counters.len() as u64;
    }
    assert!(
        (20 - 2 * processors..=20).contains(&rows),
        "{rows} rows of 60 phases on {processors} processors"
    );
    subject.finish();
}

#[test]
fn log_2_arguments_are_evaluated_only_while_the_event_is_on() {
    let place = SocketDirectory::new("arguments");
    let mut subject = Subject::start(&place, &["phases"]);
    let mut component = subject.connect();
    let _log = Log::of(&mut component, 64, Stamp::None);
    let number = id(&component, "number");
    let evaluated = |subject: &mut Subject| {
        subject.say("number 1");
        subject.line()
    };
    assert_eq!(evaluated(&mut subject), "0");
    component.enable(number).expect("enable");
    assert_eq!(evaluated(&mut subject), "1");
    component.disable(number).expect("disable");
    assert_eq!(evaluated(&mut subject), "1");
    subject.finish();
}
