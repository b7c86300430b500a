//! A domain with the share of processor time that it is to have, and with what it may have at most:
//! `web=cgroup:/web,share=3,limit=1.5`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use mete_base::nearest::nearest;
use mete_kernel::{Limit, Weight};
use mete_policy::Share;

use super::{DomainError, DomainSpec};

/// A domain, and the share that it is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDomain {
    /// The domain.
    pub spec: DomainSpec,
    /// Its share as a weight; `None` if none is said.
    pub weight: Option<Weight>,
    /// What it may have at most, also while processors are idle; `None` if none is said.
    pub limit: Option<Limit>,
}

/// What is wrong with a domain or with its share.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// The domain itself.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The share.
    #[error("{0:?} is no share: write a number from 0.01 to 100; 1 is what other control groups have")]
    Number(String),
    /// What stands behind the selectors is nearly a share.
    #[error("{0:?} selects nothing; did you mean {1}=NUMBER, behind the selectors?")]
    Misspelt(String, &'static str),
    /// The limit.
    #[error("{0:?} is no limit: write a number of processors from 0.01 to 10000, such as 0.5 or 2")]
    Limit(String),
    /// There is more than one.
    #[error("a domain has one {0}: write {0}=NUMBER once, behind its selectors")]
    Twice(&'static str),
}

/// What stands behind the selectors of a domain, in any order.
const SHARE: &[u8] = b"share=";
const LIMIT: &[u8] = b"limit=";

impl SharedDomain {
    /// Its weight, or that of a domain of which none is said.
    #[must_use]
    pub fn weight_or_ordinary(&self) -> Weight {
        self.weight.unwrap_or(Weight::ORDINARY)
    }

    /// A domain with what these select, and with a share and a limit if they are said. Control groups need not be there yet.
    ///
    /// # Errors
    ///
    /// [`ShareError`] says what was expected.
    pub fn new<'a>(
        name: &str,
        selectors: impl IntoIterator<Item = &'a str>,
        share: Option<f64>,
        limit: Option<f64>,
    ) -> Result<SharedDomain, ShareError> {
        let spec = DomainSpec::ahead(name.as_ref(), selectors.into_iter().map(OsStr::new))?;
        let weight =
            share.map(|share| Weight::of_share(share).ok_or_else(|| ShareError::Number(share.to_string())));
        let limit = limit
            .map(|limit| Limit::of_processors(limit).ok_or_else(|| ShareError::Limit(limit.to_string())));
        Ok(SharedDomain { spec, weight: weight.transpose()?, limit: limit.transpose()? })
    }

    /// The weight of a share.
    ///
    /// # Errors
    ///
    /// [`ShareError::Number`]
    pub fn weight_of(share: &OsStr) -> Result<Weight, ShareError> {
        let number = share.to_str().and_then(|share| share.parse().ok());
        number
            .and_then(Weight::of_share)
            .ok_or_else(|| ShareError::Number(share.to_string_lossy().into_owned()))
    }

    /// The limit that a number of processors is.
    ///
    /// # Errors
    ///
    /// [`ShareError::Limit`]
    pub fn limit_of(processors: &OsStr) -> Result<Limit, ShareError> {
        let number = processors.to_str().and_then(|processors| processors.parse().ok());
        number
            .and_then(Limit::of_processors)
            .ok_or_else(|| ShareError::Limit(processors.to_string_lossy().into_owned()))
    }

    /// Reads a domain, with a share and a limit or without. Its selectors may contain any bytes.
    ///
    /// # Errors
    ///
    /// [`ShareError`] says what was expected.
    pub fn parse(text: &OsStr) -> Result<SharedDomain, ShareError> {
        let (mut bytes, mut weight, mut limit) = (text.as_bytes(), None, None);
        while let Some(at) = bytes.iter().rposition(|byte| *byte == b',') {
            let last = &bytes[at + 1..];
            if let Some(share) = last.strip_prefix(SHARE) {
                let share = SharedDomain::weight_of(OsStr::from_bytes(share))?;
                weight.replace(share).map_or(Ok(()), |_| Err(ShareError::Twice("share")))?;
            } else if let Some(processors) = last.strip_prefix(LIMIT) {
                let processors = SharedDomain::limit_of(OsStr::from_bytes(processors))?;
                limit.replace(processors).map_or(Ok(()), |_| Err(ShareError::Twice("limit")))?;
            } else {
                break;
            }
            bytes = &bytes[..at];
        }
        let spec = DomainSpec::parse(OsStr::from_bytes(bytes));
        Ok(SharedDomain { spec: spec.map_err(misspelt)?, weight, limit })
    }
}

/// The policy's share of a weight. Every weight is one: the greatest is far below [`Share::MAX`].
#[must_use]
pub fn share_of(weight: Weight) -> Share {
    Share::new(weight.get()).unwrap_or(Share::MAX)
}

/// The same shares to each other, as small as can be: some policies give as many quanta in a row.
#[must_use]
pub fn smallest_shares(shares: &[Share]) -> Vec<Share> {
    let divisor = shares.iter().fold(0, |divisor, share| common_divisor(share.get(), divisor)).max(1);
    shares.iter().map(|share| Share::new(share.get() / divisor).unwrap_or(*share)).collect()
}

fn common_divisor(one: u32, other: u32) -> u32 {
    if other == 0 { one } else { common_divisor(other, one % other) }
}

/// An error about a domain, or about the share or the limit that may have been meant.
fn misspelt(error: DomainError) -> ShareError {
    match error {
        DomainError::Selector(text) => match text.split_once(['=', ':']).and_then(|(key, _)| meant(key)) {
            Some(meant) => ShareError::Misspelt(text, meant),
            None => ShareError::Domain(DomainError::Selector(text)),
        },
        error => ShareError::Domain(error),
    }
}

/// What a word may mean that stands where a selector should. One that is written right stands in the wrong place.
fn meant(key: &str) -> Option<&'static str> {
    let near = nearest(key, ["share", "weight", "limit", "quota"])?;
    Some(if matches!(near, "share" | "weight") { "share" } else { "limit" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_reduced_and_keep_their_proportions() {
        let all = |shares: &[u32]| shares.iter().filter_map(|share| Share::new(*share)).collect::<Vec<_>>();
        assert_eq!(smallest_shares(&all(&[300, 100, 150])), all(&[6, 2, 3]));
        assert_eq!(smallest_shares(&all(&[7, 100])), all(&[7, 100]));
        assert_eq!(smallest_shares(&[]), []);
    }

    fn weight_of(text: &str) -> Result<Option<u32>, String> {
        let parsed = SharedDomain::parse(text.as_ref());
        parsed.map(|domain| domain.weight.map(Weight::get)).map_err(|error| error.to_string())
    }

    #[test]
    fn vtrr_7_a_share_stands_behind_the_selectors() {
        assert_eq!(weight_of("web=pid:1"), Ok(None));
        assert_eq!(weight_of("web=pid:1,pid:2,share=3"), Ok(Some(300)));
        assert_eq!(weight_of("web=pid:1,share=0.01"), Ok(Some(1)));
        assert_eq!(weight_of("web=pid:1,share=100"), Ok(Some(10_000)));
        for wrong in ["0", "-1", "101", "nan", "inf", "1e9", "", "three"] {
            assert!(
                weight_of(&format!("web=pid:1,share={wrong}")).unwrap_err().contains("is no share"),
                "{wrong}"
            );
        }
        assert!(weight_of("web=pid:1,share=3,share=4").unwrap_err().contains("has one share"));
        for misplaced in ["web=share=3", "web=share=3,pid:1", "web=pid:1,share=3,pid:2"] {
            assert!(weight_of(misplaced).unwrap_err().contains("share=NUMBER, behind the selectors"));
        }
        for near in ["web=pid:1,limt=1", "web=limit=1,pid:1", "web=pid:1,Limit=1"] {
            assert!(weight_of(near).unwrap_err().contains("did you mean limit=NUMBER"), "{near}");
        }
        let limit_of = |text: &str| {
            SharedDomain::parse(text.as_ref())
                .map(|domain| domain.limit.map(Limit::processors))
                .map_err(|error| error.to_string())
        };
        assert_eq!(limit_of("web=pid:1,share=3"), Ok(None));
        assert_eq!(limit_of("web=pid:1,share=3,limit=1.5"), Ok(Some(1.5)));
        assert_eq!(limit_of("web=pid:1,limit=0.25,share=3"), Ok(Some(0.25)));
        assert_eq!(weight_of("web=pid:1,limit=0.25,share=3"), Ok(Some(300)));
        assert!(limit_of("web=pid:1,limit=1,limit=2").unwrap_err().contains("has one limit"));
        assert!(limit_of("web=pid:1,limit=0").unwrap_err().contains("is no limit"));
        for near in ["shar=3", "shares=3", "weight=3", "share:3"] {
            let said = weight_of(&format!("web=pid:1,{near}")).unwrap_err();
            assert!(said.contains(near) && said.contains("did you mean share=NUMBER"), "{said}");
        }
    }
}
