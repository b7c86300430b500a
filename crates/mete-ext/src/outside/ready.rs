//! Where clients that the policy takes for ready may run.

use mete_policy::ClientId;

/// Some clients: how many there are, and who it is if there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Crowd {
    count: u32,
    /// Of their numbers, each bit that an odd number of them has.
    numbers: u32,
}

impl Crowd {
    fn add(&mut self, client: ClientId) {
        self.count += 1;
        self.numbers ^= client.get();
    }

    fn remove(&mut self, client: ClientId) {
        self.count = self.count.saturating_sub(1);
        self.numbers ^= client.get();
    }

    fn with(self, other: Crowd) -> Crowd {
        Crowd { count: self.count + other.count, numbers: self.numbers ^ other.numbers }
    }
}

/// Clients by the processors on which they may run.
///
/// A processor on which none may run does not ask the policy: those that it would be given belong to other
/// processors.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The processors that there may be, a bit each.
    processors: u64,
    all: Crowd,
    /// Those that may run on every processor.
    everywhere: Crowd,
    /// The others, on each processor on which they may run.
    on: Vec<Crowd>,
}

impl Ready {
    /// For this number of processors.
    pub fn of(processors: usize) -> Ready {
        let (all, everywhere) = (Crowd::default(), Crowd::default());
        let mask = u64::MAX >> (64 - processors.clamp(1, 64));
        Ready { processors: mask, all, everywhere, on: vec![Crowd::default(); processors] }
    }

    pub fn add(&mut self, client: ClientId, allowed: u64) {
        self.all.add(client);
        self.crowds(allowed, |crowd| crowd.add(client));
    }

    /// One that was added with these processors.
    pub fn remove(&mut self, client: ClientId, allowed: u64) {
        self.all.remove(client);
        self.crowds(allowed, |crowd| crowd.remove(client));
    }

    fn crowds(&mut self, allowed: u64, change: impl Fn(&mut Crowd)) {
        if allowed & self.processors == self.processors {
            return change(&mut self.everywhere);
        }
        let places = self.on.iter_mut().enumerate();
        places.filter(|(processor, _)| allowed >> processor & 1 == 1).for_each(|(_, crowd)| change(crowd));
    }

    fn crowd_on(&self, processor: usize) -> Crowd {
        self.on.get(processor).map_or(self.everywhere, |crowd| crowd.with(self.everywhere))
    }

    pub fn any_on(&self, processor: usize) -> bool {
        self.crowd_on(processor).count > 0
    }

    /// Who alone may run on a processor, while others wait that may not.
    pub fn alone_on(&self, processor: usize) -> Option<ClientId> {
        let crowd = self.crowd_on(processor);
        (crowd.count == 1 && self.all.count > 1).then(|| ClientId::new(crowd.numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_1_who_alone_may_run_on_a_processor_is_found_among_those_that_may_not() {
        let mut ready = Ready::of(2);
        let add = |ready: &mut Ready, (client, allowed)| ready.add(ClientId::new(client), allowed);
        [(5, 0b10), (6, 0b10), (7, 0b01)].into_iter().for_each(|each| add(&mut ready, each));
        assert_eq!((ready.alone_on(0), ready.alone_on(1)), (Some(ClientId::new(7)), None));
        // One that may run everywhere is one more on each.
        add(&mut ready, (9, u64::MAX));
        assert_eq!((ready.alone_on(0), ready.any_on(0)), (None, true));
        ready.remove(ClientId::new(7), 0b01);
        assert_eq!(ready.alone_on(0), Some(ClientId::new(9)));
        ready.remove(ClientId::new(9), u64::MAX);
        assert_eq!((ready.alone_on(0), ready.any_on(0), ready.any_on(1)), (None, false, true));
        // Nobody else waits: whom the policy chooses is known.
        ready.remove(ClientId::new(6), 0b10);
        assert_eq!(ready.alone_on(1), None);
    }
}
