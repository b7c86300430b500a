//! Axes, and how values become places on them.

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// Whether equal ratios are equally far apart, and not equal differences.
    pub is_logarithmic: bool,
}

impl Axis {
    /// An axis on which equal differences are equally far apart.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), is_logarithmic: false }
    }

    /// An axis on which equal ratios are equally far apart.
    pub fn logarithmic(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), is_logarithmic: true }
    }
}

/// Maps values to places between two ends.
pub(crate) struct Scale {
    pub(crate) is_logarithmic: bool,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl Scale {
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>, (from, to): (f64, f64)) -> Scale {
        let usable = values.filter(|value| value.is_finite() && (!axis.is_logarithmic || *value > 0.0));
        // Without any value the axis is drawn all the same.
        let (low, high) = extremes(usable).unwrap_or((1.0, 10.0));
        let (low, high) = if axis.is_logarithmic {
            // Whole decades, and at least one, so that there are two ticks even if all values are equal.
            (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil().max(low.log10().floor() + 1.0)))
        } else {
            // From zero on, so that lengths compare as their values do; with some room above the highest.
            (low.min(0.0), if high > low.min(0.0) { high * 1.05 } else { low + 1.0 })
        };
        Scale { is_logarithmic: axis.is_logarithmic, low, high, from, to }
    }

    /// A linear scale from the least value to the greatest, also where both are far from zero.
    pub(crate) fn fitted(values: impl Iterator<Item = f64>, (from, to): (f64, f64)) -> Scale {
        // The scale divides by the distance of its ends, so equal values get ends that differ.
        let differing = extremes(values.filter(|value| value.is_finite())).filter(|(low, high)| low < high);
        let (low, high) = differing.unwrap_or((0.0, 1.0));
        let margin = (high - low) * 0.03;
        Scale { is_logarithmic: false, low: low - margin, high: high + margin, from, to }
    }

    pub(crate) fn at(&self, value: f64) -> f64 {
        let part = if self.is_logarithmic {
            // Zero has no place on such an axis, and is drawn at its lower end.
            (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    pub(crate) fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let decades = (self.low.log10().round() as i32)..=(self.high.log10().round() as i32);
            return decades.map(|decade| 10f64.powi(decade)).collect();
        }
        let rough = (self.high - self.low) / 6.0;
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|nice| nice * unit).find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        // Multiples of the step and not sums of it, so that rounding errors do not add up.
        let first = (self.low / step).ceil() as i64;
        (first..=(self.high / step).floor() as i64).map(|nth| nth as f64 * step).collect()
    }
}

/// The least and the greatest value, if there is any.
fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.map(|value| (value, value)).reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))
}
