//! The pictures that several studies draw of their cases.

use mete_plot::{self as plot, Axis, Series};
use mete_sim::metrics::{Estimate, Latencies};

use super::case::Outcome;
use super::ran::{Measure, Place, Ran};

/// The end of a mean's interval of 95 % confidence that is lower, and the other one.
pub(crate) type Interval = Option<(f64, f64)>;

/// A label that explains the beams on points and bars.
pub(crate) fn mean_of(label: &str) -> String {
    format!("{label} (mean, 95 %)")
}

/// The interval as two ends; `None` where there is nothing to draw, because there is one seed or all results
/// are equal.
pub(crate) fn interval(estimate: Estimate) -> Interval {
    let half = estimate.half_width.filter(|half| *half > 0.0)?;
    Some((estimate.mean - half, estimate.mean + half))
}

impl<B> Ran<B> {
    fn interval(&self, place: Place<'_>, measure: &Measure) -> Interval {
        interval(self.at(place)?.estimate(measure)?)
    }

    /// Lines over x, each with its name, its line of cases, and what is measured of these; with intervals.
    pub(crate) fn lines(&self, title: &str, [x, y]: [&str; 2], lines: &[(&str, &str, &Measure)]) -> String {
        let lines = lines.iter().map(|(name, line, measure)| self.line(name, line, measure));
        let (series, intervals): (Vec<_>, Vec<_>) = lines.unzip();
        plot::lines_with_intervals(title, &Axis::linear(x), &Axis::linear(mean_of(y)), &series, &intervals)
    }

    fn line(&self, name: &str, line: &str, measure: &Measure) -> (Series, Vec<Interval>) {
        let cases = self.cases.iter().filter(|ran| ran.case.line == line);
        let estimates = cases.filter_map(|ran| Some((ran.case.x?, ran.estimate(measure)?)));
        let (points, intervals): (Vec<_>, _) = estimates.map(|(x, of)| ((x, of.mean), interval(of))).unzip();
        (Series::new(name, points), intervals)
    }

    /// Bars in groups, each series with its name, the case of each group and what is measured of it; with
    /// intervals.
    pub(crate) fn bars(
        &self,
        title: &str,
        label: &str,
        groups: &[String],
        series: &[(&str, Vec<Place<'_>>, &Measure)],
    ) -> String {
        let series = series.iter().map(|(name, places, measure)| {
            let means = places.iter().filter_map(|place| self.mean(*place, measure)).collect();
            let intervals = places.iter().map(|place| self.interval(*place, measure)).collect();
            (((*name).to_owned(), means), intervals)
        });
        let (series, intervals): (Vec<_>, Vec<Vec<_>>) = series.unzip();
        plot::bars_with_intervals(title, &Axis::linear(mean_of(label)), groups, &series, &intervals)
    }

    /// The distributions of times in these lines.
    pub(crate) fn distributions(
        &self,
        title: &str,
        [x, y]: [&str; 2],
        lines: &[&str],
        times: fn(&Outcome) -> &Latencies,
    ) -> String {
        let cases = self.cases.iter().filter(|ran| lines.contains(&ran.case.line));
        let curves = cases.map(|ran| Series::new(ran.case.label(), ran.curve(times)));
        plot::lines(title, &Axis::linear(x), &Axis::linear(y), &curves.collect::<Vec<_>>())
    }
}
