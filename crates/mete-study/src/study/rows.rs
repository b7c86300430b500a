//! Rows and curves that a folder keeps, read back from comma-separated values. Pictures of measured studies are drawn
//! again from them, because measuring again would give another result. Simulated studies are simulated again instead.

use mete_plot::Series;

/// The data of a study's folder.
pub(crate) struct KeptRows {
    rows: Vec<KeptRow>,
    /// The curves in `distribution.csv`, in the order of the file. Empty without such a file.
    pub curves: Vec<Series>,
}

/// The parts of a row that pictures need: the name, and the median with the first and the third quartile where there is
/// one.
struct KeptRow {
    name: String,
    quartiles: Option<[f64; 3]>,
}

impl KeptRows {
    /// Reads a study's rows and curves. What is not there is empty.
    pub(super) fn of(study: &str, file: &dyn Fn(&str) -> Option<String>) -> KeptRows {
        let rows = file(&format!("{study}.csv")).map(|text| rows(&text));
        let curves = file("distribution.csv").map(|text| curves(&text));
        KeptRows { rows: rows.unwrap_or_default(), curves: curves.unwrap_or_default() }
    }

    /// Whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.curves.is_empty()
    }

    /// The median, the first and the third quartile of a row.
    pub(crate) fn find(&self, name: &str) -> Option<[f64; 3]> {
        self.rows.iter().find(|row| row.name == name)?.quartiles
    }
}

/// Reads the comma-separated values of a report.
fn rows(text: &str) -> Vec<KeptRow> {
    // After the comments comes the line with the names of the columns.
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let rows = lines.map(fields).map(|fields| KeptRow {
        quartiles: quartiles(&fields),
        name: fields.into_iter().next().unwrap_or_default(),
    });
    rows.collect()
}

/// The columns `median`, `q1` and `q3` of a row.
fn quartiles(fields: &[String]) -> Option<[f64; 3]> {
    let number = |nth: usize| fields.get(nth)?.parse().ok();
    Some([number(2)?, number(4)?, number(5)?])
}

/// The fields of one line, as [`mete_measure::report`] quotes them.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // Two quotes within a quoted field stand for one.
            '"' if is_quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(std::mem::take(&mut field)),
            letter => field.push(letter),
        }
    }
    fields.push(field);
    fields
}

/// The curves of a distribution, in the order of the file.
fn curves(text: &str) -> Vec<Series> {
    let mut curves: Vec<Series> = Vec::new();
    for line in text.lines().skip(1) {
        let fields = fields(line);
        let number = |nth: usize| fields.get(nth).and_then(|field| field.parse().ok());
        let (Some(value), Some(percent)) = (number(1), number(2)) else { continue };
        if curves.last().is_none_or(|curve| curve.name != fields[0]) {
            curves.push(Series { name: fields[0].clone(), points: Vec::new() });
        }
        if let Some(curve) = curves.last_mut() {
            curve.points.push((value, percent));
        }
    }
    curves
}
