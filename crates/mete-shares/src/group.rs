//! Which domains are control groups.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mete_ext::Weight;
use mete_kernel::Limit;
use mete_sched::domains::{Selector, SharedDomain};

use crate::error::DealError;

/// The directory of the one control group that a domain is; `None` if it is something else.
#[must_use]
pub fn control_group(domain: &SharedDomain) -> Option<&Path> {
    match domain.spec.selectors.as_slice() {
        [Selector::Cgroup(path)] => Some(path),
        _ => None,
    }
}

/// A control group, and the weight and the limit that it is to have.
pub(crate) struct Group<'a> {
    pub path: &'a Path,
    pub weight: Weight,
    pub limit: Option<Limit>,
}

impl<'a> Group<'a> {
    /// The control group that a domain is.
    pub fn of(domain: &'a SharedDomain) -> Result<Group<'a>, DealError> {
        let path =
            control_group(domain).ok_or_else(|| DealError::NoGroup { name: domain.spec.name.clone() })?;
        Ok(Group { path, weight: domain.weight_or_ordinary(), limit: domain.limit })
    }

    /// The control groups that domains are.
    pub fn all(domains: &'a [SharedDomain]) -> Result<Vec<Group<'a>>, DealError> {
        let groups = domains.iter().map(Group::of).collect::<Result<Vec<_>, _>>()?;
        for (nth, group) in groups.iter().enumerate() {
            let found = number_of(group.path);
            let same = |other: &Group<'_>| found.is_some() && number_of(other.path) == found;
            if let Some(other) = groups[..nth].iter().position(same) {
                let [one, other] = [other, nth].map(|nth| domains[nth].spec.name.clone());
                return Err(DealError::Twice { one, other });
            }
        }
        Ok(groups)
    }
}

/// Device and number of a file, which no other one has at the same time, and no later one of a control group's.
pub(crate) type Identity = (u64, u64);

/// Which group has its share there: that of the file with its weight, which is another one where the group above has ceased to
/// distribute processor time and begun again; else that of the directory.
pub(crate) fn identity(group: &Path) -> Option<Identity> {
    let weights = ["cpu.weight", "cpu.shares"].map(|name| group.join(name));
    weights.iter().find_map(|path| number_of(path)).or_else(|| number_of(group))
}

/// A file has several paths where a file system is mounted at several places.
pub(crate) fn number_of(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// For each domain the sum of these numbers over the domains that it competes with: where all are control
/// groups, those with the same parent.
pub(crate) fn sums(domains: &[SharedDomain], number: impl Fn(usize) -> f64) -> Vec<f64> {
    let parents: Option<Vec<_>> =
        domains.iter().map(|domain| control_group(domain).map(Path::parent)).collect();
    let compete = |one: usize, other: usize| parents.as_ref().is_none_or(|all| all[one] == all[other]);
    let sum = |one| (0..domains.len()).filter(|&other| compete(one, other)).map(&number).sum();
    (0..domains.len()).map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_7_groups_compete_with_those_of_the_same_parent_and_processes_with_all() {
        let domain = |path: Option<&str>| {
            let mut domain = SharedDomain::parse("a=pid:1".as_ref()).unwrap();
            domain.spec.selectors = vec![match path {
                Some(path) => Selector::Cgroup(path.into()),
                None => Selector::Pid(1),
            }];
            domain
        };
        let groups = ["/x/a", "/x/b", "/x/a/c"].map(|path| domain(Some(path)));
        assert_eq!(sums(&groups, |nth| nth as f64 + 1.0), [3.0, 3.0, 3.0]);
        let mixed = [domain(Some("/x/a")), domain(None)];
        assert_eq!(sums(&mixed, |nth| nth as f64 + 1.0), [3.0, 3.0]);
    }
}
