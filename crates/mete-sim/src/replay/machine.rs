//! What a recording tells of the machine: what a wake-up costs there, and how often its tick comes.
//!
//! ```text
//!    wake-up ──▶ the thread runs          the processor was idle: the machine woke it up first
//!    wake-up ─▶ another one gives way     it was busy, and the woken one took it at once
//!       R ──▶ another one, not woken      a slice ended, which Linux sees when its tick comes
//! ```

use crate::random::Stream;

/// Where a wake-up came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// The processor on which the woken thread then ran: its waker's own, or that of the interrupt.
    Here,
    /// Another one, which had to send word.
    Elsewhere,
}

impl From {
    pub(super) fn remote(is_remote: bool) -> From {
        if is_remote { From::Elsewhere } else { From::Here }
    }
}

/// What a recording tells of its machine. Times from wake-ups are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Whether it was simulated: then all costs are those of its scenario.
    pub is_simulated: bool,
    /// The kernel, as the recording names it: `Linux 6.18.44`.
    pub kernel: Option<String>,
    /// How long it took until a woken thread ran on a processor that had been idle, by [`From`].
    idle_ns: [Vec<u64>; 2],
    /// How long it took until a running thread had made way for the woken one.
    made_way_ns: [Vec<u64>; 2],
    /// When threads that could have gone on left for others that had waited.
    slice_ends_ns: Vec<u64>,
}

/// The shortest tick that Linux has is 1 ms (HZ=1000). So a thread that makes way sooner than this does so for the
/// wake-up itself, and not because a tick came: of those that wait for one, fewer than one in ten see it so soon.
const AT_ONCE_NS: u64 = 100_000;
/// The ticks that Linux can be built with: 100, 250, 300 and 1000 a second. The longest first, because what comes
/// every 10 ms also comes at a multiple of 1 ms.
const TICKS_NS: [u64; 4] = [10_000_000, 4_000_000, 3_333_333, 1_000_000];
/// Ends of slices keep step with a tick if most of them do: where a part of them always comes at the same place of a
/// period and the rest at random, [`in_step`] is that part.
const MOST: f64 = 0.5;
/// Fewer ends of slices do not tell a tick from chance: `n` at random are in step with a period by more than [`MOST`] with a
/// probability of e^(-n/4) (Rayleigh), and with one of the four ticks by one in a hundred if there are 24.
const FEWEST_SLICES: usize = 24;

impl Machine {
    pub(super) fn came_to_idle(&mut self, from: From, ns: u64) {
        self.idle_ns[from as usize].push(ns);
    }

    pub(super) fn made_way(&mut self, from: From, at_ns: u64, after_ns: u64) {
        if after_ns < AT_ONCE_NS {
            self.made_way_ns[from as usize].push(after_ns);
        } else {
            self.slice_ended(at_ns);
        }
    }

    pub(super) fn slice_ended(&mut self, at_ns: u64) {
        self.slice_ends_ns.push(at_ns);
    }

    pub(super) fn sorted(mut self) -> Machine {
        self.idle_ns.iter_mut().chain(&mut self.made_way_ns).for_each(|all| all.sort_unstable());
        self
    }

    /// One of the recorded times from a wake-up to running on an idle processor, by chance.
    pub(super) fn draw_idle_ns(&self, from: From, stream: &mut Stream) -> u64 {
        let all = of_kind(&self.idle_ns, from);
        all.get(stream.below(all.len() as u64) as usize).copied().unwrap_or(0)
    }

    /// How long a thread goes on when a wake-up takes its processor: by chance if word has to be sent to another
    /// processor. Of its own processor's, it is the median: what a waker does after a wake-up is in its recorded work, and a
    /// longer time would let it do what it did after it came back.
    pub(super) fn draw_make_way_ns(&self, from: From, stream: &mut Stream) -> u64 {
        let all = of_kind(&self.made_way_ns, from);
        let nth = match from {
            From::Here => all.len() / 2,
            From::Elsewhere => stream.below(all.len() as u64) as usize,
        };
        all.get(nth).copied().unwrap_or(0)
    }

    /// The kernel's tick: the longest of those it can be built with that the ends of slices keep step with. `None`
    /// where too few slices ended.
    #[must_use]
    pub fn tick_ns(&self) -> Option<u64> {
        let ends = &self.slice_ends_ns;
        let keeps_step = |&tick_ns: &u64| in_step(ends, tick_ns) > MOST;
        if ends.len() < FEWEST_SLICES { None } else { TICKS_NS.into_iter().find(keeps_step) }
    }
}

/// What was recorded of this kind; of the other kind where there is none of it.
fn of_kind(times_ns: &[Vec<u64>; 2], from: From) -> &[u64] {
    let [mine, others] = [from as usize, 1 - from as usize].map(|kind| &times_ns[kind]);
    if mine.is_empty() { others } else { mine }
}

/// From 0, spread over the whole period, to 1, always at the same place of it.
fn in_step(at_ns: &[u64], period_ns: u64) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for at_ns in at_ns {
        let angle = (at_ns % period_ns) as f64 / period_ns as f64 * std::f64::consts::TAU;
        x += libm::cos(angle);
        y += libm::sin(angle);
    }
    libm::hypot(x, y) / at_ns.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_1_the_tick_is_told_by_when_slices_end() {
        for tick_ns in TICKS_NS {
            let mut machine = Machine::default();
            (0..40)
                .for_each(|nth| machine.slice_ended(nth * nth % 97 * tick_ns + 123_456 + nth % 5 * 10_000));
            assert_eq!(machine.tick_ns(), Some(tick_ns));
        }
        let mut machine = Machine::default();
        (0..40).for_each(|nth| machine.slice_ended(nth * 1_234_567 + nth * nth * 77_777));
        assert_eq!(machine.tick_ns(), None);
    }

    #[test]
    fn new_1_no_tick_is_found_where_slices_end_at_random_but_once_in_a_hundred_recordings() {
        let mut stream = Stream::new(1, "ends of slices");
        let found = (0..1000).filter(|_| {
            let mut machine = Machine::default();
            (0..FEWEST_SLICES).for_each(|_| machine.slice_ended(stream.below(4_000_000_000)));
            machine.tick_ns().is_some()
        });
        let found = found.count();
        assert!((1..=30).contains(&found), "{found} of a thousand");
    }

    #[test]
    fn new_1_what_a_wake_up_costs_is_the_recordings_own() {
        let mut machine = Machine::default();
        [5_000, 7_000].into_iter().for_each(|ns| machine.came_to_idle(From::Elsewhere, ns));
        [900, 2_000_000].into_iter().for_each(|ns| machine.made_way(From::Here, 0, ns));
        machine.made_way(From::Elsewhere, 0, 20_000);
        let machine = machine.sorted();
        let mut stream = Stream::new(1, "test");
        for _ in 0..20 {
            assert!([5_000, 7_000].contains(&machine.draw_idle_ns(From::Elsewhere, &mut stream)));
            assert!(
                [5_000, 7_000].contains(&machine.draw_idle_ns(From::Here, &mut stream)),
                "none of its own"
            );
            assert_eq!(machine.draw_make_way_ns(From::Here, &mut stream), 900);
            assert_eq!(machine.draw_make_way_ns(From::Elsewhere, &mut stream), 20_000);
        }
    }
}
