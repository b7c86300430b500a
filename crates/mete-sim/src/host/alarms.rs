//! The moment when each processor is due: its switch, burst or slice is then over.
//!
//! A processor's alarm is set several times for each time that it goes off, so it is kept out of the event
//! queue. Alarms play a knock-out tournament. Setting one replays the matches on its way to the final; with
//! one processor there is no match to play.

use mete_policy::{Nanoseconds, ProcessorId};

use crate::queue::Moment;

/// A processor and when it is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Alarm {
    moment: Moment,
    processor: ProcessorId,
}

const SILENT: Alarm = Alarm { moment: Moment::NEVER, processor: ProcessorId::new(0) };

/// One alarm for each processor.
///
/// Invariant: the second half of `matches` holds the processors' alarms. Every other entry except the first,
/// which is unused, is the earlier of the two at twice its index and at the index after that.
pub(super) struct Alarms {
    matches: Vec<Alarm>,
}

impl Alarms {
    /// Alarms for this number of processors, at least 1; none is set.
    pub(super) fn new(processors: usize) -> Alarms {
        Alarms { matches: vec![SILENT; 2 * processors.next_power_of_two()] }
    }

    /// Sets a processor's alarm and replaces the one that was set.
    pub(super) fn set(&mut self, processor: usize, moment: Moment) {
        self.replay(processor, Alarm { moment, processor: ProcessorId::at(processor) });
    }

    /// Silences a processor's alarm, if it is set.
    pub(super) fn clear(&mut self, processor: usize) {
        // Most alarms are silent already: then no match has to be replayed.
        if self.matches[self.place(processor)] != SILENT {
            self.replay(processor, SILENT);
        }
    }

    fn place(&self, processor: usize) -> usize {
        self.matches.len() / 2 + processor
    }

    fn replay(&mut self, processor: usize, alarm: Alarm) {
        let mut place = self.place(processor);
        self.matches[place] = alarm;
        while place > 1 {
            place /= 2;
            self.matches[place] = self.matches[2 * place].min(self.matches[2 * place + 1]);
        }
    }

    /// The earliest moment that an alarm is set to.
    pub(super) fn first(&self) -> Moment {
        self.matches[1].moment
    }

    /// Takes the earliest alarm if its time is before `end_ns`.
    pub(super) fn pop_before(&mut self, end_ns: Nanoseconds) -> Option<(Nanoseconds, usize)> {
        let Alarm { moment, processor } = self.matches[1];
        if moment.at_ns() >= end_ns {
            return None;
        }
        self.replay(processor.index(), SILENT);
        Some((moment.at_ns(), processor.index()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Class;

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn alarms_go_off_in_the_order_of_their_moments_and_each_only_as_set_last(
            processors in 1usize..10,
            settings in prop::collection::vec((0usize..10, 0u64..20, any::<bool>()), 1..100),
        ) {
            let (mut alarms, mut list) = (Alarms::new(processors), vec![None; processors]);
            for (sequence, (processor, at_ns, is_set)) in (0..).zip(settings) {
                let processor = processor % processors;
                let moment = Moment::new(Nanoseconds::new(at_ns), Class::Processor, sequence);
                if is_set { alarms.set(processor, moment) } else { alarms.clear(processor) }
                list[processor] = is_set.then_some(moment);
                prop_assert_eq!(alarms.first(), list.iter().flatten().copied().min().unwrap_or(Moment::NEVER));
            }
            let mut expected: Vec<_> = (0..).zip(list).filter_map(|(index, at)| Some((at?, index))).collect();
            expected.sort_unstable();
            let expected: Vec<_> = expected.into_iter().map(|(at, index)| (at.at_ns(), index)).collect();
            prop_assert_eq!(std::iter::from_fn(|| alarms.pop_before(Nanoseconds::new(20))).collect::<Vec<_>>(), expected);
        }
    }
}
