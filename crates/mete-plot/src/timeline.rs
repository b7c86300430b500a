//! Which client ran when, lane by lane.

use crate::canvas::{Anchor, Canvas, colour};
use crate::chart::WIDTH;
use crate::number::number;
use crate::scale::{Axis, Scale};

const LEFT: f64 = 110.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 44.0;
const LANE: f64 = 17.0;
const GAP: f64 = 34.0;
const BOTTOM: f64 = 44.0;

/// One stretch of time of one client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its row in the lane.
    pub row: usize,
    /// From when.
    pub from: f64,
    /// Until when.
    pub to: f64,
}

/// Several clients over the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// What it shows.
    pub name: String,
    /// The names of its rows, the first one on top.
    pub rows: Vec<String>,
    /// Which row ran when.
    pub spans: Vec<Span>,
}

/// Lanes below one another over one axis of time.
pub fn timeline(title: &str, time: &str, lanes: &[Lane]) -> String {
    let height_of = |lane: &Lane| LANE * lane.rows.len() as f64 + GAP;
    let height = TOP + BOTTOM + lanes.iter().map(height_of).sum::<f64>();
    let mut canvas = Canvas::new(title, (WIDTH, height));
    let axis = Axis { label: time.into(), is_logarithmic: false };
    let ends = lanes.iter().flat_map(|lane| &lane.spans).map(|span| span.to);
    // A scale from zero to the last end, without the room that a scale of values has above the highest.
    let across = Scale {
        high: ends.fold(1e-9, f64::max),
        low: 0.0,
        ..Scale::new(&axis, std::iter::empty(), (LEFT, WIDTH - RIGHT))
    };
    let bottom = height - BOTTOM;
    for tick in across.ticks() {
        canvas.path(&format!("M{:.1} {:.1}V{bottom:.1}", across.at(tick), TOP + 12.0), "#ddd");
        canvas.text((across.at(tick), bottom + 16.0), Anchor::Middle, &number(tick));
    }
    let mut top = TOP;
    for lane in lanes {
        draw(&mut canvas, lane, &across, top + GAP - 8.0);
        top += height_of(lane);
    }
    canvas.text(((LEFT + WIDTH - RIGHT) / 2.0, bottom + 36.0), Anchor::Middle, time);
    canvas.end()
}

fn draw(canvas: &mut Canvas, lane: &Lane, across: &Scale, top: f64) {
    canvas.text((LEFT, top - 5.0), Anchor::Start, &lane.name);
    for (row, name) in lane.rows.iter().enumerate() {
        canvas.text((LEFT - 6.0, top + LANE * (row as f64 + 0.8)), Anchor::End, name);
    }
    for span in &lane.spans {
        let (from, to) = (across.at(span.from), across.at(span.to));
        let place = (from, top + LANE * span.row as f64 + 2.0);
        canvas.rectangle(place, (to - from, LANE - 4.0), colour(span.row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_span_is_drawn_in_its_row_and_every_name_is_said() {
        let span = |row, from, to| Span { row, from, to };
        let lane = Lane {
            name: "policy".into(),
            rows: vec!["a".into(), "b".into()],
            spans: vec![span(0, 0.0, 10.0), span(1, 10.0, 30.0), span(0, 30.0, 40.0)],
        };
        let text = timeline("t", "ms", &[lane]);
        assert_eq!(text.matches("<rect x=").count(), 3);
        assert_eq!(text.matches(&format!(" fill=\"{}\"", colour(0))).count(), 2);
        assert!([">policy<", ">a<", ">b<", ">ms<"].iter().all(|name| text.contains(name)));
    }

    #[test]
    fn a_timeline_of_nothing_is_still_a_picture() {
        let text = timeline("t", "ms", &[]);
        assert!(text.ends_with("</svg>\n") && !text.contains("NaN"), "{text}");
    }
}
