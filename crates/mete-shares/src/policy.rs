//! The policies by which shares can be dealt out.

use mete_base::nearest::nearest;
use mete_policy::{CATALOG, Entry, by_name};

use crate::error::DealError;

/// The name by which people ask for group VTRR where shares are dealt out. In the catalogue, the paper's
/// policy has it, which knows no groups.
const SHORT: &str = "vtrr";
/// Its name in the catalogue.
const DISTRIBUTED: &str = "distributed-vtrr";

/// A policy by which shares can be dealt out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharePolicy {
    /// Distributed group VTRR. Inside the kernel sched_ext runs it, outside the dispatcher, and weights of
    /// control groups give about the same.
    #[default]
    GroupVtrr,
    /// Another one of the catalogue, at this place. It decides outside the kernel: sched_ext or the
    /// dispatcher carries its decisions out.
    Outside(usize),
}

impl SharePolicy {
    /// The one of that name: of the catalogue, or `vtrr`.
    #[must_use]
    pub fn named(name: &str) -> Option<SharePolicy> {
        match name {
            SHORT | DISTRIBUTED => Some(SharePolicy::GroupVtrr),
            _ => CATALOG.iter().position(|entry| entry.name == name).map(SharePolicy::Outside),
        }
    }

    /// The end of a sentence about a name that is none: which one may have been meant, or else all.
    pub(crate) fn meant(name: &str) -> String {
        let list = || format!(": there are {}", SharePolicy::names().collect::<Vec<_>>().join(", "));
        nearest(name, SharePolicy::names())
            .map_or_else(list, |meant| format!("; did you mean {meant}? mete sim --list has all"))
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CATALOG.iter().map(|entry| entry.name)
    }

    /// Its name in the catalogue.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SharePolicy::GroupVtrr => DISTRIBUTED,
            SharePolicy::Outside(nth) => CATALOG[nth].name,
        }
    }

    /// What decides outside the kernel.
    pub(crate) fn entry(self) -> Result<&'static Entry, DealError> {
        by_name(self.name()).ok_or(DealError::NoPolicy { policy: self.name() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_7_every_policy_of_the_catalogue_can_be_asked_for_by_its_name() {
        for name in SharePolicy::names() {
            let policy = SharePolicy::named(name).unwrap();
            assert_eq!(policy.entry().unwrap().name, if name == SHORT { DISTRIBUTED } else { name });
        }
        assert_eq!(SharePolicy::named("affinity"), None);
    }
}
