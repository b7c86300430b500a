//! When a chosen client lets tasks go first that are no clients.
//!
//! While a chosen client is in front of all ordinary tasks, those that are no clients wait, the kernel's own
//! threads among them. So a chosen client steps back now and then, and is an ordinary task. It does so as soon as one of
//! them waits, which goes first then, as long as they have not had what they are due (dues.rs); and at least so often that the kernel
//! never takes the processor from real-time tasks by itself (`sched_rt_runtime_us`), which it would do for long at a time.
//!
//! One that is due a whole processor steps back for the kernel's sake only, but chooses when: for a moment when a task wakes, as a rule
//! one that needs little, also if that is not owed yet. So what belongs to this processor, such as threads of the kernel, seldom waits for it.

use std::fs;

use mete_policy::Nanoseconds;

use crate::dues::Dues;

/// The least time for which a client steps back.
const LEAST_PAUSE: Nanoseconds = Nanoseconds::from_micros(500);
const MOST_PAUSE: Nanoseconds = Nanoseconds::from_millis(4);
/// What a step back for their sake counts for at least: to step back and return takes the clients about as long.
const LEAST_CHARGE: Nanoseconds = Nanoseconds::from_micros(100);
/// A client steps back for a pause that is owed when it has become this long.
const OWED_PAUSE: i64 = 2_000_000;
/// For one that has woken a client steps back before that is owed, up to this.
const CREDIT: i64 = 2_000_000;
/// How soon an account is looked at again.
const SHORTEST: Nanoseconds = Nanoseconds::from_micros(50);
/// By how much more than the kernel asks for a client steps back.
const MARGIN_PERMILLE: u64 = 15;
/// In this number of pauses, one after another, one that waits may get nothing. Then it is not taken to wait any more: it may
/// have gone to another processor.
const MOST_IN_VAIN: u32 = 8;
const PERMILLE: u64 = 1000;

/// The steps back of one processor's client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// Of each thousand nanoseconds in front, how many a client must step back for.
    owed_permille: u64,
    /// For how long a client has to step back, in nanoseconds; less than nothing if it has done so before.
    owed: i64,
    counted: Nanoseconds,
    /// What was had on this processor by tasks that are no clients when a client stepped back.
    had: Nanoseconds,
    /// Whether a client has stepped back, whether it did because one of them waited, and whether before that was owed.
    gives_way: bool,
    was_wanted: bool,
    is_early: bool,
    /// How many of them are known to wait of which no step back has taken account.
    waiting: u32,
    /// How many pauses, one after another, were for their sake and gave them nothing.
    in_vain: u32,
    /// One of those that wait has woken, and has not lost the processor to a client.
    has_woken: bool,
}

impl Rest {
    /// None waits, and nothing is owed.
    pub fn new(now: Nanoseconds) -> Rest {
        Rest {
            owed_permille: owed_permille(),
            owed: 0,
            counted: now,
            had: Nanoseconds::ZERO,
            gives_way: false,
            was_wanted: false,
            is_early: false,
            waiting: 0,
            in_vain: 0,
            has_woken: false,
        }
    }

    /// One of them waits; it has woken, or was left when a client went on.
    pub fn wait(&mut self, has_woken: bool) {
        self.waiting = self.waiting.saturating_add(1);
        self.has_woken |= has_woken;
        // While one goes first, it may have the processor already.
        self.in_vain = if self.gives_way && self.was_wanted { MOST_IN_VAIN } else { 0 };
    }

    /// None of them waits.
    pub fn forget(&mut self) {
        (self.waiting, self.in_vain, self.has_woken) = (0, 0, false);
    }

    /// For how long one that waits would go first now. `has_all`: the client is due a whole processor.
    pub fn may_go_first(&self, dues: &Dues, has_all: bool) -> Nanoseconds {
        let due = self.due_pause(dues, has_all);
        let may_be_early =
            self.has_woken && self.owed_permille > 0 && self.owed + CREDIT >= LEAST_PAUSE.get().cast_signed();
        if due.is_zero() && may_be_early { LEAST_PAUSE } else { due }
    }

    /// The same as far as they are due it, or the kernel asks for it.
    fn due_pause(&self, dues: &Dues, has_all: bool) -> Nanoseconds {
        let is_due = !self.keeps(has_all) && dues.saved() >= LEAST_PAUSE;
        self.owed_pause().max(if is_due { dues.saved() } else { Nanoseconds::ZERO })
    }

    /// The pause that is owed, if it is long enough.
    fn owed_pause(&self) -> Nanoseconds {
        if self.owed >= OWED_PAUSE { Nanoseconds::new(self.owed.unsigned_abs()) } else { Nanoseconds::ZERO }
    }

    /// Whether the client steps back for the kernel's sake only. Where the kernel asks for nothing, what is bound to this processor
    /// would never run.
    fn keeps(&self, has_all: bool) -> bool {
        has_all && self.owed_permille > 0
    }

    /// Time has passed, in which a client was in front or not.
    pub fn pass(&mut self, now: Nanoseconds, in_front: bool) {
        let passed = now.saturating_sub(self.counted);
        self.counted = now;
        self.owed = match in_front {
            true => {
                self.owed.saturating_add_unsigned(passed.get().saturating_mul(self.owed_permille) / PERMILLE)
            }
            false => {
                let least = if self.is_early { i64::MIN } else { self.owed.min(0) };
                self.owed.saturating_sub_unsigned(passed.get()).max(least)
            }
        };
    }

    /// How long the client steps back now, and for how many that wait; `None` if it need not. `had` is what was had here until
    /// now by tasks that are no clients.
    pub fn pause(&mut self, had: Nanoseconds, dues: &Dues, has_all: bool) -> Option<(Nanoseconds, u32)> {
        let wanted = if self.waiting > 0 { self.may_go_first(dues, has_all) } else { Nanoseconds::ZERO };
        let pause = wanted.max(self.owed_pause()).min(MOST_PAUSE);
        if pause.is_zero() {
            return None;
        }
        (self.had, self.gives_way, self.was_wanted) = (had, true, !wanted.is_zero());
        self.is_early = self.was_wanted && self.due_pause(dues, has_all).is_zero();
        // Those that wait now have the pause, or the one that has woken. What is told in it is of others.
        let waiting = match (self.was_wanted, self.is_early) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => self.waiting,
        };
        self.waiting -= waiting;
        self.has_woken &= !self.was_wanted;
        Some((pause, waiting))
    }

    /// The client goes to the front again. `had` is as above.
    pub fn resume(&mut self, had: Nanoseconds, dues: &mut Dues) {
        let used = had.saturating_sub(self.had);
        (self.gives_way, self.is_early) = (false, false);
        if !self.was_wanted {
            return;
        }
        // So one that wakes thousands of times a second does not have all the time go into steps back.
        dues.charge(LEAST_CHARGE.saturating_sub(used));
        // The kernel may have found the one that waits not entitled yet, beside the client and those behind it.
        if used.is_zero() && self.in_vain < MOST_IN_VAIN {
            self.in_vain += 1;
            self.waiting = self.waiting.max(1);
        }
    }

    /// How long it takes about until a client has to step back; long enough that the account grows meanwhile.
    pub fn next(&self, dues: &Dues, has_all: bool) -> Nanoseconds {
        let owes = |pause: i64| {
            let lacks = pause.saturating_sub(self.owed).max(0).unsigned_abs().saturating_mul(PERMILLE);
            lacks.checked_div(self.owed_permille).map_or(Nanoseconds::MAX, Nanoseconds::new)
        };
        let mut next = owes(OWED_PAUSE);
        if self.waiting > 0 && self.has_woken {
            next = next.min(owes(LEAST_PAUSE.get().cast_signed() - CREDIT));
        }
        if self.waiting > 0 && !self.keeps(has_all) {
            next = next.min(dues.until(LEAST_PAUSE));
        }
        next.max(SHORTEST)
    }
}

/// What the kernel keeps from real-time tasks, and the margin; 0 if it lets them run for ever.
fn owed_permille() -> u64 {
    let read = |name: &str| -> Option<i64> {
        fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
    };
    let kept = |runtime: i64, period: i64| {
        let kept = period.checked_sub(runtime).filter(|kept| runtime >= 0 && *kept > 0 && period > 0)?;
        u64::try_from(kept.saturating_mul(PERMILLE.cast_signed()) / period).ok()
    };
    let limit = read("sched_rt_runtime_us").zip(read("sched_rt_period_us"));
    limit.and_then(|(runtime, period)| kept(runtime, period)).map_or(0, |permille| permille + MARGIN_PERMILLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    impl Rest {
        /// From the begin of time, whatever this kernel asks for.
        pub fn owing(owed_permille: u64) -> Rest {
            Rest { owed_permille, ..Rest::new(Nanoseconds::ZERO) }
        }
    }

    /// One processor, on which the rest is due this part.
    struct Processor {
        rest: Rest,
        dues: Dues,
        has_all: bool,
        now: u64,
        had: u64,
        counted: u64,
    }

    impl Processor {
        fn new(due_permille: u64, owed_permille: u64) -> Processor {
            let (rest, dues) = (Rest::owing(owed_permille), Dues::of_rate(due_permille * 1000));
            Processor { rest, dues, has_all: false, now: 0, had: 0, counted: 0 }
        }

        /// Time passes, and the rest has this much of it.
        fn pass(&mut self, ns: u64, had: u64, in_front: bool) {
            (self.now, self.had) = (self.now + ns, self.had + had);
            self.rest.pass(Nanoseconds::new(self.now), in_front);
            self.dues.pass(Nanoseconds::new(self.now), Nanoseconds::new(self.had - self.counted));
            self.counted = self.had;
        }

        fn pause(&mut self) -> Option<(Nanoseconds, u32)> {
            self.rest.pause(Nanoseconds::new(self.had), &self.dues, self.has_all)
        }

        fn resume(&mut self) {
            self.rest.resume(Nanoseconds::new(self.had), &mut self.dues);
        }

        /// The client steps back if it has to. For how long, and for how many; the rest uses this part of it.
        fn step_back(&mut self, uses: f64) -> (u64, u32) {
            let Some((pause, waiting)) = self.pause() else { return (0, 0) };
            self.pass(pause.get(), (pause.get() as f64 * uses) as u64, false);
            self.resume();
            (pause.get(), waiting)
        }

        fn next(&self) -> u64 {
            self.rest.next(&self.dues, self.has_all).get()
        }
    }

    #[test]
    fn the_rest_has_what_it_is_due_and_no_more() {
        let mut processor = Processor::new(100, 0);
        // It always waits, and uses every pause.
        while processor.now < 10_000 * MS {
            processor.rest.wait(false);
            processor.step_back(1.0);
            processor.pass(MS / 10, 0, true);
        }
        let percent = 100.0 * processor.had as f64 / processor.now as f64;
        assert!((9.8..10.3).contains(&percent), "{percent}");
    }

    #[test]
    fn what_the_rest_has_because_the_kernel_asks_for_it_is_of_its_share() {
        let mut processor = Processor::new(10, 65);
        // It has all that the kernel asks for, which is more than its share.
        while processor.now < 1000 * MS {
            processor.pass(processor.next(), 0, true);
            assert_eq!(processor.step_back(1.0).1, 0);
        }
        processor.rest.owed_permille = 0;
        processor.rest.wait(false);
        // It owes no more than was ever saved, and a hundredth of the time is its share.
        processor.pass(1000 * MS, 0, true);
        processor.rest.owed = 0;
        assert!(processor.pause().is_none());
        processor.pass(100 * MS, 0, true);
        assert_eq!(processor.pause().map(|(_, waiting)| waiting), Some(1));
    }

    #[test]
    fn a_client_that_is_due_all_steps_back_for_what_wakes_and_else_for_the_kernel_only() {
        let mut processor = Processor { has_all: true, ..Processor::new(1000, 65) };
        // A task that needs 50 µs, each 5 ms, and one that always waits and uses every pause.
        for nth in 0..2000 {
            processor.rest.wait(true);
            assert_eq!(processor.pause(), Some((LEAST_PAUSE, 1)), "{nth}");
            processor.pass(50_000, 50_000, false);
            processor.resume();
            processor.rest.wait(false);
            processor.pass(5 * MS, 0, true);
            processor.step_back(1.0);
        }
        let percent = 100.0 * processor.had as f64 / processor.now as f64;
        assert!((5.5..6.6).contains(&percent), "{percent}");
        // One that wakes without a pause has what the kernel asks for, and a credit.
        let (begin, had) = (processor.now, processor.had);
        for _ in 0..100_000 {
            processor.rest.wait(true);
            processor.step_back(1.0);
            processor.pass(MS / 10, 0, true);
        }
        let percent = 100.0 * (processor.had - had) as f64 / (processor.now - begin) as f64;
        assert!((5.5..6.6).contains(&percent), "{percent}");
    }

    #[test]
    fn where_the_kernel_asks_for_nothing_a_client_that_is_due_all_lets_others_have_what_they_are_due() {
        let mut processor = Processor { has_all: true, ..Processor::new(100, 0) };
        processor.rest.wait(false);
        assert!(processor.pause().is_some());
    }

    #[test]
    fn one_that_waits_while_a_client_steps_back_for_others_waits_still_when_it_comes_back() {
        let mut processor = Processor::new(100, 0);
        processor.rest.wait(false);
        assert!(processor.pause().is_some());
        processor.rest.wait(false);
        processor.pass(50_000, 50_000, false);
        processor.resume();
        assert!(processor.pause().is_some());
    }

    #[test]
    fn a_client_steps_back_as_often_as_the_kernel_asks_for() {
        let (mut processor, mut back) = (Processor::new(100, 65), 0);
        while processor.now < 10_000 * MS {
            back += processor.step_back(0.0).0;
            processor.pass(processor.next(), 0, true);
        }
        let percent = 100.0 * back as f64 / processor.now as f64;
        assert!((6.0..6.6).contains(&percent), "{percent}");
    }

    #[test]
    fn a_client_need_not_step_back_where_nothing_waits_and_the_kernel_asks_for_nothing() {
        let mut processor = Processor::new(100, 0);
        processor.pass(1000 * MS, 0, true);
        assert_eq!(processor.pause(), None);
        processor.rest.wait(false);
        assert_eq!(processor.pause(), Some((MOST_PAUSE, 1)));
    }

    #[test]
    fn one_that_had_nothing_in_a_pause_waits_still_and_not_for_ever() {
        let mut processor = Processor::new(100, 0);
        processor.rest.wait(false);
        let mut pauses = 0;
        while processor.pause().is_some() {
            pauses += 1;
            processor.resume();
        }
        assert_eq!(pauses, 1 + MOST_IN_VAIN);
        // The next one is believed as much.
        processor.rest.wait(false);
        assert!(processor.pause().is_some());
        processor.resume();
        assert!(processor.pause().is_some());
        // It needs little, and has it.
        processor.pass(50_000, 50_000, false);
        processor.resume();
        assert_eq!(processor.pause(), None);
    }
}
