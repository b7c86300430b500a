//! Bounds: processors on which a client may run.

use mete_policy::{CATALOG, ClientId, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// And one that knows none does at times, so its owner has to see to them.
#[test]
fn new_1_a_policy_that_knows_bounds_picks_for_no_processor_a_client_that_may_not_run_there() {
    const MASKS: [u64; 4] = [0b001, 0b010, 0b110, 0b111];
    for entry in CATALOG {
        let setup = Setup {
            clients: 24,
            domains: 3,
            processors: 3,
            quantum_ns: Nanoseconds::from_millis(10),
            seed: 1,
        };
        let mut policy = (entry.make)(&setup);
        policy.add_domain(DomainIndex::new(1), DomainIndex::ROOT, Share::ONE);
        let mut now = Nanoseconds::from_secs(1);
        let mask = |client: ClientId| MASKS[client.index() % MASKS.len()];
        for client in ClientId::first(24) {
            policy.add(client, DomainIndex::at(client.index() % 2), Share::ONE, now);
            policy.set_allowed(client, mask(client));
            let _ = policy.wake(client, now);
        }
        let mut wrong = 0;
        for nth in 0..3000_u16 {
            now += Nanoseconds::from_millis(1);
            let processor = ProcessorId::new(nth % 3);
            let Some(decision) = policy.pick(processor, now) else { continue };
            wrong += u32::from(mask(decision.client) >> processor.index() & 1 == 0);
            let stop = if nth % 5 == 0 { Stop::Blocked } else { Stop::Expired };
            policy.ran(decision.client, decision.slice_ns, stop, now);
            if stop == Stop::Blocked {
                let _ = policy.wake(decision.client, now);
            }
        }
        assert_eq!(wrong == 0, policy.knows_bounds(), "{}: {wrong} wrong ones", entry.name);
    }
}
