//! Domains as a policy knows them that deals out shares to them.

use mete_log::DomainId;
use mete_policy::{DomainIndex, Entry, Nanoseconds, Policy, Setup, Share};

use super::{Domains, FIRST, ours::FIRST_PROCESS};

/// The number by which the policy knows a domain of the user's. Those that are in every table come before
/// them; to the policy, only its root does.
#[must_use]
pub fn policy_domain(domain: DomainId) -> DomainIndex {
    DomainIndex::new(domain.get() + 1 - FIRST.get())
}

/// A policy that knows domains with these shares, for this number of clients and of processors.
#[must_use]
pub fn make_policy(
    policy: &Entry,
    shares: &[Share],
    (clients, processors): (usize, usize),
    quantum_ns: Nanoseconds,
) -> Box<dyn Policy + Send> {
    let setup = Setup {
        clients: clients as u32,
        domains: shares.len() as u16 + 1,
        processors: processors as u16,
        quantum_ns,
        seed: 0,
    };
    let mut policy = (policy.make)(&setup);
    for (number, share) in (FIRST.index()..).zip(shares) {
        policy.add_domain(policy_domain(DomainId::new(number as u16)), DomainIndex::ROOT, *share);
    }
    policy
}

/// The name of the domain that holds the first process. All that it has started would belong to that domain: the whole machine.
#[must_use]
pub fn holder_of_first_process(domains: &Domains) -> Option<&str> {
    let mut users = domains.numbers().filter(|domain| *domain >= FIRST);
    let holder = users.find(|&domain| domains.members(domain).any(|process| process == FIRST_PROCESS))?;
    Some(domains.name(holder))
}
