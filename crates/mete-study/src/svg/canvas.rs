//! What all pictures are drawn on.

use std::fmt::Write as _;

/// Told apart by eyes that see colours differently, too (Okabe and Ito).
pub(super) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

/// The colour of the `nth` series.
pub(super) fn colour(nth: usize) -> &'static str {
    COLOURS[nth % COLOURS.len()]
}

/// A white sheet with a title. A place is `(x, y)` from the upper left corner.
pub(super) struct Canvas(String);

// Writing to a string cannot fail.
impl Canvas {
    pub(super) fn new(title: &str, (width, height): (f64, f64), left: f64) -> Canvas {
        Canvas(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n\
             <title>{0}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{left}\" y=\"24\" font-size=\"15\">{0}</text>\n",
            escaped(title)
        ))
    }

    /// `anchor` says which part of the text is at the place: `start`, `middle` or `end`.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(self.0, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    }

    /// A text that is read upwards.
    pub(super) fn upright(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.0,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" transform=\"rotate(-90 {x} {y})\">{text}</text>"
        );
    }

    /// A line through places in SVG's path language.
    pub(super) fn path(&mut self, path: &str, stroke: &str) {
        let _ = writeln!(self.0, "<path d=\"{path}\" stroke=\"{stroke}\" fill=\"none\"/>");
    }

    /// The line of the `nth` series: dashed once all colours are used up.
    pub(super) fn dashed(&mut self, places: &[(f64, f64)], nth: usize) {
        let dashes = ["none", "7 3", "2 3"][nth / COLOURS.len() % 3];
        let (points, stroke) = (joined(places), colour(nth));
        let _ = writeln!(
            self.0,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dashes}\"/>"
        );
    }

    pub(super) fn polyline(&mut self, places: &[(f64, f64)], stroke: &str, width: f64) {
        let points = joined(places);
        let _ = writeln!(
            self.0,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>"
        );
    }

    pub(super) fn polygon(&mut self, places: &[(f64, f64)], stroke: &str, fill: &str) {
        let points = joined(places);
        let _ = writeln!(
            self.0,
            "<polygon points=\"{points}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"0.7\"/>"
        );
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), fill: &str) {
        let _ = writeln!(self.0, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\"/>");
    }

    pub(super) fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
        let _ = writeln!(
            self.0,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        );
    }

    pub(super) fn end(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

fn joined(places: &[(f64, f64)]) -> String {
    let places: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    places.join(" ")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
