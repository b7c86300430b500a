//! When to try again what has failed.

use std::time::{Duration, Instant};

/// Before the first try.
const FIRST: Duration = Duration::from_secs(1);
/// Before each of the later ones, at most.
const LONGEST: Duration = Duration::from_secs(300);
/// What has gone well for this time is new when it fails.
const GOES_WELL: Duration = Duration::from_secs(600);

/// Pauses that grow: each is twice as long as the one before, so that what fails at once again costs little.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    pause: Option<Duration>,
    /// When it began to go well again.
    since: Option<Instant>,
    /// When to try next.
    due: Option<Instant>,
}

impl Retry {
    /// It has failed: for how long to pause.
    pub fn fail(&mut self, now: Instant) -> Duration {
        let went_well = self.since.is_some_and(|since| now.duration_since(since) >= GOES_WELL);
        let before = self.pause.filter(|_| !went_well);
        let pause = before.map_or(FIRST, |pause| (2 * pause).min(LONGEST));
        *self = Retry { pause: Some(pause), since: None, due: Some(now + pause) };
        pause
    }

    /// Whether it is to be tried, now or later.
    pub fn is_pending(&self) -> bool {
        self.due.is_some()
    }

    /// Whether it is to be tried now.
    pub fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| now >= due)
    }

    /// It goes well again.
    pub fn succeed(&mut self, now: Instant) {
        *self = Retry { since: Some(now), due: None, ..*self };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_1_pauses_grow_until_it_goes_well_for_long() {
        let mut retry = Retry::default();
        let mut now = Instant::now();
        assert!(!retry.is_due(now), "nothing has failed");
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            let pause = retry.fail(now);
            assert_eq!(pause, Duration::from_secs(seconds));
            assert!(!retry.is_due(now + pause - Duration::from_millis(1)));
            now += pause;
            assert!(retry.is_due(now));
            retry.succeed(now);
            assert!(!retry.is_due(now));
            now += Duration::from_secs(1);
        }
        assert_eq!(retry.fail(now + GOES_WELL), FIRST);
    }
}
