//! A decision allocates nothing (design decision D8).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use mete_policy::{Affinity, Period, Role, Settings};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: passes every call on to the system's allocator; the count is a thread's own and needs no
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

fn allocations(during: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    during();
    ALLOCATIONS.get() - before
}

#[test]
fn a_decision_allocates_nothing() {
    const DOMAINS: usize = 64;
    let mut roles = [Role::Client; DOMAINS];
    roles[..4].fill(Role::Driver);
    let processors: Vec<_> = (0..DOMAINS).map(|domain| Some(domain as u16 % 4)).collect();
    let settings = Settings { confirm_periods: 1, dwell_periods: 0, cap: 1_000_000, ..Settings::default() };
    let mut policy = Affinity::new(DOMAINS, 4, settings);
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1, "the allocator counts");

    let mut moved = 0;
    for favourite in 0..8 {
        let talk = |entry: usize| if entry % DOMAINS == favourite % 4 { 1000 } else { 1 };
        let transactions: Vec<u64> = (0..DOMAINS * DOMAINS).map(talk).collect();
        let period = Period {
            roles: &roles,
            transactions: &transactions,
            processors: &processors,
            demand: &[10; DOMAINS],
            queue: &[0; 4],
        };
        assert_eq!(allocations(|| moved += policy.decide(&period).len()), 0);
    }
    assert!(moved >= DOMAINS, "clients moved, so every part of the decision ran");
}
