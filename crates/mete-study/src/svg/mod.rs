//! Plots as static SVG, without a library: lines over logarithmic or linear axes, bars in groups, surfaces
//! over two axes, and who ran when.

mod canvas;
mod surface;
mod timeline;

use canvas::{COLOURS, Canvas, colour};

use crate::report::short;

pub use surface::{Grid, Surface, surfaces};
pub use timeline::{Lane, Span, timeline};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;
/// Where a line has more points than this, none has dots.
const DOTTED: usize = 20;
/// How wide the ends of an interval are.
const CAP: f64 = 6.0;

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// Whether equal ratios, not equal differences, are equally far apart.
    pub is_logarithmic: bool,
}

/// Points that belong together, in the order of `x`.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What they are.
    pub name: String,
    /// Where they are.
    pub points: Vec<(f64, f64)>,
}

/// Maps values to places between two ends.
struct Scale {
    is_logarithmic: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn new(axis: &Axis, values: impl Iterator<Item = f64>, (from, to): (f64, f64)) -> Scale {
        let usable = values.filter(|value| value.is_finite() && (!axis.is_logarithmic || *value > 0.0));
        let (low, high) = usable
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
        let (low, high) = if axis.is_logarithmic {
            (10f64.powf(low.log10().floor()), 10f64.powf(high.log10().ceil().max(low.log10().floor() + 1.0)))
        } else {
            (low.min(0.0), if high > low.min(0.0) { high * 1.05 } else { low + 1.0 })
        };
        Scale { is_logarithmic: axis.is_logarithmic, low, high, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let part = if self.is_logarithmic {
            (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + part * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            let decades = (self.low.log10().round() as i32)..=(self.high.log10().round() as i32);
            return decades.map(|decade| 10f64.powi(decade)).collect();
        }
        let rough = (self.high - self.low) / 6.0;
        let unit = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|nice| nice * unit).find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        (first..=(self.high / step).floor() as i64).map(|nth| nth as f64 * step).collect()
    }
}

/// Where a value lies for certain, from and to; `None` if nothing is known. For each series, one for each of
/// its values, or none at all.
pub type Intervals = [Vec<Option<(f64, f64)>>];

fn ends(intervals: &Intervals) -> impl Iterator<Item = f64> {
    intervals.iter().flatten().flatten().flat_map(|&(low, high)| [low, high])
}

fn interval_of(intervals: &Intervals, series: usize, value: usize) -> Option<(f64, f64)> {
    intervals.get(series)?.get(value).copied().flatten()
}

/// A line for each series.
pub fn lines(title: &str, x: &Axis, y: &Axis, series: &[Series]) -> String {
    lines_with_intervals(title, x, y, series, &[])
}

/// A line for each series, and for its points intervals on the vertical axis.
pub fn lines_with_intervals(
    title: &str,
    x: &Axis,
    y: &Axis,
    series: &[Series],
    intervals: &Intervals,
) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    let across = Scale::new(x, points().map(|point| point.0), (LEFT, WIDTH - RIGHT));
    let up = Scale::new(y, points().map(|point| point.1).chain(ends(intervals)), (HEIGHT - BOTTOM, TOP));
    let mut picture = Picture::new(title);
    picture.vertical_axis(y, &up);
    picture.horizontal_axis(x, &across);
    let is_dotted = series.iter().all(|series| series.points.len() <= DOTTED);
    for (nth, series) in series.iter().enumerate() {
        let usable = series
            .points
            .iter()
            .filter(|(px, py)| (!x.is_logarithmic || *px > 0.0) && (!y.is_logarithmic || *py > 0.0));
        let places: Vec<_> = usable.map(|&(px, py)| (across.at(px), up.at(py))).collect();
        picture.0.dashed(&places, nth);
        if is_dotted {
            places.iter().for_each(|&place| picture.0.dot(place, colour(nth)));
        }
        for (at, (px, _)) in series.points.iter().enumerate() {
            picture.interval(across.at(*px), interval_of(intervals, nth, at), &up, colour(nth));
        }
        picture.legend_of_line(nth, &series.name);
    }
    picture.end()
}

/// Bars in groups: a group for each name, in it a bar for each series, which has one value a group.
pub fn bars(title: &str, y: &Axis, groups: &[String], series: &[(String, Vec<f64>)]) -> String {
    bars_with_intervals(title, y, groups, series, &[])
}

/// The same, with intervals on the vertical axis.
pub fn bars_with_intervals(
    title: &str,
    y: &Axis,
    groups: &[String],
    series: &[(String, Vec<f64>)],
    intervals: &Intervals,
) -> String {
    let values = series.iter().flat_map(|(_, values)| values.iter().copied()).chain(ends(intervals));
    let up = Scale::new(y, values, (HEIGHT - BOTTOM, TOP));
    let mut picture = Picture::new(title);
    picture.vertical_axis(y, &up);
    let room = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let width = room * 0.8 / series.len().max(1) as f64;
    let base = up.at(up.low.max(0.0));
    for (nth, group) in groups.iter().enumerate() {
        let left = LEFT + room * (nth as f64 + 0.1);
        picture.0.text((left + room * 0.4, HEIGHT - BOTTOM + 18.0), "middle", group);
        for (at, (_, values)) in series.iter().enumerate() {
            let Some(&value) = values.get(nth) else { continue };
            let x = left + width * at as f64;
            picture.bar(x, width * 0.92, (base, up.at(value)), colour(at));
            picture.interval(x + width * 0.46, interval_of(intervals, at, nth), &up, "black");
        }
    }
    for (nth, (name, _)) in series.iter().enumerate() {
        picture.legend(nth, name);
    }
    picture.end()
}

/// A canvas with two axes.
struct Picture(Canvas);

impl Picture {
    fn new(title: &str) -> Picture {
        let mut canvas = Canvas::new(title, (WIDTH, HEIGHT), LEFT);
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        canvas.path(&format!("M{LEFT} {TOP}V{bottom}H{right}"), "black");
        Picture(canvas)
    }

    fn vertical_axis(&mut self, axis: &Axis, scale: &Scale) {
        for tick in scale.ticks() {
            let at = scale.at(tick);
            self.0.path(&format!("M{LEFT} {at:.1}H{}", WIDTH - RIGHT), "#ddd");
            self.0.text((LEFT - 6.0, at + 4.0), "end", &number(tick));
        }
        self.0.upright((16.0, (TOP + HEIGHT - BOTTOM) / 2.0), &axis.label);
    }

    fn horizontal_axis(&mut self, axis: &Axis, scale: &Scale) {
        for tick in scale.ticks() {
            self.0.text((scale.at(tick), HEIGHT - BOTTOM + 18.0), "middle", &number(tick));
        }
        self.0.text(((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0), "middle", &axis.label);
    }

    fn bar(&mut self, x: f64, width: f64, (base, top): (f64, f64), colour: &str) {
        self.0.rectangle((x, base.min(top)), (width, (base - top).abs()), colour);
    }

    /// A beam with caps.
    fn interval(&mut self, x: f64, interval: Option<(f64, f64)>, up: &Scale, stroke: &str) {
        if let Some((low, high)) = interval {
            let (low, high, left) = (up.at(low), up.at(high), x - CAP / 2.0);
            let caps = format!("M{left:.1} {low:.1}h{CAP}M{left:.1} {high:.1}h{CAP}");
            self.0.path(&format!("M{x:.1} {low:.1}V{high:.1}{caps}"), stroke);
        }
    }

    fn legend(&mut self, nth: usize, name: &str) {
        let (x, y) = legend_place(nth);
        self.0.rectangle((x, y - 10.0), (12.0, 12.0), colour(nth));
        self.0.text((x + 18.0, y), "start", name);
    }

    /// As the line itself is: dashed where colours repeat.
    fn legend_of_line(&mut self, nth: usize, name: &str) {
        if nth < COLOURS.len() {
            return self.legend(nth, name);
        }
        let (x, y) = legend_place(nth);
        self.0.dashed(&[(x - 4.0, y - 4.0), (x + 14.0, y - 4.0)], nth);
        self.0.text((x + 18.0, y), "start", name);
    }

    fn end(self) -> String {
        self.0.end()
    }
}

fn legend_place(nth: usize) -> (f64, f64) {
    (WIDTH - RIGHT + 14.0, TOP + 10.0 + 20.0 * nth as f64)
}

fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1e6 => format!("{}M", value / 1e6),
        large if large >= 1e4 => format!("{}k", value / 1e3),
        _ if value.fract() == 0.0 => format!("{value}"),
        _ => short(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(is_logarithmic: bool) -> Axis {
        Axis { label: "time <ns>".into(), is_logarithmic }
    }

    #[test]
    fn ends_of_the_data_lie_inside_the_picture() {
        for is_logarithmic in [false, true] {
            let scale = Scale::new(&axis(is_logarithmic), [3.0, 700.0].into_iter(), (0.0, 100.0));
            assert!((0.0..=100.0).contains(&scale.at(3.0)));
            assert!((0.0..=100.0).contains(&scale.at(700.0)));
            assert!(scale.ticks().len() >= 3, "{:?}", scale.ticks());
        }
    }

    #[test]
    fn a_plot_names_every_series_and_escapes_its_texts() {
        let series = Series { name: "a & b".into(), points: vec![(1.0, 1.0), (10.0, 5.0)] };
        let text = lines("title", &axis(true), &axis(true), &[series]);
        assert!(text.starts_with("<svg") && text.ends_with("</svg>\n"));
        assert!(text.contains("a &amp; b") && text.contains("time &lt;ns&gt;"));
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn intervals_lie_inside_the_picture_and_are_drawn_where_they_are_known() {
        let values = [("s".to_owned(), vec![1.0, 2.0])];
        let groups = ["g".to_owned(), "h".to_owned()];
        let drawn =
            |intervals: &Intervals| bars_with_intervals("t", &axis(false), &groups, &values, intervals);
        let caps = |text: &str| text.matches("h6M").count();
        let with = drawn(&[vec![Some((0.5, 20.0)), None]]);
        assert_eq!((caps(&with), caps(&drawn(&[]))), (1, 0));
        assert!(with.contains(">20<"), "the axis reaches the end of the interval: {with}");
        let series = [Series { name: "s".into(), points: vec![(1.0, 1.0), (2.0, 2.0)] }];
        let interval = vec![Some((0.5, 1.5)), Some((1.0, 3.0))];
        let lines = lines_with_intervals("t", &axis(false), &axis(false), &series, &[interval]);
        assert_eq!(caps(&lines), 2);
    }

    #[test]
    fn plots_without_data_or_with_one_value_are_still_plots() {
        let empty = lines("t", &axis(true), &axis(true), &[]);
        let one = bars("t", &axis(false), &["g".into()], &[("s".into(), vec![0.0])]);
        for text in [empty, one] {
            assert!(text.ends_with("</svg>\n") && !text.contains("NaN"), "{text}");
        }
    }
}
