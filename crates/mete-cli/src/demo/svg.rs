//! The drawings of the demo's report, as SVG text: a strip of points for each kind of stretch, a matrix, and what was
//! moved when. Each has a title and a description for programs that read aloud.

use std::fmt::Write;

use crate::table::grouped;

/// As narrow as what is in it allows: on a narrow screen texts shrink with the drawing.
const WIDTH: f64 = 440.0;
const ROW: f64 = 64.0;
const LEFT: f64 = 124.0;
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
pub fn strips(title: &str, strips: &[Strip<'_>], unit: &str) -> String {
    let most = strips.iter().flat_map(|strip| &strip.points).copied().fold(0.0, f64::max);
    let step = tidy_step(most);
    let end = (most / step).ceil().max(1.0) * step;
    let x = |value: f64| LEFT + value / end * (WIDTH - LEFT - RIGHT);
    let height = ROW * strips.len() as f64 + 40.0;
    let medians =
        strips.iter().map(|strip| format!("{} {}", strip.label, grouped(strip.median.round() as u64)));
    let described = format!("Medians, in {unit}: {}.", medians.collect::<Vec<_>>().join(", "));
    let mut svg = open(WIDTH, height, title, &described);
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
    let most = |row: usize| (0..columns.len()).max_by_key(|&column| cell(row, column));
    let favourites =
        (0..rows.len()).filter_map(|row| Some(format!("{} most with {}", rows[row], columns[most(row)?])));
    let described = format!("{}.", favourites.collect::<Vec<_>>().join(", "));
    let mut svg = open(width, height, "Who talked to whom", &described);
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
            text(&mut svg, "value", x + CELL.0 / 2.0, y + 19.0, &grouped(value));
        }
    }
    svg + "</svg>"
}

/// When each client was moved, in seconds, and to which processor: a row for each client over one axis of time.
pub fn moves(clients: &[String], moves: &[(f64, &str, usize)]) -> String {
    const LINE: f64 = 30.0;
    let last = moves.iter().map(|(at_s, ..)| *at_s).fold(0.0, f64::max);
    let step = tidy_fraction(last);
    let end = (last / step).floor() * step + step;
    let x = |at_s: f64| LEFT + at_s / end * (WIDTH - LEFT - RIGHT);
    let height = LINE * clients.len() as f64 + 48.0;
    let said = moves.iter().map(|(at_s, client, to)| format!("{client} to processor {to} after {at_s:.2} s"));
    let described = format!("{}.", said.collect::<Vec<_>>().join(", "));
    let mut svg = open(WIDTH, height, "What was moved when", &described);
    for tick in 0..=(end / step).round() as u32 {
        let at_s = f64::from(tick) * step;
        line(&mut svg, "grid", x(at_s), 8.0, x(at_s), height - 34.0);
        text(&mut svg, "tick", x(at_s), height - 18.0, &format!("{at_s:.1}"));
    }
    text(&mut svg, "tick", (LEFT + WIDTH - RIGHT) / 2.0, height - 3.0, "seconds");
    for (row, name) in clients.iter().enumerate() {
        let y = 8.0 + LINE * (row as f64 + 0.5);
        text(&mut svg, "label", LEFT - 12.0, y + 4.0, name);
        for (at_s, _, to) in moves.iter().filter(|(_, client, _)| client == name) {
            let _ = write!(svg, r#"<circle class="k2" cx="{:.1}" cy="{y:.1}" r="5"/>"#, x(*at_s));
            text(&mut svg, "note", x(*at_s) + 9.0, y + 4.0, &format!("to {to}"));
        }
    }
    svg + "</svg>"
}

/// A tidy step for ranges below some seconds, too.
fn tidy_fraction(range: f64) -> f64 {
    tidy_step(range * 100.0) / 100.0
}

fn open(width: f64, height: f64, title: &str, described: &str) -> String {
    format!(
        r#"<svg viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" role="img"><title>{}</title><desc>{}</desc>"#,
        escape(title),
        escape(described)
    )
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
        let svg =
            strips("t", &[Strip { label: "a<b", points: vec![1.0, 2.0, 2.0], median: 2.0 }], "per second");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a&lt;b"));
        let names = ["x".to_owned(), "y".to_owned()];
        assert_eq!(
            matrix(&names, &names, |row, column| (row * 2 + column) as u64).matches("<rect").count(),
            4
        );
        let moved = moves(&names, &[(0.31, "x", 1), (0.6, "y", 0), (0.65, "x", 0)]);
        assert_eq!(moved.matches("<circle").count(), 3);
        assert!(moved.contains("<desc>x to processor 1 after 0.31 s, y to processor 0"), "{moved}");
    }
}
