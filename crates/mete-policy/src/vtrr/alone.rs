//! Clients that have a processor alone, because their share is more than one processor can give.
//!
//! With P processors and shares of sum T, a share S > T / P is *infeasible*: the client cannot run on two
//! processors at a time, falls further behind the longer it runs, and distorts the others' order
//! (Chandra, Adler, Goyal, Shenoy: Surplus Fair Scheduling, OSDI 2000, §2.1). Their readjustment gives
//! it the weight of one whole processor, and looks at the next largest share with one processor fewer and
//! without the first. A weight that makes a client run always need not be weighed at all. So here those
//! clients are taken out of the queue and run whenever they are ready, and the queue has the other
//! processors. At most P - 1 clients are infeasible, so each change looks at no more than P.

use alloc::vec::Vec;

use super::slot::Entity;

/// A client that has a processor alone, or is on its way to the queue or back.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoneClient {
    pub(super) entity: Entity,
    pub(super) share: u32,
    pub(super) busy: bool,
}

/// The clients that have a processor alone, largest share first.
pub(super) struct LoneClients {
    members: Vec<LoneClient>,
    processors: u64,
}

impl LoneClients {
    pub(super) fn new(processors: u16) -> LoneClients {
        LoneClients {
            members: Vec::with_capacity(processors.into()),
            processors: u64::from(processors.max(1)),
        }
    }

    pub(super) fn find(&mut self, entity: Entity) -> Option<&mut LoneClient> {
        self.members.iter_mut().find(|member| member.entity == entity)
    }

    pub(super) fn first_idle(&mut self) -> Option<&mut LoneClient> {
        self.members.iter_mut().find(|member| !member.busy)
    }

    pub(super) fn remove(&mut self, entity: Entity) {
        self.members.retain(|member| member.entity != entity);
    }

    /// Takes in a client whose share is no larger than that of any other in here.
    pub(super) fn push(&mut self, member: LoneClient) {
        // Behind equal shares, so that clients leave in the reverse order.
        let place = self.members.partition_point(|other| other.share >= member.share);
        self.members.insert(place, member);
    }

    /// Whether the largest share in the queue, whose shares' sum is `total`, needs a processor alone.
    pub(super) fn takes(&self, share: u32, total: u64) -> bool {
        let left = self.processors - self.members.len() as u64;
        // The last processor is the queue's. S > T / P without division.
        left > 1 && u64::from(share) * left > total
    }

    /// Takes out the client with the smallest share, if it can go back to a queue whose shares' sum is
    /// `total`.
    pub(super) fn pop_feasible(&mut self, total: u64) -> Option<LoneClient> {
        let smallest = *self.members.last()?;
        // As if it were in the queue: the processors left and the sum of shares include its own.
        let left = self.processors - self.members.len() as u64 + 1;
        let share = u64::from(smallest.share);
        if share * left > share + total { None } else { self.members.pop() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(entity: Entity, share: u32) -> LoneClient {
        LoneClient { entity, share, busy: false }
    }

    #[test]
    fn vtrr_7_a_share_above_one_processors_needs_a_processor_alone() {
        let mut alone = LoneClients::new(3);
        assert!(!alone.takes(3, 9), "a third of three processors is one");
        assert!(alone.takes(100, 113));
        alone.push(member(Entity::new(0), 100));
        assert!(alone.takes(10, 13), "two processors are left");
        alone.push(member(Entity::new(1), 10));
        assert!(!alone.takes(3, 3), "the last processor is for all the others");
    }

    #[test]
    fn vtrr_7_a_share_is_feasible_again_when_the_others_have_more() {
        let mut alone = LoneClients::new(2);
        alone.push(member(Entity::new(0), 10));
        assert!(alone.pop_feasible(9).is_none());
        assert!(alone.pop_feasible(10).is_some_and(|member| member.entity == Entity::new(0)));
    }
}
