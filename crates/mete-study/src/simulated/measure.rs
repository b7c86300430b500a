//! What is measured of a case.

use super::case::Outcome;

/// A number that is computed from each run.
#[derive(Clone, Copy)]
pub(crate) struct Measure {
    pub name: &'static str,
    pub unit: &'static str,
    /// `None` where the measure does not apply.
    pub of: fn(&Outcome) -> Option<f64>,
}

impl Measure {
    pub(crate) const fn new(
        name: &'static str,
        unit: &'static str,
        of: fn(&Outcome) -> Option<f64>,
    ) -> Measure {
        Measure { name, unit, of }
    }
}
