//! Which domains are control groups.

use std::path::Path;

use mete_ext::Share;
use mete_sched::domains::{Selector, SharedDomain};

use crate::DealError;

/// What a domain has that nothing is said about, in the unit of `cpu.weight`.
const ORDINARY: Share = Share::new(SharedDomain::ORDINARY).unwrap();

/// The directory of the one control group that a domain is; `None` if it is something else.
#[must_use]
pub fn control_group(domain: &SharedDomain) -> Option<&Path> {
    match domain.spec.selectors.as_slice() {
        [Selector::Cgroup(path)] => Some(path),
        _ => None,
    }
}

/// A control group, and the share that it is to have beside the other groups with the same parent.
pub(crate) struct Group<'a> {
    pub path: &'a Path,
    pub share: Share,
}

impl Group<'_> {
    /// The control groups that domains are.
    pub fn all(domains: &[SharedDomain]) -> Result<Vec<Group<'_>>, DealError> {
        let group = |domain| match control_group(domain) {
            Some(path) => Ok(Group { path, share: share(domain) }),
            None => Err(DealError::NoGroup { name: domain.spec.name.clone() }),
        };
        domains.iter().map(group).collect()
    }
}

/// The share of a domain.
pub(crate) fn share(domain: &SharedDomain) -> Share {
    domain.weight.and_then(Share::new).unwrap_or(ORDINARY)
}
