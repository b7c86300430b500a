//! Bars and verdicts: what should be measured, and whether it was.

use std::fmt;

use serde::{Serialize, Serializer};

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

/// Whether a measured row meets its bar, or a paper's claim holds here, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is so: the whole interval of the median meets the bar, or both results say the same.
    Holds,
    /// It is not so: no part of the interval meets the bar, or the results differ.
    Fails,
    /// Noise allows no verdict, for one of three reasons. The bar lies within the interval. Or the interval reaches
    /// down to zero: no cost and no quotient of costs is zero, so noise is a part of the measured value. Or there are
    /// fewer than six samples, which give no interval.
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
        match self {
            Verdict::Holds => "yes",
            Verdict::Fails => "NO",
            Verdict::TooNoisy => "too noisy",
            Verdict::NotMeasured => "not measured",
        }
    }

    /// In words, of what a paper says.
    #[must_use]
    pub fn claim_text(self) -> &'static str {
        match self {
            Verdict::Holds => "agrees",
            Verdict::Fails => "DIFFERS",
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

/// The verdict on a claim in JSON: `agrees`, `differs`, `too-noisy` or `not-measured`. For `#[serde(with = …)]`.
pub mod of_claim {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Verdict;

    /// The words, each with its verdict.
    const WORDS: [(&str, Verdict); 4] = [
        ("agrees", Verdict::Holds),
        ("differs", Verdict::Fails),
        ("too-noisy", Verdict::TooNoisy),
        ("not-measured", Verdict::NotMeasured),
    ];

    /// Writes the verdict's word.
    ///
    /// # Errors
    ///
    /// The serializer's.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub fn serialize<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
        let word = WORDS.iter().find(|(_, known)| known == verdict).map_or("", |(word, _)| word);
        serializer.serialize_str(word)
    }

    /// Reads a verdict's word.
    ///
    /// # Errors
    ///
    /// There is no such verdict.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Verdict, D::Error> {
        let read = String::deserialize(deserializer)?;
        let found = WORDS.iter().find(|(word, _)| *word == read).map(|(_, verdict)| *verdict);
        found.ok_or_else(|| D::Error::custom(format!("no verdict is called {read:?}")))
    }
}
