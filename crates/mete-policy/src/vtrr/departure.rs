//! What is remembered of an entity that is not in the queue, so that it gains nothing by coming back.

use super::slot::Entity;

/// The state of an entity when it left its queue (VTRR paper, §3.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    /// The cycle in which it left.
    pub(super) cycle: u64,
    /// What was still due to it then, in nanoseconds.
    pub(super) due_ns: i64,
    /// Its share then.
    pub(super) share: u32,
    /// The last-previous and the last-next client; `Entity::MAX` at the ends of the queue.
    pub(super) before: Entity,
    pub(super) behind: Entity,
}

impl Departure {
    /// It was never in the queue: nothing that it had limits what it is due.
    pub(super) const NEVER: Departure =
        Departure { cycle: 0, due_ns: i64::MAX, share: 1, before: Entity::MAX, behind: Entity::MAX };

    /// The same with another share, and what is due to it in proportion to that. What it owes does not grow.
    pub(super) fn with_share(self, share: u32) -> Departure {
        // One that was never in the queue has no share to compare with.
        let is_new = self.due_ns == Departure::NEVER.due_ns;
        if is_new || (self.due_ns < 0 && share > self.share) {
            return Departure { share, ..self };
        }
        // At most a cycle's worth of the greatest share, as before it.
        let due_ns = i128::from(self.due_ns) * i128::from(share) / i128::from(self.share.max(1));
        Departure { share, due_ns: due_ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64, ..self }
    }

    /// What would still be due to it with another share. A smaller share cuts it, so that virtual time
    /// does not go back; a larger one adds nothing to it in the same cycle.
    pub(super) fn due_for_ns(&self, share: i128) -> i128 {
        let (due_ns, old_share) = (i128::from(self.due_ns), i128::from(self.share));
        if share < old_share { due_ns * share / old_share } else { due_ns }
    }
}
