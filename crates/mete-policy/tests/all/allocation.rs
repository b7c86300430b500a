//! A decision allocates nothing (design decision D8).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::common::plain::Policy;
use mete_policy::{
    Affinity, CATALOG, ClientId, Event, Nanoseconds, Observation, Period, Permille, ProcessorId, RequestId,
    Role, Share, Stop, TaskId, affinity::Settings,
};

use crate::common::{CLIENTS, setup};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator. The count belongs to one thread and needs no
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
    let processors: Vec<_> = (0..DOMAINS).map(|domain| Some(ProcessorId::at(domain % 4))).collect();
    let settings = Settings {
        confirm_periods: 1,
        dwell_periods: 0,
        cap: Permille::new(1_000_000),
        ..Settings::default()
    };
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
            demand: &[Permille::new(10); DOMAINS],
            queue: &[Permille::ZERO; 4],
        };
        assert_eq!(allocations(|| moved += policy.decide(&period).len()), 0);
    }
    assert!(moved >= DOMAINS, "clients moved, so every part of the decision ran");
}

/// One history for each policy, with every call that an owner may make after the constructor.
#[test]
fn new_1_no_call_of_a_dispatching_policy_allocates() {
    for entry in CATALOG {
        let mut policy = (entry.make)(&setup());
        policy.add_domain(1, 0, Share::ONE);
        let during = allocations(|| {
            for client in 0..CLIENTS {
                policy.add(client, (client % 2) as u16, Share::new(1 + client * 7).unwrap_or(Share::ONE), 0);
                let _ = policy.wake(client, 0);
            }
            drive(&mut policy);
        });
        assert_eq!(during, 0, "{}", entry.name);
    }
}

fn drive(policy: &mut dyn Policy) {
    let stops = [Stop::Expired, Stop::Blocked, Stop::Preempted, Stop::Yielded];
    let mut now = 0;
    for round in 0..5_000u32 {
        let processor = (round % 3) as u16;
        let Some(decision) = policy.pick(processor, now) else { continue };
        let client = decision.client;
        let task =
            Observation::TaskSwitch { client: ClientId::new(client), task: TaskId::new((round % 5) as u16) };
        let _ = policy.observe(task, now);
        let event = Event::Packet { port: (round % 4) as u16 };
        let _ =
            policy.observe(Observation::EventPending { client: ClientId::new(round % CLIENTS), event }, now);
        let _ = policy.observe(
            Observation::BlockRead { client: ClientId::new(client), request: RequestId::new(1) },
            now,
        );
        let read = Observation::EventPending {
            client: ClientId::new(round % CLIENTS),
            event: Event::Block(RequestId::new(1)),
        };
        let _ = policy.observe(read, now);
        let _ = policy.observe(Observation::Driver { client: ClientId::new(round % CLIENTS) }, now);
        let _ = policy.observe(
            Observation::TaskExit { client: ClientId::new(client), task: TaskId::new((round % 7) as u16) },
            now,
        );
        let _ = policy.observe(
            Observation::DriverTime {
                driver: ClientId::new(0),
                client: ClientId::new(client),
                used_ns: Nanoseconds::new(1_000),
            },
            now,
        );
        let _ = policy.observe(
            Observation::Notify { from: ClientId::new(client), to: ClientId::new(round % CLIENTS) },
            now,
        );
        now += decision.slice_ns / 2;
        let _ = policy.tick(processor, now);
        let stop = stops[(round / 3 % 4) as usize];
        policy.ran(client, decision.slice_ns / 2, stop, now);
        let _ = policy.wake(client, now);
        policy.set_share(client, Share::new(1 + round % 100).unwrap_or(Share::ONE), now);
        policy.set_domain_share(1, Share::new(1 + round % 9).unwrap_or(Share::ONE), now);
        policy.counters(&mut |_, _| ());
        if round % 50 == 0 {
            policy.remove(client, now);
            policy.add(client, 1, Share::ONE, now);
            let _ = policy.wake(client, now);
        }
    }
}
