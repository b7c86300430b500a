//! Traces: the same bytes for the same seed, and every nanosecond in a row.

use mete_policy::{CATALOG, Nanoseconds};
use mete_sim::replay::Recording;
use mete_sim::scenario::SHIPPED;
use mete_sim::trace::{ReadError, Writer, event, read};
use mete_sim::{Report, Scenario, all_processors, in_parallel, report};
use proptest::prelude::*;

/// A trace of a shipped scenario, shortened to two seconds without warm-up.
fn trace(scenario: &str, policy: &str, seed: u64) -> (Report, Vec<u8>) {
    let settings = ["warm_up_ms=0", "duration_ms=2000"].map(|text| text.parse().expect("key=value"));
    let scenario = Scenario::load(scenario, &settings).expect("it is right");
    let writer = Writer::new(&scenario, Vec::new()).expect("it fits");
    let run = report::run(&scenario, policy, seed, writer).expect("it is in the catalog");
    let (report, writer) = run.expect("time goes on");
    (report, writer.finish().expect("memory can be written"))
}

#[test]
fn a_seed_gives_the_same_bytes_under_every_policy_on_any_number_of_threads() {
    for shipped in SHIPPED {
        let run = |number: usize| trace(shipped.name, CATALOG[number].name, 3).1;
        let threads = all_processors();
        let at_once = in_parallel(CATALOG.len(), threads, run, || std::ops::ControlFlow::Continue(()));
        let one_by_one: Vec<_> = (0..CATALOG.len()).map(run).collect();
        assert!(at_once.as_ref() == Some(&one_by_one), "{}", shipped.name);
    }
    assert_ne!(trace("mix", "vtrr", 1).1, trace("mix", "vtrr", 2).1);
}

/// FNV-1a: good enough to tell traces apart.
fn hash(bytes: &[u8]) -> u64 {
    let mixed = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mixed)
}

/// The digest was taken on the first machine on which this test ran. It changes only when the scenario, the
/// policy or the machine's order of events changes.
#[test]
fn a_seed_gives_the_same_bytes_on_every_machine() {
    assert_eq!(format!("{:016x}", hash(&trace("mix", "rr", 1).1)), "bc63a28f48968d82");
}

#[test]
fn every_row_of_service_time_together_is_what_the_report_says() {
    for (scenario, policy) in [("mix", "vtrr"), ("processors", "rr"), ("guests", "credit-tavs")] {
        let (report, bytes) = trace(scenario, policy, 1);
        let trace = read(&bytes).expect("it is whole");
        let mut ran_ns = vec![0; trace.domains.len()];
        for (processor, row) in trace.rows() {
            assert!(processor < trace.processors);
            if row.event == Some(event::SERVICE_TIME) {
                ran_ns[row.domain.expect("all entries").index()] += row.counter.expect("all entries");
            }
        }
        for (client, ran_ns) in report.clients.iter().zip(&ran_ns[1..]) {
            // A client that runs when the run ends has no row for that yet.
            let missing_ns = client.ran_ns - Nanoseconds::new(*ran_ns);
            assert!(
                missing_ns <= Nanoseconds::new(100_000_000),
                "{scenario}: {} lacks {missing_ns}",
                client.name
            );
        }
        let wakes: u64 = report.clients.iter().map(|client| client.wakes).sum();
        let rows = trace.rows().filter(|(_, row)| row.event == Some(event::WAKE)).count();
        assert_eq!(rows as u64, wakes);
    }
}

#[test]
fn rows_of_a_processor_are_in_order_and_each_switch_goes_on_where_the_last_ended() {
    let (_, bytes) = trace("processors", "rr", 1);
    let trace = read(&bytes).expect("it is whole");
    for processor in 0..trace.processors {
        let rows =
            trace.rows().filter(|(of, row)| *of == processor && row.event == Some(event::SERVICE_TIME));
        let rows: Vec<_> = rows.map(|(_, row)| row).collect();
        assert!(rows.len() > 100);
        let stamps: Vec<_> =
            trace.rows().filter(|(of, _)| *of == processor).map(|(_, row)| row.stamp).collect();
        assert!(stamps.is_sorted());
        for pair in rows.windows(2) {
            assert_eq!(pair[0].correspondent, pair[1].domain, "{pair:?}");
        }
    }
}

#[test]
fn bytes_that_are_no_trace_are_refused() {
    let (_, bytes) = trace("mix", "rr", 1);
    assert_eq!(read(b"METESIM2"), Err(ReadError::Foreign));
    assert_eq!(read(b""), Err(ReadError::Foreign));
    for end in [8, 9, 31, 33, bytes.len() - 1] {
        assert!(matches!(read(&bytes[..end]), Err(ReadError::CutOff { .. })), "{end}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((0usize..400, any::<u8>()), 0..4),
    ) {
        let begun = [&b"METESIM1"[..], &bytes].concat();
        let (_, mut whole) = trace("shares-3-2-1", "rr", 1);
        for (place, byte) in changes {
            whole[place] = byte;
        }
        for bytes in [&bytes, &begun, &whole] {
            let rows = read(bytes).map_or(0, |trace| trace.rows().count());
            prop_assert!(rows <= bytes.len() / 32);
            // They do not make a recording panic either; whether it is accepted does not matter here.
            drop(Recording::read(&bytes[..]));
        }
    }
}
