//! Polling and deriving allocate nothing, however much was logged (LOG-16).
#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::alloc::{GlobalAlloc, System};
use std::cell::Cell;
use std::sync::Arc;

use mete_log::handler::{Clock, log};
use mete_log::{DomainId, EventId, Record, Region, Shape};
use mete_sched::Layout;
use mete_sched::analysis::Analysis;
use mete_sched::sources::{EventUse, Meaning, RegionSource};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: passes every call on to the system's allocator. The count belongs to the thread and needs no
// allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: std::alloc::Layout) {
        // SAFETY: the caller's obligations are the same.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Never;

impl Clock for Never {
    fn hardware(&self) -> u64 {
        0
    }

    fn tick(&self) -> u64 {
        0
    }
}

#[test]
fn log_16_a_poll_and_the_end_of_a_period_allocate_nothing() {
    const MEANINGS: [Meaning; 9] = [
        Meaning::ServiceTime,
        Meaning::Sent,
        Meaning::Received,
        Meaning::Memory,
        Meaning::RunQueue,
        Meaning::Counter,
        Meaning::Access,
        Meaning::Phase,
        Meaning::Sample,
    ];
    for layout in [Layout::PerEvent, Layout::PerDomain] {
        let region = Arc::new(Region::create(Shape::COMPONENT, 2).unwrap());
        let events = MEANINGS
            .iter()
            .zip((0..).map(EventId::new))
            .map(|(&meaning, event)| EventUse::new(event, "x", meaning))
            .collect();
        let mut analysis = Analysis::new(2, vec![None; 18], layout, 0);
        analysis.add(Box::new(RegionSource::new("bench", region.clone(), events))).unwrap();
        let before = ALLOCATIONS.get();
        for round in 1..5 {
            for number in 0..9_000u16 {
                let [domain, correspondent] = [number % 18, number % 7].map(DomainId::new);
                let record = Record { event: EventId::new(number % 9), domain, correspondent, counter: 5 };
                log(region.area(usize::from(number % 2)), &Never, record);
            }
            analysis.poll(round);
            std::hint::black_box(analysis.end_period(round));
        }
        assert_eq!(ALLOCATIONS.get() - before, 0);
        assert!(
            analysis.completeness().files.iter().map(|file| file.rows).sum::<u64>() > 20_000,
            "rows were read"
        );
        assert!(ALLOCATIONS.get() > before, "the allocator counts");
    }
}
