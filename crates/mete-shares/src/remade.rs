//! Control groups that are removed and made again, as services and containers are when they start anew. The kernel takes a
//! group of the same path for another one, without the share that the former one had.

use std::time::{Duration, Instant};

use mete_sched::domains::SharedDomain;

use crate::group::{Identity, control_group, identity};
use crate::in_turn::InTurn;

/// How often each group is looked at. A new one waits that long for its share, and until the next call; where groups are many,
/// until its turn comes.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// How many groups are looked at in that time. A thousand at once would take milliseconds.
const MOST: usize = 64;
/// How often a user is told of the same domain.
const BETWEEN_WORDS: Duration = Duration::from_secs(60);

/// For each domain, which group has its share.
pub(crate) struct GroupIdentities {
    domains: Vec<Known>,
    looks: InTurn,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// `None` for a domain that is no single control group, or was not there.
    has_share: Option<Identity>,
    /// When its user was told last.
    told: Option<Instant>,
}

impl GroupIdentities {
    /// All groups that are there, each of which is about to get its share.
    pub fn of(domains: &[SharedDomain]) -> GroupIdentities {
        let known =
            |domain: &SharedDomain| Known { has_share: control_group(domain).and_then(identity), told: None };
        GroupIdentities {
            domains: domains.iter().map(known).collect(),
            looks: InTurn::new(BETWEEN_LOOKS, MOST),
        }
    }

    /// The places of the domains that are other groups than those that have their shares, of those whose turn it is.
    pub fn without_share(&mut self, domains: &[SharedDomain]) -> Vec<(usize, Identity)> {
        let another = |nth: usize| {
            let found = control_group(&domains[nth]).and_then(identity);
            Some((nth, another(self.domains[nth].has_share, found)?))
        };
        self.looks.due(domains.len()).filter_map(another).collect()
    }

    /// The group that a domain is has its share.
    pub fn has_share(&mut self, nth: usize, group: Identity) {
        self.domains[nth].has_share = Some(group);
    }

    /// Whether the group that a domain is has been there, since they were all looked at first.
    pub fn was_there(&self, nth: usize) -> bool {
        self.domains[nth].has_share.is_some()
    }

    /// Whether the user is to be told of a domain: a service that fails again and again has a new group each time.
    pub fn is_to_be_told(&mut self, nth: usize) -> bool {
        let told = &mut self.domains[nth].told;
        let is_old = told.is_none_or(|told| told.elapsed() >= BETWEEN_WORDS);
        if is_old {
            *told = Some(Instant::now());
        }
        is_old
    }
}

/// The group that was found, if it is another one. One that is gone stays the one that was known.
fn another(known: Option<Identity>, found: Option<Identity>) -> Option<Identity> {
    found.filter(|_| known != found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use mete_sched::domains::Selector;

    use super::*;

    #[test]
    fn vtrr_7_a_group_is_another_one_if_it_is_there_and_has_another_number() {
        let [first, second] = [Some((1, 1)), Some((1, 2))];
        assert_eq!([another(first, first), another(first, None), another(None, None)], [None; 3]);
        assert_eq!([another(first, second), another(None, second)], [second; 2]);
    }

    /// The file with the weight is made anew, as where the group above ceases to distribute processor time and begins again.
    #[test]
    fn vtrr_7_a_group_is_without_its_share_until_it_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let group = directory.path().join("group");
        fs::create_dir(&group).unwrap();
        let write = |name: &Path| fs::write(name, "100").unwrap();
        let (weight, other) = (group.join("cpu.weight"), group.join("other"));
        write(&weight);
        let mut domain = SharedDomain::parse("a=pid:1".as_ref()).unwrap();
        domain.spec.selectors = vec![Selector::Cgroup(group)];
        let mut groups = GroupIdentities::of(std::slice::from_ref(&domain));
        let without_share = |groups: &mut GroupIdentities| {
            groups.looks = InTurn::new(Duration::ZERO, MOST);
            groups.without_share(std::slice::from_ref(&domain))
        };
        assert_eq!(without_share(&mut groups), []);
        // Both are there for a moment, so that they have different numbers.
        write(&other);
        fs::rename(&other, &weight).unwrap();
        let found = without_share(&mut groups);
        assert_eq!((found.len(), found[0].0), (1, 0));
        assert_eq!(without_share(&mut groups), found);
        groups.has_share(0, found[0].1);
        assert_eq!(without_share(&mut groups), []);
        assert_eq!([groups.is_to_be_told(0), groups.is_to_be_told(0)], [true, false]);
    }
}
