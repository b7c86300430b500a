//! What the runs of several seeds say together.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The confidence of the interval, if samples are normally distributed.
const CONFIDENCE: f64 = 0.95;

/// Mean and median of independent samples, with the 95 % confidence interval of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The middle sample, or the mean of the two middle ones.
    pub median: f64,
    /// Half of the interval: the true mean is at most this far from `mean`, with 95 % confidence (Student's
    /// t). `None` for a single sample, which says nothing about its own spread.
    pub half_width: Option<f64>,
    /// How many samples there are.
    pub samples: usize,
}

impl Estimate {
    /// The estimate from these samples; `None` without any, or if one is not a finite number.
    pub fn of(samples: &[f64]) -> Option<Estimate> {
        if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        Some(Estimate {
            mean,
            median: median(samples),
            half_width: half_width(samples, mean),
            samples: samples.len(),
        })
    }
}

fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
    // Not half of the sum, which might overflow.
    low + (high - low) / 2.0
}

fn half_width(samples: &[f64], mean: f64) -> Option<f64> {
    let freedom = samples.len().checked_sub(1).filter(|freedom| *freedom > 0)? as f64;
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let t = student.inverse_cdf(0.5 + CONFIDENCE / 2.0);
    Some(t * (squares / freedom / samples.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::Estimate;

    /// Mean 3, variance 2.5, four degrees of freedom: t is 2.776 in any table.
    #[test]
    fn the_interval_is_the_one_of_the_tables() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("there are samples");
        assert_eq!((estimate.mean, estimate.median, estimate.samples), (3.0, 3.0, 5));
        let half_width = estimate.half_width.expect("there are several");
        assert!((half_width - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-3, "{half_width}");
    }

    #[test]
    fn one_sample_has_no_interval_and_none_has_no_estimate() {
        assert_eq!(Estimate::of(&[4.0]).expect("there is one").half_width, None);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn the_median_of_two_lies_between_them() {
        assert_eq!(Estimate::of(&[9.0, 1.0]).expect("there are two").median, 5.0);
    }
}
