//! Results: rows with their bars and verdicts, as JSON and as CSV.

use std::fmt::Write as _;

use mete_base::csv;
use serde::{Serialize, Serializer};

use crate::machine::Machine;
use crate::reason::Reason;
use crate::statistics::{Interval, Summary};
use crate::verdict::{self, Bar, Verdict};

/// One result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// What was measured, as `group: what`.
    pub name: String,
    /// The unit of all values: `ns`, `ratio`, `percent`, …
    pub unit: &'static str,
    /// The middle of the samples; `None` if there is no sample.
    pub median: Option<f64>,
    /// The median is not below this, with a confidence of 95 %; `None` with fewer than six samples.
    #[serde(serialize_with = "finite")]
    pub low: Option<f64>,
    /// The median is not above this, with the same confidence.
    #[serde(serialize_with = "finite")]
    pub high: Option<f64>,
    /// The least sample.
    pub min: Option<f64>,
    /// The first quartile.
    pub q1: Option<f64>,
    /// The third quartile.
    pub q3: Option<f64>,
    /// The greatest sample.
    pub max: Option<f64>,
    /// How many samples there are.
    pub samples: usize,
    /// The bar that the median should meet, if there is one.
    pub bar: Option<Bar>,
    /// Whether the bar is met; `None` without a bar.
    #[serde(serialize_with = "verdict::of_bar")]
    pub verdict: Option<Verdict>,
    /// The same for scripts: `None` also where noise allows no verdict.
    pub holds: Option<bool>,
    /// How to read the value, or why it is missing.
    pub note: String,
}

impl Row {
    /// A row of samples, or the reason why there are none.
    pub fn new(name: impl Into<String>, unit: &'static str, samples: Result<Vec<f64>, Reason>) -> Row {
        let row = Row { name: name.into(), unit, ..Row::default() };
        match samples {
            Ok(samples) => row.with_samples(&samples),
            Err(reason) => row.note(reason.to_string()),
        }
    }

    fn with_samples(self, samples: &[f64]) -> Row {
        let Some(summary) = Summary::of(samples) else { return self.note("no sample was taken") };
        let interval = Interval::of_median(samples);
        Row {
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            median: Some(summary.median),
            min: Some(summary.min),
            q1: Some(summary.q1),
            q3: Some(summary.q3),
            max: Some(summary.max),
            samples: summary.count,
            ..self
        }
    }

    /// Sets the bar and the verdict. The verdict is that of the interval: see [`Verdict`].
    pub fn bar(self, bar: Bar) -> Row {
        let interval = self.low.zip(self.high).map(|(low, high)| Interval { low, high });
        let verdict = match self.median {
            Some(_) => Verdict::of_interval(bar, interval),
            None => Verdict::NotMeasured,
        };
        Row { bar: Some(bar), ..self }.judged(verdict)
    }

    /// Sets the bar of counts, such as lost events. Each count must meet the bar, because counts have no
    /// noise.
    pub fn bar_of_each(self, bar: Bar) -> Row {
        let holds = self.min.zip(self.max).map(|(min, max)| bar.holds(min) && bar.holds(max));
        let verdict = holds.map_or(Verdict::NotMeasured, Verdict::of);
        Row { bar: Some(bar), ..self }.judged(verdict)
    }

    /// The same row, but its bar is not met, regardless of its samples.
    pub fn failed(self) -> Row {
        self.judged(Verdict::Fails)
    }

    fn judged(self, verdict: Verdict) -> Row {
        Row { verdict: Some(verdict), holds: verdict.holds(), ..self }
    }

    /// The words of a table for the verdict.
    #[must_use]
    pub fn verdict_text(&self) -> &'static str {
        self.verdict.map_or("", Verdict::bar_text)
    }

    /// The interval of the median, where there is one.
    #[must_use]
    pub fn interval_text(&self, show: impl Fn(f64) -> String) -> String {
        let (Some(low), Some(high)) = (self.low, self.high) else { return String::new() };
        // An end is infinite where there are too few samples, or where they are not numbers.
        if !low.is_finite() && !high.is_finite() {
            return String::new();
        }
        let end = |end: f64| if end.is_finite() { show(end) } else { "?".to_owned() };
        format!("{} to {}", end(low), end(high))
    }

    /// Adds to the note.
    pub fn note(mut self, text: impl AsRef<str>) -> Row {
        if !self.note.is_empty() && !text.as_ref().is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(text.as_ref());
        self
    }
}

/// The results of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What was run.
    pub title: String,
    /// Where and when it was run.
    pub machine: Machine,
    /// The results, in the order of measuring.
    pub rows: Vec<Row>,
    /// False if the run was stopped before its end.
    pub is_complete: bool,
}

impl Report {
    /// A report without rows yet.
    pub fn new(title: impl Into<String>) -> Report {
        let machine = Machine::here();
        Report { title: title.into(), machine, rows: Vec::new(), is_complete: true }
    }

    /// Comma-separated values with the machine as a comment on top.
    pub fn csv(&self) -> String {
        let mut text = format!("# {}\n# {}\n", self.title, self.machine.line());
        text.push_str("name,unit,median,min,q1,q3,max,samples,low,high,bar,holds,note\n");
        for row in &self.rows {
            let number = |value: Option<f64>| value.map(|value| format!("{value:.4}")).unwrap_or_default();
            let [median, min, q1, q3, max] = [row.median, row.min, row.q1, row.q3, row.max].map(number);
            let [low, high] = [row.low, row.high].map(|end| number(end.filter(|end| end.is_finite())));
            let bar = row.bar.map(|bar| bar.to_string()).unwrap_or_default();
            let holds = match row.verdict {
                Some(Verdict::TooNoisy) => "too noisy".to_owned(),
                _ => row.holds.map(|holds| holds.to_string()).unwrap_or_default(),
            };
            let (name, note) = (csv::field(&row.name), csv::field(&row.note));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name},{},{median},{min},{q1},{q3},{max},{},{low},{high},{bar},{holds},{note}",
                row.unit, row.samples
            );
        }
        text
    }
}

/// JSON has no infinite numbers: an end of an interval that is not finite becomes `null`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn finite<S: Serializer>(end: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    end.filter(|end| end.is_finite()).serialize(serializer)
}
