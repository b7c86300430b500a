//! Distributions, in the form that the paper shows.

use mete_base::csv;
use mete_measure::statistics::quantile;
use mete_plot::Series;
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::study::StudyFile;

/// The number of points of a curve.
const POINTS: usize = 200;

/// Sorted values, with functions for their distribution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution(Vec<f64>);

impl Distribution {
    /// The distribution of these values.
    pub fn of(mut values: Vec<f64>) -> Distribution {
        values.sort_by(f64::total_cmp);
        Distribution(values)
    }

    /// The value below which `part` (0 to 1) of the values lie; `None` without values.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| quantile(&self.0, part))
    }

    /// The median; `None` without values.
    pub fn half(&self) -> Option<f64> {
        self.quantile(0.5)
    }

    /// The part of the values (0 to 1) that are less than a limit; `None` without values.
    pub fn part_below(&self, limit: f64) -> Option<f64> {
        // The values are sorted, so those below the limit come first.
        let below = self.0.partition_point(|value| *value < limit);
        (!self.0.is_empty()).then(|| below as f64 / self.0.len() as f64)
    }

    /// All values, in order.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The cumulative distribution as a curve: a value, and the percentage of values that are not greater.
    pub fn series(&self, name: &str) -> Series {
        let parts = (0..=POINTS).map(|nth| nth as f64 / POINTS as f64);
        Series::new(name, parts.filter_map(|part| Some((self.quantile(part)?, 100.0 * part))))
    }
}

/// What pages tell of a distribution.
impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let told = json!({
            "count": self.0.len(),
            "least": self.quantile(0.0),
            "half": self.half(),
            "nine_in_ten": self.quantile(0.9),
            "ninety_nine": self.quantile(0.99),
            "longest": self.quantile(1.0),
        });
        told.serialize(serializer)
    }
}

/// Curves as comma-separated values. `across` names the quantity on the horizontal axis.
pub fn file(series: &[Series], across: &str) -> StudyFile {
    let points = series.iter().flat_map(|of| of.points.iter().map(|point| (csv::field(&of.name), point)));
    let lines = points.map(|(name, (value, percent))| format!("{name},{value:.4},{percent}\n"));
    let text = format!("of,{across},percent\n") + &lines.collect::<String>();
    ("distribution.csv".to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_a_distribution_tells_quantiles_and_parts() {
        let of = Distribution::of(vec![3.0, 1.0, 2.0, 4.0, 5.0]);
        assert_eq!((of.quantile(0.5), of.quantile(1.0)), (Some(3.0), Some(5.0)));
        assert_eq!(
            (of.part_below(3.0), of.part_below(0.5), of.part_below(9.0)),
            (Some(0.4), Some(0.0), Some(1.0))
        );
        let points = of.series("x").points;
        assert_eq!((points[0], points[100], points[POINTS]), ((1.0, 0.0), (3.0, 50.0), (5.0, 100.0)));
        let none = Distribution::default();
        assert_eq!((none.quantile(0.5), none.part_below(1.0)), (None, None));
    }
}
