//! The calls of a policy with plain numbers. A test's clients, processors and times are small numbers that
//! its text explains, as the papers' examples do; here they become identifiers.

use mete_policy::{ClientId, DomainIndex, Grant, Nanoseconds, Observation, ProcessorId, Share, Stop};

/// A [`mete_policy::Decision`] in plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub client: u32,
    pub slice_ns: u64,
    pub grant: Grant,
}

impl From<mete_policy::Decision> for Decision {
    fn from(decision: mete_policy::Decision) -> Decision {
        let mete_policy::Decision { client, slice_ns, grant } = decision;
        Decision { client: client.get(), slice_ns: slice_ns.get(), grant }
    }
}

/// Every [`mete_policy::Policy`] in plain numbers.
pub trait Policy {
    fn name(&self) -> &'static str;
    fn add_domain(&mut self, domain: u16, parent: u16, share: Share);
    fn remove_domain(&mut self, domain: u16);
    fn set_domain_share(&mut self, domain: u16, share: Share, now: u64);
    fn add(&mut self, client: u32, domain: u16, share: Share, now: u64);
    fn remove(&mut self, client: u32, now: u64);
    fn set_share(&mut self, client: u32, share: Share, now: u64);
    #[must_use]
    fn wake(&mut self, client: u32, now: u64) -> Option<u16>;
    fn pick(&mut self, processor: u16, now: u64) -> Option<Decision>;
    fn ran(&mut self, client: u32, ran_ns: u64, stop: Stop, now: u64);
    fn tick_ns(&self) -> Option<u64>;
    #[must_use]
    fn tick(&mut self, processor: u16, now: u64) -> bool;
    #[must_use]
    fn observe(&mut self, observation: Observation, now: u64) -> Option<u16>;
    fn counters(&self, each: &mut dyn FnMut(&'static str, u64));
}

impl<P: mete_policy::Policy + ?Sized> Policy for P {
    fn name(&self) -> &'static str {
        P::name(self)
    }

    fn add_domain(&mut self, domain: u16, parent: u16, share: Share) {
        P::add_domain(self, DomainIndex::new(domain), DomainIndex::new(parent), share);
    }

    fn remove_domain(&mut self, domain: u16) {
        P::remove_domain(self, DomainIndex::new(domain));
    }

    fn set_domain_share(&mut self, domain: u16, share: Share, now: u64) {
        P::set_domain_share(self, DomainIndex::new(domain), share, Nanoseconds::new(now));
    }

    fn add(&mut self, client: u32, domain: u16, share: Share, now: u64) {
        P::add(self, ClientId::new(client), DomainIndex::new(domain), share, Nanoseconds::new(now));
    }

    fn remove(&mut self, client: u32, now: u64) {
        P::remove(self, ClientId::new(client), Nanoseconds::new(now));
    }

    fn set_share(&mut self, client: u32, share: Share, now: u64) {
        P::set_share(self, ClientId::new(client), share, Nanoseconds::new(now));
    }

    fn wake(&mut self, client: u32, now: u64) -> Option<u16> {
        P::wake(self, ClientId::new(client), Nanoseconds::new(now)).map(ProcessorId::get)
    }

    fn pick(&mut self, processor: u16, now: u64) -> Option<Decision> {
        P::pick(self, ProcessorId::new(processor), Nanoseconds::new(now)).map(Decision::from)
    }

    fn ran(&mut self, client: u32, ran_ns: u64, stop: Stop, now: u64) {
        P::ran(self, ClientId::new(client), Nanoseconds::new(ran_ns), stop, Nanoseconds::new(now));
    }

    fn tick_ns(&self) -> Option<u64> {
        P::tick_ns(self).map(Nanoseconds::get)
    }

    fn tick(&mut self, processor: u16, now: u64) -> bool {
        P::tick(self, ProcessorId::new(processor), Nanoseconds::new(now))
    }

    fn observe(&mut self, observation: Observation, now: u64) -> Option<u16> {
        P::observe(self, observation, Nanoseconds::new(now)).map(ProcessorId::get)
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        P::counters(self, each);
    }
}
