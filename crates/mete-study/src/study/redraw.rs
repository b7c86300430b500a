//! Draws the pictures of measured studies again from the data that is kept beside them, because measuring again would
//! give another result. Simulated studies are simulated again instead.

use super::klogger::{loggers_plot, noise_plots};
use super::{cost_page, vtrr_cost_page};
use mete_plot::Series;

/// The pictures of a study's folder by file name, drawn from its files. Pictures whose data is not kept are not among
/// them.
#[must_use]
pub fn redraw(folder: &str, file: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let rows = || Some(Medians::of(&file(&format!("{folder}.csv"))?));
    let one = |name: &str, picture: Option<String>| picture.map(|picture| (name.to_owned(), picture));
    match folder {
        "loggers" => {
            one("loggers.svg", rows().map(|rows| loggers_plot(|name| rows.find(name)))).into_iter().collect()
        }
        "log-cost" => {
            one("figure-5.1.svg", rows().map(|rows| cost_page::added_of(&rows))).into_iter().collect()
        }
        "vtrr-cost" => rows().map(|rows| vtrr_cost_page::plots_of(&rows)).unwrap_or_default(),
        "noise" => file("distribution.csv").map(|text| noise_plots(&curves(&text))).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The parts of rows that pictures need: the name, and the median with the first and the third quartile where there
/// is one.
pub(super) struct Medians(Vec<(String, Option<[f64; 3]>)>);

impl Medians {
    /// Reads the comma-separated values of a report.
    fn of(text: &str) -> Medians {
        // After the comments comes the line with the names of the columns.
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
        let rows =
            lines.map(fields).map(|fields| (fields.first().cloned().unwrap_or_default(), values(&fields)));
        Medians(rows.collect())
    }

    /// The median and the quartiles of a row.
    pub(super) fn find(&self, name: &str) -> Option<[f64; 3]> {
        self.0.iter().find(|(known, _)| known == name)?.1
    }
}

/// The columns `median`, `q1` and `q3` of a row.
fn values(fields: &[String]) -> Option<[f64; 3]> {
    let number = |nth: usize| fields.get(nth)?.parse().ok();
    Some([number(2)?, number(4)?, number(5)?])
}

/// The fields of one line, as [`crate::report`] quotes them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_9_pictures_are_drawn_again_from_the_rows_that_are_kept() {
        let rows = "# mete study loggers\n# machine\nname,unit,median,min,q1,q3,max,samples,bar,holds,note\n\
                    \"mete, kernel: an event\",ns,114.06,69.9,98.0,119.8,160.5,11,,,\"a, \"\"b\"\"\"\n\
                    ftrace: an event,ns,,,,,,0,,,not here\n";
        let pictures = redraw("loggers", |name| (name == "loggers.csv").then(|| rows.to_owned()));
        assert_eq!(pictures.len(), 1);
        assert!(pictures[0].1.contains(">114<") && !pictures[0].1.contains(">ftrace<"), "{}", pictures[0].1);
        assert_eq!(redraw("loggers", |_| None), []);
        assert_eq!(redraw("quanta", |_| Some(String::new())), []);
    }
}
