//! Charts for the overview of a page: a strip of points for each kind of run, a matrix, and what was moved
//! when.

use crate::canvas::{Anchor, Canvas, colour};
use crate::number::{grouped, rounded};

/// As narrow as the texts allow: on a narrow screen they shrink with the chart.
const WIDTH: f64 = 440.0;
/// The room for names on the left.
const LEFT: f64 = 124.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 8.0;
/// The room for the axis below.
const BELOW: f64 = 34.0;
const GRID: &str = "#ddd";
/// The width of a mark for a median.
const THICK: f64 = 4.0;

/// One row of a strip plot: a label and its points.
pub struct Strip<'a> {
    /// What stands on the left.
    pub label: &'a str,
    /// The points.
    pub points: Vec<f64>,
    /// Where the thick mark goes.
    pub median: f64,
}

/// Points on a common axis that begins at zero, the median of each strip as a thick mark.
pub fn strips(title: &str, strips: &[Strip<'_>], unit: &str) -> String {
    const ROW: f64 = 64.0;
    let most = strips.iter().flat_map(|strip| &strip.points).copied().fold(0.0, f64::max);
    let axis = TidyAxis::to(most, tidy_step(most));
    let height = ROW * strips.len() as f64 + 40.0;
    let mut canvas = Canvas::bare(title, (WIDTH, height));
    axis.draw(&mut canvas, height, unit, rounded);
    for (number, strip) in strips.iter().enumerate() {
        let y = TOP + ROW * (number as f64 + 0.5);
        canvas.text((LEFT - 12.0, y + 4.0), Anchor::End, strip.label);
        for (nth, &point) in strip.points.iter().enumerate() {
            // A fixed pattern of offsets, so that equal points do not hide each other.
            let offset = [0.0, -9.0, 9.0, -16.0, 16.0][nth % 5];
            canvas.disc((axis.at(point), y + offset), colour(number));
        }
        let x = axis.at(strip.median);
        canvas.polyline(&[(x, y - 24.0), (x, y + 24.0)], colour(number), THICK);
    }
    let medians = strips.iter().map(|of| format!("{} {}", of.label, grouped(of.median.round() as u64)));
    canvas.end_described(&format!("Medians, in {unit}: {}.", medians.collect::<Vec<_>>().join(", ")))
}

/// Counts in rows and columns.
pub struct Matrix<'a> {
    /// The names of the rows.
    pub rows: &'a [String],
    /// The names of the columns.
    pub columns: &'a [String],
    /// The counts, row by row. Missing ones are zero.
    pub counts: &'a [Vec<u64>],
}

impl Matrix<'_> {
    fn count(&self, row: usize, column: usize) -> u64 {
        self.counts.get(row).and_then(|row| row.get(column)).copied().unwrap_or(0)
    }

    /// The column with the largest count of a row, in words.
    fn favourite(&self, row: usize) -> Option<String> {
        let column = (0..self.columns.len()).max_by_key(|&column| self.count(row, column))?;
        Some(format!("{} most with {}", self.rows[row], self.columns[column]))
    }
}

/// A matrix with its numbers written in, each cell shaded by its share of its row's sum.
pub fn matrix(title: &str, matrix: &Matrix<'_>) -> String {
    const CELL: (f64, f64) = (110.0, 30.0);
    const HEAD: f64 = 28.0;
    let Matrix { rows, columns, .. } = matrix;
    let size = (LEFT + CELL.0 * columns.len() as f64 + RIGHT, HEAD + 6.0 + CELL.1 * rows.len() as f64);
    let mut canvas = Canvas::bare(title, size);
    for (column, name) in columns.iter().enumerate() {
        canvas.text((LEFT + CELL.0 * (column as f64 + 0.5), 20.0), Anchor::Middle, name);
    }
    for (row, name) in rows.iter().enumerate() {
        let y = HEAD + CELL.1 * row as f64;
        canvas.text((LEFT - 12.0, y + 19.0), Anchor::End, name);
        let sum: u64 = (0..columns.len()).map(|column| matrix.count(row, column)).sum();
        for column in 0..columns.len() {
            let (x, count) = (LEFT + CELL.0 * column as f64, matrix.count(row, column));
            // Shaded by row, because rows differ in their sums by far.
            let share = count as f64 / sum.max(1) as f64;
            canvas.shaded((x, y), (CELL.0 - 3.0, CELL.1 - 3.0), colour(0), 0.06 + 0.5 * share);
            canvas.text((x + CELL.0 / 2.0, y + 19.0), Anchor::Middle, &grouped(count));
        }
    }
    let favourites: Vec<_> = (0..rows.len()).filter_map(|row| matrix.favourite(row)).collect();
    canvas.end_described(&format!("{}.", favourites.join(", ")))
}

/// When each client was moved, in seconds, and to which processor: a row for each client over one axis of
/// time.
pub fn moves(title: &str, clients: &[String], moves: &[(f64, &str, usize)]) -> String {
    const ROW: f64 = 30.0;
    let last = moves.iter().map(|(at_s, ..)| *at_s).fold(0.0, f64::max);
    let step = tidy_step(last * 100.0) / 100.0;
    // One step more than needed, so that the last note has room.
    let axis = TidyAxis { end: (last / step).floor() * step + step, step };
    let height = ROW * clients.len() as f64 + 48.0;
    let mut canvas = Canvas::bare(title, (WIDTH, height));
    axis.draw(&mut canvas, height, "seconds", |at_s| format!("{at_s:.1}"));
    for (row, name) in clients.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        canvas.text((LEFT - 12.0, y + 4.0), Anchor::End, name);
        for (at_s, _, to) in moves.iter().filter(|(_, client, _)| client == name) {
            canvas.disc((axis.at(*at_s), y), colour(1));
            canvas.text((axis.at(*at_s) + 9.0, y + 4.0), Anchor::Start, &format!("to {to}"));
        }
    }
    let said = moves.iter().map(|(at_s, client, to)| format!("{client} to processor {to} after {at_s:.2} s"));
    canvas.end_described(&format!("{}.", said.collect::<Vec<_>>().join(", ")))
}

/// A horizontal axis from zero with tidy steps.
struct TidyAxis {
    end: f64,
    step: f64,
}

impl TidyAxis {
    /// An axis that ends at the first step that is no less than this.
    fn to(most: f64, step: f64) -> TidyAxis {
        TidyAxis { end: (most / step).ceil().max(1.0) * step, step }
    }

    fn at(&self, value: f64) -> f64 {
        LEFT + value / self.end * (WIDTH - LEFT - RIGHT)
    }

    fn draw(&self, canvas: &mut Canvas, height: f64, unit: &str, label: impl Fn(f64) -> String) {
        for tick in 0..=(self.end / self.step).round() as u32 {
            let value = f64::from(tick) * self.step;
            canvas.path(&format!("M{:.1} {TOP}V{}", self.at(value), height - BELOW), GRID);
            canvas.text((self.at(value), height - 18.0), Anchor::Middle, &label(value));
        }
        canvas.text(((LEFT + WIDTH - RIGHT) / 2.0, height - 3.0), Anchor::Middle, unit);
    }
}

/// A step of 1, 2 or 5 times a power of ten that divides the range into about five parts.
fn tidy_step(range: f64) -> f64 {
    let rough = (range / 5.0).max(1e-9);
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_tidy() {
        assert_eq!([4.0, 9.0, 45_000.0].map(tidy_step), [1.0, 2.0, 10_000.0]);
    }

    #[test]
    fn every_point_and_every_cell_is_drawn() {
        let svg =
            strips("t", &[Strip { label: "a<b", points: vec![1.0, 2.0, 2.0], median: 2.0 }], "per second");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(
            svg.contains("a&lt;b") && svg.contains("<desc>Medians, in per second: a&lt;b 2.</desc>"),
            "{svg}"
        );
        let names = ["x".to_owned(), "y".to_owned()];
        let counts = [vec![0, 1], vec![2, 3]];
        let drawn = matrix("t", &Matrix { rows: &names, columns: &names, counts: &counts });
        assert_eq!(drawn.matches("<rect").count(), 4);
        let moved = moves("t", &names, &[(0.31, "x", 1), (0.6, "y", 0), (0.65, "x", 0)]);
        assert_eq!(moved.matches("<circle").count(), 3);
        assert!(moved.contains("<desc>x to processor 1 after 0.31 s, y to processor 0"), "{moved}");
    }
}
