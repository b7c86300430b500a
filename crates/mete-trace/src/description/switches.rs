//! Events that were switched on and off while recording, as the description lists them.

use mete_log::Ticks;
use serde::{Deserialize, Serialize};

/// The most switches that a description lists.
const MOST_LISTED: usize = 1000;

/// An event that was switched while recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// When it was switched: a time stamp of the trace's clock.
    pub time: Ticks,
    /// The event's name.
    pub event: String,
    /// Whether it was recorded from then on.
    pub on: bool,
}

/// What a description says about switched events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// The events that were off when recording began.
    pub off_at_first: Vec<String>,
    /// What was switched after that, in order: the first thousand switches.
    pub list: Vec<Switch>,
    /// The number of further switches, which are not in the list. The trace has their marks.
    pub unlisted: u64,
}

impl Switches {
    pub(crate) fn note(&mut self, switch: Switch) {
        if self.list.len() < MOST_LISTED { self.list.push(switch) } else { self.unlisted += 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_4_a_description_does_not_grow_with_the_switches() {
        let mut switches = Switches::default();
        for time in 0..1500 {
            switches.note(Switch { time: Ticks::new(time), event: "A".into(), on: time % 2 == 0 });
        }
        let last = switches.list[999].time;
        assert_eq!((switches.list.len(), switches.unlisted, last), (1000, 500, Ticks::new(999)));
    }
}
