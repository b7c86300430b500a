//! How work that takes a while reports what it does, and how it is stopped.

use std::ops::ControlFlow;

/// What the caller shows of the work. The unit `()` shows nothing and never cancels.
pub trait Progress {
    /// A part begins that has `steps` steps.
    fn begin(&mut self, what: &str, steps: u64);
    /// A step is done.
    fn step(&mut self);
    /// Whether to stop at the next occasion, with the results so far. It is asked between
    /// steps, each of which takes some milliseconds, a second at most.
    fn is_cancelled(&self) -> bool;
}

/// Takes a step, and says whether to go on.
pub fn step_on(progress: &mut dyn Progress) -> ControlFlow<()> {
    progress.step();
    if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

impl Progress for () {
    fn begin(&mut self, _what: &str, _steps: u64) {}
    fn step(&mut self) {}
    fn is_cancelled(&self) -> bool {
        false
    }
}
