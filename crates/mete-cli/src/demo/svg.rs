//! The two drawings of the demo's report, as SVG text: a strip of points for each kind of stretch,
//! and a matrix.

use std::fmt::Write;

const WIDTH: f64 = 620.0;
const ROW: f64 = 64.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 24.0;

/// One row of a strip plot: a label and the points.
pub struct Strip<'a> {
    /// What stands on the left.
    pub label: &'a str,
    /// The points, one for each stretch.
    pub points: Vec<f64>,
    /// Where the thick mark goes.
    pub median: f64,
}

/// Points on a common axis that begins at zero, the median as a thick mark.
pub fn strips(strips: &[Strip<'_>], unit: &str) -> String {
    let most = strips.iter().flat_map(|strip| &strip.points).copied().fold(0.0, f64::max);
    let step = tidy_step(most);
    let end = (most / step).ceil().max(1.0) * step;
    let x = |value: f64| LEFT + value / end * (WIDTH - LEFT - RIGHT);
    let height = ROW * strips.len() as f64 + 40.0;
    let mut svg = open(WIDTH, height);
    for tick in 0..=(end / step).round() as u32 {
        let value = f64::from(tick) * step;
        line(&mut svg, "grid", x(value), 8.0, x(value), height - 34.0);
        text(&mut svg, "tick", x(value), height - 18.0, &tidy(value));
    }
    text(&mut svg, "tick", (LEFT + WIDTH - RIGHT) / 2.0, height - 3.0, unit);
    for (number, strip) in strips.iter().enumerate() {
        let y = 8.0 + ROW * (number as f64 + 0.5);
        text(&mut svg, "label", LEFT - 12.0, y + 4.0, strip.label);
        for (nth, &point) in strip.points.iter().enumerate() {
            // A fixed pattern of offsets, so that equal points do not hide each other.
            let offset = [0.0, -9.0, 9.0, -16.0, 16.0][nth % 5];
            let _ = write!(
                svg,
                r#"<circle class="k{number}" cx="{:.1}" cy="{:.1}" r="5"/>"#,
                x(point),
                y + offset
            );
        }
        line(&mut svg, &format!("median k{number}"), x(strip.median), y - 24.0, x(strip.median), y + 24.0);
    }
    svg + "</svg>"
}

/// A matrix of shares, each row shaded by its share of the row's sum, with the numbers written in.
pub fn matrix(rows: &[String], columns: &[String], cell: impl Fn(usize, usize) -> u64) -> String {
    const CELL: (f64, f64) = (110.0, 30.0);
    let (width, height) = (LEFT + CELL.0 * columns.len() as f64 + RIGHT, 34.0 + CELL.1 * rows.len() as f64);
    let mut svg = open(width, height);
    for (column, name) in columns.iter().enumerate() {
        text(&mut svg, "tick", LEFT + CELL.0 * (column as f64 + 0.5), 20.0, name);
    }
    for (row, name) in rows.iter().enumerate() {
        let y = 28.0 + CELL.1 * row as f64;
        text(&mut svg, "label", LEFT - 12.0, y + 19.0, name);
        let sum: u64 = (0..columns.len()).map(|column| cell(row, column)).sum();
        for column in 0..columns.len() {
            let (x, value) = (LEFT + CELL.0 * column as f64, cell(row, column));
            let share = value as f64 / sum.max(1) as f64;
            let _ = write!(
                svg,
                r#"<rect class="cell" x="{x:.1}" y="{y:.1}" width="{:.1}" height="{:.1}" fill-opacity="{:.2}"/>"#,
                CELL.0 - 3.0,
                CELL.1 - 3.0,
                0.06 + 0.5 * share
            );
            text(&mut svg, "value", x + CELL.0 / 2.0, y + 19.0, &value.to_string());
        }
    }
    svg + "</svg>"
}

fn open(width: f64, height: f64) -> String {
    format!(r#"<svg viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" role="img">"#)
}

fn line(svg: &mut String, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
    let _ = write!(svg, r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#);
}

fn text(svg: &mut String, class: &str, x: f64, y: f64, content: &str) {
    let _ = write!(svg, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#, escape(content));
}

/// Text that is safe between tags.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A step of 1, 2 or 5 times a power of ten that divides the range into some five parts.
fn tidy_step(range: f64) -> f64 {
    let rough = (range / 5.0).max(1e-9);
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

fn tidy(value: f64) -> String {
    if value >= 10_000.0 { format!("{:.0}k", value / 1000.0) } else { format!("{value:.0}") }
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
        let svg = strips(&[Strip { label: "a<b", points: vec![1.0, 2.0, 2.0], median: 2.0 }], "per second");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a&lt;b"));
        let names = ["x".to_owned(), "y".to_owned()];
        assert_eq!(
            matrix(&names, &names, |row, column| (row * 2 + column) as u64).matches("<rect").count(),
            4
        );
    }
}
