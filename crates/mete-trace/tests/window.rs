//! What is said of a part of a trace is true of that part (NEW-2).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(not(loom))]

mod common;

use common::{NUMBERED, Scratch, record, trace_description, write_file};
use mete_trace::{Account, Filter, Gap, Item, Ticks, Trace};
use proptest::prelude::*;

/// What happened: at each moment, in order, an event that was recorded or one that was lost.
type History = [(u64, bool)];

fn trace_of(scratch: &Scratch, history: &History) -> Trace {
    trace_description(1).write(scratch.path()).unwrap();
    let events = (0..).zip(history).filter(|(_, (_, recorded))| *recorded);
    let records: Vec<_> =
        events.map(|(serial, (time, _))| (serial, record(NUMBERED, serial, *time, &[serial]))).collect();
    write_file(scratch.path(), 0, &records, history.len() as u64);
    Trace::open(scratch.path()).unwrap()
}

/// The records and gaps that a pass hands out, and its account.
fn pass(trace: &Trace, filter: Filter) -> (Vec<u64>, Vec<Gap>, Account) {
    let (mut records, mut gaps, mut merged) = (Vec::new(), Vec::new(), trace.merge(filter));
    while let Some(item) = merged.next() {
        match item.unwrap() {
            Item::Record(record) => records.push(record.serial),
            Item::Lost(gap) => gaps.push(gap),
        }
    }
    (records, gaps, merged.accounts()[0])
}

/// The serial numbers that may have been in a time: of the records in it, and of the lost events whose
/// neighbours do not tell that they were outside of it.
fn may_be_within(history: &History, from: u64, until: u64) -> Vec<usize> {
    let known = |at: &usize| history[*at].1;
    let is_within = |at: &usize| {
        if known(at) {
            return (from..=until).contains(&history[*at].0);
        }
        let after = (0..*at).rev().find(known).map(|at| history[at].0);
        let before = (*at..history.len()).find(known).map(|at| history[at].0);
        after.is_none_or(|after| after <= until) && before.is_none_or(|before| before >= from)
    };
    (0..history.len()).filter(is_within).collect()
}

fn histories() -> impl Strategy<Value = Vec<(u64, bool)>> {
    // Stretches of losses from none to longer than a block, and times that stand still or leap.
    let stretch = (1_usize..600, prop_oneof![3 => Just(true), 1 => Just(false)], 0_u64..4);
    prop::collection::vec(stretch, 1..12).prop_map(|stretches| {
        let each = |(events, recorded, step): (usize, bool, u64)| vec![(step, recorded); events];
        let steps = stretches.into_iter().flat_map(each);
        let mut now = 100;
        steps
            .map(|(step, recorded)| {
                (
                    {
                        now += step;
                        now
                    },
                    recorded,
                )
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 200 }))]

    #[test]
    fn new_2_gaps_and_accounts_of_a_time_are_those_of_that_time(
        history in histories(), bounds in [0_u64..6000, 0_u64..6000], overhears: bool,
    ) {
        let scratch = Scratch::new("window");
        let trace = trace_of(&scratch, &history);
        let (from, until) = (bounds[0].min(bounds[1]), bounds[0].max(bounds[1]));
        let filter = Filter::default().from_ticks(Ticks::new(from)).until_ticks(Ticks::new(until));
        let (records, gaps, account) = pass(&trace, if overhears { filter.with_all_events() } else { filter });

        let within = may_be_within(&history, from, until);
        let recorded: Vec<u64> =
            within.iter().filter(|at| history[**at].1).map(|at| *at as u64).collect();
        let lost = (within.len() - recorded.len()) as u64;
        let shown: Vec<u64> =
            records.iter().copied().filter(|serial| history[*serial as usize].0 >= from).collect();
        prop_assert_eq!(&shown, &recorded);
        prop_assert!(overhears || shown == records);
        prop_assert_eq!(gaps.iter().map(|gap| gap.events).sum::<u64>(), lost);
        prop_assert_eq!((account.records, account.lost), (recorded.len() as u64, lost));
        prop_assert!(account.ended, "either a later event is there, or the end");
        if let (Some(first), Some(last)) = (within.first(), within.last()) {
            prop_assert_eq!((account.first_serial, account.end_serial), (*first as u64, *last as u64 + 1));
        }
        prop_assert_eq!(account.end_serial - account.first_serial, account.records + account.lost);
        if let (Some(first), Some(last)) = (recorded.first(), recorded.last()) {
            let time = |serial: &u64| Ticks::new(history[*serial as usize].0);
            prop_assert_eq!((account.first_time, account.last_time), (time(first), time(last)));
        }
    }
}

#[test]
fn new_2_without_the_end_of_the_recording_only_an_earlier_time_is_complete() {
    let scratch = Scratch::new("window-killed");
    let history: Vec<_> = (0..4000).map(|at| (at, true)).collect();
    let trace = trace_of(&scratch, &history);
    // A killed recorder leaves whole blocks and no last one.
    let path = scratch.path().join(mete_trace::description::file_name(0));
    let blocks = std::fs::metadata(&path).unwrap().len() / u64::from(common::BLOCK_BYTES);
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len((blocks - 1) * u64::from(common::BLOCK_BYTES)).unwrap();
    let until = |time| pass(&trace, Filter::default().until_ticks(Ticks::new(time))).2;
    assert!(until(1000).is_complete() && until(1000).records == 1001, "{:?}", until(1000));
    assert!(!until(5000).ended && until(5000).records < 4000, "{:?}", until(5000));
}
