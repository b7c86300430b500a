//! What the tasks have that are no clients.
//!
//! While a chosen client is in front of all ordinary tasks, those that are no clients wait, the kernel's own
//! threads among them. So a chosen client steps back now and then, and is an ordinary task. It does so as soon as one of
//! them waits, which goes first then, as long as they have not had their share; and at least so often that the kernel never takes the processor from real-time tasks by itself
//! (`sched_rt_runtime_us`), which it would do for long at a time.

use std::fs;

use mete_policy::Nanoseconds;

/// What is saved of the rest's share while it needs nothing, and what it may owe, in nanoseconds.
const MOST_SAVED: i64 = 10_000_000;
/// The least time for which a client steps back.
const LEAST_PAUSE: Nanoseconds = Nanoseconds::from_micros(500);
const MOST_PAUSE: Nanoseconds = Nanoseconds::from_millis(4);
/// What a step back for their sake counts for at least: to step back and return takes the clients about as long.
const LEAST_CHARGE: Nanoseconds = Nanoseconds::from_micros(100);
/// A client steps back for a pause that is owed when it has become this long.
const OWED_PAUSE: Nanoseconds = Nanoseconds::from_millis(2);
/// How soon an account is looked at again.
const SHORTEST: Nanoseconds = Nanoseconds::from_micros(50);
/// By how much more than the kernel asks for a client steps back.
const MARGIN_PERMILLE: u64 = 15;
/// In this number of pauses, one after another, one that waits may get nothing. Then it is not taken to wait any more: it may
/// have gone to another processor.
const MOST_IN_VAIN: u32 = 8;
const PERMILLE: u64 = 1000;
/// In this unit, the smallest share beside the largest ones is not nothing.
pub(crate) const PPM: u64 = 1_000_000;

/// One processor's account for the tasks that are no clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// Of each million nanoseconds, how many they may have.
    share_ppm: u64,
    /// Of each thousand nanoseconds in front, how many a client must step back for.
    owed_permille: u64,
    /// What they may have now, in nanoseconds; less than nothing if they had more in pauses that only the kernel asked for.
    saved: i64,
    /// For how long a client has to step back.
    owed: Nanoseconds,
    counted: Nanoseconds,
    /// What they had when a client stepped back.
    had: Nanoseconds,
    /// Whether a client has stepped back, and whether it did because one of them waited.
    gives_way: bool,
    was_wanted: bool,
    /// How many of them are known to wait of which no step back has taken account.
    waiting: u32,
    /// How many pauses, one after another, were for their sake and gave them nothing.
    in_vain: u32,
}

impl Rest {
    /// An account of this share.
    pub fn new(share_ppm: u64, now: Nanoseconds) -> Rest {
        Rest {
            share_ppm,
            owed_permille: owed_permille(),
            saved: MOST_SAVED,
            owed: Nanoseconds::ZERO,
            counted: now,
            had: Nanoseconds::ZERO,
            gives_way: false,
            was_wanted: false,
            waiting: 0,
            in_vain: 0,
        }
    }

    /// They have another share from now on.
    pub fn set_share(&mut self, ppm: u64) {
        self.share_ppm = ppm;
    }

    /// One of them waits.
    pub fn wait(&mut self) {
        self.waiting = self.waiting.saturating_add(1);
        // While one goes first, it may have the processor already.
        self.in_vain = if self.gives_way && self.was_wanted { MOST_IN_VAIN } else { 0 };
    }

    /// None of them waits.
    pub fn forget(&mut self) {
        (self.waiting, self.in_vain) = (0, 0);
    }

    /// Whether a client would step back for one that waits.
    pub fn has_saved(&self) -> bool {
        self.saved() >= LEAST_PAUSE
    }

    /// Time has passed, in which a client was in front or not.
    pub fn pass(&mut self, now: Nanoseconds, in_front: bool) {
        let passed = now.saturating_sub(self.counted);
        self.counted = now;
        let saved = passed.get().saturating_mul(self.share_ppm) / PPM;
        self.saved = self.saved.saturating_add_unsigned(saved).min(MOST_SAVED);
        self.owed = match in_front {
            true => self
                .owed
                .saturating_add(Nanoseconds::new(passed.get().saturating_mul(self.owed_permille) / PERMILLE)),
            false => self.owed.saturating_sub(passed),
        };
    }

    /// How long the client steps back now, and for how many that wait; `None` if it need not. `had` is what they had until
    /// now.
    pub fn pause(&mut self, had: Nanoseconds) -> Option<(Nanoseconds, u32)> {
        let is_wanted = self.waiting > 0 && self.has_saved();
        let wanted = if is_wanted { self.saved() } else { Nanoseconds::ZERO };
        let owed = if self.owed >= OWED_PAUSE { self.owed } else { Nanoseconds::ZERO };
        let pause = wanted.max(owed).min(MOST_PAUSE);
        if pause.is_zero() {
            return None;
        }
        (self.had, self.gives_way, self.was_wanted) = (had, true, is_wanted);
        // Those that wait now have the pause. What is told in it is of others.
        let waiting = if is_wanted { std::mem::take(&mut self.waiting) } else { 0 };
        Some((pause, waiting))
    }

    /// The client goes to the front again. `had` is what they had until now.
    pub fn resume(&mut self, had: Nanoseconds) {
        let used = had.saturating_sub(self.had);
        // So one that wakes thousands of times a second does not have all the time go into steps back.
        let charged = if self.was_wanted { used.max(LEAST_CHARGE) } else { used };
        self.saved = self.saved.saturating_sub_unsigned(charged.get()).max(-MOST_SAVED);
        self.gives_way = false;
        // The kernel may have found the one that waits not entitled yet, beside the client and those behind it.
        if self.was_wanted && used.is_zero() && self.in_vain < MOST_IN_VAIN {
            self.in_vain += 1;
            self.waiting = self.waiting.max(1);
        }
    }

    fn saved(&self) -> Nanoseconds {
        Nanoseconds::new(self.saved.max(0).unsigned_abs())
    }

    /// How long it takes about until a client has to step back; long enough that the account grows meanwhile.
    pub fn next(&self) -> Nanoseconds {
        let until = |lacks: Nanoseconds, part: u64, of: u64| {
            lacks.get().saturating_mul(of).checked_div(part).map_or(Nanoseconds::MAX, Nanoseconds::new)
        };
        let owed = until(OWED_PAUSE.saturating_sub(self.owed), self.owed_permille, PERMILLE);
        let lacks = LEAST_PAUSE.get().cast_signed().saturating_sub(self.saved).max(0);
        let saved = until(Nanoseconds::new(lacks.unsigned_abs()), self.share_ppm, PPM);
        if self.waiting > 0 { owed.min(saved).max(SHORTEST) } else { owed.max(SHORTEST) }
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
        pub fn owing(share_ppm: u64, owed_permille: u64) -> Rest {
            Rest { owed_permille, ..Rest::new(share_ppm, Nanoseconds::ZERO) }
        }
    }

    fn rest(share_permille: u64, owed_permille: u64) -> Rest {
        Rest::owing(share_permille * (PPM / PERMILLE), owed_permille)
    }

    #[test]
    fn the_rest_has_its_share_and_no_more() {
        let (mut rest, mut now, mut had) = (rest(100, 0), 0, 0);
        // It always waits, and uses every pause.
        while now < 10_000 * MS {
            rest.wait();
            rest.pass(Nanoseconds::new(now), true);
            if let Some((pause, _)) = rest.pause(Nanoseconds::new(had)) {
                (now, had) = (now + pause.get(), had + pause.get());
                rest.pass(Nanoseconds::new(now), false);
                rest.resume(Nanoseconds::new(had));
            }
            now += MS / 10;
        }
        let percent = 100.0 * had as f64 / now as f64;
        assert!((9.8..10.3).contains(&percent), "{percent}");
    }

    #[test]
    fn what_the_rest_has_because_the_kernel_asks_for_it_is_of_its_share() {
        let mut rest = rest(10, 65);
        let (mut now, mut had) = (0, 0);
        let at = Nanoseconds::new;
        // It has all that the kernel asks for, which is more than its share.
        while now < 1000 * MS {
            now += rest.next().get();
            rest.pass(at(now), true);
            if let Some((pause, waiting)) = rest.pause(at(had)) {
                assert_eq!(waiting, 0);
                (now, had) = (now + pause.get(), had + pause.get());
                rest.pass(at(now), false);
                rest.resume(at(had));
            }
        }
        rest.owed_permille = 0;
        rest.wait();
        // It owes no more than was ever saved, and a hundredth of the time is its share.
        rest.pass(at(now + 1000 * MS), true);
        assert!(!rest.has_saved());
        rest.pass(at(now + 1100 * MS), true);
        assert_eq!(rest.pause(at(had)).map(|(_, waiting)| waiting), Some(1));
    }

    #[test]
    fn one_that_waits_while_a_client_steps_back_for_others_waits_still_when_it_comes_back() {
        let mut rest = rest(100, 0);
        rest.wait();
        assert!(rest.pause(Nanoseconds::ZERO).is_some());
        rest.wait();
        rest.resume(Nanoseconds::from_micros(50));
        assert!(rest.pause(Nanoseconds::from_micros(50)).is_some());
    }

    #[test]
    fn a_client_steps_back_as_often_as_the_kernel_asks_for() {
        let (mut rest, mut now, mut back) = (rest(100, 65), 0, 0);
        while now < 10_000 * MS {
            rest.pass(Nanoseconds::new(now), true);
            if let Some((pause, _)) = rest.pause(Nanoseconds::ZERO) {
                (now, back) = (now + pause.get(), back + pause.get());
                rest.pass(Nanoseconds::new(now), false);
                rest.resume(Nanoseconds::ZERO);
            }
            now += rest.next().get().max(1);
        }
        let percent = 100.0 * back as f64 / now as f64;
        assert!((6.0..6.6).contains(&percent), "{percent}");
    }

    #[test]
    fn a_client_need_not_step_back_where_nothing_waits_and_the_kernel_asks_for_nothing() {
        let mut rest = rest(100, 0);
        rest.pass(Nanoseconds::from_secs(1), true);
        assert_eq!(rest.pause(Nanoseconds::ZERO), None);
        rest.wait();
        assert_eq!(rest.pause(Nanoseconds::ZERO), Some((MOST_PAUSE, 1)));
    }

    #[test]
    fn one_that_had_nothing_in_a_pause_waits_still_and_not_for_ever() {
        let mut rest = rest(100, 0);
        rest.wait();
        let mut pauses = 0;
        while rest.pause(Nanoseconds::ZERO).is_some() {
            pauses += 1;
            rest.resume(Nanoseconds::ZERO);
        }
        assert_eq!(pauses, 1 + MOST_IN_VAIN);
        // The next one is believed as much.
        rest.wait();
        assert!(rest.pause(Nanoseconds::ZERO).is_some());
        rest.resume(Nanoseconds::ZERO);
        assert!(rest.pause(Nanoseconds::ZERO).is_some());
        // It needs little, and has it.
        rest.resume(Nanoseconds::from_micros(50));
        assert_eq!(rest.pause(Nanoseconds::from_micros(50)), None);
    }
}
