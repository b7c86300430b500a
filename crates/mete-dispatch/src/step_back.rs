//! When a chosen client lets tasks go first that are no clients.
//!
//! While a chosen client is in front of all ordinary tasks, those that are no clients wait, the kernel's own
//! threads among them. So a chosen client steps back now and then, and is an ordinary task. It does so as soon as one of
//! them waits, which goes first then, as long as they have not had what they are due (dues.rs); and at least so often that the kernel
//! never takes the processor from real-time tasks by itself (`sched_rt_runtime_us`), which it would do for long at a time.
//!
//! Where several are in front, the one steps back of which the domain is ahead of the others (dues.rs). Else the one would pay on whose
//! processor tasks happen to wait.
//!
//! A client that is due a whole processor steps back for the kernel's sake only, but chooses when: for a moment when tasks wake, which as a
//! rule need little, also if that is not owed yet. So what belongs to this processor, such as threads of the kernel, seldom waits for it.

use std::fs;

use mete_policy::Nanoseconds;

use crate::dues::Dues;

/// The least time for which a client steps back.
pub(crate) const LEAST_PAUSE: Nanoseconds = Nanoseconds::from_micros(500);
const MOST_PAUSE: Nanoseconds = Nanoseconds::from_millis(4);
/// What a step back for their sake counts for at least: to step back and return takes the clients about as long.
const LEAST_CHARGE: Nanoseconds = Nanoseconds::from_micros(100);
/// A client steps back for a pause that is owed when it has become this long.
const OWED_PAUSE: i64 = 2_000_000;
/// What it may owe at most: the dispatcher may have been stopped for long, and the classes put back.
const MOST_OWED: i64 = 10_000_000;
/// A client may step back before that is owed, for tasks that have woken: it is as much ahead at most.
const CREDIT: i64 = 2_000_000;
/// How soon an account is looked at again.
pub(crate) const SOONEST: Nanoseconds = Nanoseconds::from_micros(50);
/// By how much more than the kernel asks for a client steps back.
const MARGIN_PERMILLE: u64 = 15;
/// In this number of pauses, one after another, one that waits may get nothing. Then it is not taken to wait any more: it may
/// have gone to another processor.
const MOST_IN_VAIN: u32 = 3;
const PERMILLE: u64 = 1000;

/// What a client gives tasks that wait, of what they are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Giving {
    /// It steps back until they have had it.
    Due,
    /// It steps back for a moment for those that have woken. For the others, another client does.
    Moments,
    /// Nothing: it is due a whole processor, and steps back for the kernel's sake only.
    Nothing,
}

/// The steps back of one processor's client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepBack {
    /// Of each thousand nanoseconds in front, how many a client must step back for.
    owed_permille: u64,
    /// For how long a client has to step back, in nanoseconds; less than nothing if it has done so before.
    owed: i64,
    counted: Nanoseconds,
    /// What was had on this processor by tasks that are no clients when a client stepped back.
    had: Nanoseconds,
    /// Whether a client has stepped back; whether it did because tasks waited; and if so, whether it owed less than a pause.
    gives_way: bool,
    was_wanted: bool,
    is_early: bool,
    /// How many of them are known to wait of which no step back has taken account.
    waiting: u32,
    /// How many pauses, one after another, were for their sake and gave them nothing.
    in_vain: u32,
    /// How many of those that wait have woken since.
    woken: u32,
    /// When it was last known that none waits.
    calm: Nanoseconds,
}

impl StepBack {
    /// None waits, and nothing is owed.
    pub fn new(now: Nanoseconds) -> StepBack {
        StepBack {
            owed_permille: owed_permille(),
            owed: 0,
            counted: now,
            had: Nanoseconds::ZERO,
            gives_way: false,
            was_wanted: false,
            is_early: false,
            waiting: 0,
            in_vain: 0,
            woken: 0,
            calm: now,
        }
    }

    /// One of them waits; it has woken, or was left when a client went on.
    pub fn wait(&mut self, has_woken: bool) {
        self.waiting = self.waiting.saturating_add(1);
        self.woken = self.woken.saturating_add(has_woken.into());
        // While one goes first, it may have the processor already.
        self.in_vain = if self.gives_way && self.was_wanted { MOST_IN_VAIN } else { 0 };
    }

    /// None of them waits.
    pub fn forget(&mut self) {
        (self.waiting, self.in_vain, self.woken) = (0, 0, 0);
    }

    /// Whether any of them is known to wait.
    pub fn is_waited_for(&self) -> bool {
        self.waiting > 0
    }

    /// For how long the client would step back now for those that wait; `None` if it would not.
    pub fn wanted_pause(&self, dues: &Dues, giving: Giving) -> Option<Nanoseconds> {
        if self.waiting == 0 {
            return None;
        }
        let may_be_early = self.owed_permille > 0 && self.owed + CREDIT >= LEAST_PAUSE.get().cast_signed();
        let early = (self.woken > 0 && may_be_early).then_some(LEAST_PAUSE);
        self.due_pause(dues, giving).or(early)
    }

    /// The same as far as they are due it, or the kernel asks for it.
    fn due_pause(&self, dues: &Dues, giving: Giving) -> Option<Nanoseconds> {
        let pause = match giving {
            Giving::Due => dues.saved(),
            Giving::Moments if self.woken > 0 => dues.saved().min(LEAST_PAUSE),
            Giving::Moments | Giving::Nothing => Nanoseconds::ZERO,
        };
        self.owed_pause().max((pause >= LEAST_PAUSE).then_some(pause))
    }

    /// The pause that is owed, if it is long enough.
    fn owed_pause(&self) -> Option<Nanoseconds> {
        (self.owed >= OWED_PAUSE).then(|| Nanoseconds::new(self.owed.unsigned_abs()))
    }

    /// Whether a client that is due a whole processor gives nothing of it. Where the kernel asks for nothing, what is bound to this
    /// processor would never run.
    pub fn may_keep(&self) -> bool {
        self.owed_permille > 0
    }

    /// Whether some of them have not woken just now.
    pub fn are_left(&self) -> bool {
        self.waiting > self.woken
    }

    /// The last pause was in vain for another reason than that none waits.
    pub fn forgive(&mut self) {
        self.in_vain = 0;
    }

    /// For how long some have waited, as far as is known.
    pub fn waits_for(&self, now: Nanoseconds) -> Nanoseconds {
        now.saturating_sub(self.calm)
    }

    /// Time has passed, in which a client was in front or not.
    pub fn pass(&mut self, now: Nanoseconds, in_front: bool) {
        let passed = now.saturating_sub(self.counted);
        self.counted = now;
        if self.waiting == 0 {
            self.calm = now;
        }
        self.owed = match in_front {
            true => {
                let more = passed.get().saturating_mul(self.owed_permille) / PERMILLE;
                self.owed.saturating_add_unsigned(more).min(MOST_OWED)
            }
            // What others had in it counts, when it is over.
            false if self.is_early => self.owed,
            false => self.owed.saturating_sub_unsigned(passed.get()).max(self.owed.min(0)),
        };
    }

    /// How long the client steps back now, and for how many that wait; `None` if it need not. `had` is what was had here until
    /// now by tasks that are no clients.
    pub fn pause(&mut self, had: Nanoseconds, dues: &Dues, giving: Giving) -> Option<(Nanoseconds, u32)> {
        let wanted = self.wanted_pause(dues, giving);
        let pause = wanted.max(self.owed_pause())?.min(MOST_PAUSE);
        (self.had, self.gives_way, self.was_wanted) = (had, true, wanted.is_some());
        self.is_early = self.due_pause(dues, giving).is_none();
        if !self.was_wanted {
            return Some((pause, 0));
        }
        // Those that wait now have the pause, or those that have woken. What is told in it is of others.
        let is_for_all = self.owed >= OWED_PAUSE || giving == Giving::Due && dues.saved() >= LEAST_PAUSE;
        let served = self.take_waiting(is_for_all);
        Some((pause, served))
    }

    /// Those that wait, or those of them that have woken, have a pause.
    fn take_waiting(&mut self, all: bool) -> u32 {
        let woken = std::mem::take(&mut self.woken);
        let served = if all { self.waiting } else { woken };
        self.waiting -= served;
        served
    }

    /// The client goes to the front again. `had` is as above. This is of no account if it has stepped back without having to ([`StepBack::pause`]).
    pub fn resume(&mut self, had: Nanoseconds, dues: &mut Dues) {
        if !self.gives_way {
            return;
        }
        let used = had.saturating_sub(self.had);
        let was_early = self.is_early;
        if was_early {
            self.owed = self.owed.saturating_sub_unsigned(used.get()).max(self.owed.min(-CREDIT));
        }
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
            self.woken = self.woken.max(was_early.into());
        }
    }

    /// How long it takes about until a client has to step back; long enough that the account grows meanwhile.
    pub fn next(&self, dues: &Dues, giving: Giving) -> Nanoseconds {
        let owes = |pause: i64| {
            let lacks = pause.saturating_sub(self.owed).max(0).unsigned_abs().saturating_mul(PERMILLE);
            lacks.checked_div(self.owed_permille).map_or(Nanoseconds::MAX, Nanoseconds::new)
        };
        let mut next = owes(OWED_PAUSE);
        if self.woken > 0 {
            next = next.min(owes(LEAST_PAUSE.get().cast_signed() - CREDIT));
        }
        let gives = giving == Giving::Due && self.waiting > 0 || giving == Giving::Moments && self.woken > 0;
        if gives {
            next = next.min(dues.until(LEAST_PAUSE));
        }
        next.max(SOONEST)
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

    impl StepBack {
        /// From the begin of time, whatever this kernel asks for.
        pub fn owing(owed_permille: u64) -> StepBack {
            StepBack { owed_permille, ..StepBack::new(Nanoseconds::ZERO) }
        }
    }

    /// One processor, on which the rest is due this part.
    struct Processor {
        step_back: StepBack,
        dues: Dues,
        giving: Giving,
        now: u64,
        had: u64,
        counted: u64,
    }

    impl Processor {
        fn new(due_permille: u64, owed_permille: u64) -> Processor {
            let (step_back, dues) = (StepBack::owing(owed_permille), Dues::of_rate(due_permille * 1000));
            Processor { step_back, dues, giving: Giving::Due, now: 0, had: 0, counted: 0 }
        }

        /// Time passes, and the rest has this much of it.
        fn pass(&mut self, ns: u64, had: u64, in_front: bool) {
            (self.now, self.had) = (self.now + ns, self.had + had);
            self.step_back.pass(Nanoseconds::new(self.now), in_front);
            self.dues.pass(Nanoseconds::new(self.now), Nanoseconds::new(self.had - self.counted));
            self.counted = self.had;
        }

        fn pause(&mut self) -> Option<(Nanoseconds, u32)> {
            self.step_back.pause(Nanoseconds::new(self.had), &self.dues, self.giving)
        }

        fn resume(&mut self) {
            self.step_back.resume(Nanoseconds::new(self.had), &mut self.dues);
        }

        /// The client steps back if it has to. For how long, and for how many; the rest uses this part of it.
        fn step_back(&mut self, uses: f64) -> (u64, u32) {
            let Some((pause, waiting)) = self.pause() else { return (0, 0) };
            self.pass(pause.get(), (pause.get() as f64 * uses) as u64, false);
            self.resume();
            (pause.get(), waiting)
        }

        fn next(&self) -> u64 {
            self.step_back.next(&self.dues, self.giving).get()
        }
    }

    #[test]
    fn the_rest_has_what_it_is_due_and_no_more() {
        let mut processor = Processor::new(100, 0);
        // It always waits, and uses every pause.
        while processor.now < 10_000 * MS {
            processor.step_back.wait(false);
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
        processor.step_back.owed_permille = 0;
        processor.step_back.wait(false);
        // It owes no more than was ever saved, and a hundredth of the time is its share.
        processor.pass(1000 * MS, 0, true);
        processor.step_back.owed = 0;
        assert!(processor.pause().is_none());
        processor.pass(100 * MS, 0, true);
        assert_eq!(processor.pause().map(|(_, waiting)| waiting), Some(1));
    }

    #[test]
    fn a_client_that_is_due_all_steps_back_for_what_wakes_and_else_for_the_kernel_only() {
        let mut processor = Processor { giving: Giving::Nothing, ..Processor::new(1000, 65) };
        // A task that needs 50 µs, each 5 ms, and one that always waits and uses every pause.
        for nth in 0..2000 {
            processor.step_back.wait(true);
            assert_eq!(processor.pause(), Some((LEAST_PAUSE, 1)), "{nth}");
            processor.pass(50_000, 50_000, false);
            processor.resume();
            processor.step_back.wait(false);
            processor.pass(5 * MS, 0, true);
            processor.step_back(1.0);
        }
        let percent = 100.0 * processor.had as f64 / processor.now as f64;
        assert!((5.5..6.6).contains(&percent), "{percent}");
        // One that wakes without a pause has what the kernel asks for, and a credit.
        let (begin, had) = (processor.now, processor.had);
        for _ in 0..100_000 {
            processor.step_back.wait(true);
            processor.step_back(1.0);
            processor.pass(MS / 10, 0, true);
        }
        let percent = 100.0 * (processor.had - had) as f64 / (processor.now - begin) as f64;
        assert!((5.5..6.6).contains(&percent), "{percent}");
    }

    #[test]
    fn where_the_kernel_asks_for_nothing_a_client_may_keep_nothing() {
        assert!(!StepBack::owing(0).may_keep() && StepBack::owing(65).may_keep());
    }

    /// The process was stopped, and the classes put back.
    #[test]
    fn after_a_long_time_a_client_owes_no_more_than_after_a_short_one() {
        let mut processor = Processor::new(0, 65);
        processor.pass(60_000 * MS, 0, true);
        let mut paid = 0;
        while processor.step_back.owed >= OWED_PAUSE {
            paid += processor.step_back(0.0).0;
        }
        assert!(paid < 12 * MS, "{paid}");
    }

    #[test]
    fn a_step_back_that_was_for_none_is_of_no_account() {
        let mut processor = Processor::new(500, 0);
        processor.step_back.wait(false);
        processor.step_back(1.0);
        let saved = processor.dues.saved();
        processor.resume();
        assert_eq!((processor.dues.saved(), processor.step_back.is_waited_for()), (saved, false));
    }

    #[test]
    fn a_client_that_gives_moments_only_gives_them_to_those_that_have_woken() {
        let mut processor = Processor { giving: Giving::Moments, ..Processor::new(500, 0) };
        (0..2).for_each(|_| processor.step_back.wait(false));
        assert_eq!(processor.pause(), None);
        processor.step_back.wait(true);
        assert_eq!(processor.step_back(1.0), (LEAST_PAUSE.get(), 1));
        assert_eq!((processor.pause(), processor.next()), (None, Nanoseconds::MAX.get()));
        // They have waited since they were told of.
        processor.pass(3 * MS, 0, true);
        assert_eq!(processor.step_back.waits_for(Nanoseconds::new(processor.now)).get(), processor.now);
        processor.giving = Giving::Due;
        assert_eq!(processor.step_back(1.0), (MOST_PAUSE.get(), 2));
        assert!(!processor.step_back.is_waited_for());
    }

    #[test]
    fn one_that_waits_while_a_client_steps_back_for_others_waits_still_when_it_comes_back() {
        let mut processor = Processor::new(100, 0);
        processor.step_back.wait(false);
        assert!(processor.pause().is_some());
        processor.step_back.wait(false);
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
        processor.step_back.wait(false);
        assert_eq!(processor.pause(), Some((MOST_PAUSE, 1)));
    }

    #[test]
    fn one_that_had_nothing_in_a_pause_waits_still_and_not_for_ever() {
        let mut processor = Processor::new(100, 0);
        processor.step_back.wait(false);
        let mut pauses = 0;
        while processor.pause().is_some() {
            pauses += 1;
            processor.resume();
        }
        assert_eq!(pauses, 1 + MOST_IN_VAIN);
        // The next one is believed as much.
        processor.step_back.wait(false);
        assert!(processor.pause().is_some());
        processor.resume();
        assert!(processor.pause().is_some());
        // It needs little, and has it.
        processor.pass(50_000, 50_000, false);
        processor.resume();
        assert_eq!(processor.pause(), None);
    }

    #[test]
    fn a_credit_is_given_up_to_a_bound_and_not_renewed_by_sleep() {
        let mut processor = Processor { giving: Giving::Nothing, ..Processor::new(0, 65) };
        processor.dues.charge(Nanoseconds::from_millis(10));
        let mut early = 0;
        for _ in 0..100 {
            processor.step_back.wait(true);
            early += u32::from(processor.step_back(1.0).0 > 0);
            processor.pass(MS / 2, 0, false);
        }
        assert_eq!(u64::from(early) * LEAST_PAUSE.get(), CREDIT as u64);
        // Where the kernel asks for nothing, there is none.
        let mut processor = Processor::new(0, 0);
        processor.dues.charge(Nanoseconds::from_millis(10));
        processor.step_back.wait(true);
        assert_eq!(processor.pause(), None);
    }

    #[test]
    fn each_step_back_costs_something() {
        let (mut processor, mut steps) = (Processor::new(0, 0), 0);
        for _ in 0..1000 {
            processor.step_back.wait(false);
            steps += u64::from(processor.step_back(0.0).0 > 0);
        }
        // Of what is saved at first, until not enough for a pause is left.
        assert_eq!(steps, (10 * MS - LEAST_PAUSE.get()) / LEAST_CHARGE.get() + 1);
    }

    #[test]
    fn none_steps_back_for_those_that_were_forgotten() {
        let mut processor = Processor { giving: Giving::Nothing, ..Processor::new(0, 65) };
        processor.step_back.wait(true);
        assert_eq!(processor.next(), SOONEST.get());
        processor.step_back.forget();
        assert!(processor.next() > 30 * MS && processor.pause().is_none());
    }

    #[test]
    fn an_early_step_back_is_for_all_that_have_woken_and_none_that_was_left() {
        let mut processor = Processor { giving: Giving::Nothing, ..Processor::new(0, 65) };
        processor.dues.charge(Nanoseconds::from_millis(10));
        processor.step_back.wait(false);
        assert_eq!(processor.pause(), None);
        (0..2).for_each(|_| processor.step_back.wait(true));
        assert_eq!(processor.pause(), Some((LEAST_PAUSE, 2)));
    }

    #[test]
    fn after_an_early_step_back_that_was_long_the_next_one_comes_as_soon_as_after_a_short_one() {
        let mut processor = Processor { giving: Giving::Nothing, ..Processor::new(0, 65) };
        processor.step_back.wait(true);
        assert!(processor.pause().is_some());
        // The manager was late.
        processor.pass(50 * MS, 50 * MS, false);
        processor.resume();
        let most = (CREDIT + OWED_PAUSE) as u64 * PERMILLE / 65;
        assert!(processor.next() <= most, "{}", processor.next());
    }
}
