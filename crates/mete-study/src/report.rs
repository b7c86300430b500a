//! Results: rows with their bars and verdicts, as JSON, as CSV and as a table.

use std::fmt::{self, Write as _};
use std::path::Path;
use std::{fs, io};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use serde::{Serialize, Serializer};

use crate::machine::Machine;
use crate::reason::Reason;
use crate::statistics::Summary;

/// What a median must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// Not greater.
    AtMost(f64),
    /// Smaller.
    Below(f64),
    /// Not smaller.
    AtLeast(f64),
}

impl Bar {
    /// Whether a value meets it.
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

/// One result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was measured: `group: what`.
    pub name: String,
    /// The unit of all values: `ns`, `ratio`, `percent`, …
    pub unit: &'static str,
    /// The middle of the samples, on which the bar is judged; `None` if there is no sample.
    pub median: Option<f64>,
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
    /// What the median should be, if anything.
    pub bar: Option<Bar>,
    /// Whether it is; `None` without a bar or without a sample.
    pub holds: Option<bool>,
    /// How to read it, or why it is missing.
    pub note: String,
}

impl Row {
    /// A row of samples, or the reason why there are none.
    pub fn new(name: impl Into<String>, unit: &'static str, samples: Result<Vec<f64>, Reason>) -> Row {
        let row = Row {
            name: name.into(),
            unit,
            median: None,
            min: None,
            q1: None,
            q3: None,
            max: None,
            samples: 0,
            bar: None,
            holds: None,
            note: String::new(),
        };
        match samples {
            Ok(samples) => row.with_samples(&samples),
            Err(reason) => row.note(reason.to_string()),
        }
    }

    fn with_samples(self, samples: &[f64]) -> Row {
        let Some(summary) = Summary::of(samples) else { return self.note("no sample was taken") };
        Row {
            median: Some(summary.median),
            min: Some(summary.min),
            q1: Some(summary.q1),
            q3: Some(summary.q3),
            max: Some(summary.max),
            samples: summary.count,
            ..self
        }
    }

    /// Sets the bar and the verdict.
    pub fn bar(mut self, bar: Bar) -> Row {
        self.bar = Some(bar);
        self.holds = self.median.map(|median| bar.holds(median));
        self
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
    /// Where and when.
    pub machine: Machine,
    /// The results, in the order of measuring.
    pub rows: Vec<Row>,
    /// False if it was stopped before its end.
    pub is_complete: bool,
}

impl Report {
    /// A report without rows yet.
    pub fn new(title: impl Into<String>) -> Report {
        let machine = Machine::here();
        Report { title: title.into(), machine, rows: Vec::new(), is_complete: true }
    }

    /// One JSON object a line, one line a row.
    pub fn json_lines(&self) -> String {
        let lines = self.rows.iter().filter_map(|row| serde_json::to_string(row).ok());
        lines.fold(String::new(), |text, line| text + &line + "\n")
    }

    /// A table for people.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["what", "unit", "median", "min", "quartiles", "bar", "holds", "note"]);
        for row in &self.rows {
            let quartiles = match (row.q1, row.q3) {
                (Some(q1), Some(q3)) => format!("{}–{}", short(q1), short(q3)),
                _ => String::new(),
            };
            let right = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
            table.add_row([
                Cell::new(&row.name),
                Cell::new(row.unit),
                right(row.median.map(short).unwrap_or_default()),
                right(row.min.map(short).unwrap_or_default()),
                right(quartiles),
                Cell::new(row.bar.map(|bar| bar.to_string()).unwrap_or_default()),
                Cell::new(verdict(row)),
                Cell::new(&row.note),
            ]);
        }
        table
    }

    /// Comma-separated values with the machine as a comment on top.
    pub fn csv(&self) -> String {
        let mut text = format!("# {}\n# {}\n", self.title, self.machine.line());
        text.push_str("name,unit,median,min,q1,q3,max,samples,bar,holds,note\n");
        for row in &self.rows {
            let number = |value: Option<f64>| value.map(|value| format!("{value:.4}")).unwrap_or_default();
            let [median, min, q1, q3, max] = [row.median, row.min, row.q1, row.q3, row.max].map(number);
            let bar = row.bar.map(|bar| bar.to_string()).unwrap_or_default();
            let holds = row.holds.map(|holds| holds.to_string()).unwrap_or_default();
            let (name, note) = (quoted(&row.name), quoted(&row.note));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name},{},{median},{min},{q1},{q3},{max},{},{bar},{holds},{note}",
                row.unit, row.samples
            );
        }
        text
    }

    /// A name for its file: what was run, and the day.
    pub fn file_name(&self) -> String {
        let day = self.machine.date.split('T').next().unwrap_or_default();
        let what = self.title.strip_prefix("mete ").unwrap_or(&self.title);
        format!("{}-{day}.csv", what.replace(' ', "-"))
    }

    /// Writes [`Report::csv`] to `directory/name`, making the directory if need be.
    ///
    /// # Errors
    ///
    /// The file system's answer.
    pub fn write_csv(&self, directory: &Path, name: &str) -> io::Result<()> {
        fs::create_dir_all(directory)?;
        fs::write(directory.join(name), self.csv())
    }
}

fn verdict(row: &Row) -> &'static str {
    match (row.bar, row.holds) {
        (_, Some(true)) => "yes",
        (_, Some(false)) => "NO",
        (Some(_), None) => "not measured",
        (None, None) => "",
    }
}

/// Three digits or so.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        medium if medium >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A field of comma-separated values.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
