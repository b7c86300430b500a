//! What can go wrong, in words for people.

use mete_dispatch::DispatchError;
use mete_ext::ExtError;
use mete_pausing::PausingError;
use mete_sched::actuator::ActuatorError;
use mete_sched::domains::ShareError;

/// Why shares cannot be dealt out. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum DealError {
    /// By sched_ext.
    #[error(transparent)]
    Ext(#[from] ExtError),
    /// By weights.
    #[error(transparent)]
    Weights(#[from] ActuatorError),
    /// By the dispatcher.
    #[error(transparent)]
    Dispatcher(#[from] DispatchError),
    /// By pauses.
    #[error(transparent)]
    Pausing(#[from] PausingError),
    /// Neither by the dispatcher nor by pauses.
    #[error("{missing}. And {source}")]
    Neither {
        /// What the dispatcher lacks.
        missing: String,
        /// Why pauses do not serve in its place.
        source: PausingError,
    },
    /// By sched_ext or by weights, which serve control groups only.
    #[error(
        "sched_ext and cgroup give shares to control groups, and limits are for these only: {name} has to be just one of them, {name}=cgroup:/PATH,share=NUMBER; the dispatcher and pauses give shares to others, too"
    )]
    NoGroup {
        /// The domain.
        name: String,
    },
    /// Another policy than group VTRR, by weights.
    #[error(
        "weights of control groups cannot have {policy} decide; sched_ext, the dispatcher and pauses can: leave --by out"
    )]
    NotByWeights {
        /// The policy.
        policy: &'static str,
    },
    /// A limit, by other means than weights.
    #[error(
        "limit={processors} of {name} is kept by the kernel's own scheduler only: by --policy vtrr --by cgroup"
    )]
    NoLimit {
        /// The domain.
        name: String,
        /// The limit.
        processors: f64,
    },
    /// Two domains are the same control group.
    #[error("{one} and {other} are the same control group, which has one share only")]
    Twice {
        /// One of them.
        one: String,
        /// The other.
        other: String,
    },
    /// Only sched_ext has something to do for domains that are not named.
    #[error("without a domain only sched_ext has something to do: write --domain NAME=SELECTOR,share=NUMBER")]
    NoDomains,
    /// Without sched_ext, nothing can be done for domains that are not named.
    #[error("{0}; without it, shares go to domains that are named: give --domain NAME=SELECTOR,share=NUMBER")]
    NothingNamed(String),
    /// There is no domain of that name.
    #[error("there is no domain {name:?}; there are {known}")]
    NoDomain {
        /// What was written.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Another share cannot be this.
    #[error(transparent)]
    NoShare(ShareError),
    /// There is no policy of that name.
    #[error("there is no policy {name:?}{meant}")]
    NotNamed {
        /// What was written.
        name: String,
        /// The end of the sentence: the name that may be meant, or all.
        meant: String,
    },
    /// A quantum cannot be this.
    #[error("{found:?} is no number of milliseconds")]
    NoQuantum {
        /// What was written.
        found: String,
    },
    /// The quantum cannot be set.
    #[error("by {by} the quantum cannot be set while it deals")]
    FixedQuantum {
        /// The means that rules.
        by: &'static str,
    },
    /// Another policy cannot take over from this one.
    #[error(
        "{policy} by {by} cannot be replaced while it rules; start mete schedule --policy NAME --by sched_ext for that"
    )]
    NotReplaced {
        /// The policy that rules.
        policy: &'static str,
        /// The means that rules.
        by: &'static str,
    },
    /// The policy is not in the catalogue.
    #[error("{policy} is not in the catalogue of policies")]
    NoPolicy {
        /// The policy.
        policy: &'static str,
    },
}
