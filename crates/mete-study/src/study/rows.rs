//! Rows and curves that a folder keeps, read back from comma-separated values. Pictures of measured studies
//! are drawn again from them, because measuring again would give another result. Simulated studies are
//! simulated again instead.

use std::collections::HashMap;

use mete_plot::Series;

/// The data of a study's folder.
pub(crate) struct KeptRows {
    /// The median, the first and the third quartile of each row that has them, by its name.
    rows: HashMap<String, [f64; 3]>,
    /// The curves in `distribution.csv`, in the order of the file. Empty without such a file.
    pub curves: Vec<Series>,
}

impl KeptRows {
    /// Reads a study's rows and curves. What is not there is empty.
    pub(super) fn of(study: &str, file: &dyn Fn(&str) -> Option<String>) -> KeptRows {
        let rows = file(&format!("{study}.csv")).map(|text| rows(&text));
        let curves = file("distribution.csv").map(|text| curves(&text));
        KeptRows { rows: rows.unwrap_or_default(), curves: curves.unwrap_or_default() }
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.curves.is_empty()
    }

    /// The median, the first and the third quartile of a row.
    pub(crate) fn find(&self, name: &str) -> Option<[f64; 3]> {
        self.rows.get(name).copied()
    }
}

/// Reads the comma-separated values of a report.
fn rows(text: &str) -> HashMap<String, [f64; 3]> {
    // After the comments comes the line with the names of the columns.
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).map(fields);
    let columns = lines.next().unwrap_or_default();
    lines.filter_map(|fields| row(&columns, &fields)).collect()
}

/// The name of a row, and its median and quartiles. `None` for a row without samples.
fn row(columns: &[String], fields: &[String]) -> Option<(String, [f64; 3])> {
    let field = |name| fields.get(columns.iter().position(|column| column == name)?);
    let number = |name| field(name)?.parse().ok();
    Some((field("name")?.clone(), [number("median")?, number("q1")?, number("q3")?]))
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
    for fields in text.lines().skip(1).map(fields) {
        let [name, value, percent] = &fields[..] else { continue };
        let (Ok(value), Ok(percent)) = (value.parse(), percent.parse()) else { continue };
        // The points of a curve follow each other.
        match curves.last_mut().filter(|curve| curve.name == *name) {
            Some(curve) => curve.points.push((value, percent)),
            None => curves.push(Series::new(name, [(value, percent)])),
        }
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_rows_are_found_by_their_names() {
        let text = "# mete study x\nq1,name,unit,q3,median\n98,\"a, b\",ns,119,114\n,c,ns,,\n";
        assert_eq!(rows(text), HashMap::from([("a, b".to_owned(), [114.0, 98.0, 119.0])]));
    }
}
