//! How one policy takes the place of another while tasks are scheduled.

use std::fmt;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use mete_policy::Policy;

/// A policy that owns itself.
pub(crate) type Owned = Box<dyn Policy + Send>;

/// Hands policies from the scheduler's owner to the deciding thread and back.
///
/// The owner makes policies and drops those that rule no more. The deciding thread asks for an offer without
/// waiting; it waits for the lock, which is held for moments, only when a policy has taken over or failed. No code of
/// policies runs under it.
pub(crate) struct Swap {
    places: Mutex<Places>,
    /// Something lies in `next`. So the lock is left alone in all rounds without an offer.
    is_offered: AtomicBool,
}

/// A policy and its name.
type Named = (Owned, &'static str);

/// A policy that is to rule, and what takes its place if it fails; with their names.
pub(crate) struct Offer {
    pub policy: Owned,
    pub name: &'static str,
    pub spare: Owned,
    pub of_spare: &'static str,
}

struct Places {
    /// The policy that is to rule, and a fresh one of the kind that rules until then.
    next: Option<Offer>,
    /// What rules if the ruling policy fails.
    spare: Option<Named>,
    /// What ruled, for the owner to drop.
    past: (Option<Named>, Option<Owned>),
    ruling: &'static str,
    failure: Option<Failure>,
    /// One that counts no more, for the owner to drop.
    told: Option<Failure>,
}

/// A policy that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The policy.
    pub policy: &'static str,
    /// What it said.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has failed: {}", self.policy, self.message)
    }
}

impl Swap {
    /// For a policy of this name, which rules from the beginning.
    pub fn of(ruling: &'static str) -> Swap {
        let places =
            Places { next: None, spare: None, past: (None, None), ruling, failure: None, told: None };
        Swap { places: Mutex::new(places), is_offered: AtomicBool::new(false) }
    }

    // Nothing that is done under the lock leaves anything half done.
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner's. It replaces an offer that was not taken.
    pub fn offer(&self, offer: Offer) {
        let before = {
            let mut places = self.places();
            let before = (take(&mut places.past), places.told.take(), places.next.replace(offer));
            self.is_offered.store(true, Ordering::Release);
            before
        };
        drop(before);
    }

    /// The owner's: takes an offer back; `false` if it was taken already.
    pub fn withdraw(&self) -> bool {
        let offer = {
            let mut places = self.places();
            self.is_offered.store(false, Ordering::Release);
            places.next.take()
        };
        offer.is_some()
    }

    /// The owner's: whether an offer has not been taken yet.
    pub fn is_offered(&self) -> bool {
        self.is_offered.load(Ordering::Acquire)
    }

    /// The owner's: this policy has failed, in another thread or in this one.
    pub fn note(&self, failure: Failure) {
        let before = self.places().failure.replace(failure);
        drop(before);
    }

    /// The policy that rules, and the one that has failed since a policy was set.
    pub fn state(&self) -> (&'static str, Option<Failure>) {
        let places = self.places();
        (places.ruling, places.failure.clone())
    }

    /// The deciding thread's: the policy that is to rule, if there is one and it can be had at once.
    pub fn take(&self) -> Option<Owned> {
        if !self.is_offered() {
            return None;
        }
        let mut places = match self.places.try_lock() {
            Ok(places) => places,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let Offer { policy, spare, name, of_spare } = places.next.take()?;
        places.past.0 = places.spare.replace((spare, of_spare));
        places.ruling = name;
        places.told = places.failure.take();
        self.is_offered.store(false, Ordering::Release);
        Some(policy)
    }

    /// The deciding thread's: its policy has failed with these words. What rules in its place, if there is one.
    pub fn take_spare(&self, message: String) -> Option<Owned> {
        let mut places = self.places();
        places.failure = Some(Failure { policy: places.ruling, message });
        let (spare, name) = places.spare.take()?;
        places.ruling = name;
        Some(spare)
    }

    /// The deciding thread's: a policy that rules no more.
    pub fn retire(&self, policy: Owned) {
        let before = self.places().past.1.replace(policy);
        drop(before);
    }
}
