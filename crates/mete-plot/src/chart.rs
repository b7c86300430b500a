//! Lines over logarithmic or linear axes, and bars in groups.

use crate::canvas::{Anchor, COLOURS, Canvas, colour};
use crate::number::{number, short};
use crate::scale::{Axis, Scale};

/// The width of all charts: as narrow as their texts allow, because on a narrow screen texts shrink with the
/// chart.
pub(crate) const WIDTH: f64 = 590.0;
/// Without the legend, which is below.
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
/// Where names stand at the ends of lines.
const RIGHT_OF_NAMES: f64 = 170.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;
/// Where a line has more points than this, none has dots.
const DOTTED: usize = 20;
/// How wide the ends of an interval are.
const CAP: f64 = 6.0;
/// How wide a line is.
const USUAL_WIDTH: f64 = 2.0;
/// How much wider a line is than the next one on it.
const WIDER: f64 = 2.5;
/// From one name beside the ends of lines to the next one at least.
const NAME_HEIGHT: f64 = 16.0;
/// How wide a letter is, at most in the mean.
const LETTER: f64 = 8.0;
/// From one line of the legend to the next.
const LEGEND_LINE: f64 = 22.0;
/// A sample of the colour, and the room behind the name.
const LEGEND_BESIDE: f64 = 36.0;

/// Points that belong together, in the order of `x`.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What they are.
    pub name: String,
    /// Where they are.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Points of this name.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
        Series { name: name.into(), points: points.into_iter().collect() }
    }
}

/// The intervals in which values lie, from and to, for each series one for each of its values; `None` where
/// none is known. A series may have no intervals at all.
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

/// Lines that lie on one another for most of their way. The first is the widest and the last the narrowest,
/// so that each is seen, and the horizontal axis, which is linear, begins where they begin.
pub fn lines_on_one_another(title: &str, x: &str, y: &Axis, series: &[Series]) -> String {
    drawn_lines(title, &Axis::linear(x), y, series, &[], true)
}

/// A line for each series, and for its points intervals on the vertical axis.
pub fn lines_with_intervals(
    title: &str,
    x: &Axis,
    y: &Axis,
    series: &[Series],
    intervals: &Intervals,
) -> String {
    drawn_lines(title, x, y, series, intervals, false)
}

fn drawn_lines(
    title: &str,
    x: &Axis,
    y: &Axis,
    series: &[Series],
    intervals: &Intervals,
    lie_on_one_another: bool,
) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    // With more names than colours, each stands at the end of its line.
    let is_crowded = series.len() > COLOURS.len();
    let right = WIDTH - if is_crowded { RIGHT_OF_NAMES } else { RIGHT };
    let across = points().map(|point| point.0);
    // From zero on, lines that differ little would fill a small part of the width.
    let across = match lie_on_one_another {
        true => Scale::fitted(across, (LEFT, right)),
        false => Scale::new(x, across, (LEFT, right)),
    };
    let up = Scale::new(y, points().map(|point| point.1).chain(ends(intervals)), (HEIGHT - BOTTOM, TOP));
    let names = if is_crowded { Vec::new() } else { series.iter().map(|series| &*series.name).collect() };
    let mut picture = Picture::new(title, right, &names);
    picture.vertical_axis(y, &up);
    picture.horizontal_axis(x, &across);
    let is_dotted = series.iter().all(|series| series.points.len() <= DOTTED);
    let mut line_ends = Vec::new();
    let last = series.len().saturating_sub(1);
    for (nth, series) in series.iter().enumerate() {
        let usable = series
            .points
            .iter()
            .filter(|(px, py)| (!x.is_logarithmic || *px > 0.0) && (!y.is_logarithmic || *py > 0.0));
        let places: Vec<_> = usable.map(|&(px, py)| (across.at(px), up.at(py))).collect();
        // A line is drawn over the ones before it, so these must be wider to be seen on both of its sides.
        let above = if lie_on_one_another { last - nth } else { 0 };
        picture.canvas.dashed(&places, nth, USUAL_WIDTH + WIDER * above as f64);
        if is_dotted {
            places.iter().for_each(|&place| picture.canvas.dot(place, colour(nth)));
        }
        for (at, (px, _)) in series.points.iter().enumerate() {
            picture.interval(across.at(*px), interval_of(intervals, nth, at), &up, colour(nth));
        }
        line_ends.extend(places.last().filter(|_| is_crowded).map(|&end| (end, nth)));
    }
    picture.names_at_ends(line_ends, |nth| &series[nth].name);
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
    let names: Vec<_> = series.iter().map(|(name, _)| name.as_str()).collect();
    let mut picture = Picture::new(title, WIDTH - RIGHT, &names);
    picture.vertical_axis(y, &up);
    let room = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let width = room * 0.8 / series.len().max(1) as f64;
    let base = up.at(up.low.max(0.0));
    for (nth, group) in groups.iter().enumerate() {
        let left = LEFT + room * (nth as f64 + 0.1);
        // Names that would run into one another stand in two lines.
        let lower = if group_names_collide(groups, room) && nth % 2 == 1 { 15.0 } else { 0.0 };
        picture.canvas.text((left + room * 0.4, HEIGHT - BOTTOM + 18.0 + lower), Anchor::Middle, group);
        for (at, (_, values)) in series.iter().enumerate() {
            let Some(&value) = values.get(nth) else { continue };
            let x = left + width * at as f64;
            let top = up.at(value);
            let (corner, size) = ((x, base.min(top)), (width * 0.92, (base - top).abs()));
            if value > 0.0 {
                picture.canvas.rectangle(corner, size, colour(at));
            } else if base != top {
                // A value that is not above zero is noise if it is a cost, so the bar is not filled.
                picture.canvas.hollow(corner, size, colour(at));
            }
            // Lengths on such an axis do not compare by eye.
            if y.is_logarithmic {
                let top = interval_of(intervals, at, nth).map_or(value, |(_, high)| high.max(value));
                picture.canvas.text((x + width * 0.46, up.at(top) - 5.0), Anchor::Middle, &short(value));
            }
            picture.interval(x + width * 0.46, interval_of(intervals, at, nth), &up, "black");
        }
    }
    picture.end()
}

/// Whether two neighbouring names need more room than they have.
fn group_names_collide(groups: &[String], room: f64) -> bool {
    // Each name is centred below its group, so that half of it reaches towards its neighbour.
    groups.windows(2).any(|pair| (pair[0].len() + pair[1].len()) as f64 * LETTER / 2.0 > room)
}

/// The places of a legend's samples: beside one another as long as there is room, then in the next line.
fn legend_places(names: &[&str]) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (LEFT, HEIGHT + LEGEND_LINE / 2.0);
    let places = names.iter().map(|name| {
        let width = LEGEND_BESIDE + LETTER * name.chars().count() as f64;
        // A name that is wider than the picture stands alone in its line, and reaches beyond it.
        if x > LEFT && x + width > WIDTH {
            (x, y) = (LEFT, y + LEGEND_LINE);
        }
        x += width;
        (x - width, y)
    });
    places.collect()
}

/// A canvas with two axes and, below, a legend.
struct Picture<'a> {
    canvas: Canvas,
    /// Where the plot ends.
    right: f64,
    /// The names of the legend, and where they go.
    legend: Vec<(&'a str, (f64, f64))>,
}

impl<'a> Picture<'a> {
    fn new(title: &str, right: f64, names: &[&'a str]) -> Picture<'a> {
        let places = legend_places(names);
        let below = places.last().map_or(0.0, |(_, y)| y + LEGEND_LINE / 2.0 - HEIGHT);
        let mut canvas = Canvas::new(title, (WIDTH, HEIGHT + below));
        canvas.path(&format!("M{LEFT} {TOP}V{}H{right}", HEIGHT - BOTTOM), "black");
        Picture { canvas, right, legend: names.iter().copied().zip(places).collect() }
    }

    fn vertical_axis(&mut self, axis: &Axis, scale: &Scale) {
        for tick in scale.ticks() {
            let at = scale.at(tick);
            self.canvas.path(&format!("M{LEFT} {at:.1}H{}", self.right), "#ddd");
            self.canvas.text((LEFT - 6.0, at + 4.0), Anchor::End, &number(tick));
        }
        self.canvas.upright((16.0, (TOP + HEIGHT - BOTTOM) / 2.0), &axis.label);
    }

    fn horizontal_axis(&mut self, axis: &Axis, scale: &Scale) {
        for tick in scale.ticks() {
            self.canvas.text((scale.at(tick), HEIGHT - BOTTOM + 18.0), Anchor::Middle, &number(tick));
        }
        self.canvas.text(((LEFT + self.right) / 2.0, HEIGHT - 10.0), Anchor::Middle, &axis.label);
    }

    /// Puts each name beside the end of its line, or lower where another name is there already; a thin line
    /// leads to it.
    fn names_at_ends<'b>(&mut self, mut ends: Vec<((f64, f64), usize)>, name: impl Fn(usize) -> &'b str) {
        ends.sort_by(|((_, one), _), ((_, other), _)| one.total_cmp(other));
        let room = HEIGHT - BOTTOM - NAME_HEIGHT * ends.len() as f64;
        let mut lowest = f64::NEG_INFINITY;
        for (above, ((x, y), nth)) in ends.into_iter().enumerate() {
            let at = y.min(room + NAME_HEIGHT * (above + 1) as f64).max(lowest + NAME_HEIGHT);
            lowest = at;
            let (from, to) = (self.right + 16.0, self.right + 36.0);
            self.canvas.path(&format!("M{x:.1} {y:.1}L{from:.1} {at:.1}"), "#bbb");
            self.canvas.dashed(&[(from, at), (to, at)], nth, USUAL_WIDTH);
            self.canvas.text((to + 4.0, at + 4.0), Anchor::Start, name(nth));
        }
    }

    /// An interval as a beam with caps.
    fn interval(&mut self, x: f64, interval: Option<(f64, f64)>, up: &Scale, stroke: &str) {
        if let Some((low, high)) = interval {
            let (low, high, left) = (up.at(low), up.at(high), x - CAP / 2.0);
            let caps = format!("M{left:.1} {low:.1}h{CAP}M{left:.1} {high:.1}h{CAP}");
            self.canvas.path(&format!("M{x:.1} {low:.1}V{high:.1}{caps}"), stroke);
        }
    }

    fn end(mut self) -> String {
        for (nth, (name, (x, y))) in self.legend.into_iter().enumerate() {
            self.canvas.rectangle((x, y - 11.0), (12.0, 12.0), colour(nth));
            self.canvas.text((x + 18.0, y), Anchor::Start, name);
        }
        self.canvas.end()
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
    fn klog_9_lines_that_lie_on_one_another_have_the_whole_width_and_are_all_seen() {
        let of = |nth: u8| Series {
            name: format!("line {nth}"),
            points: vec![(1000.0, 1.0), (1001.0 + f64::from(nth) / 10.0, 2.0)],
        };
        let text = lines_on_one_another("t", "us", &axis(false), &(0..4).map(of).collect::<Vec<_>>());
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with("<polyline")).collect();
        let number = |line: &str, name: &str| -> Vec<f64> {
            let value = line.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
            value.unwrap_or_default().split([' ', ',']).filter_map(|number| number.parse().ok()).collect()
        };
        let widths: Vec<_> = lines.iter().map(|line| number(line, "stroke-width")[0]).collect();
        assert!(widths.len() == 4 && widths.windows(2).all(|pair| pair[0] >= pair[1] + 2.0), "{widths:?}");
        let ends: Vec<_> = lines.iter().map(|line| number(line, "points")).collect();
        assert!(ends.iter().all(|end| end[0] < LEFT + 20.0 && end[2] > WIDTH - RIGHT - 160.0), "{ends:?}");
    }

    #[test]
    fn klog_9_legends_of_any_length_lie_inside_the_picture() {
        let names = ["fair kernel, by driver slices of a long name", "b", "priority kernel, by driver slice"];
        let series: Vec<_> = names.map(|name| (name.to_owned(), vec![1.0])).into();
        let text = bars("t", &axis(false), &["g".into()], &series);
        let of = |name: &str| {
            let line = text.lines().find(|line| line.contains(&format!(">{name}<")));
            let mut numbers = line.unwrap_or_default().split('"').filter_map(|part| part.parse::<f64>().ok());
            (numbers.next().unwrap_or(f64::NAN), numbers.next().unwrap_or(f64::NAN))
        };
        let places = names.map(of);
        for ((x, y), name) in places.iter().zip(names) {
            assert!(
                x + LETTER * name.len() as f64 <= WIDTH && *y > HEIGHT - BOTTOM,
                "{name}: {x} {y}\n{text}"
            );
        }
        assert!(places[0].1 == places[1].1 && places[2].1 > places[1].1, "{places:?}");
        let height =
            text.split(&format!("viewBox=\"0 0 {WIDTH} ")).nth(1).and_then(|rest| rest.split('"').next());
        assert!(height.and_then(|height| height.parse::<f64>().ok()) > Some(places[2].1), "{text}");
    }

    #[test]
    fn klog_9_many_lines_have_their_names_at_their_ends_and_none_lies_on_another() {
        let of = |nth: u8| Series {
            name: format!("policy {nth}"),
            points: vec![(1.0, 1.0), (10.0, 100.0 + f64::from(nth) / 100.0)],
        };
        let text = lines("t", &axis(true), &axis(true), &(0..18).map(of).collect::<Vec<_>>());
        let place = |line: &str| line.split("y=\"").nth(1)?.split('"').next()?.parse::<f64>().ok();
        let places: Vec<f64> =
            text.lines().filter(|line| line.contains(">policy ")).filter_map(place).collect();
        assert_eq!(places.len(), 18);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= NAME_HEIGHT - 0.1), "{places:?}");
        assert!(places.iter().all(|place| (0.0..HEIGHT).contains(place)), "{places:?}");
    }

    #[test]
    fn klog_9_pictures_are_described_and_dark_where_their_surroundings_are() {
        let groups = ["<g>".to_owned()];
        let text = bars("t", &axis(false), &groups, &[("s".into(), vec![-3.0]), ("p".into(), vec![9.0])]);
        let described = "<title>t</title>\n<desc>It shows: time &lt;ns&gt;; &lt;g&gt;; s; p.</desc>\n";
        assert!(text.contains(described), "{text}");
        assert!(text.contains("prefers-color-scheme:dark"));
        assert_eq!(text.matches("stroke-dasharray").count(), 1, "what is not above zero is hollow: {text}");
    }

    #[test]
    fn klog_9_bars_on_a_logarithmic_axis_begin_at_its_end_and_say_their_values() {
        let names = ["a", "b"].map(str::to_owned);
        let text = bars("t", &axis(true), &names, &[("s".into(), vec![114.06, 12_345.0])]);
        assert!(text.contains(">114<") && text.contains(">12345<") && text.contains(">100k<"), "{text}");
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
