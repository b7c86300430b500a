//! What all pictures are drawn on.

use std::fmt::Write as _;

/// Told apart by eyes that see colours differently, too (Okabe and Ito).
pub(super) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555"];

/// The colour of the `nth` series.
pub(super) fn colour(nth: usize) -> &'static str {
    COLOURS[nth % COLOURS.len()]
}

/// Where the reader's surroundings are dark, so is the sheet. Rules of a style go before attributes.
const STYLE: &str = "<style>@media(prefers-color-scheme:dark){rect[fill=\"white\"]{fill:#16181c}text{fill:#e6e8eb}\
[stroke=\"black\"]{stroke:#e6e8eb}[stroke=\"#ddd\"],[stroke=\"#bbb\"],[stroke=\"#999\"]{stroke:#444b55}\
[fill=\"#f4f4f4\"]{fill:#20242a}[stroke=\"#0072b2\"]{stroke:#4aa8e8}[fill=\"#0072b2\"]{fill:#4aa8e8}\
[stroke=\"#555555\"]{stroke:#a8aeb8}[fill=\"#555555\"]{fill:#a8aeb8}}</style>\n";

/// A sheet with a title, white or dark as its surroundings are, no wider than these. A place is `(x, y)` from the upper left corner.
pub(super) struct Canvas {
    svg: String,
    /// Where the description goes, which programs that read aloud need: behind the title.
    description_at: usize,
    /// What is written in the picture, but for the axes' numbers.
    said: Vec<String>,
}

// Writing to a string cannot fail.
impl Canvas {
    pub(super) fn new(title: &str, (width, height): (f64, f64)) -> Canvas {
        let title = escaped(title);
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             style=\"max-width:100%;height:auto\" font-family=\"sans-serif\" font-size=\"14\" role=\"img\">\n<title>{title}</title>\n"
        );
        let description_at = head.len();
        let svg = format!(
            "{head}{STYLE}<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"8\" y=\"24\" font-size=\"15\">{title}</text>\n"
        );
        Canvas { svg, description_at, said: Vec::new() }
    }

    fn say(&mut self, text: &str) {
        if text.trim_end_matches(['k', 'M']).parse::<f64>().is_err() {
            self.said.push(text.to_owned());
        }
    }

    /// `anchor` says which part of the text is at the place: `start`, `middle` or `end`.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: &str, text: &str) {
        let text = escaped(text);
        self.say(&text);
        let _ = writeln!(self.svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
    }

    /// A text that is read upwards.
    pub(super) fn upright(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        self.say(&text);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" transform=\"rotate(-90 {x} {y})\">{text}</text>"
        );
    }

    /// A line through places in SVG's path language.
    pub(super) fn path(&mut self, path: &str, stroke: &str) {
        let _ = writeln!(self.svg, "<path d=\"{path}\" stroke=\"{stroke}\" fill=\"none\"/>");
    }

    /// The line of the `nth` series: dashed once all colours are used up.
    pub(super) fn dashed(&mut self, places: &[(f64, f64)], nth: usize, width: f64) {
        let dashes = ["none", "7 3", "2 3"][nth / COLOURS.len() % 3];
        let (points, stroke) = (joined(places), colour(nth));
        let _ = writeln!(
            self.svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dashes}\"/>"
        );
    }

    pub(super) fn polyline(&mut self, places: &[(f64, f64)], stroke: &str, width: f64) {
        let points = joined(places);
        let _ = writeln!(
            self.svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>"
        );
    }

    pub(super) fn polygon(&mut self, places: &[(f64, f64)], stroke: &str, fill: &str) {
        let points = joined(places);
        let _ = writeln!(
            self.svg,
            "<polygon points=\"{points}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"0.7\"/>"
        );
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), fill: &str) {
        let _ = writeln!(self.svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{fill}\"/>");
    }

    pub(super) fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
        let _ = writeln!(
            self.svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        );
    }

    /// A bar of which nothing is known but its place: the value is not above zero.
    pub(super) fn hollow(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), stroke: &str) {
        let _ = writeln!(
            self.svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"none\" \
             stroke=\"{stroke}\" stroke-dasharray=\"2 2\"/>"
        );
    }

    pub(super) fn end(mut self) -> String {
        let description = format!("<desc>It shows: {}.</desc>\n", self.said.join("; "));
        self.svg.insert_str(self.description_at, &description);
        self.svg.push_str("</svg>\n");
        self.svg
    }
}

fn joined(places: &[(f64, f64)]) -> String {
    let places: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    places.join(" ")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
