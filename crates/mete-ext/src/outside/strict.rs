//! A policy that is asked and told only what a policy may be asked and told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use mete_policy::{
    Causes, ClientId, Decision, DomainIndex, Nanoseconds, Observation, Policy, ProcessorId, Share, Stop,
};

use crate::outside::swap::Owned;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Blocked,
    Ready,
    Picked,
}

/// What a policy was told last.
pub(crate) type Told = Arc<Mutex<Tellings>>;

/// See [`Told`].
#[derive(Debug, Default)]
pub(crate) struct Tellings {
    /// Of each client its domain and share.
    pub clients: HashMap<ClientId, (DomainIndex, Share)>,
    /// Of each domain the one that it is in.
    pub parents: HashMap<DomainIndex, DomainIndex>,
}

/// Passes on all calls, and panics at one that the policy's owner must not make ([`Policy`]).
pub(crate) struct Strict {
    inner: Owned,
    states: HashMap<ClientId, State>,
    told: Told,
    /// Says of every client that it goes ahead when it wakes, whether that is so or not.
    says_ahead: bool,
}

impl Strict {
    /// Says what the policy is told, from now on.
    pub fn of(inner: Owned, told: &Told, says_ahead: bool) -> Owned {
        *told.lock().unwrap() = Tellings::default();
        Box::new(Strict { inner, states: HashMap::new(), told: Arc::clone(told), says_ahead })
    }

    fn turn(&mut self, client: ClientId, from: State, to: State) {
        let before = self.states.insert(client, to);
        assert_eq!(before, Some(from), "{client:?} is to be {to:?}");
    }

    fn is_known(&self, client: ClientId) {
        assert!(self.states.contains_key(&client), "{client:?} is not known");
    }
}

impl Policy for Strict {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn add_domain(&mut self, domain: DomainIndex, parent: DomainIndex, share: Share) {
        // One that is known stays where it is.
        self.told.lock().unwrap().parents.entry(domain).or_insert(parent);
        self.inner.add_domain(domain, parent, share);
    }

    fn remove_domain(&mut self, domain: DomainIndex) {
        self.told.lock().unwrap().parents.remove(&domain);
        self.inner.remove_domain(domain);
    }

    fn set_domain_share(&mut self, domain: DomainIndex, share: Share, now: Nanoseconds) {
        self.inner.set_domain_share(domain, share, now);
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, now: Nanoseconds) {
        assert_eq!(self.states.insert(client, State::Blocked), None, "{client:?} is added twice");
        self.told.lock().unwrap().clients.insert(client, (domain, share));
        self.inner.add(client, domain, share, now);
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        assert!(self.states.remove(&client).is_some(), "{client:?} is removed and not known");
        self.told.lock().unwrap().clients.remove(&client);
        self.inner.remove(client, now);
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        self.is_known(client);
        self.told.lock().unwrap().clients.entry(client).and_modify(|(_, known)| *known = share);
        self.inner.set_share(client, share, now);
    }

    fn set_allowed(&mut self, client: ClientId, processors: u64) {
        self.is_known(client);
        self.inner.set_allowed(client, processors);
    }

    fn knows_bounds(&self) -> bool {
        self.inner.knows_bounds()
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        self.turn(client, State::Blocked, State::Ready);
        self.inner.wake(client, now)
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        let decision = self.inner.pick(processor, now)?;
        self.turn(decision.client, State::Ready, State::Picked);
        Some(decision)
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let to = if stop == Stop::Blocked { State::Blocked } else { State::Ready };
        self.turn(client, State::Picked, to);
        self.inner.ran(client, ran_ns, stop, now);
    }

    fn keeps(&self, processor: ProcessorId) -> bool {
        self.inner.keeps(processor)
    }

    fn goes_ahead(&self, client: ClientId) -> Causes {
        self.is_known(client);
        if self.says_ahead { Causes::ALL } else { self.inner.goes_ahead(client) }
    }

    fn tick_ns(&self) -> Option<Nanoseconds> {
        self.inner.tick_ns()
    }

    fn tick(&mut self, processor: ProcessorId, now: Nanoseconds) -> bool {
        self.inner.tick(processor, now)
    }

    fn observe(&mut self, observation: Observation, now: Nanoseconds) -> Option<ProcessorId> {
        self.inner.observe(observation, now)
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        self.inner.counters(each);
    }
}
