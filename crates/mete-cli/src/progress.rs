//! Progress of whatever takes longer than a second, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Shorter than this, a bar only flickers.
const WORTH_SHOWING: Duration = Duration::from_secs(1);

/// A bar on stderr, or nothing. Dropped, it is taken off the screen.
pub struct Progress(ProgressBar);

impl Progress {
    /// Time that passes towards an end, if one is known.
    pub fn of_time(what: &'static str, limit: Option<Duration>) -> Progress {
        let bar = match limit {
            Some(limit) if limit <= WORTH_SHOWING => ProgressBar::hidden(),
            Some(limit) => {
                let template = "{prefix} {bar:30} {msg}";
                ProgressBar::new(limit.as_millis() as u64).with_style(style(template))
            }
            None => ProgressBar::new_spinner().with_style(style("{prefix} {spinner} {msg}")),
        };
        Progress(bar.with_prefix(what))
    }

    /// Parts of a whole whose number is told later.
    pub fn of_parts(what: &'static str) -> Progress {
        let bar =
            ProgressBar::new(0).with_style(style("{prefix} {bar:30} {percent}% {elapsed}, {eta} to go"));
        Progress(bar.with_prefix(what))
    }

    /// So many parts of so many are done.
    pub fn show_part(&self, done: u64, of: u64) {
        if self.0.elapsed() >= WORTH_SHOWING {
            self.0.set_length(of);
            self.0.set_position(done);
        }
    }

    /// Where nothing must be drawn, because somebody else writes on the terminal.
    pub fn none() -> Progress {
        Progress(ProgressBar::hidden())
    }

    /// So much time has passed.
    pub fn show(&self, passed: Duration, message: String) {
        if passed >= WORTH_SHOWING || self.0.length().is_some() {
            self.0.set_position(passed.as_millis() as u64);
            self.0.set_message(message);
        }
    }

    /// Takes the bar off the screen while something is printed.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }
}

/// Steps that a measurement takes; it stops at Ctrl-C.
pub struct Steps(ProgressBar);

impl Steps {
    /// Shows nothing before the measurement begins.
    pub fn new() -> Steps {
        Steps(ProgressBar::new(0).with_style(style("measuring {bar:30} {elapsed} {msg}")))
    }
}

impl mete_study::Progress for Steps {
    fn begin(&mut self, what: &str, steps: u64) {
        self.0.inc_length(steps);
        self.0.set_message(what.to_owned());
    }

    fn step(&mut self) {
        self.0.inc(1);
    }

    fn is_cancelled(&self) -> bool {
        crate::interrupt::asked()
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
