//! Which events are recorded at a moment.

use crate::plan::Plan;

/// Which events are recorded: those that are on, while the whole is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switches {
    /// The whole.
    pub enable: bool,
    /// Each event of the schema.
    pub events: Vec<bool>,
}

/// What changes between two states: places of events in the schema.
pub(crate) struct Change {
    /// Events that go off.
    pub off: Vec<usize>,
    /// Events that go on.
    pub on: Vec<usize>,
}

impl Switches {
    pub(crate) fn at_first(plan: &Plan) -> Switches {
        let events = (0..plan.schema.events().len()).map(|event| plan.events.contains(&event));
        Switches { enable: plan.is_on, events: events.collect() }
    }

    /// The events that are recorded, by their places in the schema.
    pub fn on(&self) -> Vec<usize> {
        (0..self.events.len()).filter(|event| self.enable && self.events[*event]).collect()
    }

    /// What changes where `next` follows.
    pub(crate) fn change_to(&self, next: &Switches) -> Change {
        let (was, will) = (self.on(), next.on());
        Change {
            off: was.iter().copied().filter(|event| !will.contains(event)).collect(),
            on: will.iter().copied().filter(|event| !was.contains(event)).collect(),
        }
    }
}
