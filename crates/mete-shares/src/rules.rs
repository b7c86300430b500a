//! What can be dealt by what: the rules that can be told before anything is started.

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
    if let Some(other) = domains.iter().find(|domain| by.is_for_groups() && control_group(domain).is_none()) {
        return Err(DealError::NoGroup { name: other.spec.name.clone() });
    }
    // Where sched_ext is found missing, weights and the dispatcher have nothing to do either.
    let needs_domain = matches!(by, By::Cgroup | By::Dispatcher) || is_outside && by == By::Auto;
    if needs_domain && domains.is_empty() {
        return Err(DealError::NoDomains);
    }
    Ok(())
}
