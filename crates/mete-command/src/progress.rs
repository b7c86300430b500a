//! Shows the progress of work that takes longer than a second, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar that is shown for a shorter time only flickers.
const WORTH_SHOWING: Duration = Duration::from_secs(1);

/// A bar on stderr, or nothing. When it is dropped, it disappears from the screen.
pub struct Progress(ProgressBar);

impl Progress {
    /// Shows how much time has passed, and how much of the limit if there is one.
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

    /// Shows how many parts of a whole are done. The number of parts is given later.
    pub fn of_parts(what: &'static str) -> Progress {
        let bar =
            ProgressBar::new(0).with_style(style("{prefix} {bar:30} {percent}% {elapsed}, {eta} to go"));
        Progress(bar.with_prefix(what))
    }

    /// Shows that `done` of `of` parts are done.
    pub fn show_part(&self, done: u64, of: u64) {
        if self.0.elapsed() >= WORTH_SHOWING {
            self.0.set_length(of);
            self.0.set_position(done);
        }
    }

    /// Draws nothing: for a terminal that another program writes on.
    pub fn none() -> Progress {
        Progress(ProgressBar::hidden())
    }

    /// Shows the time that has passed, and a message.
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

/// Shows the steps of a measurement, and tells it to stop at Ctrl-C.
pub struct Steps(ProgressBar);

impl Default for Steps {
    /// Shows nothing before the measurement begins.
    fn default() -> Steps {
        Steps(ProgressBar::new(0).with_style(style("measuring {bar:30} {elapsed} {msg}")))
    }
}

impl mete_base::Progress for Steps {
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
