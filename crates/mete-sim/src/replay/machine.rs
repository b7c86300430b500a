//! What a recording tells of its machine: what a wake-up costs there, and how often its tick comes.
//!
//! ```text
//!    wake-up ──▶ the thread runs          the processor was idle: the machine woke it up first
//!    wake-up ─▶ another one gives way     it was busy, and the woken one took it at once
//!       R ──▶ another one, not woken      a slice ended, which Linux sees when its tick comes
//! ```

use mete_policy::Nanoseconds;

use crate::random::Stream;

/// The place where a wake-up came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WakeSource {
    /// The processor on which the woken thread then ran: the waker's own, or that of the interrupt.
    Here,
    /// Another processor, which had to send a message.
    Elsewhere,
}

impl WakeSource {
    pub(super) fn remote(is_remote: bool) -> WakeSource {
        if is_remote { WakeSource::Elsewhere } else { WakeSource::Here }
    }
}

/// What a recording tells of its machine. The times after wake-ups are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Whether the run was simulated: then all costs are those of its scenario.
    pub is_simulated: bool,
    /// The kernel, as the recording names it: `Linux 6.18.44`.
    pub kernel: Option<String>,
    /// How long it took until a woken thread ran on a processor that had been idle, by [`WakeSource`].
    idle_ns: [Vec<Nanoseconds>; 2],
    /// How long it took until a running thread had made way for the woken one, by [`WakeSource`].
    made_way_ns: [Vec<Nanoseconds>; 2],
    /// When threads that could have gone on left for others that had waited.
    slice_ends_ns: Vec<Nanoseconds>,
}

/// A thread that makes way within this time does so for the wake-up itself, and not because a tick came. The
/// shortest tick that Linux has is 1 ms (HZ=1000), so fewer than one in ten of the threads that wait for a
/// tick see it so soon.
const AT_ONCE_NS: Nanoseconds = Nanoseconds::from_micros(100);
/// The ticks that Linux can be built with: 100, 250, 300 and 1000 a second. The longest is first, because
/// what happens every 10 ms also happens at multiples of 1 ms.
const TICKS_NS: [Nanoseconds; 4] = [
    Nanoseconds::from_millis(10),
    Nanoseconds::from_millis(4),
    Nanoseconds::new(3_333_333),
    Nanoseconds::from_millis(1),
];
/// Ends of slices keep step with a tick if most of them do. If a part of them always comes at the same place
/// of a period and the others come at random, [`in_step`] is that part.
const MOST: f64 = 0.5;
/// With fewer ends of slices a tick cannot be told from chance. `n` random ends are in step with a period by
/// more than [`MOST`] with a probability of e^(-n/4) (Rayleigh). With 24 ends the probability for any of the
/// four ticks is one in a hundred.
const FEWEST_SLICES: usize = 24;

impl Machine {
    pub(super) fn came_to_idle(&mut self, from: WakeSource, ns: Nanoseconds) {
        self.idle_ns[from as usize].push(ns);
    }

    pub(super) fn made_way(&mut self, from: WakeSource, at_ns: Nanoseconds, after_ns: Nanoseconds) {
        if after_ns < AT_ONCE_NS {
            self.made_way_ns[from as usize].push(after_ns);
        } else {
            // So late it was not for the wake-up: a slice ended.
            self.slice_ended(at_ns);
        }
    }

    pub(super) fn slice_ended(&mut self, at_ns: Nanoseconds) {
        self.slice_ends_ns.push(at_ns);
    }

    pub(super) fn sorted(mut self) -> Machine {
        self.idle_ns.iter_mut().chain(&mut self.made_way_ns).for_each(|all| all.sort_unstable());
        self
    }

    /// One of the recorded times from a wake-up to running on an idle processor, drawn at random.
    pub(super) fn draw_idle_ns(&self, from: WakeSource, stream: &mut Stream) -> Nanoseconds {
        let all = of_source(&self.idle_ns, from);
        // Without any recorded time a wake-up costs nothing.
        all.get(stream.below(all.len() as u64) as usize).copied().unwrap_or_default()
    }

    /// How long a thread goes on when a wake-up takes its processor. If another processor has to be told, or no thread
    /// has caused the wake-up, the time is drawn at random. For the waker's own processor it is the median: the
    /// recorded work includes what a waker does after a wake-up, and a longer time would let it do what it did after it
    /// came back.
    pub(super) fn draw_make_way_ns(
        &self,
        from: WakeSource,
        has_waker: bool,
        stream: &mut Stream,
    ) -> Nanoseconds {
        let all = of_source(&self.made_way_ns, from);
        let nth = match from {
            WakeSource::Here if has_waker => all.len() / 2,
            WakeSource::Here | WakeSource::Elsewhere => stream.below(all.len() as u64) as usize,
        };
        all.get(nth).copied().unwrap_or_default()
    }

    /// The kernel's tick: the longest of the ticks that it can be built with that the ends of slices keep
    /// step with. `None` if too few slices ended.
    pub fn tick_ns(&self) -> Option<Nanoseconds> {
        if self.slice_ends_ns.len() < FEWEST_SLICES {
            return None;
        }
        TICKS_NS.into_iter().find(|&tick_ns| in_step(&self.slice_ends_ns, tick_ns) > MOST)
    }
}

/// The times of wake-ups from this source; those of the other source if there are none.
fn of_source(times_ns: &[Vec<Nanoseconds>; 2], from: WakeSource) -> &[Nanoseconds] {
    let [mine, others] = [from as usize, 1 - from as usize].map(|kind| &times_ns[kind]);
    if mine.is_empty() { others } else { mine }
}

/// How well times keep step with a period: from 0, spread over the whole period, to 1, always at the same
/// place in it.
fn in_step(at_ns: &[Nanoseconds], period_ns: Nanoseconds) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for &at_ns in at_ns {
        // The times as directions on a circle of one period: the length of their mean says how well they
        // agree.
        let angle = (at_ns % period_ns).part_of(period_ns) * std::f64::consts::TAU;
        x += libm::cos(angle);
        y += libm::sin(angle);
    }
    libm::hypot(x, y) / at_ns.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn new_1_the_tick_is_told_by_when_slices_end() {
        for tick_ns in TICKS_NS {
            let mut machine = Machine::default();
            let late_ns = |nth| Nanoseconds::new(123_456 + nth % 5 * 10_000);
            (0..40).for_each(|nth| machine.slice_ended(nth * nth % 97 * tick_ns + late_ns(nth)));
            assert_eq!(machine.tick_ns(), Some(tick_ns));
        }
        let mut machine = Machine::default();
        (0..40).for_each(|nth| machine.slice_ended(Nanoseconds::new(nth * 1_234_567 + nth * nth * 77_777)));
        assert_eq!(machine.tick_ns(), None);
    }

    #[test]
    fn new_1_no_tick_is_found_where_slices_end_at_random_but_once_in_a_hundred_recordings() {
        let mut stream = Stream::new(1, "ends of slices");
        let found = (0..1000).filter(|_| {
            let mut machine = Machine::default();
            (0..FEWEST_SLICES)
                .for_each(|_| machine.slice_ended(Nanoseconds::new(stream.below(4_000_000_000))));
            machine.tick_ns().is_some()
        });
        let found = found.count();
        assert!((1..=30).contains(&found), "{found} of a thousand");
    }

    #[test]
    fn new_1_what_a_wake_up_costs_is_the_recordings_own() {
        let us = Nanoseconds::from_micros;
        let mut machine = Machine::default();
        [us(5), us(7)].into_iter().for_each(|ns| machine.came_to_idle(WakeSource::Elsewhere, ns));
        [Nanoseconds::new(900), us(1), us(2), us(2_000)]
            .into_iter()
            .for_each(|ns| machine.made_way(WakeSource::Here, Nanoseconds::ZERO, ns));
        machine.made_way(WakeSource::Elsewhere, Nanoseconds::ZERO, us(20));
        let machine = machine.sorted();
        let mut stream = Stream::new(1, "test");
        for _ in 0..20 {
            // Without a wake-up of its own source, the times of the other one count.
            for from in [WakeSource::Elsewhere, WakeSource::Here] {
                assert!([us(5), us(7)].contains(&machine.draw_idle_ns(from, &mut stream)), "{from:?}");
            }
            assert_eq!(machine.draw_make_way_ns(WakeSource::Here, true, &mut stream), us(1));
            assert_eq!(machine.draw_make_way_ns(WakeSource::Elsewhere, true, &mut stream), us(20));
        }
        let by_none: BTreeSet<_> =
            (0..50).map(|_| machine.draw_make_way_ns(WakeSource::Here, false, &mut stream)).collect();
        assert_eq!(by_none, BTreeSet::from([Nanoseconds::new(900), us(1), us(2)]), "no thread has woken it");
    }
}
