//! Surfaces over two axes, as wire frames seen from above and from one corner.

use crate::canvas::{Anchor, Canvas, colour};
use crate::chart::WIDTH;
use crate::number::number;
use crate::scale::{Axis, Scale};

/// Of a panel.
const HEIGHT: f64 = 460.0;
const MARGIN: f64 = 70.0;
/// Where the first panel begins, below the title.
const TOP: f64 = 10.0;
/// How far one step along an axis of the floor goes to the side and down, of a panel's width.
const ASIDE: f64 = 0.40;
const DOWN: f64 = 0.20;

/// Values over a grid of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// What the first axis shows, and its values, ascending.
    pub x: (String, Vec<f64>),
    /// What the second axis shows, and its values, ascending.
    pub y: (String, Vec<f64>),
    /// What the height shows.
    pub z: String,
}

/// The heights of one surface.
#[derive(Clone, Debug, PartialEq)]
pub struct Surface {
    /// What it is.
    pub name: String,
    /// For each value of the first axis, one height for each value of the second.
    pub heights: Vec<Vec<f64>>,
}

impl Surface {
    fn height(&self, (nx, ny): (usize, usize)) -> Option<f64> {
        self.heights.get(nx)?.get(ny).copied()
    }
}

/// Panels below one another, each with a caption and surfaces on a common scale of heights. In a panel the
/// surfaces are drawn from the lowest to the highest, so they should be given in this order.
pub fn surfaces(title: &str, grid: &Grid, panels: &[(String, Vec<Surface>)]) -> String {
    let mut canvas = Canvas::new(title, (WIDTH, TOP + HEIGHT * panels.len().max(1) as f64));
    let heights = panels.iter().flat_map(|(_, surfaces)| surfaces).flat_map(|surface| &surface.heights);
    let axis = Axis { label: grid.z.clone(), is_logarithmic: false };
    let width = WIDTH - 2.0 * MARGIN;
    // The near corner of the floor lies two steps below the far one, and its texts below that.
    let floor = HEIGHT - 50.0 - 2.0 * DOWN * width;
    let up = Scale::new(&axis, heights.flatten().copied(), (floor, 64.0));
    for (nth, (caption, surfaces)) in panels.iter().enumerate() {
        let panel = Panel { grid, up: &up, top: TOP + HEIGHT * nth as f64, width };
        panel.frame(&mut canvas, caption);
        panel.draw(&mut canvas, surfaces);
    }
    canvas.end()
}

struct Panel<'a> {
    grid: &'a Grid,
    up: &'a Scale,
    top: f64,
    width: f64,
}

impl Panel<'_> {
    /// Where a point of the room is seen: `x` and `y` from 0 to 1, `z` a place of the scale of heights.
    /// The corner (0, 0) is the far one; `x` goes to the left, `y` to the right.
    fn seen(&self, x: f64, y: f64, z: f64) -> (f64, f64) {
        (WIDTH / 2.0 + (y - x) * ASIDE * self.width, self.top + z + (x + y) * DOWN * self.width)
    }

    fn place(&self, (nx, ny): (usize, usize), height: f64) -> (f64, f64) {
        self.seen(part(&self.grid.x.1, nx), part(&self.grid.y.1, ny), self.up.at(height))
    }

    /// The floor, the height's axis at its left corner, and the plane of height 0.
    fn frame(&self, canvas: &mut Canvas, caption: &str) {
        canvas.text((WIDTH / 2.0, self.top + 50.0), Anchor::Middle, caption);
        let corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)];
        let plane = |height| corners.map(|(x, y)| self.seen(x, y, self.up.at(height)));
        canvas.polygon(&plane(self.up.low), "#999", "none");
        canvas.polygon(&plane(0.0), "#bbb", "#f4f4f4");
        canvas.polyline(
            &[self.seen(1.0, 0.0, self.up.at(self.up.low)), self.seen(1.0, 0.0, self.up.at(self.up.high))],
            "black",
            1.0,
        );
        for tick in self.up.ticks() {
            let (x, y) = self.seen(1.0, 0.0, self.up.at(tick));
            canvas.path(&format!("M{:.1} {y:.1}h4", x - 4.0), "black");
            canvas.text((x - 7.0, y + 4.0), Anchor::End, &number(tick));
        }
        let (x, y) = self.seen(1.0, 0.0, (self.up.from + self.up.to) / 2.0);
        canvas.upright((x - 42.0, y), &self.grid.z);
        self.ticks(canvas);
    }

    /// Names and values along the two near edges of the floor.
    fn ticks(&self, canvas: &mut Canvas) {
        let floor = self.up.at(self.up.low);
        let (x, y) = (&self.grid.x, &self.grid.y);
        for (nth, value) in x.1.iter().enumerate().filter(|(nth, _)| is_labelled(*nth, x.1.len())) {
            let (across, down) = self.seen(part(&x.1, nth), 1.0, floor);
            canvas.text((across + 5.0, down + 14.0), Anchor::Start, &number(*value));
        }
        for (nth, value) in y.1.iter().enumerate().filter(|(nth, _)| is_labelled(*nth, y.1.len())) {
            let (across, down) = self.seen(1.0, part(&y.1, nth), floor);
            canvas.text((across - 5.0, down + 14.0), Anchor::End, &number(*value));
        }
        let (across, down) = self.seen(0.5, 1.0, floor);
        canvas.text((across + 26.0, down + 38.0), Anchor::Start, &x.0);
        let (across, down) = self.seen(1.0, 0.5, floor);
        canvas.text((across - 26.0, down + 38.0), Anchor::End, &y.0);
    }

    /// From the far corner to the near one, so that what is in front hides what is behind.
    fn draw(&self, canvas: &mut Canvas, surfaces: &[Surface]) {
        let (columns, rows) = (self.grid.x.1.len(), self.grid.y.1.len());
        let cells = (1..columns).flat_map(|nx| (1..rows).map(move |ny| (nx, ny)));
        let mut cells: Vec<_> = cells.collect();
        cells.sort_by_key(|(nx, ny)| (nx + ny, *nx));
        for (nx, ny) in cells {
            for (nth, surface) in surfaces.iter().enumerate() {
                let corners = [(nx - 1, ny - 1), (nx, ny - 1), (nx, ny), (nx - 1, ny)];
                let places = corners.map(|at| Some(self.place(at, surface.height(at)?)));
                // A surface may have fewer heights than the grid: a cell without a corner is left out.
                if let Some(places) = places.into_iter().collect::<Option<Vec<_>>>() {
                    canvas.polygon(&places, colour(nth), "white");
                }
            }
        }
        for (nth, surface) in surfaces.iter().enumerate() {
            let (x, y) = (WIDTH - 140.0, self.top + 50.0 + 20.0 * nth as f64);
            canvas.rectangle((x, y - 9.0), (10.0, 10.0), colour(nth));
            canvas.text((x + 15.0, y), Anchor::Start, &surface.name);
        }
    }
}

/// Where the `nth` value is on its axis, from 0 to 1.
fn part(values: &[f64], nth: usize) -> f64 {
    let (first, last) = (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(1.0));
    if last > first { (values.get(nth).copied().unwrap_or(first) - first) / (last - first) } else { 0.0 }
}

/// Some five labels an axis, the first and the last among them.
fn is_labelled(nth: usize, of: usize) -> bool {
    let step = (of.saturating_sub(1)).div_ceil(4).max(1);
    nth + 1 == of || (nth.is_multiple_of(step) && nth + step < of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let axis = |name: &str, most: u32| (name.to_owned(), (1..=most).map(f64::from).collect());
        Grid { x: axis("clients", 4), y: axis("shares", 3), z: "error".into() }
    }

    #[test]
    fn every_cell_of_every_surface_is_drawn_once() {
        let surface = |name: &str, sign: f64| Surface {
            name: name.into(),
            heights: (0..4).map(|x| (0..3).map(|y| sign * f64::from(x + y)).collect()).collect(),
        };
        let surfaces = super::surfaces(
            "t",
            &grid(),
            &[("one".into(), vec![surface("low", -1.0), surface("high", 1.0)]), ("two".into(), vec![])],
        );
        assert_eq!(surfaces.matches("fill=\"white\" stroke=").count(), 2 * 3 * 2);
        assert!(!surfaces.contains("NaN") && surfaces.ends_with("</svg>\n"));
        for text in ["clients", "shares", "error", "one", "two", "low", "high"] {
            assert!(surfaces.contains(&format!(">{text}<")), "{text}");
        }
    }

    #[test]
    fn a_surface_with_missing_heights_leaves_holes() {
        let surface = Surface { name: "s".into(), heights: vec![vec![1.0, 2.0], vec![3.0]] };
        let text = surfaces("t", &grid(), &[(String::new(), vec![surface])]);
        assert_eq!(text.matches("fill=\"white\" stroke=").count(), 0);
    }
}
