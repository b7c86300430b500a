//! After a while a run allocates nothing: the machine has grown as far as it has to.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use mete_policy::CATALOG;
use mete_sim::Scenario;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: it passes every call on to the system's allocator. The count belongs to one thread and needs no
// allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's obligations are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are the same.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Every queue reaches its usual length within the first half of the run. A queue that becomes longer than
/// ever in the second half may grow once; a decision may not allocate.
#[test]
fn a_run_allocates_next_to_nothing_in_any_scenario_under_any_policy() {
    for name in [
        "shares-3-2-1",
        "mix",
        "processors",
        "groups",
        "guests",
        "tavs-host",
        "tavs-disk",
        "tavs-stream",
        "tavs-web",
        "vcpus",
    ] {
        let scenario = Scenario::load(name, &[]).expect("it is right");
        for entry in CATALOG {
            let policy = (entry.make)(&scenario.setup(1));
            let mut host = scenario.host(policy, (), 1);
            host.run_until(scenario.duration_ns / 2).expect("time goes on");
            let (allocations, decisions) = (ALLOCATIONS.get(), host.decisions());
            host.run_until(scenario.duration_ns).expect("time goes on");
            let (allocations, decisions) = (ALLOCATIONS.get() - allocations, host.decisions() - decisions);
            assert!(decisions > 900, "{name} under {}: {decisions}", entry.name);
            assert!(allocations <= 2, "{name} under {}: {allocations} allocations", entry.name);
        }
    }
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.get() - before, 1, "the allocator counts");
}
