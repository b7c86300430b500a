//! Bars and verdicts: what should be measured, and whether it was.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::statistics::Interval;

/// The bound that a median must meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// The median must not be greater.
    AtMost(f64),
    /// The median must be smaller.
    Below(f64),
    /// The median must not be smaller.
    AtLeast(f64),
}

impl Bar {
    /// Whether a value meets the bar, regardless of its spread.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bar::AtMost(limit) => value <= limit,
            Bar::Below(limit) => value < limit,
            Bar::AtLeast(limit) => value >= limit,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bar::AtMost(limit) => write!(f, "<= {limit}"),
            Bar::Below(limit) => write!(f, "< {limit}"),
            Bar::AtLeast(limit) => write!(f, ">= {limit}"),
        }
    }
}

impl Serialize for Bar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether a measured row meets its bar, or a paper's claim holds here, too. In JSON it is the word for a
/// claim; a row has words of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is so: the whole interval of the median meets the bar, or both results say the same.
    #[serde(rename = "agrees")]
    Holds,
    /// It is not so: no part of the interval meets the bar, or the results differ.
    #[serde(rename = "differs")]
    Fails,
    /// Noise allows no verdict, for one of three reasons. The bar lies within the interval. Or the interval
    /// reaches down to zero: no cost and no quotient of costs is zero, so noise is a part of the measured
    /// value. Or there are fewer than six samples, which give no interval.
    TooNoisy,
    /// There is no sample.
    NotMeasured,
}

impl Verdict {
    /// The verdict on something that holds here, or does not, regardless of noise.
    #[must_use]
    pub fn of(holds: bool) -> Verdict {
        if holds { Verdict::Holds } else { Verdict::Fails }
    }

    /// The verdict on a median that lies in this interval.
    pub(crate) fn of_interval(bar: Bar, interval: Option<Interval>) -> Verdict {
        match interval {
            // Bars are monotone: if both ends meet one, so does every value between them.
            Some(Interval { low, high }) if low > 0.0 => match (bar.holds(low), bar.holds(high)) {
                (true, true) => Verdict::Holds,
                (false, false) => Verdict::Fails,
                _ => Verdict::TooNoisy,
            },
            _ => Verdict::TooNoisy,
        }
    }

    /// Whether it is so; `None` if nothing can be said.
    #[must_use]
    pub fn holds(self) -> Option<bool> {
        match self {
            Verdict::Holds => Some(true),
            Verdict::Fails => Some(false),
            Verdict::TooNoisy | Verdict::NotMeasured => None,
        }
    }

    /// In words, of a bar.
    #[must_use]
    pub fn bar_text(self) -> &'static str {
        self.text(["yes", "NO"])
    }

    /// In words, of what a paper says.
    #[must_use]
    pub fn claim_text(self) -> &'static str {
        self.text(["agrees", "DIFFERS"])
    }

    fn text(self, [holds, fails]: [&'static str; 2]) -> &'static str {
        match self {
            Verdict::Holds => holds,
            Verdict::Fails => fails,
            Verdict::TooNoisy => "too noisy",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// A bar's verdict in JSON: `yes`, `no` or `too-noisy`. It is `null` where there is no bar or no sample.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn of_bar<S: Serializer>(verdict: &Option<Verdict>, serializer: S) -> Result<S::Ok, S::Error> {
    let word = match verdict {
        Some(Verdict::Holds) => Some("yes"),
        Some(Verdict::Fails) => Some("no"),
        Some(Verdict::TooNoisy) => Some("too-noisy"),
        Some(Verdict::NotMeasured) | None => None,
    };
    word.serialize(serializer)
}
