//! Which side provides the memory, which sides share it (LOG-9, LOG-12), and the bindings in it (LOG-6).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{STAMPS, SetClock, record};
use mete_log::bindings::SLOTS;
use mete_log::handler::{enter, exit, log};
use mete_log::layout::PAGE;
use mete_log::plan::{freeze, thaw};
use mete_log::sealed::SealedError::{NotMemory, NotSealed, WrongSize};
use mete_log::{
    Area, DomainId, Entries, EventId, FileId, FileSpec, Plan, PlanError, Region, RegionError, Shape, Stamp,
};
use proptest::prelude::*;

fn small() -> Shape {
    Shape::new(2, 2, 2, 12).unwrap()
}

#[test]
fn log_12_both_sides_share_the_memory_that_the_scheduler_provides() {
    let scheduler = Region::create(small(), 3).unwrap();
    let component = Region::attach(scheduler.fd().try_clone_to_owned().unwrap(), small(), 3).unwrap();
    for (processor, area) in component.areas().enumerate() {
        assert!(area.is_initialised());
        area.virtual_clock().store(processor as u64 + 1, Ordering::Relaxed);
    }
    let seen: Vec<_> = scheduler.areas().map(|area| area.virtual_clock().load(Ordering::Relaxed)).collect();
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn log_9_areas_of_different_processors_share_no_memory() {
    let region = Region::create(small(), 3).unwrap();
    let mut end = region.base().addr().get() + SLOTS * 8;
    for area in region.areas() {
        let begin = area.base().addr().get();
        assert!(begin >= end && begin.is_multiple_of(PAGE), "an area begins inside what is before it");
        end = begin + area.shape().area_bytes();
    }
    assert!(end <= region.base().addr().get() + region.bytes(), "the last area ends inside the region");
}

/// Every word of a region, the bindings included.
fn words(region: &Region) -> Vec<u64> {
    let count = region.bytes() / 8;
    // SAFETY: these are the region's own words, read as atomics.
    let all = unsafe { std::slice::from_raw_parts(region.base().cast::<AtomicU64>().as_ptr(), count) };
    all.iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

/// Has a producer do all that it can do: rows of every stamp, sums, thresholds, more rows than the ring
/// holds, rows that are refused.
fn log_everything(area: Area<'_>) {
    for call in 0..200 {
        let event = (call % 4) as u16;
        log(area, &SetClock::default(), record(event, (call % 3) as u16, 3, call));
        if enter(area, DomainId::new(1), EventId::new(event)) {
            exit(area, &SetClock::default(), record(event, 1, 2, call));
        }
        match call {
            100 => freeze(area, FileId::new(0)),
            120 => thaw(area, FileId::new(0)),
            _ => {}
        }
    }
}

#[test]
fn log_9_a_producer_on_one_processor_writes_into_no_other_processors_area() {
    let region = Region::create(small(), 3).unwrap();
    region.bindings().bind(4711, DomainId::new(1)).unwrap();
    for (entries, add) in [(Entries::ALL, false), (Entries::COUNTER, true)] {
        for stamp in STAMPS {
            let mut plan = Plan::new(small());
            let file = plan.file(FileSpec { entries, stamp, add, rows: 8 }).unwrap();
            EventId::all_below(4).for_each(|event| plan.route_event(event, file).unwrap());
            plan.threshold(EventId::new(2), DomainId::new(1), 3).unwrap();
            region.areas().for_each(|area| plan.apply(area));
            for area in region.areas() {
                let before = words(&region);
                log_everything(area);
                let after = words(&region);
                let begin = (area.base().addr().get() - region.base().addr().get()) / 8;
                let end = begin + small().area_bytes() / 8;
                assert!(before[begin..end] != after[begin..end], "rows were written");
                assert!(before[..begin] == after[..begin], "{stamp:?}: something before the area changed");
                assert!(before[end..] == after[end..], "{stamp:?}: something behind the area changed");
            }
        }
    }
}

#[test]
fn log_11_memory_that_could_shrink_is_refused() {
    let bytes = Region::bytes_for(small(), 1) as u64;
    let file = rustix::fs::memfd_create("unsealed", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&file, bytes).unwrap();
    assert!(matches!(Region::attach(file, small(), 1), Err(RegionError::Memory(NotSealed { .. }))));
    let pipe: OwnedFd = rustix::pipe::pipe().unwrap().0;
    assert!(matches!(Region::attach(pipe, small(), 1), Err(RegionError::Memory(NotMemory))));
}

#[test]
fn log_11_memory_of_the_wrong_size_is_refused() {
    let region = Region::create(small(), 1).unwrap();
    // Each attempt takes a descriptor of its own.
    let offer = || region.fd().try_clone_to_owned().unwrap();
    assert!(matches!(Region::attach(offer(), small(), 2), Err(RegionError::Memory(WrongSize { .. }))));
    assert!(matches!(
        Region::attach(offer(), Shape::COMPONENT, 1),
        Err(RegionError::Memory(WrongSize { .. }))
    ));
    assert!(matches!(Region::attach(offer(), small(), 0), Err(RegionError::Processors { .. })));
}

#[test]
fn log_6_a_process_is_bound_rebound_and_forgotten() {
    let region = Region::create(small(), 1).unwrap();
    let bindings = region.bindings();
    assert_eq!(bindings.domain_of(4711), None);
    let [zero, three, nine] = [0, 3, 9].map(DomainId::new);
    bindings.bind(4711, zero).unwrap();
    bindings.bind(4712, nine).unwrap();
    assert_eq!((bindings.domain_of(4711), bindings.domain_of(4712)), (Some(zero), Some(nine)));
    bindings.bind(4711, three).unwrap();
    assert_eq!(bindings.domain_of(4711), Some(three));
    bindings.unbind(4711);
    assert_eq!((bindings.domain_of(4711), bindings.domain_of(4712)), (None, Some(nine)));
}

#[test]
fn log_6_a_full_table_refuses_and_keeps_what_it_has() {
    let region = Region::create(small(), 1).unwrap();
    let bindings = region.bindings();
    let seven = DomainId::new(7);
    let bound: Vec<u32> = (1..=SLOTS as u32 * 2).filter(|&pid| bindings.bind(pid, seven).is_ok()).collect();
    assert!(bound.len() <= SLOTS && bound.len() > SLOTS / 2);
    assert!(bound.iter().all(|&pid| bindings.domain_of(pid) == Some(seven)));
}

proptest! {
    #[test]
    fn log_6_the_table_answers_like_a_map(calls in prop::collection::vec((1u32..60, prop::option::of(0u16..256)), 0..60)) {
        let region = Region::create(small(), 1).unwrap();
        let bindings = region.bindings();
        let mut map = std::collections::HashMap::new();
        for (pid, domain) in calls {
            match domain.map(DomainId::new) {
                Some(domain) => {
                    bindings.bind(pid, domain).unwrap();
                    map.insert(pid, domain);
                }
                None => {
                    bindings.unbind(pid);
                    map.remove(&pid);
                }
            }
            for pid in 1..60 {
                prop_assert_eq!(bindings.domain_of(pid), map.get(&pid).copied());
            }
        }
    }
}

#[test]
fn log_7_a_plan_says_what_does_not_fit() {
    let mut plan = Plan::new(small());
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::None, add: false, rows: 2 };
    assert_eq!(plan.file(FileSpec { rows: 3, ..spec }), Err(PlanError::Rows { rows: 3 }));
    assert_eq!(plan.file(FileSpec { rows: 1, ..spec }), Err(PlanError::Rows { rows: 1 }));
    let adding = FileSpec { entries: Entries::EVENT, add: true, ..spec };
    assert_eq!(plan.file(adding), Err(PlanError::AddWithoutCounter));
    assert!(matches!(
        plan.file(FileSpec { rows: 1 << 20, ..spec }),
        Err(PlanError::Full { total: 4096, .. })
    ));
    let file = plan.file(spec).unwrap();
    let (event, domain) = (EventId::new(0), DomainId::new(0));
    let no_event = EventId::new(4);
    assert_eq!(plan.route(no_event, domain, file), Err(PlanError::Event { event: no_event, events: 4 }));
    let no_domain = DomainId::new(4);
    assert_eq!(plan.route(event, no_domain, file), Err(PlanError::Domain { domain: no_domain, domains: 4 }));
    let no_file = FileId::new(2);
    assert_eq!(plan.route(event, domain, no_file), Err(PlanError::File { file: no_file, files: 2 }));
    plan.file(spec).unwrap();
    plan.file(spec).unwrap();
    assert_eq!(plan.file(spec), Err(PlanError::Files { files: 4 }));
}
