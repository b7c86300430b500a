//! Turns of hogs that share a processor, as they noted them, and what follows from their order.

use super::stage::member::Notes;

/// A member had the processor from one time to another, in nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub member: usize,
    pub from_ns: u64,
    pub to_ns: u64,
    /// How long it had the processor meanwhile: less than from one to the other where something else that is
    /// no member, or an interrupt, came in between.
    pub had_ns: u64,
}

/// The turns of all members in their order, of those that began after a time. Turns of one member behind each
/// other are one.
///
/// A member notes a turn when it has the next one. So of its last turn nothing is known, and what others did
/// after that is left out, too.
pub(super) fn turns(notes: &[Notes], begin_ns: u64) -> Vec<Turn> {
    let ends = notes.iter().map(|notes| notes.kept.last().copied());
    let end_ns = ends.min().flatten().unwrap_or_default();
    let of_member = |(member, notes): (usize, &Notes)| {
        let turns = notes.kept.as_chunks().0.iter();
        let turns = turns.map(move |&[from_ns, to_ns]| Turn {
            member,
            from_ns,
            to_ns,
            had_ns: to_ns.saturating_sub(from_ns),
        });
        turns.filter(|turn| turn.from_ns >= begin_ns && turn.to_ns <= end_ns).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = notes.iter().enumerate().flat_map(of_member).collect();
    all.sort_by_key(|turn| turn.from_ns);
    joined(all)
}

fn joined(all: Vec<Turn>) -> Vec<Turn> {
    let mut joined: Vec<Turn> = Vec::new();
    for turn in all {
        let goes_on = joined.last().is_some_and(|last| last.member == turn.member && is_behind_all(&joined));
        match joined.last_mut() {
            Some(last) if goes_on => {
                last.to_ns = turn.to_ns;
                last.had_ns += turn.had_ns;
            }
            _ => joined.push(turn),
        }
    }
    joined
}

/// Whether the last turn ended after those before it. A short one may lie within another member's, which did not notice.
fn is_behind_all(turns: &[Turn]) -> bool {
    let mut latest = turns.iter().rev().take(MOST_WITHIN).map(|turn| turn.to_ns);
    let last = latest.next().unwrap_or_default();
    latest.all(|end| end <= last)
}

/// How many turns at most lie within another one.
const MOST_WITHIN: usize = 8;

/// The lowest and the highest error that a member had at the end of any turn: what it had, less its part of
/// what all had, in milliseconds.
pub(super) fn errors_ms(turns: &[Turn], wanted: &[f64]) -> Option<[f64; 2]> {
    let mut had = vec![0.0; wanted.len()];
    let mut all = 0.0;
    let mut range: Option<[f64; 2]> = None;
    for turn in turns {
        let ms = turn.had_ns as f64 / 1e6;
        had[turn.member] += ms;
        all += ms;
        for (had, wanted) in had.iter().zip(wanted) {
            let error = had - wanted * all;
            let [lowest, highest] = range.unwrap_or([error; 2]);
            range = Some([lowest.min(error), highest.max(error)]);
        }
    }
    range
}

/// The longest time between two turns of a member, in milliseconds.
pub(super) fn longest_wait_ms(turns: &[Turn], member: usize) -> Option<f64> {
    let own: Vec<_> = turns.iter().filter(|turn| turn.member == member).collect();
    let waits = own.windows(2).map(|pair| pair[1].from_ns.saturating_sub(pair[0].to_ns) as f64 / 1e6);
    waits.max_by(f64::total_cmp)
}

/// The part of all quanta whose member is that of the quantum one cycle before. Less than half of a quantum is
/// none, and what comes in between does not part a turn.
pub(super) fn repeated(turns: &[Turn], quantum_ns: u64, cycle: usize) -> Option<f64> {
    let whole = turns.iter().filter(|turn| in_quanta(turn, quantum_ns) > 0).copied().collect();
    let quanta = joined(whole).into_iter();
    let quanta: Vec<_> =
        quanta.flat_map(|turn| std::iter::repeat_n(turn.member, in_quanta(&turn, quantum_ns))).collect();
    let pairs = quanta.iter().zip(quanta.get(cycle..)?);
    let count = pairs.len();
    let alike = pairs.filter(|(now, then)| now == then).count();
    (count > 0).then(|| alike as f64 / count as f64)
}

/// The part of the time in turns that are shorter than half a quantum: of those who were not chosen, or were
/// interrupted.
pub(super) fn in_pieces(turns: &[Turn], quantum_ns: u64) -> Option<f64> {
    let all: u64 = turns.iter().map(|turn| turn.had_ns).sum();
    let short = turns.iter().filter(|turn| in_quanta(turn, quantum_ns) == 0);
    (all > 0).then(|| short.map(|turn| turn.had_ns).sum::<u64>() as f64 / all as f64)
}

fn in_quanta(turn: &Turn, quantum_ns: u64) -> usize {
    ((turn.had_ns + quantum_ns / 2) / quantum_ns) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Quanta of these members from this time on, with a hundredth of a quantum between them. Each has had a
    /// turn before, and has one afterwards.
    fn of(members: &[usize]) -> Vec<Turn> {
        let mut notes = vec![Notes::default(); 3];
        for (nth, member) in (0..).zip([&[0, 1, 2], members, &[2, 0, 1]].concat()) {
            notes[member].kept.extend([nth * MS, (nth + 1) * MS - MS / 100]);
        }
        let end = (3 + members.len() as u64) * MS;
        let all = turns(&notes, 3 * MS);
        // What comes behind the first last turn of a member is not known.
        assert!(all.last().is_none_or(|last| last.from_ns <= end));
        all.into_iter().filter(|turn| turn.from_ns < end).collect()
    }

    #[test]
    fn vtrr_6_turns_of_one_member_behind_each_other_are_one() {
        let turns = of(&[0, 0, 1, 0, 2]);
        let all: Vec<_> = turns.iter().map(|turn| (turn.member, turn.from_ns / MS)).collect();
        assert_eq!(all, [(0, 3), (1, 5), (0, 6), (2, 7)]);
        assert_eq!((turns[0].to_ns, turns[0].had_ns), (5 * MS - MS / 100, 2 * MS - MS / 50));
        assert_eq!(longest_wait_ms(&turns, 0), Some(1.01));
        assert_eq!(longest_wait_ms(&turns, 1), None, "it had one turn");
    }

    #[test]
    fn vtrr_6_what_is_not_known_to_the_end_is_left_out() {
        let notes = |kept: &[u64]| Notes { kept: kept.to_vec(), lost: 0 };
        // The second one's last turn is not noted: it began at 30 and lasts on.
        let all = turns(&[notes(&[0, 10, 20, 30, 40, 50, 60, 70]), notes(&[10, 20, 30, 40])], 5);
        let all: Vec<_> = all.iter().map(|turn| (turn.member, turn.from_ns)).collect();
        assert_eq!(all, [(1, 10), (0, 20), (1, 30)]);
        assert_eq!(turns(&[notes(&[0, 10]), notes(&[])], 0), [], "one has no turn yet");
    }

    #[test]
    fn vtrr_6_an_order_repeats_as_far_as_its_quanta_do() {
        let part = |members: &[usize]| repeated(&of(members), MS, 3);
        assert_eq!(part(&[0, 0, 1, 0, 0, 1, 0, 0, 1]), Some(1.0));
        assert_eq!(part(&[0, 0, 1, 0, 0, 0]), Some(2.0 / 3.0));
        assert_eq!(part(&[0, 1]), None, "there is no whole cycle");
        // A piece of another member's in the middle of a turn.
        let mut pieces = of(&[0, 0, 1, 0, 0, 1, 0, 0, 1]);
        pieces[2].had_ns = MS;
        pieces.insert(3, Turn { member: 1, had_ns: MS / 4, ..pieces[2] });
        pieces.insert(4, Turn { had_ns: MS, ..pieces[2] });
        assert_eq!(repeated(&pieces, MS, 3), Some(1.0));
        let part = in_pieces(&pieces, MS).unwrap();
        assert!((part - 0.25 / 9.19).abs() < 0.001, "{part}");
        assert_eq!(in_pieces(&[], MS), None);
    }

    #[test]
    fn vtrr_6_errors_are_between_what_was_had_and_what_was_due() {
        let [lowest, highest] = errors_ms(&of(&[0, 1, 0, 1]), &[0.5, 0.5, 0.0]).unwrap();
        assert!((highest - 0.495).abs() < 1e-9 && (lowest + 0.495).abs() < 1e-9, "{lowest} {highest}");
        assert_eq!(errors_ms(&[], &[0.5, 0.5]), None);
    }

    #[test]
    fn vtrr_6_a_look_within_anothers_turn_is_no_part_of_the_next_turn() {
        let turn = |member, from, to| Turn { member, from_ns: from, to_ns: to, had_ns: to - from };
        let all = vec![turn(0, 0, 10), turn(1, 4, 5), turn(1, 10, 20), turn(1, 21, 30)];
        let parts: Vec<_> = joined(all).iter().map(|turn| (turn.member, turn.from_ns, turn.to_ns)).collect();
        assert_eq!(parts, [(0, 0, 10), (1, 4, 5), (1, 10, 30)]);
    }
}
