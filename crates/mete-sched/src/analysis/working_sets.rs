//! Domain working sets: groups of domains that deal with one another so much that they should run together
//! (thesis §4.5.3, with the transitive closure that it leaves out).
//!
//! Two domains are connected if their dealings with each other are a tenth of all dealings of either of them.
//! A group consists of domains that are connected, directly or through others.

use mete_log::DomainId;

use super::traffic::Traffic;
use crate::domains::user_domains;

/// Fewer dealings than this connect no domains: they are chance.
const MIN_WEIGHT: u64 = 10;
/// Divisor: the share of a domain's dealings that connects it.
const MIN_SHARE: u64 = 10;

/// Groups of domains. Their memory is allocated once.
#[derive(Clone, Debug)]
pub struct WorkingSets {
    /// The parent of each domain in its group's tree. A root is its own parent.
    parents: Vec<DomainId>,
    /// The weight of all dealings of each domain.
    sums: Vec<u64>,
}

impl WorkingSets {
    pub(super) fn new(domains: usize) -> WorkingSets {
        WorkingSets { parents: DomainId::all_below(domains).collect(), sums: vec![0; domains] }
    }

    /// The group of a domain, named by its member with the lowest number.
    pub fn group_of(&self, domain: DomainId) -> DomainId {
        let mut at = domain;
        // The bound: a path in a tree is never longer than there are domains. So this ends, whatever the
        // tree.
        for _ in 0..self.parents.len() {
            match self.parents.get(at.index()) {
                Some(&parent) if parent != at => at = parent,
                _ => break,
            }
        }
        at
    }

    /// The groups with more than one domain.
    pub fn groups(&self) -> Vec<Vec<DomainId>> {
        let all = user_domains(self.parents.len());
        let roots = all.clone().filter(|&domain| self.group_of(domain) == domain);
        let group = |root| all.clone().filter(|&domain| self.group_of(domain) == root).collect::<Vec<_>>();
        roots.map(group).filter(|group| group.len() > 1).collect()
    }

    /// Finds the groups anew. Does not allocate.
    pub(super) fn derive(&mut self, traffic: &Traffic) {
        let domains = self.parents.len();
        let all = user_domains(domains);
        self.parents
            .iter_mut()
            .zip(DomainId::all_below(domains))
            .for_each(|(parent, domain)| *parent = domain);
        for domain in all.clone() {
            self.sums[domain.index()] =
                all.clone().map(|other| traffic.weight(domain, other)).fold(0, u64::saturating_add);
        }
        for domain in all.clone() {
            for other in all.clone().filter(|&other| other > domain) {
                let weight = traffic.weight(domain, other);
                // The smaller sum: a tenth of the dealings of either domain is enough.
                let least = self.sums[domain.index()].min(self.sums[other.index()]) / MIN_SHARE;
                if weight >= MIN_WEIGHT.max(least) {
                    self.join(domain, other);
                }
            }
        }
    }

    fn join(&mut self, one: DomainId, other: DomainId) {
        let (one, other) = (self.group_of(one), self.group_of(other));
        // The lower number becomes the root, so that a group is named by its lowest member.
        self.parents[one.max(other).index()] = one.min(other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const D0: DomainId = DomainId::new(0);
    const D2: DomainId = DomainId::new(2);
    const D3: DomainId = DomainId::new(3);
    const D4: DomainId = DomainId::new(4);
    const D5: DomainId = DomainId::new(5);
    const D6: DomainId = DomainId::new(6);
    const D7: DomainId = DomainId::new(7);
    const D8: DomainId = DomainId::new(8);

    #[test]
    fn log_16_domains_that_deal_with_one_another_form_a_working_set() {
        let mut traffic = Traffic::new(9);
        for (from, to, count) in
            [(D2, D3, 500), (D3, D4, 400), (D5, D6, 300), (D4, D5, 12), (D7, D8, 3), (D7, D0, 900)]
        {
            traffic.send(from, to, count);
        }
        traffic.end_period(&[]);
        let mut sets = WorkingSets::new(9);
        sets.derive(&traffic);
        assert_eq!(
            sets.groups(),
            [vec![D2, D3, D4], vec![D5, D6]],
            "12 of 312, or 3 in all, connect no domains"
        );
        assert_eq!((sets.group_of(D4), sets.group_of(D7)), (D2, D7));
    }

    #[test]
    fn log_16_a_working_set_falls_apart_when_its_dealings_end() {
        let mut traffic = Traffic::new(4);
        traffic.send(D2, D3, 100);
        let mut sets = WorkingSets::new(4);
        for _ in 0..8 {
            traffic.end_period(&[]);
            sets.derive(&traffic);
        }
        assert!(sets.groups().is_empty());
    }
}
