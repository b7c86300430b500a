//! The three priorities, and the sources of a client's priority.

/// A client's priority; the larger runs first (TAVS paper, §2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
pub enum Priority {
    /// It has used more than its credit.
    Over = -2,
    /// It has credit left.
    #[default]
    Under = -1,
    /// It is boosted.
    Boost = 0,
}

impl Priority {
    /// All priorities, in the order in which they run.
    pub(super) const ALL: [Priority; 3] = [Priority::Boost, Priority::Under, Priority::Over];

    /// Its place in [`Priority::ALL`].
    pub(super) fn rank(self) -> usize {
        -(self as i8) as usize
    }
}

/// Why a client is boosted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Boost {
    #[default]
    None,
    /// It woke with credit left.
    Wake,
    /// An event is pending for an I/O-bound task in it.
    Partial,
}

/// The parts of a client's priority: the highest counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// By its credit, as of the last accounting: `Under` or `Over`.
    pub(super) credit: Priority,
    pub(super) boost: Boost,
    /// The priority of the client that asked it for something, if it is a driver.
    pub(super) inherited: Option<Priority>,
}

impl Standing {
    pub(super) fn priority(&self) -> Priority {
        let own = if self.boost == Boost::None { self.credit } else { Priority::Boost };
        self.inherited.map_or(own, |inherited| inherited.max(own))
    }

    /// A client of that priority sent this one, a driver, a request (§4.2, algorithm 2): the highest of
    /// several requesters counts. `true`: the driver's priority has risen. The driver has its own priority
    /// again when it is descheduled, whether or not it has finished, as the algorithm has it.
    pub(super) fn inherit(&mut self, requester: Priority) -> bool {
        let rises = requester > self.priority();
        if rises {
            self.inherited = Some(requester);
        }
        rises
    }

    /// A tick found the client running: it uses too much to stay boosted. A partial boost is bounded by its
    /// slice instead, which is as long as a tick (§3.4).
    pub(super) fn demote(&mut self) {
        if self.boost == Boost::Wake {
            self.boost = Boost::None;
        }
        // What a driver inherited is a boost, too, if its requester was boosted.
        self.inherited = self.inherited.map(|inherited| inherited.min(Priority::Under));
    }

    /// The client left its processor.
    pub(super) fn leave(&mut self, blocked: bool) {
        let borrowed = self.inherited.take().is_some();
        // A wake-up's boost outlasts a preemption, since ticks end it; a partial boost is for one slice
        // (§3.4).
        if blocked || borrowed || self.boost == Boost::Partial {
            self.boost = Boost::None;
        }
    }
}
