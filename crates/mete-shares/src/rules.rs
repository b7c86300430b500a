//! Which means serve which policies and domains, as far as that can be told before anything is started.

use mete_sched::domains::SharedDomain;

use crate::by::By;
use crate::error::DealError;
use crate::group::control_group;
use crate::policy::SharePolicy;

/// Whether shares can be dealt to these domains.
///
/// # Errors
///
/// [`DealError`] says which domain or policy does not go with the means, and what to do.
pub fn check(by: By, policy: SharePolicy, domains: &[SharedDomain]) -> Result<(), DealError> {
    let is_outside = policy != SharePolicy::GroupVtrr;
    if is_outside && by == By::Cgroup {
        return Err(DealError::NotByWeights { policy: policy.name() });
    }
    let limited = domains.iter().find_map(|domain| Some((domain, domain.limit?)));
    if let Some((domain, limit)) = limited
        && (is_outside || !matches!(by, By::Auto | By::Cgroup))
    {
        let (name, processors) = (domain.spec.name.clone(), limit.processors());
        return Err(DealError::NoLimit { name, processors });
    }
    // Limits are for control groups, too.
    let are_for_groups = by.is_for_groups() || limited.is_some();
    if let Some(other) = domains.iter().find(|domain| are_for_groups && control_group(domain).is_none()) {
        return Err(DealError::NoGroup { name: other.spec.name.clone() });
    }
    // Weights and the dispatchers serve named domains only. Where sched_ext is found missing, the start says so.
    if matches!(by, By::Cgroup | By::Dispatcher | By::Pauses) && domains.is_empty() {
        return Err(DealError::NoDomains);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "web=cgroup:/,share=3";
    const PROCESS: &str = "shell=pid:1";
    const BOTH: &str = "both=cgroup:/,pid:1";

    /// What is said about this policy by each of the means, in the order of [`By::ALL`].
    fn said(policy: &str, domains: &[&str]) -> [&'static str; 5] {
        let policy = SharePolicy::named(policy).unwrap();
        let domains: Vec<_> =
            domains.iter().map(|text| SharedDomain::parse(text.as_ref()).unwrap()).collect();
        By::ALL.map(|by| match check(by, policy, &domains) {
            Ok(()) => "goes",
            Err(DealError::NotByWeights { .. }) => "not by weights",
            Err(DealError::NoGroup { .. }) => "no group",
            Err(DealError::NoDomains) => "no domains",
            Err(other) => panic!("{other}"),
        })
    }

    #[test]
    fn vtrr_7_what_goes_with_which_means() {
        // auto, sched_ext, cgroup, dispatcher, pauses
        for (policy, domains, expected) in [
            ("vtrr", &[][..], ["goes", "goes", "no domains", "no domains", "no domains"]),
            ("vtrr", &[GROUP], ["goes"; 5]),
            ("vtrr", &[PROCESS], ["goes", "no group", "no group", "goes", "goes"]),
            ("vtrr", &[BOTH], ["goes", "no group", "no group", "goes", "goes"]),
            ("vtrr", &[GROUP, PROCESS], ["goes", "no group", "no group", "goes", "goes"]),
            ("stride", &[], ["goes", "goes", "not by weights", "no domains", "no domains"]),
            ("stride", &[GROUP], ["goes", "goes", "not by weights", "goes", "goes"]),
            ("stride", &[PROCESS], ["goes", "no group", "not by weights", "goes", "goes"]),
            ("stride", &[GROUP, PROCESS], ["goes", "no group", "not by weights", "goes", "goes"]),
        ] {
            assert_eq!(said(policy, domains), expected, "{policy} {domains:?}");
        }
    }

    #[test]
    fn vtrr_7_a_limit_goes_with_weights_only() {
        let said = |policy: &str, domains: &[&str]| {
            let policy = SharePolicy::named(policy).unwrap();
            let domains: Vec<_> =
                domains.iter().map(|text| SharedDomain::parse(text.as_ref()).unwrap()).collect();
            By::ALL.map(|by| check(by, policy, &domains).is_ok())
        };
        // auto, sched_ext, cgroup, dispatcher, pauses
        let limited = "web=cgroup:/,limit=0.5";
        assert_eq!(said("vtrr", &[limited]), [true, false, true, false, false]);
        assert_eq!(said("vtrr", &[limited, PROCESS]), [false; 5]);
        assert!(!said("stride", &[limited])[0]);
    }

    /// What is named is what is wrong, not what comes first.
    #[test]
    fn vtrr_7_the_domain_that_is_no_group_is_named() {
        let domains = [GROUP, PROCESS].map(|text| SharedDomain::parse(text.as_ref()).unwrap());
        let error = check(By::SchedExt, SharePolicy::GroupVtrr, &domains).unwrap_err();
        assert!(error.to_string().contains("shell=cgroup:/PATH"), "{error}");
    }
}
