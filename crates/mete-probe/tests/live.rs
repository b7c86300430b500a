//! A scheduler and a program with probes, each in its own process.

mod common;

use std::collections::HashMap;

use common::{Log, Place, Subject, poll_all, until};
use mete_log::Stamp;

#[test]
fn log_12_rows_are_read_in_place_from_memory_that_the_scheduler_provided() {
    let place = Place::new("first");
    let subject = Subject::start(&place, &["count", "1"]);
    let mut component = subject.connect();
    assert_eq!(component.pid(), subject.pid());
    assert_eq!(component.name(), "mete-probe-subject");
    let number = component.event("number").expect("published").id;
    let log = Log::new(1024, Stamp::Hardware);
    component.provide(log.region.clone()).expect("provide");
    let mut readers = log.readers();
    assert_eq!(poll_all(&mut readers, |_, _| ()).rows, 0, "no row before an event is enabled");

    component.enable(number).expect("enable");
    let mut counters = HashMap::new();
    until(|| {
        let _ = poll_all(&mut readers, |processor, row| {
            assert_eq!((row.event, row.domain, row.correspondent), (Some(number), Some(0), Some(1)));
            assert!(row.stamp.expect("stamped") > 0);
            let last = counters.insert(processor, row.counter);
            assert!(last.is_none_or(|last| last < row.counter), "in the order of writing");
        });
        (!counters.is_empty()).then_some(())
    });
    subject.finish();
}
