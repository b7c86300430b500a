//! What is measured of the cases, and what came out.

use mete_measure::Row;
use mete_sim::metrics::{Estimate, Latencies};

use super::case::{Case, Outcome};

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

/// The results of a case, seed by seed.
pub(crate) struct RanCase {
    pub case: Case,
    pub outcomes: Vec<Outcome>,
}

/// The results of all cases, which are none if the study was stopped; and what the study found besides.
#[derive(Default)]
pub(crate) struct Ran<B = ()> {
    pub cases: Vec<RanCase>,
    pub besides: B,
}

/// A case by its line and its place on it.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    line: &'a str,
    x: Option<f64>,
}

/// The case of a line that is no sweep.
impl<'a> From<&'a str> for Place<'a> {
    fn from(line: &'a str) -> Place<'a> {
        Place { line, x: None }
    }
}

impl<'a, X: Into<f64>> From<(&'a str, X)> for Place<'a> {
    fn from((line, x): (&'a str, X)) -> Place<'a> {
        Place { line, x: Some(x.into()) }
    }
}

impl<B> Ran<B> {
    pub(crate) fn at<'a>(&self, place: impl Into<Place<'a>>) -> Option<&RanCase> {
        let Place { line, x } = place.into();
        self.cases.iter().find(|ran| ran.case.line == line && ran.case.x == x)
    }

    /// The mean of a measure over the seeds.
    pub(crate) fn mean<'a>(&self, place: impl Into<Place<'a>>, measure: &Measure) -> Option<f64> {
        self.at(place)?.estimate(measure).map(|estimate| estimate.mean)
    }

    /// The means of a measure at these places of a line. `None` if one is missing.
    pub(crate) fn means<X: Into<f64>>(
        &self,
        line: &str,
        places: impl IntoIterator<Item = X>,
        measure: &Measure,
    ) -> Option<Vec<f64>> {
        places.into_iter().map(|x| self.mean((line, x), measure)).collect()
    }

    pub(super) fn rows(&self, measures: &[Measure]) -> Vec<Row> {
        self.cases
            .iter()
            .flat_map(|ran| measures.iter().filter_map(move |measure| ran.row(measure)))
            .collect()
    }
}

impl RanCase {
    fn samples(&self, measure: &Measure) -> Option<Vec<f64>> {
        self.outcomes.iter().map(measure.of).collect()
    }

    /// `None` where the measure does not apply.
    fn row(&self, measure: &Measure) -> Option<Row> {
        let samples = self.samples(measure)?;
        Some(Row::new(format!("{}: {}", self.case.label(), measure.name), measure.unit, Ok(samples)))
    }

    pub(super) fn estimate(&self, measure: &Measure) -> Option<Estimate> {
        Estimate::of(&self.samples(measure)?)
    }

    /// The distribution of the times of all seeds together, in milliseconds and percent.
    pub(super) fn curve(&self, times: fn(&Outcome) -> &Latencies) -> Vec<(f64, f64)> {
        let mut all = Latencies::default();
        self.outcomes.iter().for_each(|outcome| all.add(times(outcome)));
        let curve: Vec<_> = all.curve().map(|(time, part)| (time.as_millis_f64(), 100.0 * part)).collect();
        let first = curve.first().map(|&(ms, _)| (ms, 0.0));
        first.into_iter().chain(curve).collect()
    }
}
