//! Code is patched while it runs (LOG-2, LOG-3).

mod common;

use std::collections::HashMap;
use std::process::Command;

use common::{Log, LogReader, SocketDirectory, Subject, id, poll_all};
use mete_log::{DomainId, EventId, NO_DOMAIN, Row, Stamp};

/// Both ways of patching (see `src/patch.rs`), each in a subject of its own.
const WAYS: [&str; 2] = ["", "page"];

fn start(place: &SocketDirectory, way: &str, arguments: &[&str]) -> Subject {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mete-probe-subject"));
    command.args(arguments).env("METE_PATCH", way);
    Subject::start_command(place, command)
}

#[cfg(all(target_arch = "x86_64", not(feature = "flag-check")))]
#[test]
fn log_2_a_site_is_a_no_op_when_off_and_a_jump_when_on() {
    for way in WAYS {
        let place = SocketDirectory::new(&format!("bytes{way}"));
        let mut subject = start(&place, way, &["sites"]);
        let mut component = subject.connect();
        let _log = Log::of(&mut component, 64, Stamp::None);
        let number = component.event("number").expect("published").id;

        let mut states = || {
            subject.say("");
            let line = subject.line();
            line.split(' ').map(str::to_owned).collect::<Vec<_>>()
        };
        let off = states();
        assert!(off.iter().all(|site| site.ends_with(":no-op:true")), "{off:?}");
        assert!(off.iter().filter(|site| site.starts_with("number:")).count() >= 4, "{off:?}");

        component.enable(number).expect("enable");
        let on = states();
        for (before, now) in off.iter().zip(&on) {
            let expected = if before.starts_with("number:") { "number:jump:true" } else { before };
            assert_eq!(now, expected);
        }
        component.disable(number).expect("disable");
        assert_eq!(states(), off);
    }
}

#[cfg(all(target_arch = "x86_64", not(feature = "flag-check")))]
#[test]
fn log_3_code_that_another_program_has_changed_is_left_alone_and_no_site_is_switched() {
    use mete_probe::attach::AttachError;
    use mete_probe::wire::Refusal;

    let place = SocketDirectory::new("foreign");
    let mut subject = start(&place, "", &["sites"]);
    let mut component = subject.connect();
    let _log = Log::of(&mut component, 64, Stamp::None);
    subject.say("spoil");
    let spoilt = subject.line();
    assert_eq!(spoilt.matches("number:else").count(), 1, "{spoilt}");
    let answer = component.enable(id(&component, "number"));
    let reason = Refusal::NotPatched;
    assert!(
        matches!(&answer, Err(AttachError::Refused { reason: given, .. }) if *given == reason),
        "{answer:?}"
    );
    subject.say("");
    assert_eq!(subject.line(), spoilt, "no site was switched");
    component.enable(id(&component, "value")).expect("another event is not concerned");
    subject.finish();
}

#[test]
fn log_3_threads_run_through_probes_that_are_switched_all_the_time() {
    for way in WAYS {
        let place = SocketDirectory::new(&format!("storm{way}"));
        let subject = start(&place, way, &["count", "3"]);
        let mut component = subject.connect();
        let log = Log::of(&mut component, 4096, Stamp::Virtual);
        let mut readers = log.readers();
        let events = ["number", "phase", "value"].map(|name| id(&component, name));
        let mut order = RowOrder::new(events);
        for cycle in 0..4000 {
            component.enable(events[cycle % 3]).expect("enable");
            if cycle % 16 == 0 {
                order.check(&mut readers);
            }
            component.disable(events[cycle % 3]).expect("disable");
        }
        order.check(&mut readers);
        assert!(order.rows > 0, "rows were seen");
        let before = order.rows;
        std::thread::sleep(std::time::Duration::from_millis(20));
        order.check(&mut readers);
        assert!(order.rows - before <= 3, "off: at most what each thread was just about to write");
        drop(component);
        assert_eq!(subject.finish().len(), 3, "all threads came through");
    }
}

/// Whether this is the correspondent of one of the subject's three threads.
fn is_threads(correspondent: DomainId) -> bool {
    (1..=3).contains(&correspondent.get())
}

/// Checks that some probe wrote every row, that it is whole, and that it is in its thread's order.
struct RowOrder {
    events: [EventId; 3],
    rows: u64,
    last: HashMap<(usize, EventId, DomainId), u64>,
}

impl RowOrder {
    fn new(events: [EventId; 3]) -> RowOrder {
        RowOrder { events, rows: 0, last: HashMap::new() }
    }

    fn check(&mut self, readers: &mut [LogReader<'_>]) {
        let _ = poll_all(readers, |processor, row| self.check_row(processor, row));
    }

    fn check_row(&mut self, processor: usize, row: Row) {
        self.rows += 1;
        assert_eq!(row.domain, Some(DomainId::default()));
        let (event, correspondent) = (row.event.expect("selected"), row.correspondent.expect("selected"));
        let counter = row.counter.expect("selected");
        match self.events.iter().position(|&known| known == event) {
            Some(0) => {
                assert!(is_threads(correspondent), "{row:?}");
                let last = self.last.insert((processor, event, correspondent), counter);
                assert!(last.is_none_or(|last| last < counter), "{row:?} after {last:?}");
            }
            Some(1) => assert!(is_threads(correspondent) && counter == 3, "{row:?}"),
            Some(2) => assert_eq!(correspondent, NO_DOMAIN, "{row:?}"),
            _ => panic!("an event that does not exist: {row:?}"),
        }
    }
}
