//! The cost of decisions, counted in looks at slots. A slot is what the queue knows about one client.

use super::store::CHUNK;
use super::{GroupVtrr, Reset, Store, Vtrr};
use crate::{ClientId, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// The paper's range (§5.2), and one beyond it.
const CLIENTS: [u32; 9] = [1, 2, 5, 10, 50, 100, 200, 400, 10_000];
const MILLION: u32 = 1_000_000;

/// Selection looks at the client behind the current one, at the head where that client is not to run, and at
/// the chosen one. A charge looks at the client that ran and, if it had to give way, at the one before it.
/// Each of them is looked at a few times.
const LOOKS: u64 = 14;

/// The bound in each level of a tree. Where part of a quantum is charged, the level's slot is searched for in
/// its chunk; the same happens where the level's last idle member begins to run.
const A_LEVEL: u64 = LOOKS + 2 * CHUNK as u64;

fn share(weight: u32) -> Share {
    Share::new(weight).expect("a test's share is in range")
}

/// Shares from 1 to 100, in no order.
fn mixed(client: u32) -> Share {
    share(1 + client.wrapping_mul(2_654_435_761) / 7 % 100)
}

fn start<P: Policy>(mut policy: P, clients: u32, share_of: impl Fn(u32) -> Share) -> P {
    for client in ClientId::first(clients) {
        policy.add(client, DomainIndex::ROOT, share_of(client.get()), Nanoseconds::ZERO);
        let _ = policy.wake(client, Nanoseconds::ZERO);
    }
    policy
}

/// The looks that a decision takes from one pick to the next. Of four decisions, one client yields halfway,
/// and one has to give way there.
fn looks<P: Policy>(policy: &mut P, store: fn(&P) -> &Store, nth: u32) -> u64 {
    let before = store(policy).looks.get();
    let decision = policy.pick(ProcessorId::new(0), Nanoseconds::ZERO).expect("all are ready");
    let half_ns = decision.slice_ns / 2;
    match nth % 4 {
        0 => policy.ran(decision.client, half_ns, Stop::Yielded, Nanoseconds::ZERO),
        1 => policy.ran(decision.client, half_ns, Stop::Preempted, Nanoseconds::ZERO),
        _ => policy.ran(decision.client, decision.slice_ns, Stop::Expired, Nanoseconds::ZERO),
    }
    store(policy).looks.get() - before
}

fn most_looks<P: Policy>(policy: &mut P, store: fn(&P) -> &Store, decisions: u32) -> u64 {
    (0..decisions).map(|nth| looks(policy, store, nth)).max().unwrap_or(0)
}

#[test]
fn vtrr_5_a_decision_touches_a_bounded_number_of_clients_however_many_there_are() {
    for clients in CLIENTS.into_iter().chain([MILLION]) {
        let policy = Vtrr::ranged(&Setup::for_clients(clients), share(100));
        let mut policy = start(policy, clients, mixed);
        let most = most_looks(&mut policy, |policy| &policy.store, 60_000);
        assert!((1..=LOOKS).contains(&most), "{most} looks with {clients} clients");
        assert!(clients > 400 || policy.cycle() > 2, "ends of cycles are among the decisions");
    }
}

#[test]
fn vtrr_5_resetting_all_at_once_takes_more_than_the_bound_once_in_a_cycle() {
    for clients in CLIENTS.into_iter().filter(|&clients| clients > LOOKS as u32) {
        let policy = Vtrr::new(&Setup::for_clients(clients)).with_reset(Reset::AtOnce);
        let mut policy = start(policy, clients, |client| share(1 + client % 3));
        for nth in 0..60_000 {
            let cycle = policy.cycle();
            let looks = looks(&mut policy, |policy| &policy.store, nth);
            let begins = u64::from(policy.cycle() != cycle);
            let bound = LOOKS + begins * u64::from(clients + 1);
            assert!(looks <= bound && looks > begins * u64::from(clients), "{looks} with {clients} clients");
        }
        assert!(policy.cycle() > 2, "there are such decisions");
    }
}

#[test]
fn vtrr_5_a_decision_in_a_tree_touches_a_bounded_number_of_clients_a_level() {
    for levels in 1..=5 {
        for clients in CLIENTS {
            let domains = levels;
            let mut policy = GroupVtrr::new(&Setup { domains, ..Setup::for_clients(clients) });
            // Each domain is in the one before: the clients are dealt out to all levels.
            for domain in 1..domains {
                let (parent, share) = (DomainIndex::new(domain - 1), mixed(domain.into()));
                policy.add_domain(DomainIndex::new(domain), parent, share);
            }
            for client in ClientId::first(clients) {
                let domain = DomainIndex::at(client.index() % usize::from(domains));
                policy.add(client, domain, mixed(client.get()), Nanoseconds::ZERO);
                let _ = policy.wake(client, Nanoseconds::ZERO);
            }
            let most = most_looks(&mut policy, |policy| &policy.store, 20_000);
            assert!(most <= A_LEVEL * u64::from(levels), "{most} with {clients} clients in {levels} levels");
        }
    }
}
