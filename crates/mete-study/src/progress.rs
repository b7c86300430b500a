//! How a measurement tells what it does, and how it is told to stop.

/// What the caller shows of a measurement. The unit `()` shows nothing and never cancels.
pub trait Progress {
    /// A part begins that has so many steps.
    fn begin(&mut self, what: &str, steps: u64);
    /// A step is done.
    fn step(&mut self);
    /// Whether to stop at the next occasion, with the results so far. Asked between repetitions,
    /// which last some milliseconds, a second at most.
    fn is_cancelled(&self) -> bool;
}

impl Progress for () {
    fn begin(&mut self, _what: &str, _steps: u64) {}
    fn step(&mut self) {}
    fn is_cancelled(&self) -> bool {
        false
    }
}
