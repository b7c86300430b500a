//! Which time stamps of a recording are believed.
//!
//! Events are in the order in which they happened, so their stamps should rise. A wrong stamp, from a damaged
//! file or a clock that jumped, contradicts its neighbours. The stamps that are believed are the largest set
//! of them that rises. An event with another stamp is taken to have happened when the event before it did.
//!
//! ```text
//!   stamps    100  110  9999999  120  130        100  110  [two years]  130
//!   believed  100  110    (110)  120  130        100  110        then   110
//! ```
//!
//! The first or the last stamp may be far off and still fit into a rising order. So a silence that is too
//! long for any recorder of a whole machine is left out, too.

use mete_policy::Nanoseconds;

/// After a longer silence than this, one of the two stamps is wrong: the kernel's own threads run several
/// times a minute, even on an idle machine.
const MOST_SILENT_NS: Nanoseconds = Nanoseconds::from_secs(3_600);

/// When an event happened, by the stamps that are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Since the first event.
    pub(super) at_ns: Nanoseconds,
    /// Whether its own stamp says so.
    pub(super) is_believed: bool,
}

/// One for each stamp. An event without a stamp happened when the event before it did.
pub(super) fn believed(stamps: &[Option<Nanoseconds>]) -> Vec<Stamp> {
    let rises = rising(stamps);
    let (mut at_ns, mut before) = (Nanoseconds::ZERO, None);
    let stamps = stamps.iter().zip(rises).map(|(stamp, rises)| {
        let Some(stamp) = *stamp else { return Stamp { at_ns, is_believed: true } };
        if !rises {
            return Stamp { at_ns, is_believed: false };
        }
        let silent_ns = before.replace(stamp).map_or(Nanoseconds::ZERO, |before| stamp - before);
        let is_believed = silent_ns <= MOST_SILENT_NS;
        if is_believed {
            at_ns = at_ns.saturating_add(silent_ns);
        }
        Stamp { at_ns, is_believed }
    });
    stamps.collect()
}

/// Which of the stamps belong to the longest sequence that never falls.
fn rising(stamps: &[Option<Nanoseconds>]) -> Vec<bool> {
    // For each length, the place of the lowest end of a sequence of that length; and for each stamp, its
    // predecessor in the sequence that ends with it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![None; stamps.len()];
    for (place, stamp) in stamps.iter().enumerate().filter(|(_, stamp)| stamp.is_some()) {
        let length = ends.partition_point(|&end| stamps[end] <= *stamp);
        before[place] = length.checked_sub(1).map(|shorter| ends[shorter]);
        ends.truncate(ends.len().max(length));
        match ends.get_mut(length) {
            Some(end) => *end = place,
            None => ends.push(place),
        }
    }
    let mut is_rising = vec![false; stamps.len()];
    let mut next = ends.last().copied();
    while let Some(place) = next {
        is_rising[place] = true;
        next = before[place];
    }
    is_rising
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(stamps: &[u64]) -> (Vec<u64>, usize) {
        let stamps: Vec<_> = stamps.iter().map(|&stamp| Some(Nanoseconds::new(stamp))).collect();
        let all = believed(&stamps);
        (all.iter().map(|of| of.at_ns.get()).collect(), all.iter().filter(|of| !of.is_believed).count())
    }

    #[test]
    fn new_1_stamps_that_rise_are_believed() {
        assert_eq!(at(&[100, 110, 110, 130]), (vec![0, 10, 10, 30], 0));
        assert_eq!(at(&[]), (vec![], 0));
        let stamps = [None, Some(Nanoseconds::new(5)), None];
        assert!(believed(&stamps).iter().all(|of| of.at_ns.is_zero()));
    }

    #[test]
    fn new_1_one_far_off_stamp_moves_no_other_event_wherever_it_stands() {
        let far = 18_000_000_000_000_000_000;
        assert_eq!(at(&[100, 110, far, 120, 130]), (vec![0, 10, 10, 20, 30], 1));
        assert_eq!(at(&[100, 110, 3, 120, 130]), (vec![0, 10, 10, 20, 30], 1));
        assert_eq!(at(&[far, 110, 120, 130]), (vec![0, 0, 10, 20], 1));
        assert_eq!(at(&[0, far, far + 10, far + 20]), (vec![0, 0, 10, 20], 1));
        assert_eq!(at(&[100, 110, 120, far]), (vec![0, 10, 20, 20], 1));
        assert_eq!(at(&[100, 110, u64::MAX]), (vec![0, 10, 10], 1));
    }
}
